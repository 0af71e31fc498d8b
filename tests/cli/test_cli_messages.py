"""`amqpcodec decode --messages`: frames out of order, and recordings that lack some."""

from __future__ import annotations

import io

import pytest
from support.implementation import Implementation

from amqpcodec import capture
from amqpcodec import rabbitmq as amqp
from amqpcodec.capture import Fault
from amqpcodec.cli.messages_py import Messages, ShownMessage

PUBLISH = amqp.encode_method(1, amqp.Basic.Publish(exchange="x", routing_key="k"))
HEADER = amqp.encode_header(1, amqp.BasicProperties(), 3)
BODY = amqp.encode_body(1, b"abc")
DAMAGED = (
    b"\x02\0\x01\0\0\0\x0f\0\x3c\0\0" + bytes(7) + b"\3\x80\0\xff\xce"
)  # a content type beyond its frame


@pytest.fixture(autouse=True)
def _each_build(impl: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Messages", impl.cli("messages").Messages)


def shown(*frames: bytes, wanted: bool = True) -> list[str]:
    """A word for each line: of a message whether it is whole, of a fault its text."""
    messages = Messages(64)
    items = capture.read_raw_frames(io.BytesIO(b"".join(frames)), dialect="rabbitmq-0-9-1")
    lines = [each for item in items for each in messages.feed(item, wanted, None)]
    return [_word(each) for each in [*lines, *messages.finish()]]


def _word(line: ShownMessage | Fault) -> str:
    if isinstance(line, Fault):
        return line.message
    return f"{line.name} {'whole' if line.complete else 'incomplete'}"


def test_a_frame_out_of_order_has_a_line_behind_the_message_that_it_ends() -> None:
    assert shown(PUBLISH, HEADER, PUBLISH, HEADER, BODY) == [
        "basic.publish incomplete",
        "method basic.publish before the end of a basic.publish",
        "basic.publish whole",
    ]
    assert shown(PUBLISH, HEADER, BODY, BODY) == [
        "basic.publish whole",
        "body without a content header before it",
        "content incomplete",
    ]
    assert shown(PUBLISH, HEADER, BODY, BODY, wanted=False) == []


def test_what_a_recording_begins_with_is_no_fault() -> None:
    assert shown(BODY, PUBLISH, HEADER, BODY) == ["content incomplete", "basic.publish whole"]
    assert shown(HEADER, BODY, PUBLISH, HEADER, BODY) == ["content incomplete", "basic.publish whole"]


def test_more_body_than_announced_ends_the_message_before_it() -> None:
    assert shown(PUBLISH, HEADER, amqp.encode_body(1, b"ab"), BODY) == [
        "basic.publish incomplete",
        "body of 5 octets, 3 announced",
    ]


def test_what_follows_a_damaged_frame_is_no_second_fault() -> None:
    lines = shown(PUBLISH, DAMAGED, BODY, PUBLISH, HEADER, BODY)
    assert lines == [
        "basic.publish incomplete",
        "basic.content-type: shortstr of 255 octets, 0 left",
        "content incomplete",
        "basic.publish whole",
    ]
