"""Frames on a channel that the peer has closed are ignored and counted.

RabbitMQ sends deliveries after its own channel.close. It may do so until the channel is open again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.connections import Pair
from support.implementation import Implementation

from amqpcodec import Limits
from amqpcodec.connection import ChannelClosed, ChannelOpened, MessageReceived, Violation

CLOSED = ChannelClosed(1, "peer", 404, "NOT_FOUND")
Late = Callable[[Any], bytes]


def frame(kind: int, payload: bytes) -> bytes:
    return bytes([kind, 0, 1]) + len(payload).to_bytes(4, "big") + payload + b"\xce"


def delivery(amqp: Any, body: bytes = b"body") -> bytes:
    octets: bytes = amqp.encode_message(1, amqp.Basic.Deliver("ct", 1, False, "", "q"), None, body)
    return octets


def published(amqp: Any) -> bytes:
    octets: bytes = amqp.encode_message(1, amqp.Basic.Publish(), None, b"body")
    return octets


# What the peer of a client, or of a server, sends late, and how often that counts.
LATE: list[tuple[str, str, Late, int]] = [
    ("messages", "client", lambda q: delivery(q) * 3, 3),
    ("a message in several frames", "client", lambda q: delivery(q, bytes(300_000)), 1),
    ("a message over the limit", "client", lambda q: delivery(q, bytes(400_000)), 2),
    ("replies", "client", lambda q: q.encode_method(1, q.Queue.DeclareOk("q", 0, 0)), 1),
    ("confirms", "client", lambda q: q.encode_method(1, q.Basic.Ack(1)) * 2, 2),
    ("the end of a consumer", "client", lambda q: q.encode_method(1, q.Basic.Cancel("ct")), 1),
    ("a second close", "client", lambda q: q.encode_method(1, q.Channel.Close(404)), 1),
    ("a close-ok", "client", lambda q: q.encode_method(1, q.Channel.CloseOk()), 1),
    ("an open-ok", "client", lambda q: q.encode_method(1, q.Channel.OpenOk()), 1),
    ("a rest of a message", "client", lambda q: delivery(q)[-34:], 2),
    ("a method of clients", "client", lambda q: q.encode_method(1, q.Queue.Purge(queue="q")), 1),
    ("a method that is none", "client", lambda q: frame(1, b"\0\x32\xff\xff"), 1),
    ("messages", "server", lambda q: published(q) * 2, 2),
    ("a request", "server", lambda q: q.encode_method(1, q.Queue.Declare(queue="q")), 1),
    ("a rest of a message", "server", lambda q: published(q)[-12:], 1),
]  # fmt: skip


@pytest.mark.parametrize("pieces", [1, 30])
@pytest.mark.parametrize(
    ("side", "late", "count"), [case[1:] for case in LATE], ids=[f"{case[0]}, {case[1]}" for case in LATE]
)
def test_what_comes_after_the_close_of_the_peer_is_ignored_and_counted(
    impl: Implementation, side: str, late: Late, count: int, pieces: int
) -> None:
    pair = Pair(impl, client={"limits": Limits(body_size=350_000)}).opened(2)
    amqp = pair.amqp
    connection = pair.client if side == "client" else pair.server
    octets = late(amqp)
    cut = -(-len(octets) // pieces)
    chunks = [octets[at : at + cut] for at in range(0, len(octets), cut)]
    close = amqp.encode_method(1, amqp.Channel.Close(404, "NOT_FOUND", 0, 0))
    assert list(connection.receive_data(close + chunks[0])) == [CLOSED]
    for chunk in chunks[1:]:
        assert list(connection.receive_data(chunk)) == []
    assert (connection.state, connection.channels, connection.ignored) == ("open", (2,), count)
    assert connection.data_to_send() == amqp.encode_method(1, amqp.Channel.CloseOk())


@pytest.mark.parametrize(
    "late",
    [case[2] for case in LATE if case[1] == "client" and case[0] not in ("an open-ok", "a second close")],
)
def test_what_comes_late_is_ignored_until_the_channel_is_open_again(impl: Implementation, late: Late) -> None:
    """The channel may be asked for before the peer has stopped."""
    pair = Pair(impl).opened()
    client, amqp = pair.client, pair.amqp
    list(client.receive_data(amqp.encode_method(1, amqp.Channel.Close(404))))
    client.send(1, amqp.Channel.Open())
    octets = late(amqp)
    ready = amqp.encode_method(1, amqp.Channel.OpenOk())
    assert list(client.receive_data(octets + ready)) == [ChannelOpened(1, amqp.Channel.OpenOk())]
    client.send(1, amqp.Basic.Consume(queue="q", consumer_tag="ct", no_wait=True))
    [message] = client.receive_data(delivery(amqp))
    assert (type(message), message.body, client.unacknowledged(1)) == (MessageReceived, b"body", (1,))


def test_a_channel_that_is_not_opened_again_after_all_is_closed(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    client, amqp = pair.client, pair.amqp
    close = amqp.encode_method(1, amqp.Channel.Close(404, "NOT_FOUND", 0, 0))
    assert list(client.receive_data(close)) == [CLOSED]
    client.send(1, amqp.Channel.Open())
    [closed] = client.receive_data(close)
    assert (closed.by, closed.awaited, client.channels) == ("peer", (amqp.Channel.Open(),), ())


def reopened(impl: Implementation) -> Pair:
    """A pair whose server has closed channel 1, and whose client has opened it again."""
    pair = Pair(impl).opened()
    pair.server.close_channel(1, 404, "NOT_FOUND")
    pair.talk()
    pair.client.send(1, pair.amqp.Channel.Open())
    pair.talk()
    for events in pair.events.values():
        events.clear()
    return pair


def consume(pair: Pair, tag: str) -> None:
    """Have a consumer on channel 1, which the server has said is there."""
    pair.client.send(1, pair.amqp.Basic.Consume(queue="q", consumer_tag=tag))
    octets = pair.amqp.encode_method(1, pair.amqp.Basic.ConsumeOk(tag))
    assert [event.method.consumer_tag for event in pair.client.receive_data(octets)] == [tag]


# What cannot be of the channel that is open now, and how often that counts.
STRAY: list[tuple[str, Late, int]] = [
    ("deliveries to a consumer of before", lambda q: delivery(q) * 3, 3),
    ("a delivery in pieces", lambda q: delivery(q, bytes(300_000)), 1),
    ("confirms", lambda q: q.encode_method(1, q.Basic.Ack(1)) * 2, 2),
    ("a reply", lambda q: q.encode_method(1, q.Queue.DeclareOk("q", 0, 0)), 1),
    ("a message that was fetched", lambda q: q.encode_message(1, q.Basic.GetOk(1), None, b"body"), 1),
]


@pytest.mark.parametrize(("late", "count"), [case[1:] for case in STRAY], ids=[case[0] for case in STRAY])
def test_what_does_not_fit_a_channel_that_is_open_again_is_of_the_one_before(
    impl: Implementation, late: Late, count: int
) -> None:
    """RabbitMQ does not wait until all of a channel is written before it opens the next one."""
    pair = reopened(impl)
    client, amqp = pair.client, pair.amqp
    client.send(1, amqp.Basic.Consume(queue="q", consumer_tag="ct"))  # a tag of before, not there yet
    consume(pair, "own")
    assert list(client.receive_data(late(amqp))) == []
    assert (client.state, client.ignored, client.unacknowledged(1)) == ("open", count, ())
    own = amqp.encode_message(1, amqp.Basic.Deliver("own", 1, False, "", "q"), None, b"body")
    assert [event.body for event in client.receive_data(own)] == [b"body"]
    assert list(client.receive_data(own)) == []  # the tag comes a second time: one of them is of before
    assert (client.unacknowledged(1), client.ignored) == ((1,), count + 1)


def test_a_channel_is_as_strict_as_ever_once_this_side_has_closed_it(impl: Implementation) -> None:
    pair = reopened(impl)
    pair.client.close_channel(1)
    pair.talk()
    pair.client.send(1, pair.amqp.Channel.Open())
    pair.talk()
    [violation] = pair.client.receive_data(pair.amqp.encode_method(1, pair.amqp.Queue.PurgeOk(0)))
    assert (type(violation), violation.reply_code, pair.client.ignored) == (Violation, 503, 0)


def test_a_server_is_as_strict_as_ever_with_a_channel_that_is_open_again(
    impl: Implementation, dialect: str
) -> None:
    pair = Pair(impl, dialect).opened()
    amqp = pair.amqp
    methods = amqp.Channel.Close(), amqp.Channel.Open(), amqp.Queue.PurgeOk(0)
    octets = b"".join(amqp.encode_method(1, method) for method in methods)
    closed, opening, violation = pair.server.receive_data(octets)
    assert (type(closed), opening.method) == (ChannelClosed, amqp.Channel.Open())
    assert (type(violation), violation.reply_code, pair.server.ignored) == (Violation, 503, 0)


@pytest.mark.parametrize("size", [1, 2])
def test_a_message_of_a_server_may_be_cut_off_by_its_close(impl: Implementation, size: int) -> None:
    """After its method or header; the rest comes after the close."""
    pair = Pair(impl).opened()
    client, amqp = pair.client, pair.amqp
    client.send(1, amqp.Basic.Consume(queue="q", consumer_tag="ct", no_wait=True))
    client.data_to_send()
    frames = [amqp.encode_frame(each) for each in amqp.FrameDecoder().feed(delivery(amqp))]
    close = amqp.encode_method(1, amqp.Channel.Close(404, "NOT_FOUND", 0, 0))
    octets = b"".join([*frames[:size], close, *frames[size:], delivery(amqp)])
    assert list(client.receive_data(octets)) == [CLOSED]
    assert (client.state, client.ignored) == ("open", 1 + len(frames[size:]) + 1)
    assert list(client.receive_data(amqp.encode_heartbeat())) == []


def test_a_message_of_a_client_is_not_cut_off_by_its_close(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    amqp = pair.amqp
    publish = amqp.encode_method(1, amqp.Basic.Publish())
    [violation] = pair.server.receive_data(publish + amqp.encode_method(1, amqp.Channel.Close()))
    assert (violation.reply_code, violation.channel) == (505, 0)


def test_what_comes_late_on_channels_that_both_sides_have_closed_is_ignored(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    client, amqp = pair.client, pair.amqp
    client.close_channel(1)
    octets = delivery(amqp) + amqp.encode_method(1, amqp.Channel.Close(404))
    octets += amqp.encode_method(1, amqp.Channel.CloseOk()) + delivery(amqp)
    [closed] = client.receive_data(octets)
    assert (closed.by, closed.crossed.reply_code, client.ignored) == ("local", 404, 2)


@pytest.mark.parametrize("answered", [False, True])
def test_a_server_whose_close_ok_is_out_takes_nothing_more(impl: Implementation, answered: bool) -> None:
    pair = Pair(impl).opened()
    server, amqp = pair.server, pair.amqp
    assert [event.by for event in server.receive_data(amqp.encode_method(1, amqp.Channel.Close()))] == [
        "peer"
    ]
    if answered:
        server.data_to_send()
    found = list(server.receive_data(published(amqp)))
    assert [event.reply_code for event in found] == ([504] if answered else [])
    assert server.ignored == (2 if answered else 1)  # header and body, after the close of this side


def test_a_channel_that_nobody_has_opened_or_that_this_side_has_closed_takes_nothing(
    impl: Implementation,
) -> None:
    for number in (1, 7):
        pair = Pair(impl).opened()
        amqp = pair.amqp
        pair.client.close_channel(1)
        pair.talk()
        [violation] = pair.client.receive_data(amqp.encode_method(number, amqp.Basic.CancelOk("ct")))
        assert violation.reply_text == f"CHANNEL_ERROR - channel {number} is not open"


def test_what_comes_after_a_close_of_this_side_counts_too(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    client, amqp = pair.client, pair.amqp
    client.close_channel(1)
    assert list(client.receive_data(delivery(amqp) + amqp.encode_method(1, amqp.Basic.Cancel("ct")))) == []
    assert client.ignored == 2
    client.close()
    assert list(client.receive_data(delivery(amqp) + frame(3, b"body"))) == []
    assert client.ignored == 4
