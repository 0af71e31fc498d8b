"""`make bench-clients`: codec calls and whole clients, without and with acceleration, by turns; CPU time.

Whole clients publish and consume messages of 256 octets at a RabbitMQ that is started for it, each time in a
process of their own that checks what has arrived. Figures are medians; ratios are medians of those within a
round. Then each consumes once more, and the functions are sampled that run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import repeat
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from results import store
from support.broker import NoBrokerError, broker
from support.clients import CLIENTS, LEFT_ALONE, ON_ASYNCIO, PEERS, SAMPLED, UVLOOP
from support.clients.play import TESTS, Played, play, queue
from support.compat.seam import seamed

from amqpcodec import IMPL, compat

PROJECTS = ("aiormq", "aio-pika", "AMQPStorm", "rabbitpy", "pika", "kombu", "amqp", "pamqp", "uvloop")
SEAMED = "aiormq"
MODES = ("stock", "accelerated")
LOOPS = ("pika", "amqp")  # peers that have the option
# The last: unmodified, on an aiormq that has the seam.
ASYNCIO_MODES = ("uvloop", "accelerated, uvloop", "seam")
Times = dict[str, dict[str, list[float]]]  # microseconds by action and mode
HEADERS = {"number": 12345, "customer": "customer-7", "urgent": True}
BODY = b"x" * 256
WHEN = datetime(2026, 11, 22, 12, tzinfo=UTC)
TABLE = {
    "boolean": True,
    "small": 7,
    "large": 1 << 40,
    "negative": -70000,
    "text": "orders.eu.created",
    "empty": "",
    "ratio": 2.5,
    "inner": {"attempt": 3, "reason": "expired"},
    "list": [1, "two", 3],
    "nothing": None,
}
SECONDS = 0.02  # of a measurement of a call
SAMPLES = 5  # times as many messages, where functions are sampled
SHOWN = 12  # functions


class Calls(NamedTuple):
    """One measured call.

    `make` gives what does it, with the functions as they are in the peer at that time, and what it makes as
    values that can be compared.
    """

    peer: str
    target: float
    make: Callable[[], tuple[Callable[[], Any], Callable[[Any], Any]]]


def pamqp_frames() -> list[Any]:
    """A publish, its header and its body, as pamqp's objects."""
    from pamqp import body, commands, header

    properties = commands.Basic.Properties(
        content_type="application/json",
        headers=dict(HEADERS),
        delivery_mode=1,
        message_id="m-1",
        timestamp=WHEN,
    )
    publish = commands.Basic.Publish(0, "orders", "eu.created")
    return [publish, header.ContentHeader(0, len(BODY), properties), body.ContentBody(BODY)]


def delivery() -> list[bytes]:
    """A deliver, its header and its body, as octets of a frame each."""
    import pamqp.commands
    import pamqp.frame

    _, header, body = pamqp_frames()
    deliver = pamqp.commands.Basic.Deliver("ctag1.5f2c", 12345, False, "orders", "eu.created")
    return [pamqp.frame.marshal(frame, 1) for frame in (deliver, header, body)]


def comparable(value: Any) -> Any:
    """An object as its class and attributes, those inside as well."""
    if isinstance(value, (list, tuple)):
        return [comparable(each) for each in value]
    names = [*getattr(type(value), "__slots__", ()), *getattr(value, "__dict__", ())]
    if type(value).__module__.startswith(("pamqp", "pika")) and names:
        return type(value), {name: comparable(getattr(value, name)) for name in names}
    return value


def pamqp_unmarshal() -> Any:
    import pamqp.frame

    first, second, third = delivery()
    unmarshal = pamqp.frame.unmarshal
    return lambda: (unmarshal(first), unmarshal(second), unmarshal(third)), comparable


def pamqp_marshal() -> Any:
    import pamqp.frame

    first, second, third = pamqp_frames()
    marshal = pamqp.frame.marshal
    return lambda: (marshal(first, 1), marshal(second, 1), marshal(third, 1)), comparable


def pika_decode() -> Any:
    import pika.frame

    first, second, third = delivery()
    decode = pika.frame.decode_frame
    return lambda: (decode(first), decode(second), decode(third)), comparable


def pika_marshal() -> Any:
    from pika import frame, spec

    properties = spec.BasicProperties(
        "application/json", None, dict(HEADERS), 1, message_id="m-1", timestamp=int(WHEN.timestamp())
    )
    first = frame.Method(1, spec.Basic.Publish(0, "orders", "eu.created"))
    second, third = frame.Header(1, len(BODY), properties), frame.Body(1, BODY)
    return lambda: (first.marshal(), second.marshal(), third.marshal()), comparable


DELIVER = "sLbss"
PUBLISH = "Bssbb"


def _dumped(form: str, values: list[Any]) -> bytes:
    from amqp import serialization

    dumped: bytes = serialization.dumps(form, values)
    return dumped


def amqp_loads(form: str, values: list[Any]) -> Any:
    from amqp import serialization

    octets = _dumped(form, values)
    loads = serialization.loads
    return partial(loads, form, octets, 0), comparable


def amqp_dumps(form: str, values: list[Any]) -> Any:
    from amqp import serialization

    dumps = serialization.dumps
    return partial(dumps, form, values), comparable


