"""Closing events carry all that was open when a channel or the connection ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.connections import Pair
from support.implementation import Implementation

from amqpcodec.connection import ChannelClosed, ConnectionClosed, ConnectionLimits, Outstanding

OPEN = {"unconfirmed": (1, 3, 4), "unacknowledged": (2,)}


def busy(impl: Implementation) -> Pair:
    """A pair with much open on channel 1, a request on channel 2, nothing on channel 3."""
    limits = {"connection_limits": ConnectionLimits(close_seconds=5)}
    pair = Pair(impl, client=limits, server=limits).opened(3)
    amqp, client, server = pair.amqp, pair.client, pair.server
    client.send(1, amqp.Confirm.Select())
    client.send(1, amqp.Basic.Consume(queue="q", consumer_tag="ct"))
    pair.talk()
    server.send(1, amqp.Confirm.SelectOk())
    server.send(1, amqp.Basic.ConsumeOk("ct"))
    for number in (1, 2, 3, 4):
        client.send_message(1, amqp.Basic.Publish("", "q"), None, b"%d" % number)
        if number < 3:
            server.send_message(1, amqp.Basic.Deliver("ct", number, False, "", "q"), None, b"")
    pair.talk()
    client.send(1, amqp.Basic.Ack(1))
    server.send(1, amqp.Basic.Ack(2))
    client.send(1, amqp.Queue.Declare(queue="r"))
    client.send(2, amqp.Queue.Purge(queue="q"))
    pair.talk()
    pair.events = {"client": [], "server": []}
    return pair


def outstanding(amqp: Any) -> tuple[Outstanding, ...]:
    """All that the client of `busy` has open."""
    return (
        Outstanding(1, awaited=(amqp.Queue.Declare(queue="r"),), **OPEN),
        Outstanding(2, awaited=(amqp.Queue.Purge(queue="q"),)),
    )


def test_a_close_says_by_itself_that_all_is_well(impl: Implementation) -> None:
    pair = Pair(impl).opened(1)
    pair.client.close_channel(1)
    assert pair.client.data_to_send() == pair.amqp.encode_method(1, pair.amqp.Channel.Close(200, "", 0, 0))
    pair.client.close()
    assert pair.client.data_to_send() == pair.amqp.encode_method(0, pair.amqp.Connection.Close(200, "", 0, 0))


def by_peer(pair: Pair) -> list[Any]:
    pair.server.close(320, "bye")
    pair.talk()
    return pair.taken("client")


def by_client(pair: Pair) -> list[Any]:
    pair.client.close(200, "bye")
    pair.talk()
    return pair.taken("client")


def by_both(pair: Pair) -> list[Any]:
    pair.client.close(200, "client")
    pair.server.close(320, "server")
    pair.talk()
    return pair.taken("client")


def by_the_end_of_octets(pair: Pair) -> list[Any]:
    return list(pair.client.receive_eof())


def by_a_violation(pair: Pair) -> list[Any]:
    pair.deliver("client", pair.amqp.encode_method(9, pair.amqp.Channel.Flow(True)))
    assert pair.client.unconfirmed(1) == OPEN["unconfirmed"]
    pair.talk()
    return pair.taken("client")


def by_octets_without_frames(pair: Pair) -> list[Any]:
    return list(pair.client.receive_data(b"no frame at all"))


def by_silence(pair: Pair) -> list[Any]:
    pair.clock.now += 1000
    return list(pair.client.on_time())


def by_a_close_that_is_not_answered(pair: Pair) -> list[Any]:
    pair.client.close()
    assert pair.client.unconfirmed(1) == OPEN["unconfirmed"]
    pair.clock.now += 5
    return list(pair.client.on_time())


ENDS = [
    (by_peer, "peer"), (by_client, "local"), (by_both, "local"), (by_the_end_of_octets, "eof"),
    (by_a_violation, "local"), (by_octets_without_frames, "local"), (by_silence, "timeout"),
    (by_a_close_that_is_not_answered, "timeout"),
]  # fmt: skip


@pytest.mark.parametrize(("end", "by"), ENDS, ids=lambda value: getattr(value, "__name__", ""))
def test_the_end_of_a_connection_carries_what_was_open(
    impl: Implementation, end: Callable[[Pair], list[Any]], by: str
) -> None:
    pair = busy(impl)
    closed = end(pair)[-1]
    assert (type(closed), closed.by) == (ConnectionClosed, by)
    assert closed.outstanding == outstanding(pair.amqp)
    assert pair.client.unconfirmed(1) == pair.client.unacknowledged(1) == ()


def test_a_stream_that_ends_without_a_close_has_no_reply_code(impl: Implementation) -> None:
    [closed] = Pair(impl).opened().client.receive_eof()
    text = "the peer has ended the stream without connection.close"
    assert (closed.by, closed.reply_code, closed.reply_text) == ("eof", 0, text)


def test_a_server_is_told_what_it_owes(impl: Implementation) -> None:
    pair = busy(impl)
    assert list(pair.server.receive_eof())[-1].outstanding == (Outstanding(1, **OPEN),)


def test_requests_of_the_connection_itself_are_of_channel_0(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    secret = pair.amqp.Connection.UpdateSecret(b"new", "it expires")
    pair.client.send(0, secret)
    [closed] = pair.client.receive_eof()
    assert closed.outstanding == (Outstanding(0, awaited=(secret,)),)


def test_nothing_is_carried_where_nothing_was_open(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    pair.client.close_channel(1)
    pair.talk()
    assert pair.taken("client") == [ChannelClosed(1, "local", 200, "")]
    [closed] = pair.client.receive_eof()
    assert (closed.outstanding, closed.crossed) == ((), None)


@pytest.mark.parametrize("by", ["peer", "local"])
def test_the_end_of_a_channel_carries_what_was_open(impl: Implementation, by: str) -> None:
    pair = busy(impl)
    (pair.client if by == "local" else pair.server).close_channel(1, 406, "enough")
    pair.talk()
    declare = pair.amqp.Queue.Declare(queue="r")
    assert pair.taken("client") == [ChannelClosed(1, by, 406, "enough", awaited=(declare,), **OPEN)]
    assert pair.taken("server")[-1][6:] == (*OPEN.values(), (), None)
    assert pair.client.unconfirmed(1) == pair.client.awaited(1) == ()
    [closed] = pair.client.receive_eof()
    assert closed.outstanding == outstanding(pair.amqp)[1:]


def test_a_channel_that_a_fault_closes_carries_what_was_open(impl: Implementation) -> None:
    pair = busy(impl)
    pair.deliver("server", pair.amqp.encode_method(1, pair.amqp.Basic.Ack(77)))
    pair.talk()
    _, closed = pair.taken("server")
    assert (type(closed), closed.reply_code, closed.unacknowledged) == (ChannelClosed, 406, (2,))
    [told] = pair.taken("client")
    assert (told.by, told.unconfirmed) == ("peer", OPEN["unconfirmed"])


def test_a_channel_that_is_being_closed_counts_as_open(impl: Implementation) -> None:
    pair = busy(impl)
    pair.client.close_channel(1)
    [closed] = pair.client.receive_eof()
    assert closed.outstanding == outstanding(pair.amqp)


def test_confirms_that_come_before_the_end_count(impl: Implementation) -> None:
    """Both in one piece: the end comes after what came before it."""
    pair = busy(impl)
    pair.client.receive_data(pair.amqp.encode_method(1, pair.amqp.Basic.Ack(3, multiple=True)))
    settled, closed = pair.client.receive_eof()
    assert (settled.tags, closed.outstanding[0].unconfirmed) == ((1, 3), (4,))


@pytest.mark.parametrize("committed", [False, True])
def test_acknowledgements_count_once_they_are_committed(impl: Implementation, committed: bool) -> None:
    pair = Pair(impl).opened()
    amqp, client, server = pair.amqp, pair.client, pair.server
    client.send(1, amqp.Tx.Select())
    client.send(1, amqp.Basic.Consume(queue="q", consumer_tag="ct", no_wait=True))
    pair.talk()
    server.send(1, amqp.Tx.SelectOk())
    for number in (1, 2):
        server.send_message(1, amqp.Basic.Deliver("ct", number, False, "", "q"), None, b"")
    pair.talk()
    client.send(1, amqp.Basic.Ack(1))
    if committed:
        client.send(1, amqp.Tx.Commit())
    pair.talk()
    assert client.unacknowledged(1) == (2,)
    waiting = (2,) if committed else (1, 2)
    for side in (client, server):
        [closed] = side.receive_eof()
        assert closed.outstanding[0].unacknowledged == waiting


@pytest.mark.parametrize("channel", [0, 1])
@pytest.mark.parametrize("crossed", [False, True])
def test_a_reply_text_that_is_cut_within_a_character_can_be_printed(
    impl: Implementation, channel: int, crossed: bool
) -> None:
    pair = Pair(impl).opened()
    client, amqp = pair.client, pair.amqp
    text = ("NOT_FOUND - " + "ä" * 200).encode()[:255].decode("utf-8", "surrogateescape")
    kind = amqp.Channel if channel else amqp.Connection
    octets = amqp.encode_method(channel, kind.Close(404, text, 0, 0))
    if crossed:
        client.send(channel, kind.Close(200, text, 0, 0))
        octets += amqp.encode_method(channel, kind.CloseOk())
    [closed] = client.receive_data(octets)
    assert closed.reply_text == text[:-1] + "?"
    assert closed.crossed == (kind.Close(404, text, 0, 0) if crossed else None)


def test_of_crossing_closes_of_a_channel_the_other_one_is_kept(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    pair.client.close_channel(1, 200, "client")
    pair.server.close_channel(1, 406, "server", 60, 40)
    pair.talk()
    close = pair.amqp.Channel.Close
    [closed] = pair.taken("client")
    assert closed == ChannelClosed(1, "local", 200, "client", crossed=close(406, "server", 60, 40))
    [closed] = pair.taken("server")
    assert closed == ChannelClosed(1, "local", 406, "server", 60, 40, crossed=close(200, "client", 0, 0))
    pair.client.send(1, pair.amqp.Channel.Open())  # a channel of the same number knows nothing of it
    pair.talk()
    pair.client.close_channel(1)
    pair.talk()
    assert pair.taken("client")[-1].crossed is None


@pytest.mark.parametrize("end", ["answer", "eof", "timeout"])
def test_of_crossing_closes_of_a_connection_the_other_one_is_kept(impl: Implementation, end: str) -> None:
    pair = Pair(impl).opened()
    close = pair.amqp.Connection.Close(320, "CONNECTION_FORCED - broker forced it", 0, 0)
    pair.client.close(200, "client")
    octets = pair.amqp.encode_method(0, close)
    assert list(pair.client.receive_data(octets)) == []
    if end == "answer":
        [closed] = pair.client.receive_data(pair.amqp.encode_method(0, pair.amqp.Connection.CloseOk()))
    elif end == "eof":
        [closed] = pair.client.receive_eof()
    else:
        pair.clock.now += 10
        [closed] = pair.client.on_time()
    assert closed.by == {"answer": "local"}.get(end, end)
    assert (closed.crossed, closed.outstanding) == (close, ())
