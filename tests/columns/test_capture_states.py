"""States of captures that are read in parts: what is damaged or hostile is refused, or does no harm."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest
from support import make_capture as make
from support import make_chaos as chaos
from support.columns import BUILDS
from support.parts import disturbed, rows_of, size_of

from amqpcodec import arrow
from amqpcodec._state import pack, unpack
from amqpcodec.options import FRAME_MAX


def _states() -> Iterator[tuple[str, bytes, bytes]]:
    """Tables, captures, and states from the middle of them."""
    for seed, table in enumerate(("messages", "connections", "errors", "messages")):
        octets = chaos.capture(seed) if seed else make.pcapng(disturbed(1))
        session = arrow.CaptureSession(table, port=None)
        list(session.read(io.BytesIO(octets), "a", end=size_of(octets) // 2))
        yield table, octets, session.suspend()


def _lists(tree: list[Any]) -> Iterator[list[Any]]:
    """Every list in a state."""
    yield tree
    for value in tree:
        if isinstance(value, list):
            yield from _lists(value)


@pytest.mark.parametrize("state", [1, "text", memoryview(b"")])
def test_a_state_that_is_no_bytes_is_refused(state: Any) -> None:
    with pytest.raises(TypeError, match=f"state: must be bytes, not {type(state).__name__}"):
        arrow.CaptureSession(state=state)


def test_truncated_states_are_refused() -> None:
    for table, _, state in _states():
        for size in range(0, len(state), max(1, len(state) // 50)):
            with pytest.raises(ValueError, match="state"):
                arrow.CaptureSession(table, port=None, state=state[:size])


def test_states_with_a_changed_octet_are_refused() -> None:
    rng = random.Random(3)
    for table, _, state in _states():
        for _ in range(100):
            damaged = bytearray(state)
            damaged[rng.randrange(len(state))] ^= 1 << rng.randrange(8)
            with pytest.raises(ValueError, match="state"):
                arrow.CaptureSession(table, port=None, state=bytes(damaged))


@pytest.mark.parametrize("impl", BUILDS)
def test_states_of_hostile_values_do_no_harm(impl: str) -> None:
    """Read octets of the right form: they are refused, or give rows."""
    rng = random.Random(9)
    refused = taken = 0
    for table, octets, state in _states():
        tree = list(unpack(state)._values)
        for _ in range(60):
            hostile = pack(_spoilt(tree, rng))
            try:
                session = arrow.CaptureSession(table, port=None, _impl=impl, state=hostile)
                rows_of(session.read(io.BytesIO(octets), end=size_of(octets)))
                session.suspend()
                rows_of(session.finish())
                taken += 1
            except ValueError:
                refused += 1
    assert refused > 40
    assert taken > 4


@pytest.mark.parametrize("impl", BUILDS)
def test_a_value_too_many_is_refused_wherever_it_stands(impl: str) -> None:
    for table, _, state in _states():
        tree = list(unpack(state)._values)
        lists = list(_lists(tree))
        assert len(lists) > 10
        for values in lists:
            values.append([])
            with pytest.raises(ValueError, match="the state is damaged: "):
                arrow.CaptureSession(table, port=None, _impl=impl, state=pack(tree))
            values.pop()
        arrow.CaptureSession(table, port=None, _impl=impl, state=pack(tree))


@pytest.mark.parametrize("size", [float("inf"), float("-inf"), float("nan"), 10**400, -1, [], None, "x"])
def test_octets_of_no_size_are_refused(size: Any) -> None:
    with pytest.raises(ValueError, match="the state is damaged: its form is wrong"):
        arrow.CaptureSession(state=pack([{"octets": size}]))


@pytest.mark.parametrize("text", [b"\xff", b'["\xff"]', b"[" * 9000, b"[" + b"9" * 9000 + b"]", b"nonsense"])
def test_a_form_that_cannot_be_read_is_refused(text: bytes) -> None:
    body = len(text).to_bytes(8, "big") + text
    state = pack([]).partition(b"\n")[0] + b"\n" + crc32(body).to_bytes(4, "big") + body
    with pytest.raises(ValueError, match="the state is damaged: its form is wrong"):
        arrow.CaptureSession(state=state)


@pytest.mark.parametrize("impl", BUILDS)
def test_text_that_is_no_unicode_is_refused(impl: str) -> None:
    session = arrow.CaptureSession(_impl=impl)
    list(session.read(io.BytesIO(make.pcap(disturbed(2))), "a", end=9000))
    tree = list(unpack(session.suspend())._values)
    (before, name), *_ = tree[3]
    assert name == "a"
    for text in ("\ud800", "\udcff"):
        tree[3] = [[before, text]]
        with pytest.raises(ValueError, match="the state is damaged: there is text that is none"):
            arrow.CaptureSession(_impl=impl, state=pack(tree))


@pytest.mark.parametrize(
    ("direction", "expected", "reason"),
    [
        (0, 9 + FRAME_MAX, "out of range"),
        (1, 1 + FRAME_MAX, "out of range"),
        (1, 1, "there is something before the first octet"),
        (1, None, "there is something before the first octet"),
    ],
)
@pytest.mark.parametrize("impl", BUILDS)
def test_a_direction_waits_for_a_frame_where_one_can_be(
    direction: int, expected: int | None, reason: str, impl: str
) -> None:
    packets = make.conversations(1, count=1, bursts=1).packets[:4]
    session = arrow.CaptureSession(_impl=impl)
    list(session.read(io.BytesIO(make.pcap(packets))))  # a protocol header, and nothing of the server
    tree = list(unpack(session.suspend())._values)
    arrow.CaptureSession(_impl=impl, state=pack(tree))
    ((_, decoder),) = tree[5][0]
    decoder[6 + direction][9] = expected
    with pytest.raises(ValueError, match=reason):
        arrow.CaptureSession(_impl=impl, state=pack(tree))


_ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 2**16, 2**31, 2**32, 2**59, 2**60, 2**62, -(2**62), 2**64, 10**30, 1.5,
    "", "gap", "amqp-0-8", b"", b"\1\0\1\0\0\0\4\0\n\0\n\xce", bytes(30), [], [[]], [0, 0, 0],
)  # fmt: skip


def _spoilt(tree: Any, rng: random.Random) -> Any:
    """A tree with one value changed, left out or doubled, somewhere."""
    at = rng.randrange(len(tree))
    spoilt = list(tree)
    if isinstance(tree[at], list) and tree[at] and rng.random() < 0.95:
        spoilt[at] = _spoilt(tree[at], rng)
        return spoilt
    match rng.randrange(5):
        case 0:
            del spoilt[at]
        case 1:
            spoilt.insert(at, rng.choice((tree[at], rng.choice(_ODD))))
        case 2 if type(tree[at]) is int:
            spoilt[at] += rng.choice((-1, 1, 1000, -1000, 2**40))
        case 3 if type(tree[at]) is bytes:
            spoilt[at] = tree[at][: rng.randrange(len(tree[at]) + 1)] + rng.randbytes(rng.randrange(3))
        case _:
            spoilt[at] = rng.choice(_ODD)
    return spoilt
