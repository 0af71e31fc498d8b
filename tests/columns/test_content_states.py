"""States of contents that are open: what is wrong with one is known after a restart as before."""

from __future__ import annotations

import io
from typing import Any

import pytest
from support import make_capture as make
from support.campaign import in_full
from support.columns import BUILDS
from support.troubled import Talk

from amqpcodec import arrow
from amqpcodec import rabbitmq as amqp
from amqpcodec._columns.following_py import Message
from amqpcodec._columns.following_states import _restored_message
from amqpcodec._columns.open_message import OpenMessage
from amqpcodec._columns.steps import step_of
from amqpcodec._state import Fields
from amqpcodec.capture import Connection


def capture() -> bytes:
    """A content without its method, and one that is whole."""
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    publish = amqp.Basic.Publish(exchange="x", routing_key="k")
    method, header, body = make.split(amqp.encode_message(1, publish, amqp.BasicProperties(), b"octets"))
    for frame in (header, body, method, header, body):
        talk.send(make.CLIENT, frame)
        talk.wait(0.5)
    return make.pcap(truth.packets)


@pytest.mark.parametrize("impl", BUILDS)
def test_a_content_without_its_method_is_reported_wherever_the_recording_was_suspended(impl: str) -> None:
    octets = capture()
    whole = arrow.CaptureSession("messages", _impl=impl)
    expected = [*whole.read(io.BytesIO(octets), "a", end=len(octets)), *whole.finish()]
    rows = [row for batch in expected for row in batch.to_pylist()]
    assert [(row["complete"], row["_error"]) for row in rows] == [
        (False, "UNEXPECTED_FRAME at 124"),
        (True, None),
    ]
    for end in range(24, len(octets), in_full(16, 48)):
        first = arrow.CaptureSession("messages", _impl=impl)
        found = list(first.read(io.BytesIO(octets), "a", end=end))
        second = arrow.CaptureSession(_impl=impl, state=first.suspend())
        found += [*second.read(io.BytesIO(octets), "a", end=len(octets)), *second.finish()]
        assert [row for batch in found for row in batch.to_pylist()] == rows, end


METHOD = amqp.encode_method(1, amqp.Basic.Publish())
HEADER = amqp.encode_header(1, amqp.BasicProperties(), 6)
DIALECTS = {"rabbitmq-0-9-1": amqp}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({3: "amqp-1-0"}, "there is no such dialect"),
        ({5: HEADER}, "there is a content of a method that nobody knows"),
        ({5: b"\x01\0\1\0\0\0\4\0\x3c\xff\xff\xce"}, "there is a content of a method that nobody knows"),
        ({5: None, 6: None}, "there is a content without a content header"),
        ({6: METHOD}, "there is a content without a content header"),
        ({5: None, 6: METHOD}, "there is a content without a content header"),
        ({5: None, 6: b"\x02\0\1\0\0\0\4\0\x3c\0\0\xce"}, "there is a content without a content header"),
        ({8: ["text"]}, "there is a body that is not octets"),
        ({4: -1}, "-1 is out of range"),
        ({4: 65536}, "65536 is out of range"),
        ({7: -1}, "-1 is out of range"),
        ({9: 7}, "7 is out of range"),
        ({9: -1}, "-1 is out of range"),
        ({10: 0}, "0 is out of range"),
        ({11: -1}, "-1 is out of range"),
        ({14: 2}, "a value is of another kind, or out of range"),
        ({15: 0}, "there are values too many"),
    ],
)
def test_a_state_of_a_content_that_cannot_be_is_refused(changed: dict[int, Any], said: str) -> None:
    state = [None, None, 0, "rabbitmq-0-9-1", 1, METHOD, HEADER, 12, [], 6, 2, 40, None, False, 0, 0]
    values = [changed.get(at, value) for at, value in enumerate(state[: max(14, max(changed) + 1)])]
    with pytest.raises(ValueError, match=f"^the state is damaged: {said}$"):
        OpenMessage.restored(Fields(values), Connection(0, None, None), 0, DIALECTS)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({1: None}, "there is a message without a dialect or a time"),
        ({4: "amqp-1-0"}, "there is a message without a dialect or a time"),
        ({6: HEADER}, "there is a message of a method that nobody knows"),
        ({5: step_of(amqp.Basic.Deliver)}, "there is a message of a method that nobody knows"),
        ({6: METHOD + METHOD}, "there is a message without a content header"),
        ({13: "guessed"}, "there is a message whose publish was found in a way that nobody knows"),
        ({17: [0, ""]}, "there are values too many"),
    ],
)
def test_a_state_of_a_message_that_cannot_be_is_refused(changed: dict[int, Any], said: str) -> None:
    step = step_of(amqp.Basic.Publish)
    state = [1, 7, 0, 0, "rabbitmq-0-9-1", step, METHOD + HEADER, 12, 40, True, 1, None, True]
    state += [None, None, 0, 0, []]

    def restored(changed: dict[int, Any]) -> Message:
        values = Fields([changed.get(at, value) for at, value in enumerate(state)])
        return _restored_message(Connection(0, None, None), 1, DIALECTS, Message, values)

    assert restored({}).frames == METHOD + HEADER
    with pytest.raises(ValueError, match=f"^the state is damaged: {said}$"):
        restored(changed)
