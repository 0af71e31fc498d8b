"""Frames are judged the same whether the messages before them came with them or alone."""

from __future__ import annotations

from struct import pack
from types import SimpleNamespace
from typing import Any

import pytest

from amqpcodec import rabbitmq as amqp
from amqpcodec.testing.reader import FrameReader, HungUpError, RefusedError
from amqpcodec.testing.versions import VERSIONS

MOST, LARGEST = 250, 280  # octets of a body, and of a frame's payload
MESSAGE = amqp.encode_message(1, amqp.Basic.Publish("", "q"), amqp.BasicProperties(type="t"), b"body")
PIECES = amqp.encode_message(1, amqp.Basic.Publish("", "q"), None, bytes(60), frame_max=40)
LARGE = amqp.encode_message(1, amqp.Basic.Publish("", "q"), None, bytes(MOST + 1))
WIDE = amqp.encode_message(1, amqp.Basic.Publish("e" * 100, "k" * 200), None, b"body")
# A header that lacks an octet: its end stands for the last one, by which the body has 206.
SHORT = (
    amqp.encode_method(1, amqp.Basic.Publish("", "q"))
    + pack(">BHIHH7xB", 2, 1, 11, 60, 0, 0xCE)
    + pack(">BHI206xB", 3, 1, 206, 0xCE)
)
EMPTY = amqp.encode_message(1, amqp.Basic.Publish("", "q"), None, b"")
OTHER = amqp.encode_message(2, amqp.Basic.Publish("", "q"), None, b"body")


def running() -> Any:
    """Return the reader of a connection with every channel open."""
    connection = SimpleNamespace(state="open", channel_state=lambda number: "open")
    broker = SimpleNamespace(version=VERSIONS["3.10"])
    session: Any = SimpleNamespace(connection=connection, amqp=amqp, broker=broker)
    reader: Any = FrameReader(session, MOST)
    reader._greeting, reader._step, reader._largest = 0, 3, LARGEST
    return reader


def judged(*pieces: bytes) -> tuple[bytes, tuple[Any, ...]]:
    """Return what passes of octets that come in pieces, until something is refused; and how that is said."""
    reader, passed = running(), b""
    for piece in pieces:
        reader.feed(piece)
        try:
            while some := reader.next():
                passed += some
        except (RefusedError, HungUpError) as error:
            return passed, (type(error), str(error), *vars(error).values())
    return passed, ()


@pytest.mark.parametrize("message", [MESSAGE, PIECES, LARGE, WIDE, SHORT, EMPTY, OTHER], ids=len)
def test_a_message_is_judged_as_it_is_alone(message: bytes) -> None:
    octets = {0, 1, 2, 3, 5, 0xCE, 0xFF}
    cut = [message[:at] for at in range(len(message))]
    damaged = [each + bytes([octet]) + message[len(each) + 1 :] for each in cut for octet in octets]
    for each in (message, *cut, *damaged):
        assert judged(MESSAGE + each + MESSAGE) == judged(MESSAGE, each, MESSAGE), each.hex()


def test_a_heartbeat_with_a_payload_is_refused() -> None:
    assert judged(MESSAGE + b"\x08\0\0\0\0\0\1x\xce") == (
        MESSAGE,
        (RefusedError, 'type 8, all octets = <<"x">>: unknown_frame', 501, 0, 0, 0),
    )


def test_messages_that_come_together_pass_together() -> None:
    reader = running()
    reader.feed(MESSAGE * 3 + MESSAGE[:10])
    assert [reader.next(), reader.next()] == [MESSAGE * 3, b""]


@pytest.mark.parametrize("damaged", range(4))
def test_a_whole_message_is_taken_at_once_but_not_where_an_end_is_damaged(damaged: int) -> None:
    reader, octets, end = running(), bytearray(MESSAGE), 0
    for _ in range(damaged):
        end += 8 + int.from_bytes(octets[end + 3 : end + 7], "big")
    if damaged:
        octets[end - 1] = 0
    reader._open = 1
    reader.feed(octets)
    assert reader._message_end(0) == (0 if damaged else len(MESSAGE))
