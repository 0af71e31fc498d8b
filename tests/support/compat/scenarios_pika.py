"""What is played on pika: frames to objects, objects to frames, and the constructors."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache, partial
from operator import methodcaller
from random import Random
from typing import Any

from . import inputs
from .engine import Copy, Scenario, attempt

_NUMBERS = (
    "delivery_mode", "priority", "timestamp", "reply_code", "delivery_tag", "class_id", "method_id",
    "message_count", "consumer_count",
)  # fmt: skip
_TABLES = ("headers", "arguments", "server_properties", "client_properties")


def given(peer: Copy, octets: bytes) -> tuple[Any, ...]:
    """These octets as a frame."""
    return peer.frame.decode_frame, octets


def decode(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A frame, sound or damaged, mostly as bytes."""
    octets = inputs.some_frame(random)
    kind = random.choice((bytes,) * 20 + (bytearray, memoryview, inputs.BytesChild))
    return peer.frame.decode_frame, kind(octets)


def decode_tables(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A frame with a random table: in an argument, or in the header of a message."""
    return peer.frame.decode_frame, inputs.table_frame(random)


def decode_properties(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A content header with random properties."""
    return peer.frame.decode_frame, inputs.header_frame(random)


@cache
def _parameters(kind: type) -> dict[str, Any]:
    return dict(inspect.signature(kind).parameters)


def _argument(random: Random, name: str, default: Any) -> Any:
    """A value of about the type of the default; names decide where that is None or missing."""
    way = random.random()
    if way < 0.03:
        return random.choice((inputs.odd, inputs.odd_text))(random)
    if isinstance(default, bool):
        return random.choice((True, False, 0, 1))
    if isinstance(default, int) or name in _NUMBERS:
        return random.randrange(200) if way < 0.6 else inputs.integer(random)
    if name in _TABLES:
        return inputs.table(random)
    return inputs.text(random)


def _instance(peer: Copy, random: Random, kind: Any) -> Any:
    """An instance, perhaps with attributes that were set or deleted later."""
    chosen = {
        name: _argument(random, name, parameter.default)
        for name, parameter in _parameters(kind).items()
        if parameter.default is inspect.Parameter.empty or random.random() < 0.6
    }
    found = kind(**chosen)
    if vars(found) and random.random() < 0.1:
        name = random.choice(list(vars(found)))
        if random.random() < 0.2:
            delattr(found, name)
        else:
            setattr(
                found,
                name,
                random.choice((inputs.odd, inputs.odd_text, inputs.integer, inputs.value))(random),
            )
    return found


def _method(peer: Copy, random: Random) -> Any:
    spec = peer.spec
    usual = [spec.Basic.Publish, spec.Basic.Deliver, spec.Basic.Ack] * 4
    return _instance(peer, random, random.choice([*spec.methods.values(), *usual]))


def marshal_method(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A method to octets."""
    found = peer.frame.Method(inputs.channel(random), _method(peer, random))
    return methodcaller("marshal"), found


def marshal_header(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A content header to octets."""
    properties = _instance(peer, random, peer.spec.BasicProperties)
    size = random.choice((0, 5, 256, inputs.integer(random)))
    found = peer.frame.Header(inputs.channel(random), size, properties)
    return methodcaller("marshal"), found


def marshal_headers(peer: Copy, random: Random) -> tuple[Any, ...]:
    """Properties with headers alone, which are the likeliest to differ."""
    properties = peer.spec.BasicProperties(
        headers=inputs.table(random), delivery_mode=random.choice((1, 2, None))
    )
    found = peer.frame.Header(1, 5, properties)
    return methodcaller("marshal"), found


def marshal_body(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A body to octets."""
    octets = random.choice(
        (b"", b"octets", "text", bytearray(b"ab"), memoryview(b"ab"), None, random.randbytes(300))
    )
    found = random.choice((peer.frame.Body(inputs.channel(random), octets),) * 6 + (peer.frame.Heartbeat(),))
    return methodcaller("marshal"), found


def construct(peer: Copy, random: Random) -> tuple[Any, ...]:
    """The text and the equality of an object, and what pickle gets of it."""
    found = (
        _method(peer, random) if random.random() < 0.5 else _instance(peer, random, peer.spec.BasicProperties)
    )

    def look() -> Any:
        return found, repr(found), found == found, found.__reduce_ex__(4)

    return (look,)


def edges(peer: Copy) -> Iterator[tuple[str, Scenario]]:
    """Yield a scenario for each field of each class: each of the values on the edge written, and read."""
    for index, kind in (peer.spec.methods | peer.spec.props).items():
        for name in _parameters(kind):
            yield f"{kind.__qualname__}.{name}", partial(_on_edges, index, name)


def _on_edges(index: int, name: str, peer: Copy, random: Random) -> tuple[Any, ...]:
    kind = (peer.spec.methods | peer.spec.props)[index]
    others = {each: _sample(each, found.default) for each, found in _parameters(kind).items() if each != name}

    def call() -> list[Any]:
        return [_written_and_read(peer, kind(**others, **{name: value})) for value in inputs.EDGES]

    return (call,)


def _sample(name: str, default: Any) -> Any:
    if isinstance(default, bool):
        return True
    return 1 if isinstance(default, int) or name in _NUMBERS else {"k": True} if name in _TABLES else "s"


def _written_and_read(peer: Copy, found: Any) -> tuple[Any, Any]:
    frame, is_method = peer.frame, isinstance(found, peer.amqp_object.Method)
    octets = attempt((frame.Method(1, found) if is_method else frame.Header(1, 5, found)).marshal)
    return octets, attempt(frame.decode_frame, octets)


SCENARIOS = (
    decode, decode_tables, decode_properties, marshal_method, marshal_header, marshal_headers, marshal_body,
    construct,
)  # fmt: skip
