"""`make bench-client-layer`: `aio.Client` beside other clients, in CPU time; at a RabbitMQ of their own.

Each client publishes messages of 256 octets, confirmed, with at most 128 outstanding. Then it consumes and
acknowledges them, with at most 200 unsettled. It does so in a process of its own, which compares what has
arrived. Clients take turns in each round. Figures are medians; ratios are medians of those within a round.
With ``--memory`` a million messages go through one client, and the peak of its memory is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from results import store
from support.broker import NoBrokerError, broker
from support.clients.play import Played, played, queue

from amqpcodec import IMPL

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "build/bench/clients"  # of `make bench-client-peers`
PATHS = os.pathsep.join(map(str, (HERE, HERE.parent / "tests", FOLDER / "python")))
NODE = FOLDER / "node_modules"
IN_C = FOLDER / "librabbitmq"
ACTIONS = ("publish", "consume")
OURS = "amqpcodec.aio"
UVLOOP = f"{OURS} on uvloop"
Play = Callable[[str, str, str, int], Played]  # of an action, a URL, a queue and a count
Times = dict[str, dict[str, list[float]]]  # microseconds by client and action, round by round


def in_python(module: str, peers: str = "") -> Play:
    """A module of `layer`, with what is to be accelerated."""

    def play(action: str, url: str, name: str, count: int) -> Played:
        found = played(["layer", module, action, url, name, str(count)], peers, PYTHONPATH=PATHS)
        for peer, state in found.status.items():
            if not state["active"] or state["fallbacks"]:
                raise AssertionError(f"{peer}: {state}")
        return found

    return play


def in_node(action: str, url: str, name: str, count: int) -> Played:
    return Played(**output(["node", str(HERE / "layer/amqplib.js"), action, url, name, str(count)]))


def in_c(action: str, url: str, name: str, count: int) -> Played:
    return Played(**output([str(IN_C), action, str(urlsplit(url).port), name, str(count)]))


def output(command: list[str]) -> Any:
    """Run a program; return what its last line says in JSON.

    Raises:
        RuntimeError: it failed.
    """
    environment = {**os.environ, "NODE_PATH": str(NODE), "PYTHONPATH": PATHS}
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-1000:]}{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


CLIENTS: dict[str, Play] = {
    OURS: in_python("ours"),
    f"{OURS}, one task": in_python("ours_soon"),
    UVLOOP: in_python("ours_uvloop"),
    "floor of asyncio": in_python("floor"),
    "aio-pika": in_python("aio_pika_tasks"),
    "aio-pika, drop-in": in_python("aio_pika_tasks", "pamqp"),
    "pika select": in_python("pika_select"),
    "Node amqplib": in_node,
    "librabbitmq": in_c,
}


def missing() -> dict[str, str]:
    """The clients that cannot be measured here, and why."""
    found = {}
    if not (FOLDER / "python/uvloop").exists():
        found[UVLOOP] = "uvloop is not installed (`make bench-client-peers`)"
    if shutil.which("node") is None:
        found["Node amqplib"] = "there is no Node"
    elif not (NODE / "amqplib").exists():
        found["Node amqplib"] = "amqplib is not installed (`make bench-client-peers`)"
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        found["librabbitmq"] = "there is no C compiler"
        return found
    FOLDER.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-O2", "-Wno-deprecated-declarations", str(HERE / "layer/librabbitmq.c")]
    done = subprocess.run(
        [*command, "-o", str(IN_C), "-lrabbitmq"], capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode != 0:
        found["librabbitmq"] = "it cannot be compiled (Debian, Ubuntu: apt-get install librabbitmq-dev)"
    return found


def versions(without: dict[str, str]) -> dict[str, str]:
    """The versions of what is measured."""
    found = {project: version(project) for project in ("aio-pika", "aiormq", "pamqp", "pika")}
    if "Node amqplib" not in without:
        found["amqplib"] = json.loads((NODE / "amqplib/package.json").read_text(encoding="utf-8"))["version"]
        found["Node"] = subprocess.run(
            ["node", "--version"], capture_output=True, encoding="utf-8", check=True
        ).stdout.strip()
    if UVLOOP not in without:
        found["uvloop"] = next((FOLDER / "python").glob("uvloop-*")).name.split("-")[1].removesuffix(".dist")
    return found


def measure(names: list[str], count: int, rounds: int) -> Times:
    """Let every client publish and consume so many messages in each round."""
    times: Times = {name: {action: [] for action in ACTIONS} for name in names}
    with broker() as url:
        for number in range(rounds):
            # Every other round the other way round: whoever comes first finds other caches.
            for client in names if number % 2 == 0 else names[::-1]:
                with queue(url) as name:
                    for action in ACTIONS:
                        found = CLIENTS[client](action, url, name, count)
                        times[client][action].append(found.microseconds)
            print(f"round {number + 1} of {rounds}", flush=True)
    return times


def summary(times: list[float], ours: list[float]) -> dict[str, float]:
    """The median of microseconds a message, and of how many times ours they are, with the extremes."""
    ratios = [theirs / own for theirs, own in zip(times, ours, strict=True)]
    return {
        "microseconds": median(times),
        "ratio": median(ratios),
        "least": min(ratios),
        "most": max(ratios),
    }


def compare(names: list[str], count: int, rounds: int) -> dict[str, Any]:
    """Measure what is there, print it, and return it in the form that is stored."""
    without = missing()
    for name, reason in without.items():
        print(f"{name} is left out: {reason}")
    times = measure([name for name in names if name not in without], count, rounds)
    clients: dict[str, Any] = {}
    for name, actions in times.items():
        clients[name] = {action: summary(found, times[OURS][action]) for action, found in actions.items()}
        for action, found in clients[name].items():
            spread = f"{found['least']:.2f} to {found['most']:.2f}"
            print(f"{name}, {action}: {found['microseconds']:.2f} us, {found['ratio']:.2f}x ({spread})")
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "messages": count,
        "rounds": rounds,
        "versions": versions(without),
        "missing": without,
        "clients": clients,
    }


def peaks(count: int) -> dict[str, int]:
    """Octets of memory of one client, at most, after a tenth of the messages and after all."""
    with broker() as url, queue(url) as name:
        found: dict[str, int] = output([sys.executable, "-m", "layer.long_run", url, name, str(count)])
    for number, octets in found.items():
        print(f"after {int(number):,} messages: {octets / 1e6:.1f} MB at most")
    return found


def main() -> int:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000, help="that a client publishes and consumes")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument(
        "--client", action="append", choices=CLIENTS, help="only these beside ours; nothing is stored"
    )
    parser.add_argument("--memory", type=int, metavar="MESSAGES", help="only the peak of memory of so many")
    arguments = parser.parse_args()
    if IMPL != "c":
        print("bench-client-layer: the compiled build is not there; nothing was measured")
        return 1
    try:
        if arguments.memory:
            store("client-memory", peaks(arguments.memory))
            return 0
        names = list(dict.fromkeys([OURS, *(arguments.client or CLIENTS)]))
        found = compare(names, arguments.messages, arguments.rounds)
    except NoBrokerError as reason:
        print(f"bench-client-layer: {reason}; nothing was measured")
        return 1
    if not arguments.client:
        store("client-layer", found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
