"""The same work on several interpreters: CPython with and without its global lock, PyPy.

    python benchmarks/interpreters.py PYTHON...

Each is started again and again, in turns, and decodes and encodes in both builds, or in the pure one where
nothing is compiled for it. The clock is CPU time. What counts is the best round, since other work on the
machine only ever adds to it. "First" is what a new process needs for each of its first thousand; PyPy
compiles what runs often, and is fast behind that. Writes benchmarks/results/interpreters.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
from results import store

from amqpcodec import _backend

SOURCES = Path(__file__).parent.parent / "src"
COUNT, SIZE = 1000, 256
SECONDS = 1.5
Times = dict[str, float]


def works(build: str) -> dict[str, Callable[[], object]]:
    """What is timed, by its name: each a thousand messages."""
    amqp = _backend.load("amqpcodec._generated.rabbitmq", build)
    return {
        f"{action}, {kind}": make(amqp, contents(SIZE, COUNT))
        for action, make in (("decode a delivery", decoding), ("encode a publish", encoding))
        for kind, contents in (("fixed", corpus.fixed), ("varied", corpus.varied))
    }


def decoding(amqp: Any, contents: list[corpus.Content]) -> Callable[[], object]:
    """All frames of deliveries, with all their fields."""
    octets, decoder = corpus.delivery_stream(contents), amqp.FrameDecoder(frame_max=corpus.FRAME_MAX)

    def work() -> object:
        frames = list(decoder.feed(octets))
        assert len(frames) == 3 * COUNT
        return frames

    return work


def encoding(amqp: Any, contents: list[corpus.Content]) -> Callable[[], object]:
    """Records made, and octets of them."""

    def work() -> object:
        made = b""
        for content in contents:
            properties = amqp.BasicProperties(
                content_type=content.content_type,
                delivery_mode=content.delivery_mode,
                headers=content.headers,
                timestamp=content.moment,
                message_id=content.message_id,
            )
            publish = amqp.BasicPublish(exchange=content.exchange, routing_key=content.routing_key)
            made = amqp.encode_message(corpus.CHANNEL, publish, properties, content.body)
        return made

    return work


def measure() -> dict[str, dict[str, Times]]:
    """Nanoseconds a message in this process, by build and work."""
    found: dict[str, dict[str, Times]] = {}
    for build in ("c", "py"):
        try:
            items = works(build)
        except ImportError:
            continue
        found[build] = {name: nanoseconds(work) for name, work in items.items()}
    return found


def nanoseconds(work: Callable[[], object]) -> Times:
    """Of one message: in the first round, and in the best of all that there is time for."""
    rounds = []
    end = time.process_time() + SECONDS
    while not rounds or time.process_time() < end:
        begin = time.process_time()
        work()
        rounds.append((time.process_time() - begin) / COUNT * 1e9)
    return {"first": rounds[0], "best": min(rounds)}


def about() -> dict[str, Any]:
    """The interpreter that runs this."""
    implementation = sys.implementation
    release = ".".join(map(str, implementation.version[:3]))
    name = f"{platform.python_implementation()} {release}"
    if implementation.name != "cpython":
        name += f", Python {platform.python_version()}"
    lock = "" if not sysconfig.get_config_var("Py_GIL_DISABLED") else ", no global lock"
    return {"name": name + lock, "times": measure()}


def main() -> int:
    """Measure them all, store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("interpreters", nargs="*", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--here", action="store_true", help="measure this interpreter, print")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(about()))
        return 0
    best: dict[str, Any] = {}
    for _ in range(options.rounds):
        for interpreter in options.interpreters:
            done = subprocess.run(
                [interpreter, __file__, "--here"],
                env=os.environ | {"PYTHONPATH": str(SOURCES)},
                stdout=subprocess.PIPE,
                check=True,
            )
            measured = json.loads(done.stdout)
            merge(best.setdefault(measured["name"], {}), measured["times"])
    store("interpreters", {"rounds": options.rounds, "interpreters": best})
    return 0


def merge(best: dict[str, dict[str, Times]], times: dict[str, dict[str, Times]]) -> None:
    """Keep the smaller of two times, by build, work and kind."""
    for build, items in times.items():
        for name, found in items.items():
            kept = best.setdefault(build, {}).setdefault(name, found)
            best[build][name] = {kind: min(kept[kind], found[kind]) for kind in found}


if __name__ == "__main__":
    sys.exit(main())