_DELIVERED = ["ctag1.5f2c", 12345, False, "orders", "eu.created"]
_PUBLISHED = [0, "orders", "eu.created", False, False]
CALLS = {
    "pamqp, unmarshal 3 frames": Calls("pamqp", 12, pamqp_unmarshal),
    "pamqp, marshal 3 frames": Calls("pamqp", 12, pamqp_marshal),
    "pika, decode_frame, 3 frames": Calls("pika", 5, pika_decode),
    "pika, marshal, 3 frames": Calls("pika", 5, pika_marshal),
    "amqp, loads, a delivery": Calls("amqp", 6, lambda: amqp_loads(DELIVER, _DELIVERED)),
    "amqp, loads, a table of 10": Calls("amqp", 6, lambda: amqp_loads("F", [TABLE])),
    "amqp, dumps, a publish": Calls("amqp", 12, lambda: amqp_dumps(PUBLISH, _PUBLISHED)),
    "amqp, dumps, a table of 10": Calls("amqp", 12, lambda: amqp_dumps("F", [TABLE])),
}


def measure_calls(calls: Calls, rounds: int) -> dict[str, float]:
    """Microseconds of the work in both states, and the median of the ratios of the rounds.

    Raises:
        AssertionError: acceleration makes something else of it, or falls back.
    """
    do, result = calls.make()
    expected = result(do())
    number = _number(do)
    with compat.installed(calls.peer):
        do, result = calls.make()
        if result(do()) != expected:
            raise AssertionError(f"{calls.peer}: {result(do())!r:.500} instead of {expected!r:.500}")
        if fallbacks := compat.status()[calls.peer].fallbacks:
            raise AssertionError(f"{calls.peer} falls back: {dict(fallbacks)}")
    stock: list[float] = []
    fast: list[float] = []
    for _ in range(rounds):
        stock.append(_time(calls.make()[0], number))
        with compat.installed(calls.peer):
            fast.append(_time(calls.make()[0], number * 4))
    ratios = [one / other for one, other in zip(stock, fast, strict=True)]
    return {
        "stock": median(stock),
        "accelerated": median(fast),
        "ratio": median(ratios),
        "target": calls.target,
    }


def _number(do: Callable[[], Any]) -> int:
    number = 10
    while (taken := _time(do, number) * number / 1e6) < SECONDS / 4:
        number *= 2
    return max(1, round(number * SECONDS / taken))


def _time(do: Callable[[], Any], number: int) -> float:
    times = repeat(None, number)
    begin = process_time()
    for _ in times:
        do()
    return (process_time() - begin) * 1e6 / number


def one_round(url: str, client: str, count: int, modes: tuple[str, ...], times: Times, path: str) -> None:
    """Let a client publish and consume so many messages in every mode, and keep the times.

    Args:
        url, client, count, modes: what to run.
        times: those so far.
        path: of Python, where libraries have the seam.
    """
    options = {"accelerated": PEERS[client], "loops": f"{PEERS[client]}+loops"}
    for mode in modes:
        peers = options.get(mode.partition(",")[0], "")
        variables = {UVLOOP: "1"} if "uvloop" in mode else {"PYTHONPATH": path} if mode == "seam" else {}
        with queue(url) as name:
            for action in ("publish", "consume"):
                found = play(client, action, url, name, count, peers, **variables)
                check(client, mode, found)
                times[action].setdefault(mode, []).append(found.microseconds)


def check(client: str, mode: str, found: Played) -> None:
    """Require that what was to be replaced was, and served every call.

    Raises:
        AssertionError: it was not.
    """
    if mode not in ("stock", "uvloop"):
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


def clients(url: str, names: list[str], count: int, rounds: int) -> dict[str, Any]:
    """Every client by turns."""
    times: dict[str, Times] = {name: {"publish": {}, "consume": {}} for name in names}
    with TemporaryDirectory() as folder:
        path = os.pathsep.join([str(seamed(SEAMED, Path(folder))), str(TESTS)])
        for number in range(rounds):
            for name in names:
                modes = (*MODES, "loops") if PEERS[name] in LOOPS else MODES
                modes += ASYNCIO_MODES if name in ON_ASYNCIO else ()
                # Every other round the other way round: whoever comes first finds other caches.
                one_round(url, name, count, modes if number % 2 == 0 else modes[::-1], times[name], path)
            print(f"round {number + 1} of {rounds}", flush=True)
    return {name: {action: summary(found) for action, found in times[name].items()} for name in names}


def profiles(url: str, names: list[str], count: int) -> dict[str, dict[str, float]]:
    """Return to which functions the time of each client goes that consumes, with all that is replaced."""
    found = {}
    for client in names:
        with queue(url) as name:
            play(client, "publish", url, name, count)
            played = play(client, "consume", url, name, count, f"{PEERS[client]}+loops", **{SAMPLED: "1"})
        found[client] = dict(list(played.shares.items())[:SHOWN])
    return found


def show(results: dict[str, Any]) -> None:
    """Print what whole clients took."""
    for client, actions in results["clients"].items():
        for action, figures in actions.items():
            times = ", ".join(f"{mode} {time:.1f} us" for mode, time in figures["microseconds"].items())
            ratios = ", ".join(f"{mode} {ratio:.2f}x" for mode, ratio in figures["ratios"].items())
            print(f"{client}, {action}: {times}; {ratios}")
    for client, found in results["profiles"].items():
        shares = ", ".join(f"{name} {share:.0%}" for name, share in found.items())
        print(f"{client}, consume, sampled: {shares}")


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
        "profiles": {},
    }
    if not arguments.client:
        for item, calls in CALLS.items():
            found = results["calls"][item] = measure_calls(calls, 25)
            print(f"{item}: {found['stock']:.2f} us, {found['accelerated']:.2f} us: {found['ratio']:.1f}x")
    names = arguments.client or list(CLIENTS)
    try:
        with broker() as url:
            results["clients"] = clients(url, names, arguments.messages, arguments.rounds)
            results["profiles"] = profiles(url, names, arguments.messages * SAMPLES)
    except NoBrokerError as reason:
        print(f"bench-clients: {reason}; no whole clients, and nothing is stored")
        return 1
    show(results)
    if not arguments.client:
        store("clients", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
