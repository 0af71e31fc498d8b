"""What is played on py-amqp: `loads` and `dumps`, properties, the frame handler, the frame writer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from operator import methodcaller
from random import Random
from types import SimpleNamespace
from typing import Any

from . import inputs
from .engine import Copy, Scenario, attempt

# Formats of py-amqp's own calls; its handlers' are taken from it.
_SENT = (
    "FsSs", "S", "BlB", "ssb", "BsBB", "s", "b", "BssbbbbbF", "Bsbb", "BsssbF", "BsssF", "BsbbbbbF", "Bsbbb",
    "Bsb", "Bssbb", "lBb", "BssbbbbF", "sb", "Lb", "Lbb",
)  # fmt: skip
_LETTERS = "boBlLfsSxFAT"


def given(peer: Copy, octets: bytes) -> tuple[Any, ...]:
    """What a connection does with these octets as one frame."""
    return _receive, peer, [_frame(octets)]


def edges(peer: Copy) -> Iterator[tuple[str, Scenario]]:
    """Yield a scenario for each letter: each of the values on the edge written, and read where it can be."""
    for letter in _LETTERS:
        yield letter, partial(_on_edges, letter)


def _on_edges(letter: str, peer: Copy, random: Random) -> tuple[Any, ...]:
    def call() -> list[Any]:
        return [_written_and_read(peer, letter, value) for value in inputs.EDGES]

    return (call,)


def _written_and_read(peer: Copy, letter: str, value: Any) -> tuple[Any, Any]:
    octets = attempt(peer.serialization.dumps, letter, [value])
    return octets, attempt(peer.serialization.loads, letter, octets, 0)


def _frame(octets: bytes) -> tuple[int, int, bytes]:
    kind, channel, _ = struct.unpack("!BHI", (octets + bytes(7))[:7])
    return kind, channel, octets[7:-1]


def _receive(peer: Copy, frames: list[tuple[int, int, Any]]) -> list[Any]:
    """Hand frames to a frame handler; what it gives and calls, arguments and properties read."""
    seen: list[Any] = []
    methods = peer.channel.Channel._METHODS | peer.connection.Connection._METHODS
    connection = SimpleNamespace(bytes_recv=0)

    def called(channel: int, signature: tuple[int, int], payload: Any, content: Any) -> None:
        seen.append((channel, signature, payload, content))
        if signature in methods and methods[signature].args:
            seen.append(_caught(peer.abstract_channel.loads, methods[signature].args, payload, 4))

    handler = peer.connection.frame_handler(connection, called)
    for frame in frames:
        seen.append(_caught(handler, frame))
        seen.append(connection.bytes_recv)
    return seen


def _caught(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        return error


def receive(peer: Copy, random: Random) -> tuple[Any, ...]:
    """Frames of all kinds in random order, on few channels."""
    frames = []
    for _ in range(random.choice((1, 2, 4))):
        kind, channel, payload = _frame(inputs.some_frame(random))
        frames.append((kind, random.choice((0, 1, channel)), _buffer(random, payload)))
    return _receive, peer, frames


def deliver(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A whole delivery, its frames mostly in order; the header may be damaged."""
    body = random.randbytes(random.choice((0, 1, 9, 300)))
    cut = random.randrange(len(body) + 1)
    method = (
        struct.pack("!HH", 60, 60) + inputs.short(random) + random.randbytes(9) + inputs.short(random) * 2
    )
    header = struct.pack(
        "!HHQ", random.choice((60, 60, 60, 60, 10)), 0, len(body)
    ) + inputs.properties_octets(random)
    frames = [(1, 1, method), (2, 1, header), (3, 1, body[:cut]), (3, 1, body[cut:])]
    if random.random() < 0.2:
        random.shuffle(frames)
    if random.random() < 0.2:
        frames.insert(random.randrange(4), (8, 0, b""))
    return _receive, peer, [(kind, channel, _buffer(random, octets)) for kind, channel, octets in frames]


