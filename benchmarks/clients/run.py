"""`make bench-clients`: codec calls and whole clients, without and with acceleration, by turns; CPU time.

Whole clients publish and consume messages of 256 octets at a RabbitMQ that is started for it, each time in a
process of their own that checks what has arrived. Figures are medians; ratios are medians of those within a
round.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

from calls import CALLS, measure
from support.broker import NoBrokerError, broker
from support.clients import CLIENTS, LEFT_ALONE, PEERS
from support.clients.play import Played, play, queue

from amqpcodec import IMPL

RESULT = Path(__file__).resolve().parents[1] / "results" / "clients.json"
PROJECTS = ("aiormq", "aio-pika", "AMQPStorm", "rabbitpy", "pika", "kombu", "amqp", "pamqp")
LOOPLESS = ("rabbitpy",)  # clients without a loop that is replaced
MODES = ("stock", "accelerated", "loops")
Times = dict[str, dict[str, list[float]]]  # microseconds by action and mode


def one_round(url: str, client: str, count: int, modes: tuple[str, ...], times: Times) -> None:
    """Let a client publish and consume so many messages in every mode, and keep the times."""
    options = {"stock": "", "accelerated": PEERS[client], "loops": f"{PEERS[client]}+loops"}
    for mode in modes:
        with queue(url) as name:
            for action in ("publish", "consume"):
                found = play(client, action, url, name, count, options[mode])
                check(client, mode, found)
                times[action].setdefault(mode, []).append(found.microseconds)


def check(client: str, mode: str, found: Played) -> None:
    """What was to be replaced was, and served every call.

    Raises:
        AssertionError: it was not.
    """
    if mode != "stock":
        status = found.status[PEERS[client]]
        if not status["active"] or status["fallbacks"] or status["stock"].keys() - LEFT_ALONE:
            raise AssertionError(f"{client}, {mode}: {status}")


def summary(times: dict[str, list[float]]) -> dict[str, Any]:
    """Medians of the modes, and their ratios to that without acceleration."""
    ratios = {
        mode: median(stock / fast for stock, fast in zip(times["stock"], found, strict=True))
        for mode, found in times.items()
        if mode != "stock"
    }
    return {"microseconds": {mode: median(found) for mode, found in times.items()}, "ratios": ratios}


def clients(names: list[str], count: int, rounds: int) -> dict[str, Any]:
    """Every client by turns."""
    times: dict[str, Times] = {name: {"publish": {}, "consume": {}} for name in names}
    with broker() as url:
        for number in range(rounds):
            for name in names:
                modes = MODES[:2] if name in LOOPLESS else MODES
                # Every other round the other way round: whoever comes first finds other caches.
                one_round(url, name, count, modes if number % 2 == 0 else modes[::-1], times[name])
            print(f"round {number + 1} of {rounds}", flush=True)
    return {name: {action: summary(found) for action, found in times[name].items()} for name in names}


def main() -> int:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000, help="that a client publishes and consumes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--client", action="append", choices=CLIENTS, help="only this; nothing is stored")
    arguments = parser.parse_args()
    if IMPL != "c":
        print("bench-clients: the compiled build is not there; nothing was measured")
        return 1
    results: dict[str, Any] = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "messages": arguments.messages,
        "rounds": arguments.rounds,
        "versions": {project: version(project) for project in PROJECTS},
        "calls": {},
        "clients": {},
    }
    if not arguments.client:
        for item, calls in CALLS.items():
            found = results["calls"][item] = measure(calls, 25)
            print(f"{item}: {found['stock']:.2f} us, {found['accelerated']:.2f} us: {found['ratio']:.1f}x")
    try:
        results["clients"] = clients(arguments.client or list(CLIENTS), arguments.messages, arguments.rounds)
    except NoBrokerError as reason:
        print(f"bench-clients: {reason}; no whole clients, and nothing is stored")
        return 1
    for client, actions in results["clients"].items():
        for action, figures in actions.items():
            times = ", ".join(f"{mode} {time:.1f} us" for mode, time in figures["microseconds"].items())
            ratios = ", ".join(f"{mode} {ratio:.2f}x" for mode, ratio in figures["ratios"].items())
            print(f"{client}, {action}: {times}; {ratios}")
    if not arguments.client:
        RESULT.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
