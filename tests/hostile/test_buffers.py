"""Octets come in any buffer; what is given out refers to none that its owner may change."""

from __future__ import annotations

import array
import gc
import mmap
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation
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
    data[:] = bytes(len(data))  # before anything was asked for
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


def test_parts_refer_to_the_body_and_pin_it(amqp: ModuleType) -> None:
    body = bytearray(b"x" * 100)
    parts = amqp.encode_message_parts(1, amqp.Basic.Publish(), None, body)
    with pytest.raises(BufferError):
        body.clear()
    body[0] = ord("y")
    assert b"".join(parts).count(b"yxx") == 1


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