def _buffer(random: Random, octets: bytes) -> Any:
    return random.choice((bytes,) * 12 + (bytearray, memoryview, inputs.BytesChild))(octets)


def load_properties(peer: Copy, random: Random) -> tuple[Any, ...]:
    """Properties into a message, at an offset."""
    before = random.randbytes(random.choice((0, 0, 12)))
    message = peer.basic_message.Message()
    kind = random.choice((60, 60, 60, 60, 60, 20, 0))

    def load(buffer: Any, offset: int) -> Any:
        return message._load_properties(kind, buffer, offset), message

    return load, _buffer(random, before + inputs.properties_octets(random)), len(before)


def formats(peer: Copy) -> list[str]:
    """Every format that py-amqp reads or writes by."""
    methods = [*peer.channel.Channel._METHODS.values(), *peer.connection.Connection._METHODS.values()]
    return [*_SENT, *(method.args for method in methods if method.args)]


def _format(peer: Copy, random: Random) -> str:
    if random.random() < 0.6:
        return random.choice(formats(peer))
    letters = _LETTERS if random.random() < 0.95 else _LETTERS + "zéQ"
    return "".join(random.choices(letters, k=random.choice((0, 1, 2, 5, 9))))


def _typed(random: Random, form: Any) -> Any:
    """A format as text, mostly."""
    return form.encode("utf-8") if random.random() < 0.05 else form


def loads(peer: Copy, random: Random) -> tuple[Any, ...]:
    """Arguments by a format, from octets that fit it, nearly."""
    form = _format(peer, random)
    before = random.randbytes(random.choice((0, 4, 4, 4)))
    octets = (
        before
        + b"".join([_argument_octets(random, letter) for letter in form])
        + random.choice((b"", b"rest"))
    )
    if random.random() < 0.4:
        octets = inputs.damaged(random, octets)
    offset = random.choice((len(before),) * 20 + (0, -1, -4, len(octets), len(octets) + 1, True, 2**70, 1.0))
    return peer.abstract_channel.loads, _typed(random, form), _buffer(random, octets), offset


def _argument_octets(random: Random, letter: str) -> bytes:
    if letter in "FA":
        return inputs.table_octets(random) if letter == "F" else inputs.array_octets(random)
    if letter == "s":
        return inputs.short(random)
    if letter in "Sx":
        return inputs.sized(inputs.short(random)[1:])
    if letter == "T":
        return struct.pack("!Q", random.choice(inputs.SECONDS))
    width = {"b": 1, "o": 1, "B": 2, "l": 4, "L": 8, "f": 4}.get(letter, 0)
    return random.choice((random.randbytes(width), b"\xff" * width, bytes(width)))


def dumps(peer: Copy, random: Random) -> tuple[Any, ...]:
    """Values by a format, of the right number, nearly."""
    form = _format(peer, random)
    values = [_argument(random, letter) for letter in form]
    if random.random() < 0.05:
        values = values[:-1] if random.random() < 0.5 else [*values, 1]
    return peer.abstract_channel.dumps, _typed(random, form), random.choice((tuple, list))(values)


def _argument(random: Random, letter: str) -> Any:
    way = random.random()
    if way < 0.02:
        return inputs.odd(random)
    if letter in "oBlL":
        return random.randrange(256) if way < 0.6 else inputs.integer(random)
    if letter in "sSx":
        return inputs.text(random) if way < 0.9 else inputs.odd_text(random)
    if letter == "b":
        return random.choice((True, False, 0, 1, 2, None, "", "yes", [], [0]))
    if letter == "F":
        return inputs.table(random) if way < 0.95 else None
    if letter == "A":
        return [inputs.value(random) for _ in range(random.choice((0, 1, 3)))] if way < 0.95 else None
    return inputs.moment(random) if letter == "T" else inputs.value(random, 4)


_TEXTS = (
    "content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id", "type",
    "user_id", "app_id", "cluster_id",
)  # fmt: skip


