"""Any buffer is accepted; no result refers to memory that its owner may change."""

from __future__ import annotations

import array
import gc
import mmap
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation
from support.interpreter import collects_when_told, counts_references, pins_buffers
from support.outcomes import describe, drain

from amqpcodec import DecoderInUseError, EncodeError


def mapped(octets: bytes) -> mmap.mmap:
    area = mmap.mmap(-1, len(octets))
    area.write(octets)
    return area


BUFFERS: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "bytes subclass": type("Octets", (bytes,), {}),
    "bytearray": bytearray,
    "memoryview": memoryview,
    "memoryview of a bytearray": lambda octets: memoryview(bytearray(octets)),
    "two-dimensional": lambda octets: memoryview(octets).cast("B", (len(octets) // 4, 4)),
    "words": lambda octets: memoryview(octets).cast("I"),
    "array": lambda octets: array.array("H", octets),
    "mmap": mapped,
    "every other octet": lambda octets: memoryview(bytes(x for pair in octets for x in (pair, 0)))[::2],
    "backwards": lambda octets: memoryview(octets[::-1])[::-1],
}


def stream(amqp: ModuleType) -> bytes:
    """Frames with every kind of value that might refer to the input; a multiple of four octets."""
    headers = {"text": "é" * 9, "octets": b"\xff" * 9, "plain": "a" * 60, "table": {"list": [b"xyz"]}}
    properties = amqp.BasicProperties(message_id="i" * 70, headers=headers)
    octets: bytes = amqp.encode_method(0, amqp.Connection.SecureOk(b"response"))
    octets += amqp.encode_message(1, amqp.Basic.Publish("exchange", "key" * 20), properties, b"body" * 9)
    return octets + amqp.encode_body(1, bytes(4 - (len(octets) + 8) % 4))


@pytest.mark.parametrize("name", BUFFERS)
@pytest.mark.parametrize("tables", ["dict", "raw"])
def test_every_buffer_is_read_alike(amqp: ModuleType, name: str, tables: str) -> None:
    octets = stream(amqp)
    expected = describe(list(amqp.FrameDecoder(tables=tables).feed(octets)))
    data = BUFFERS[name](octets)
    assert memoryview(data).tobytes() == octets
    assert describe(list(amqp.FrameDecoder(tables=tables).feed(data))) == expected
    assert amqp.encode_body(1, data)[7:-1] == octets
    assert b"".join(amqp.encode_message_parts(1, amqp.Basic.Publish(), None, data, frame_max=0)).count(octets)


@pytest.mark.parametrize("name", [name for name in BUFFERS if name not in ("bytes", "backwards")])
def test_tables_on_their_own_take_every_buffer(impl: Implementation, name: str) -> None:
    octets = impl.tables.encode_table({"key": "value12"})
    assert len(octets) % 4 == 0
    assert impl.tables.decode_table(BUFFERS[name](octets)) == {"key": "value12"}
    assert impl.tables.decode_pairs(BUFFERS[name](octets[4:])) == {"key": "value12"}
    assert impl.raw_table(BUFFERS[name](octets[4:])).octets == octets[4:]


@pytest.mark.parametrize("wrong", ["text", 5, None, [1], object()], ids=lambda value: type(value).__name__)
def test_what_is_no_buffer_is_refused_and_changes_nothing(amqp: ModuleType, wrong: Any) -> None:
    decoder = amqp.FrameDecoder()
    octets = stream(amqp)
    decoder.feed(octets[:20])
    for refuse in (decoder.feed, amqp.decode_table):
        with pytest.raises(TypeError, match="bytes-like"):
            refuse(wrong)
    with pytest.raises(EncodeError, match="bytes-like"):
        amqp.encode_body(1, wrong)
    assert decoder.pending == 20
    assert len(list(decoder.feed(octets[20:]))) == 5


def test_a_released_view_is_refused_and_changes_nothing(amqp: ModuleType) -> None:
    view = memoryview(b"octets")
    view.release()
    decoder = amqp.FrameDecoder()
    for refuse in (decoder.feed, amqp.decode_table, lambda given: amqp.encode_body(1, given)):
        with pytest.raises(ValueError, match="released"):
            refuse(view)
    assert decoder.pending == 0


@pytest.mark.parametrize("tables", ["dict", "raw"])
@pytest.mark.parametrize("kind", ["FrameDecoder", "MessageDecoder"])
def test_nothing_given_out_refers_to_the_input(amqp: ModuleType, kind: str, tables: str) -> None:
    octets = stream(amqp)[: -len(amqp.encode_body(1, b"x" * 4))]
    expected = describe(list(getattr(amqp, kind)(tables=tables).feed(octets)))
    data = bytearray(octets)
    decoder = getattr(amqp, kind)(tables=tables).feed(data)
    data[:] = bytes(len(data))  # before anything was decoded
    data.clear()  # and no view of it is held
    assert describe(list(decoder)) == expected


@pytest.mark.parametrize("tables", ["dict", "raw"])
def test_nothing_given_out_refers_to_the_lent_buffer(amqp: ModuleType, tables: str) -> None:
    octets = stream(amqp)
    expected = describe(list(amqp.FrameDecoder(tables=tables).feed(octets)))
    decoder = amqp.FrameDecoder(tables=tables)
    lent = decoder.get_buffer(-1)
    lent[: len(octets)] = octets
    values = list(decoder.buffer_updated(len(octets)))
    lent[:] = bytes(len(lent))
    assert describe(values) == expected


@pytest.mark.parametrize("size", [-1, 65537, 10**30], ids=str)
def test_more_than_was_lent_is_refused(amqp: ModuleType, size: int) -> None:
    class Liar(int):
        def __le__(self, other: object) -> bool:
            return True

        __ge__ = __lt__ = __gt__ = __le__

    decoder = amqp.FrameDecoder()
    decoder.get_buffer(-1)
    for given in (size, Liar(size)):
        with pytest.raises(ValueError, match="no buffer of"):
            decoder.buffer_updated(given)
    for wrong in (5.0, "5", None):
        with pytest.raises(TypeError):
            decoder.buffer_updated(wrong)
    assert decoder.pending == 0


SIZES = (0, 1, 7, 8, 32, 4096, 65535, 65536, 65537, 200_000)


def resized(owner: bytearray, size: int) -> None:
    """Give a buffer that was lent another size, as its borrower may while nobody looks at it."""
    del owner[size:]
    owner.extend(bytes(size - len(owner)))


@pytest.mark.parametrize("waiting", [False, True], ids=["used up", "frames waiting"])
@pytest.mark.parametrize("size", SIZES)
def test_no_octets_beyond_a_buffer_that_was_made_smaller_are_read(
    amqp: ModuleType, size: int, waiting: bool
) -> None:
    octets = amqp.encode_heartbeat() * (65536 // 8)
    for given in (0, 1, 8, 16, 33, size - 1, size, size + 1, 65528, 65536):
        if not 0 <= given <= 65536:
            continue
        decoder = amqp.FrameDecoder()
        if waiting:
            decoder.feed(octets[:24])
        lent = decoder.get_buffer(1)
        lent[:] = octets
        owner = lent.obj
        lent.release()
        resized(owner, size)
        before = decoder.pending
        if given > size:
            with pytest.raises(ValueError, match=f"no buffer of {given} octets was lent"):
                decoder.buffer_updated(given)
            assert decoder.pending == before
        else:
            frames = list(decoder.buffer_updated(given))
            assert (len(frames), decoder.pending) == divmod(before + given, 8)
        with decoder.get_buffer(1) as again:
            assert len(again) == 65536  # whatever became of the last
            again[:16] = octets[:16]
        decoder.reset()
        assert len(list(decoder.buffer_updated(16))) == 2


@pins_buffers
def test_a_buffer_is_its_borrowers_again_once_it_is_used_up(amqp: ModuleType) -> None:
    decoder, octets = amqp.FrameDecoder(), amqp.encode_heartbeat() * 2
    for size in SIZES:
        with decoder.get_buffer(1) as lent:
            lent[: len(octets)] = octets
            owner = lent.obj
        frames = decoder.buffer_updated(len(octets))
        next(frames)
        for resize in (owner.clear, lambda: owner.extend(b"x"), lambda: owner.__delitem__(slice(9))):  # noqa: B023
            with pytest.raises(BufferError):
                resize()
        next(frames)
        resized(owner, size)
        assert list(frames) == []


@counts_references
@pytest.mark.parametrize("kind", ["FrameDecoder", "MessageDecoder"])
@pytest.mark.parametrize("tables", ["dict", "raw"])
def test_a_decoder_keeps_no_chunk_that_is_used_up(amqp: ModuleType, kind: str, tables: str) -> None:
    properties = amqp.BasicProperties(headers={"text": "é", "plain": "a" * 30})
    octets = amqp.encode_heartbeat() + amqp.encode_message(1, amqp.Basic.Publish("e"), properties, b"body")

    def references(*, to: int) -> list[int]:
        """To a chunk that ends behind so many octets, and to what is fed next, while the decoder is idle."""
        decoder = getattr(amqp, kind)(tables=tables)
        found = []
        for chunk in (octets[:to], octets[to:]):
            fed = bytes(bytearray(chunk))
            values = list(decoder.feed(fed))
            found.append(sys.getrefcount(fed))
            del values
        assert decoder.pending == 0
        return found

    unused = bytes(bytearray(octets))
    for to in range(2, len(octets) - 1):
        assert references(to=to) == [sys.getrefcount(unused)] * 2


@counts_references
@pytest.mark.parametrize("kind", ["FrameDecoder", "MessageDecoder"])
@pytest.mark.parametrize("strict", [False, True])
def test_who_asks_for_each_frame_by_itself_leaves_no_chunk_either(
    amqp: ModuleType, kind: str, strict: bool
) -> None:
    decoder = getattr(amqp, kind)(strict=strict)
    for octets in (amqp.encode_method(1, amqp.Basic.Ack(7)), amqp.encode_heartbeat()):
        fed = bytes(bytearray(octets))
        before = sys.getrefcount(fed)
        next(decoder.feed(fed))
        assert sys.getrefcount(fed) == before
        decoder.feed(fed)
        assert sys.getrefcount(fed) > before
        decoder.reset()
        assert sys.getrefcount(fed) == before


@pins_buffers
def test_parts_refer_to_the_body_and_pin_it(amqp: ModuleType) -> None:
    body = bytearray(b"x" * 100)
    parts = amqp.encode_message_parts(1, amqp.Basic.Publish(), None, body)
    with pytest.raises(BufferError):
        body.clear()
    body[0] = ord("y")
    assert b"".join(parts).count(b"yxx") == 1


@collects_when_told
@pytest.mark.parametrize("kind", ["FrameDecoder", "MessageDecoder"])
def test_finalisers_that_enter_the_decoder(amqp: ModuleType, kind: str) -> None:
    """A collection may run at any allocation, and with it any code at all."""
    octets = stream(amqp)[: -len(amqp.encode_body(1, b"x" * 4))]
    expected = describe(list(getattr(amqp, kind)().feed(octets)))
    decoder = getattr(amqp, kind)()
    entered = [0, 0]

    class Intruder:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            try:
                decoder.feed(b"")
                decoder.skip_frame()
                entered[0] += decoder.pending >= 0
            except DecoderInUseError:
                entered[1] += 1

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(30):
            decoder.reset()
            Intruder()
            values, error = drain(decoder, [octets[:40], octets[40:]])
            assert error is None
            assert describe(values) == expected
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert sum(entered) == 30


@counts_references
@pytest.mark.parametrize("kind", ["FrameDecoder", "MessageDecoder"])
def test_octets_that_are_none_keep_no_chunk_alive(amqp: ModuleType, kind: str) -> None:
    decoder = getattr(amqp, kind)()
    fed = bytes(bytearray(amqp.encode_heartbeat() * 10 + b"\x01\x00"))
    before = sys.getrefcount(fed)
    decoder.feed(fed)
    decoder.feed(b"")
    assert len(list(decoder)) == 10
    assert (sys.getrefcount(fed), decoder.pending) == (before, 2)
