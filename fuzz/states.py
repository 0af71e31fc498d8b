"""States of sessions that somebody has tampered with, and who knows how their checksum is made."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any
from zlib import crc32

from structured import Builder

from amqpcodec._state import pack, unpack

HEAD = len(b"amqpcodec state 1\n")
LENGTH = 8  # bytes of the size of the text
UNUSUAL: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 2**16, 2**31, 2**32 - 1, 2**32, 2**59, 2**60, 2**62, -(2**62), 2**64,
    10**30, 1.5, float("nan"), float("inf"), "", "gap", "\ud800", "\udcff", "x" * 300, "amqp-0-8", b"",
    b"\1\0\1\0\0\0\4\0\n\0\n\xce", bytes(30), [], [[]], [0, 0, 0],
)  # fmt: skip
TOKENS = (
    b"", b"[", b"]", b",", b"null", b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"[" * 3000, b'"', b"\xff",
    b'"\\ud800"', b'{"octets":1e999}', b'{"octets":-1}', b'{"octets":"1"}', b'{"octets":null}',
    b'{"octets":[]}', b'{"octets":1,"octets":0}', b'{"octets":4000000000}', b"{}",
)  # fmt: skip


def hostile_state(build: Builder, state: bytes) -> bytes:
    """A state in which something is wrong, though not its checksum."""
    if build.octet() % 4 == 0:
        return _sealed(state, _spliced(build, _text(state)))
    tree = list(unpack(state)._values)
    for _ in range(1 + build.octet() % 3):
        _spoil(build, tree)
    return pack(tree)


def _text(state: bytes) -> bytes:
    begin = HEAD + 4 + LENGTH
    return state[begin : begin + int.from_bytes(state[begin - LENGTH : begin], "big")]


def _sealed(state: bytes, text: bytes) -> bytes:
    """A state with another text, and the octets that it had."""
    octets = state[HEAD + 4 + LENGTH + len(_text(state)) :]
    body = len(text).to_bytes(LENGTH, "big") + text + octets
    return state[:HEAD] + crc32(body).to_bytes(4, "big") + body


def _spliced(build: Builder, text: bytes) -> bytes:
    """A text with something else at some position."""
    at = (build.octet() << 8 | build.octet()) % (len(text) + 1)
    return text[:at] + build.pick((build.pick(TOKENS), build.octets())) + text[at + build.octet() % 32 :]


def _spoil(build: Builder, tree: list[Any]) -> None:
    """Change, leave out or double one value of a tree, behind the terms with which it begins."""
    places = list(_places(tree[1:]))
    (values, at), (others, other) = build.pick_far(places), build.pick_far(places)
    match build.octet() % 8:
        case 0:
            del values[at]
        case 1:
            values.insert(at, values[at])
        case 2:
            values[at] = build.pick(UNUSUAL)
        case 3:
            values[at] = deepcopy(others[other])
        case _:
            values[at] = _altered(build, values[at])


def _places(values: list[Any]) -> Iterator[tuple[list[Any], int]]:
    """Every position in a tree."""
    for at, value in enumerate(values):
        yield values, at
        if isinstance(value, list):
            yield from _places(value)


def _altered(build: Builder, value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return build.pick((value + build.pick((-1, 1, 1000, -1000, 2**40)), build.number()))
        case bytes():
            return value[: build.octet()] + build.octets()
        case str():
            return build.text()
        case list():
            return value[::-1]
        case _:
            return build.pick((build.number(), build.octets(), build.text()))
