"""What a connection does when time passes."""

from __future__ import annotations

from typing import Any

import pytest
from support.connections import Clock, Pair, make
from support.implementation import Implementation

from amqpcodec.connection import ConnectionClosed, ConnectionLimits

HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"


def quiet(impl: Implementation, heartbeat: int = 10) -> tuple[Pair, Any]:
    pair = Pair(impl, client={"heartbeat": heartbeat}, server={"heartbeat": heartbeat}).opened()
    return pair, pair.clock


def test_a_heartbeat_is_due_after_half_an_interval_without_octets(impl: Implementation) -> None:
    pair, clock = quiet(impl)
    client, start = pair.client, clock.now
    assert client.next_deadline() == start + 5
    assert (list(client.on_time(start + 4.9)), client.data_to_send()) == ([], b"")
    clock.now += 3
    client.send(1, pair.amqp.Queue.Declare(queue="q"))
    client.data_to_send()
    assert client.next_deadline() == start + 8
    clock.now = start + 8
    assert (list(client.on_time()), client.data_to_send()) == ([], HEARTBEAT)
    assert client.next_deadline() == start + 13


def test_a_peer_is_gone_after_two_intervals_without_octets(impl: Implementation) -> None:
    pair, clock = quiet(impl)
    start = clock.now
    clock.now += 15
    assert list(pair.client.receive_data(HEARTBEAT)) == []
    clock.now = start + 34.9
    assert list(pair.client.on_time()) == []
    clock.now = start + 35
    closed = ConnectionClosed("timeout", 0, "nothing came for 20 seconds")
    assert list(pair.client.on_time()) == [closed]
    assert (pair.client.state, pair.client.next_deadline()) == ("closed", None)
    assert list(pair.client.receive_data(HEARTBEAT)) == list(pair.client.on_time()) == []


def test_heartbeats_keep_both_sides_alive(impl: Implementation) -> None:
    pair, clock = quiet(impl)
    for _ in range(100):
        clock.now = min(pair.client.next_deadline(), pair.server.next_deadline())
        assert list(pair.client.on_time()) == list(pair.server.on_time()) == []
        pair.talk()
    assert clock.now > 1400
    assert pair.events == {"client": [], "server": []}


def test_without_heartbeats_nothing_is_ever_due(impl: Implementation) -> None:
    pair, clock = quiet(impl, heartbeat=0)
    assert pair.client.next_deadline() is None
    clock.now += 1e9
    assert list(pair.client.on_time()) == []
    assert pair.client.data_to_send() == b""


def test_a_handshake_that_takes_too_long_is_given_up(impl: Implementation) -> None:
    clock = Clock()
    server = make(impl, "server", clock=clock, connection_limits=ConnectionLimits(handshake_seconds=3))
    assert server.next_deadline() == clock.now + 3
    list(server.receive_data(b"AMQP"))
    clock.now += 3
    closed = ConnectionClosed("timeout", 320, "no connection within 3 seconds")
    assert (list(server.on_time()), server.data_to_send()) == ([closed], b"")


def test_a_peer_that_is_slow_after_connection_start_is_told(impl: Implementation) -> None:
    clock = Clock()
    server = make(impl, "server", clock=clock)
    amqp = server.dialect
    list(server.receive_data(amqp.protocol_header()))
    server.send(0, amqp.Connection.Start(0, 9, {}, b"PLAIN", b"en_US"))
    server.data_to_send()
    clock.now += 10
    [closed] = server.on_time()
    close = amqp.Connection.Close(320, closed.reply_text, 0, 0)
    assert server.data_to_send() == amqp.encode_method(0, close)
    assert server.state == "closed"


def test_a_close_that_is_not_answered_ends_all_the_same(impl: Implementation) -> None:
    pair, clock = quiet(impl, heartbeat=0)
    pair.client.close(320, "enough")
    assert pair.client.next_deadline() == clock.now + 10
    clock.now += 10
    closed = ConnectionClosed("timeout", 320, "no answer to connection.close")
    assert list(pair.client.on_time()) == [closed]


def test_the_end_of_the_octets_is_the_end_of_the_connection(impl: Implementation) -> None:
    pair, _ = quiet(impl)
    octets = pair.amqp.encode_method(1, pair.amqp.Channel.Close(200, "", 0, 0))
    pair.server.receive_data(octets)
    closed, end = pair.server.receive_eof()
    assert (closed.channel, end.by, pair.server.state) == (1, "eof", "closed")
    assert list(pair.server.receive_eof()) == []


def test_a_peer_that_is_not_read_is_not_taken_for_gone(impl: Implementation) -> None:
    pair, clock = quiet(impl)
    clock.now += 19
    assert list(pair.client.receive_data(b"")) == []
    clock.now += 19
    assert (list(pair.client.on_time()), pair.client.state) == ([], "open")
    clock.now += 1
    [closed] = pair.client.on_time()
    assert closed.by == "timeout"


@pytest.mark.parametrize("interval", [1, 2, 3, 5, 7, 65535])
def test_half_of_an_odd_interval_is_no_whole_number(impl: Implementation, interval: int) -> None:
    pair, clock = quiet(impl, interval)
    assert pair.client.next_deadline() == pair.server.next_deadline() == clock.now + interval / 2
    clock.now += interval / 2
    assert (list(pair.client.on_time()), pair.client.data_to_send()) == ([], HEARTBEAT)
    assert pair.client.next_deadline() == clock.now + interval / 2


@pytest.mark.parametrize("interval", [1, 2, 3])
def test_a_peer_cannot_ask_for_a_flood_of_heartbeats(impl: Implementation, interval: int) -> None:
    pair, clock = quiet(impl, interval)
    end = clock.now + 100 * interval
    heartbeats = 0
    while clock.now < end and heartbeats <= 1000:
        clock.now = max(clock.now, pair.client.next_deadline())
        list(pair.client.on_time())
        heartbeats += len(pair.client.data_to_send()) // len(HEARTBEAT)
        list(pair.client.receive_data(HEARTBEAT))
    assert heartbeats == 200
