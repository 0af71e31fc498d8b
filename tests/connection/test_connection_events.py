"""Events and errors as values."""

from __future__ import annotations

import copy
import pickle
from typing import get_args

from amqpcodec import AmqpError, LocalProtocolError
from amqpcodec import rabbitmq as amqp
from amqpcodec.connection import (
    ChannelClosed,
    ChannelOpened,
    ConnectionClosed,
    MethodReceived,
    Outstanding,
    Settled,
    Unblocked,
    events,
)


def test_events_of_different_classes_differ() -> None:
    method = amqp.Channel.OpenOk()
    opened = ChannelOpened(1, method)
    assert opened == ChannelOpened(1, amqp.Channel.OpenOk())
    assert opened != MethodReceived(1, method)
    assert opened != (1, method)
    assert Settled(1, method, (1,)) != ChannelOpened(1, method)
    assert hash(Unblocked()) == hash(Unblocked())
    assert Unblocked() != ()


def test_events_can_be_matched_copied_and_pickled() -> None:
    event = MethodReceived(3, amqp.Channel.Flow(True))
    match event:
        case MethodReceived(channel, amqp.Channel.Flow(active=active)):
            assert (channel, active) == (3, True)
    assert copy.deepcopy(event) == pickle.loads(pickle.dumps(event)) == event


def test_events_of_an_end_carry_values() -> None:
    declare = amqp.Queue.Declare(queue="q")
    left = Outstanding(1, (1, 3), (2,), (declare,))
    channel = ChannelClosed(1, "local", 200, "", 0, 0, *left[1:], amqp.Channel.Close(404, "", 0, 0))
    whole = ConnectionClosed("eof", 0, "", 0, 0, (left,))
    for event in (left, channel, whole):
        assert copy.deepcopy(event) == pickle.loads(pickle.dumps(event)) == event
    assert whole != ConnectionClosed("eof") != ConnectionClosed("eof", outstanding=(Outstanding(1),))
    assert channel != channel._replace(crossed=None) != channel._replace(unconfirmed=(), crossed=None)
    assert hash(ConnectionClosed("eof", outstanding=(Outstanding(1, (1,)),))) != hash(ConnectionClosed("eof"))
    assert repr(whole) == (
        "ConnectionClosed(by='eof', reply_code=0, reply_text='', class_id=0, method_id=0, outstanding="
        f"(Outstanding(channel=1, unconfirmed=(1, 3), unacknowledged=(2,), awaited=({declare!r},)),), "
        "crossed=None)"
    )


def test_every_event_describes_its_fields() -> None:
    for name in events.__all__:
        event = getattr(events, name)
        if name != "Event":
            assert all(f"{field}" in event.__doc__ for field in event._fields)
            assert event in get_args(events.Event) or name == "Outstanding"


def test_a_local_error_says_what_a_peer_would_be_told() -> None:
    error = LocalProtocolError("channel 1 is not open", 504, 1)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.reply_code, again.channel) == ("channel 1 is not open", 504, 1)
    assert isinstance(error, (AmqpError, RuntimeError))
