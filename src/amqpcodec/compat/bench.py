"""``python -m amqpcodec.compat.bench --peer PATH``: a checkout of a library, as it is and accelerated.

For maintainers of pamqp, aiormq, pika and py-amqp. No broker is needed: a message is read from octets and
written to octets by the library's own functions, which are called in turns in both states. Both must give the
same, or nothing is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from time import process_time
from types import SimpleNamespace
from typing import Any

from .. import IMPL, __version__, rabbitmq
from ..bench.timing import machine
from . import installed, uninstall
from ._relied import version_of

LIBRARIES = {"pamqp": "pamqp", "aiormq": "pamqp", "pika": "pika", "amqp": "amqp"}
"""The libraries that are measured, and the one that decodes for each."""

MESSAGES = 50  # of one call
_ROUND = 0.02  # seconds of a round, at least
_BODY = b"x" * 256
Call = Callable[[], Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: its arguments; those of the process if None.

    Returns:
        the exit code: 0, or 2 if there is nothing to measure.
    """
    parser = argparse.ArgumentParser(prog="python -m amqpcodec.compat.bench", description=__doc__)
    parser.add_argument("--peer", type=Path, required=True, metavar="PATH", help="a checkout, or its package")
    parser.add_argument("--rounds", type=int, default=15, help="of both states by turns; 15 by default")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    package = _package(options.peer)
    if package is None or IMPL != "c":
        why = "amqpcodec is not compiled here" if package else f"none of {', '.join(LIBRARIES)} is in there"
        print(f"{options.peer}: {why}", file=sys.stderr)
        return 2
    sys.path.insert(0, str(package.parent))
    found = measured(package.name, options.rounds)
    print(json.dumps(found, indent=1) if options.json else _shown(found))
    return 0


def _package(path: Path) -> Path | None:
    """Return the folder of the package in a checkout, or the package that is named itself."""
    places = [path, *(folder / name for folder in (path, path / "src") for name in LIBRARIES)]
    found = [each.resolve() for each in places if (each / "__init__.py").exists()]
    return next((each for each in found if each.name in LIBRARIES), None)


def measured(library: str, rounds: int) -> dict[str, Any]:
    """Time a library that can be imported, in both states by turns.

    Args:
        library: a key of `LIBRARIES`.
        rounds: of both states.

    Returns:
        microseconds of CPU time for a message by work, both states and the ratio; versions, and the machine.

    Raises:
        AssertionError: the two states give something else.
    """
    peer = LIBRARIES[library]
    module = import_module(library)
    uninstall(peer)  # which the checkout may have done itself
    with installed(peer, loops=True) as status:
        state = status[peer]
    works = {"read": _READ[library](), "write": _WRITE[library]()}
    return {
        "library": library,
        "path": str(Path(str(module.__file__)).parent),
        "versions": _versions(module) | {peer: state.version, "amqpcodec": __version__},
        "machine": machine() | {"cores": os.cpu_count()},
        "left as they are": dict(state.stock),
        "works": {name: _both(peer, work, rounds) for name, work in works.items()},
    }


def _versions(module: Any) -> dict[str, str]:
    name = module.__name__
    return {name: version_of(name, module.__spec__) or getattr(module, "__version__", "of unknown version")}


def _both(peer: str, work: Call, rounds: int) -> dict[str, float]:
    expected = repr(work())
    with installed(peer, loops=True):
        if repr(work()) != expected:
            raise AssertionError(f"{peer}: another result when it is accelerated")
    count = 1
    while (taken := _time(work, count) * count) < _ROUND:
        count = max(count + 1, round(count * min(10, _ROUND / max(taken, 1e-6))))
    own, fast = [], []
    for _ in range(rounds):
        own.append(_time(work, count))
        with installed(peer, loops=True):
            fast.append(_time(work, count))
    ratio = median(one / other for one, other in zip(own, fast, strict=True))
    one = 1e6 / MESSAGES
    return {"own": median(own) * one, "accelerated": median(fast) * one, "ratio": ratio}


def _time(work: Call, count: int) -> float:
    begin = process_time()
    for _ in range(count):
        work()
    return (process_time() - begin) / count


def _shown(found: dict[str, Any]) -> str:
    system = found["machine"]
    python = f"{system['python_implementation']} {system['python_version']}"
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    lines = [
        f"{found['path']}: {versions}",
        f"{python}, {system['system']} {system['machine']},"
        f" {system['cores']} cores, {system['cpu']['brand_raw']}",
        "CPU time of a message of 256 B, three headers; median of the rounds",
    ]
    for name, times in found["works"].items():
        lines.append(
            f"{name:6} own {times['own']:7.2f} us, accelerated {times['accelerated']:7.2f} us:"
            f" {times['ratio']:.1f}x"
        )
    left = found["left as they are"]
    return "\n".join([*lines, *(f"left as it is: {name}, {reason}" for name, reason in left.items())])


# -- works: each gives something that can be compared in words


