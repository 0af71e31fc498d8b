"""What `amqpcodec decode` remembers of connections that come and go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.implementation import Implementation

from amqpcodec import ContentHeader
from amqpcodec import rabbitmq as amqp
from amqpcodec.capture import Connection
from amqpcodec.cli import recent
from amqpcodec.cli.messages_py import Messages
from amqpcodec.cli.queues import Queues
from amqpcodec.cli.recent import Recent

MOST = 16


@pytest.fixture(autouse=True)
def _each_build(impl: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Messages", impl.cli("messages").Messages)


def _item(number: int, payload: Any, kind: int = 1, direction: int = 0) -> Any:
    frame = SimpleNamespace(type=kind, channel=1, payload=payload)
    connection = Connection(number, None, None)
    return SimpleNamespace(connection=connection, direction=direction, frame=frame)


def test_what_was_used_last_is_remembered_and_the_rest_forgotten() -> None:
    kept: Recent[int, int] = Recent(MOST)
    kept[-1] = 7
    for number in range(100 * MOST):
        kept[number] = number
        assert kept.get(-1) == 7
        assert kept.get(max(0, number - MOST // 4)) is not None
        assert len(kept) <= 2 * MOST
    assert kept.get(0) is None
    kept.pop(-1)
    assert kept.get(-1) is None


def test_a_consumer_that_is_still_served_is_known_after_many_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recent.Recent.__init__, "__defaults__", (MOST,))
    queues = Queues()
    consume = amqp.BasicConsume(queue="orders", consumer_tag="one")
    queues.of(_item(0, consume))
    queues.of(_item(0, amqp.BasicConsumeOk("one"), direction=1))
    deliver = amqp.BasicDeliver("one", 1, exchange="events")
    for number in range(1, 20 * MOST):  # none of these is ever closed
        queues.of(_item(number, consume))
        assert queues.of(_item(0, deliver, direction=1)) == "orders"
    assert len(queues._connections) <= 2 * MOST


def test_nothing_is_kept_of_connections_without_an_open_message() -> None:
    messages = Messages(64)
    header = ContentHeader(amqp.BasicProperties(), 0)
    for number in range(100):
        publish, end = _item(number, amqp.BasicPublish("e", "k")), _item(number, header, kind=2)
        assert [*messages.feed(publish, True, None)] == []
        [message] = messages.feed(end, True, None)
        assert message.complete
    assert not messages._open


def test_a_body_is_shown_from_as_many_frames_as_are_asked_for() -> None:
    messages = Messages(5)
    header = ContentHeader(amqp.BasicProperties(), 9)
    payloads = [(1, amqp.BasicPublish("e", "k")), (2, header), (3, b"abc"), (3, b"def"), (3, b"ghi")]
    [message] = [
        each for kind, payload in payloads for each in messages.feed(_item(0, payload, kind), True, None)
    ]
    assert (message.body, message.size, message.frames) == (b"abcde", 9, 5)