def message(peer: Copy, random: Random) -> Any:
    """A message with properties that mostly can be written."""
    properties: dict[str, Any] = {
        name: inputs.text(random) if random.random() < 0.96 else inputs.odd_text(random)
        for name in random.sample(_TEXTS, random.choice((0, 1, 2, 4, 10)))
    }
    for name, chance in (("delivery_mode", 0.7), ("priority", 0.3), ("timestamp", 0.3)):
        if random.random() < chance:
            properties[name] = random.choice((1, 2, 2, inputs.Mode.PERSISTENT, inputs.integer(random)))
    if random.random() < 0.5:
        properties["application_headers"] = (
            inputs.table(random) if random.random() < 0.95 else inputs.odd(random)
        )
    if random.random() < 0.05:
        properties[random.choice(("unknown", "headers", "content_type"))] = inputs.odd(random)
    body = random.choice(
        ("", b"", "text", "é", b"octets", b"x" * 300, bytearray(b"ab"), memoryview(b"abc"), None, 5)
    )
    found = peer.basic_message.Message(body, **properties)
    if random.random() < 0.02:
        found.properties = random.choice((None, {}, inputs.DictChild(content_type="text/plain")))
    return found


def construct(peer: Copy, random: Random) -> tuple[Any, ...]:
    """The constructor of a message, called in all kinds of ways."""
    given = [inputs.odd(random) for _ in range(random.choice((0, 1, 1, 1, 1, 2, 3, 4)))]
    names = (
        "content_type",
        "priority",
        "type",
        "unknown",
        "body",
        "children",
        "channel",
        "frame_method",
        "self",
    )
    chosen = random.sample(names[:4], random.randrange(4)) + random.sample(
        names, random.choice((0, 0, 0, 1, 2))
    )
    named = {name: inputs.odd(random) for name in chosen}
    return lambda given, named: peer.basic_message.Message(*given, **named), given, named


def serialize_properties(peer: Copy, random: Random) -> tuple[Any, ...]:
    """The octets of a message's properties."""
    found = message(peer, random)
    return methodcaller("_serialize_properties"), found


def write(peer: Copy, random: Random) -> tuple[Any, ...]:
    """Frames through one frame writer: methods, messages that fit a frame and that do not, heartbeats."""
    calls = [_written(peer, random) for _ in range(random.choice((1, 2, 3)))]
    return _write, peer, random.choice((131072, 131072, 4096, 64, 400)), random.choice((0, 0, 0, 4096)), calls


def _written(peer: Copy, random: Random) -> tuple[Any, ...]:
    if random.random() < 0.1:
        return 8, 0, None, None, None
    form = random.choice(("Bssbb", "ssb", "Lb"))
    arguments: Any = struct.pack("!BQ", 1, 7) + inputs.short(random)
    if random.random() < 0.1:
        arguments = random.choice(("", "text", "é", b"", form, None, 5, bytearray(b"ab")))
    signature = random.choice(((60, 40),) * 8 + ((60, 80), (10, 10), (70000, 1), (60,), None))
    content = message(peer, random) if random.random() < 0.7 else None
    return random.choice((1, 1, 1, 1, 1, 2, 3, 8)), inputs.channel(random), signature, arguments, content


def _write(peer: Copy, frame_max: int, larger: int, calls: list[tuple[Any, ...]]) -> list[Any]:
    """What a transport is given, call by call, and the count that the connection keeps."""
    seen: list[Any] = []
    connection = SimpleNamespace(frame_max=frame_max, bytes_sent=0)

    def take(octets: Any) -> None:
        seen.append((type(octets).__name__, bytes(octets)))

    writer = peer.connection.frame_writer(connection, SimpleNamespace(write=take))
    for call in calls:
        seen.append(_caught(writer, *call))
        seen.append(connection.bytes_sent)
        connection.frame_max += larger
    return seen


SCENARIOS = (loads, dumps, deliver, receive, load_properties, construct, serialize_properties, write)
