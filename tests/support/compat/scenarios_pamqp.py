"""What is played on pamqp: frames to objects, objects to frames, and the constructors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from operator import methodcaller
from random import Random
from typing import Any

from . import inputs
from .engine import Copy, Scenario, attempt

_VALUES = {
    "bit": lambda random: random.random() < 0.5,
    "octet": lambda random: random.choice((1, 2, 0, 9)) if random.random() < 0.8 else inputs.integer(random),
    "short": lambda random: random.choice((0, 0, 0, inputs.integer(random))),
    "long": inputs.integer,
    "longlong": inputs.integer,
    "shortstr": inputs.text,
    "longstr": inputs.text,
    "table": inputs.table,
    "timestamp": inputs.moment,
}


_SAMPLES = {
    "bit": True, "octet": 2, "short": 3, "long": 4, "longlong": 5, "shortstr": "s", "longstr": "l",
    "table": {"k": True}, "timestamp": datetime(2020, 1, 1, tzinfo=UTC),
}  # fmt: skip


def given(peer: Copy, octets: bytes) -> tuple[Any, ...]:
    """These octets as a frame."""
    return peer.frame.unmarshal, octets


def unmarshal(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A frame, sound or damaged, mostly as bytes."""
    octets = inputs.some_frame(random)
    kind = random.choice((bytes,) * 20 + (bytearray, memoryview, inputs.BytesChild))
    return peer.frame.unmarshal, kind(octets)


def unmarshal_tables(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A frame with a random table: in an argument, or in the header of a message."""
    return peer.frame.unmarshal, inputs.table_frame(random)


def unmarshal_properties(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A content header with random properties."""
    return peer.frame.unmarshal, inputs.header_frame(random)


def _arguments(random: Random, kind: Any) -> dict[str, Any]:
    """Arguments of a constructor by the types that the class declares, with few faults."""
    chosen = {}
    for name in kind.__slots__:
        way = random.random()
        if way < 0.6:
            wanted = _VALUES.get(getattr(kind, f"_{name}"), inputs.value)
            chosen[name] = wanted(random)
        elif way < 0.62:
            chosen[name] = inputs.odd(random)
        elif way < 0.63:
            chosen[name] = inputs.odd_text(random)
        elif way < 0.65:
            chosen[name] = None
    if random.random() < 0.01:
        chosen[random.choice(("unknown", "ticket"))] = 1
    return chosen


def _kinds(peer: Copy) -> list[Any]:
    """Every class of a method, and that of properties several times."""
    commands = peer.commands
    usual = [
        commands.Basic.Publish,
        commands.Basic.Deliver,
        commands.Basic.Ack,
        *[commands.Basic.Properties] * 20,
    ]
    return [*commands.INDEX_MAPPING.values(), *usual]


def construct(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A constructor with arguments by name, by position, or both."""
    kind = random.choice(_kinds(peer))
    named = _arguments(random, kind)
    by_place = random.randrange(len(named) + 1) if random.random() < 0.4 else 0
    placed = [named.pop(name) for name in list(named)[:by_place]]

    def call() -> Any:
        found = kind(*placed, **named)
        return found, found == kind(*placed, **named), dict(found), len(found)

    return (call,)


def _instance(peer: Copy, random: Random) -> Any:
    """An instance, perhaps with attributes that were set or deleted later."""
    kind = random.choice(_kinds(peer))
    try:
        found = kind(**_arguments(random, kind))
    except (ValueError, TypeError):
        found = kind()
    if kind.__slots__ and random.random() < 0.15:
        name = random.choice(kind.__slots__)
        if random.random() < 0.2:
            delattr(found, name)
        else:
            setattr(
                found,
                name,
                random.choice((inputs.odd, inputs.odd_text, inputs.integer, inputs.value))(random),
            )
    return found


def marshal(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A method, header, body or heartbeat to octets."""
    way = random.randrange(8)
    if way < 5:
        found = _instance(peer, random)
    elif way == 5:
        octets = random.choice(
            (b"", b"octets", "text", bytearray(b"ab"), memoryview(b"ab"), None, random.randbytes(300))
        )
        found = peer.body.ContentBody(octets)
    else:
        properties = peer.commands.Basic.Properties
        found = _instance(peer, random)
        found = found if isinstance(found, properties) else properties(content_type=inputs.text(random))
        found = peer.header.ContentHeader(inputs.integer(random), inputs.integer(random), found)
    if way == 7 and random.random() < 0.2:
        found = random.choice((peer.heartbeat.Heartbeat(), peer.header.ProtocolHeader(), None, 5, b"octets"))
    return peer.frame.marshal, found, inputs.channel(random)


def marshal_methods(peer: Copy, random: Random) -> tuple[Any, ...]:
    """The `marshal` of an object itself."""
    found = _instance(peer, random)
    return methodcaller("marshal"), found


def headers(peer: Copy, random: Random) -> tuple[Any, ...]:
    """Properties with headers alone, which are the likeliest to differ."""
    found = peer.commands.Basic.Properties(
        headers=inputs.table(random), delivery_mode=random.choice((1, 2, None))
    )
    return peer.frame.marshal, peer.header.ContentHeader(0, 1, found), 1


def edges(peer: Copy) -> Iterator[tuple[str, Scenario]]:
    """Yield a scenario for each field of each class: each of the values on the edge given, and written."""
    for index, kind in [*peer.commands.INDEX_MAPPING.items(), (0, peer.commands.Basic.Properties)]:
        for name in kind.__slots__:
            yield f"{kind.__qualname__}.{name}", partial(_on_edges, index, name)


def _on_edges(index: int, name: str, peer: Copy, random: Random) -> tuple[Any, ...]:
    kind = peer.commands.INDEX_MAPPING.get(index, peer.commands.Basic.Properties)
    blank = kind()
    lacking = [each for each in kind.__slots__ if each != name and getattr(blank, each) is None]
    others = {each: _SAMPLES[getattr(kind, f"_{each}")] for each in lacking}

    def call() -> list[Any]:
        return [blank, *(_made_and_written(peer, kind, others, name, value) for value in inputs.EDGES)]

    return (call,)


def _made_and_written(peer: Copy, kind: Any, others: dict[str, Any], name: str, value: Any) -> list[Any]:
    alone, whole = attempt(kind, **{name: value}), attempt(kind, **others, **{name: value})
    written = peer.header.ContentHeader(0, 1, whole) if kind is peer.commands.Basic.Properties else whole
    octets = attempt(peer.frame.marshal, written, 1)
    same = getattr(alone, name, None) is value
    return [alone, same, octets, attempt(peer.frame.unmarshal, octets)]


SCENARIOS = (
    unmarshal, unmarshal_tables, unmarshal_properties, construct, marshal, marshal_methods, headers,
)  # fmt: skip
