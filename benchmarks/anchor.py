"""The anchor in C: rabbitmq-c and the compiled build decode the same file by turns, in one run.

rabbitmq-c fills C structs whose strings point into its input buffer; amqpcodec makes Python objects.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import corpus
from captures import FOLDER
from peers.ours import Ours
from results import store

SOURCE = Path(__file__).parent / "anchor.c"
COUNT = 2000  # deliveries in a file
TURNS = 15
ROUNDS = 5  # in each turn
CHUNK = 65536  # octets at once, for work on what a socket gives
INSTALL = (
    "librabbitmq is not installed (Debian, Ubuntu: apt-get install librabbitmq-dev); nothing was measured"
)


def build(folder: Path) -> Path | None:
    """The compiled anchor; None where there is no compiler or no rabbitmq-c."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        print("bench-c: no C compiler; nothing was measured")
        return None
    target = folder / "anchor"
    options = ["-O2", "-Wall", "-Wextra", "-Wno-deprecated-declarations"]
    command = [compiler, *options, str(SOURCE), "-o", str(target)]
    done = subprocess.run([*command, "-lrabbitmq"], capture_output=True, encoding="utf-8", check=False)
    if done.returncode == 0:
        return target
    print(f"bench-c: {INSTALL}" if "amqp.h" in done.stderr or "-lrabbitmq" in done.stderr else done.stderr)
    return None


def compare(command: list[str], work: Callable[[], object], contents: list[corpus.Content]) -> dict[str, Any]:
    """Nanoseconds a delivery of both, measured by turns: what the command says, and what our work takes."""
    checked = sum(content.delivery_tag + content.seconds + 3 + len(content.body) for content in contents)
    theirs: list[float] = []
    ours: list[float] = []
    version = ""
    for _ in range(TURNS):
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
        answer = json.loads(done.stdout)
        assert (answer["frames"], answer["checked"]) == (3 * len(contents), checked), "the anchor misread"
        version = answer["version"]
        theirs += [taken / len(contents) for taken in answer["nanoseconds"]]
        for round_ in range(ROUNDS + 1):
            begin = perf_counter_ns()
            work()
            if round_ > 0:
                ours.append((perf_counter_ns() - begin) / len(contents))
    return {"version": version, "rabbitmq-c": {"min": min(theirs)}, "amqpcodec": {"min": min(ours)}}


def decoded(ours: Ours, anchor: Path, stream: Path, contents: list[corpus.Content]) -> dict[str, Any]:
    """Deliveries of a whole file."""
    data = stream.read_bytes()
    assert sum(1 for _ in ours.decode(data)) == 3 * len(contents)
    command = [str(anchor), str(stream), str(ROUNDS)]
    return compare(command, lambda: deque(ours.decode(data), maxlen=0), contents)


def consumed(ours: Ours, anchor: Path, stream: Path, contents: list[corpus.Content]) -> dict[str, Any]:
    """Deliveries in chunks, with three fields of each read."""
    chunks = corpus.chunks(stream.read_bytes(), CHUNK)
    read = sum(each.delivery_tag + len(each.message_id) + len(each.body) for each in contents)
    assert ours.consume(chunks) == read
    command = [str(anchor), str(stream), str(ROUNDS), str(CHUNK)]
    return compare(command, lambda: ours.consume(chunks), contents)


# What is measured, and of which deliveries. Those that are consumed have a tag each, as in a program.
WORK = (
    (decoded, "decode deliveries", 64, ("fixed", "varied")),
    (decoded, "decode deliveries", 256, ("fixed", "varied")),
    (decoded, "decode deliveries", 4096, ("fixed", "varied")),
    (consumed, "consume deliveries", 256, ("numbered", "varied")),
)


def main() -> None:
    """Build, measure, print and store."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    anchor = build(FOLDER)
    if anchor is None:
        return
    results = {}
    ours = Ours("amqpcodec", "c")
    for measured, work, size, kinds in WORK:
        for kind in kinds:
            item = f"{work}, {size} B, {kind}"
            contents = getattr(corpus, kind)(size, COUNT)
            stream = FOLDER / f"deliveries-{kind}-{size}.bin"
            stream.write_bytes(corpus.delivery_stream(contents))
            figures = results[item] = measured(ours, anchor, stream, contents)
            c, python = figures["rabbitmq-c"], figures["amqpcodec"]
            ratio = python["min"] / c["min"]
            print(
                f"{item}: rabbitmq-c {figures['version']} {c['min']:.0f} ns, "
                f"amqpcodec {python['min']:.0f} ns a delivery; ratio {ratio:.2f}"
            )
    store("anchor", results)


if __name__ == "__main__":
    main()