def _frames() -> list[bytes]:
    """Return the frames of messages, as a broker sends them."""
    properties = rabbitmq.BasicProperties(
        content_type="application/json",
        headers={"number": 12345, "customer": "customer-7", "urgent": True},
        delivery_mode=1,
        message_id="m-1",
    )
    deliver = rabbitmq.Basic.Deliver("ctag1.5f2c", 12345, False, "orders", "eu.created")
    octets = rabbitmq.encode(rabbitmq.Message(1, deliver, properties, _BODY))
    decoder = rabbitmq.FrameDecoder(payloads="raw")
    return [rabbitmq.encode_frame(frame) for frame in decoder.feed(octets)] * MESSAGES


def _described(value: Any) -> Any:
    """Return an object of a library as its class and attributes."""
    names = [*getattr(type(value), "__slots__", ()), *getattr(value, "__dict__", ())]
    if isinstance(value, (tuple, list)):
        return [_described(each) for each in value]
    if not type(value).__module__.startswith(("pamqp", "pika")):
        return value
    return type(value).__name__, {name: _described(getattr(value, name, None)) for name in names}


class _Read:
    """Values that were read, described only when somebody compares them."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def __repr__(self) -> str:
        return repr(_described(self._values))


def _pamqp_reads() -> Call:
    frame, octets = import_module("pamqp.frame"), _frames()
    return lambda: _Read([frame.unmarshal(each) for each in octets])


def _pamqp_writes() -> Call:
    frame, frames = import_module("pamqp.frame"), _pamqp_publish()
    return lambda: b"".join([frame.marshal(each, 1) for each in frames])


def _pamqp_publish() -> list[Any]:
    commands, frame = import_module("pamqp.commands"), import_module("pamqp.frame")
    _, header, body = (frame.unmarshal(each)[2] for each in _frames()[:3])
    return [commands.Basic.Publish(exchange="orders", routing_key="eu.created"), header, body] * MESSAGES


def _aiormq_reads() -> Call:
    connection, octets = import_module("aiormq.connection"), b"".join(_frames())
    loop: Any = SimpleNamespace(get_debug=bool)  # of which nothing else is asked

    async def read() -> _Read:
        reader = asyncio.StreamReader(loop=loop)
        reader.feed_data(octets)
        receiver = connection.FrameReceiver(reader)
        return _Read([await receiver.get_frame() for _ in range(3 * MESSAGES)])

    return lambda: _at_once(read())


def _at_once(work: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits, though all octets are there")


def _aiormq_writes() -> Call:
    abc, frames = import_module("aiormq.abc"), _pamqp_publish()
    messages = [frames[begin : begin + 3] for begin in range(0, len(frames), 3)]
    return lambda: b"".join([abc.ChannelFrame.marshall(1, message).payload for message in messages])


def _pika_reads() -> Call:
    frame, octets = import_module("pika.frame"), _frames()
    return lambda: _Read([frame.decode_frame(each) for each in octets])


def _pika_writes() -> Call:
    frame, spec = import_module("pika.frame"), import_module("pika.spec")
    properties = frame.decode_frame(_frames()[1])[1].properties
    method = frame.Method(1, spec.Basic.Publish(exchange="orders", routing_key="eu.created"))
    frames = [method, frame.Header(1, len(_BODY), properties), frame.Body(1, _BODY)] * MESSAGES
    return lambda: b"".join([each.marshal() for each in frames])


def _amqp_reads() -> Call:
    serialization, framing = import_module("amqp.serialization"), import_module("amqp.method_framing")
    frames = [(each[0], 1, each[7:-1]) for each in _frames()]

    def read() -> list[Any]:
        found: list[Any] = []

        def take(_: int, method: Any, arguments: bytes, content: Any) -> None:
            loaded = serialization.loads("sLbss", arguments, 4)[0]
            found.append((method, loaded, content.properties, content.body))

        handle = framing.frame_handler(SimpleNamespace(bytes_recv=0), take)
        for frame in frames:
            handle(frame)
        return found

    return read


def _amqp_writes() -> Call:
    serialization, framing = import_module("amqp.serialization"), import_module("amqp.method_framing")
    message = import_module("amqp.basic_message").Message
    headers = {"number": 12345, "customer": "customer-7", "urgent": True}

    def write() -> bytes:
        written: list[bytes] = []
        transport = SimpleNamespace(write=lambda octets: written.append(bytes(octets)))
        write_frame = framing.frame_writer(SimpleNamespace(frame_max=131072, bytes_sent=0), transport)
        for _ in range(MESSAGES):
            arguments = serialization.dumps("Bssbb", [0, "orders", "eu.created", False, False])
            content = message(_BODY, content_type="application/json", application_headers=headers)
            write_frame(1, 1, (60, 40), arguments, content)
        return b"".join(written)

    return write


_READ = {"pamqp": _pamqp_reads, "aiormq": _aiormq_reads, "pika": _pika_reads, "amqp": _amqp_reads}
_WRITE = {"pamqp": _pamqp_writes, "aiormq": _aiormq_writes, "pika": _pika_writes, "amqp": _amqp_writes}


if __name__ == "__main__":
    sys.exit(main())
