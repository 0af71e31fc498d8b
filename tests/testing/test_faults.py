"""What is asked to go wrong goes wrong, when and where it was asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from probes import consume, get, passive, queue
from probing import On, publish
from talking import talk

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import connect
from amqpcodec.errors import AmqpError
from amqpcodec.testing import Broker
from amqpcodec.testing.faults import (
    block,
    close_channel,
    close_connection,
    cut,
    drop,
    ignore,
    late,
    lose_heartbeats,
    raw,
    refuse,
    stall,
    twice,
)

Channel, Confirm = amqp.Channel, amqp.Confirm


async def test_a_method_closes_the_channel(broker: Broker) -> None:
    fault = broker.faults.add(close_channel(405, "as asked"), method="queue.declare", queue="q", times=1)
    async with talk(broker) as client:
        said = await client.say(queue("q1"), queue("q"))
        assert said[-1] == (1, "channel.close", 405, "as asked", 50, 10)
        await client.say(amqp.Channel.Open(), queue("q"))
        assert set(broker.queues()) == {"q", "q1"}
        assert fault.fired == 1


async def test_a_method_closes_the_connection(broker: Broker) -> None:
    broker.faults.add(close_connection(541, "as asked"), method="basic.publish", skip=1)
    async with talk(broker) as client:
        said = await client.say(queue(), publish("", "q"), publish("", "q"))
        assert said[-1] == (0, "connection.close", 541, "as asked", 0, 0)
        broker.assert_queue("q", ready=1)


async def test_a_method_ends_the_tcp_connection(broker: Broker) -> None:
    broker.faults.add(drop(), method="basic.get")
    async with talk(broker) as client:
        assert (await client.say(queue(), get()))[-1] == (0, "eof")


@pytest.mark.parametrize("octets", [0, 1, 7, 8, 100, 500, 600])
async def test_a_connection_ends_after_so_many_octets(broker: Broker, octets: int) -> None:
    broker.faults.add(drop(), sent=octets)
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    start_ok = amqp.Connection.StartOk({}, "PLAIN", b"\0guest\0guest", "en_US")
    writer.write(amqp.protocol_header() + amqp.encode_method(0, start_ok))
    tune_ok = amqp.encode_method(0, amqp.Connection.TuneOk(2047, 131072, 0))
    writer.write(tune_ok + amqp.encode_method(0, amqp.Connection.Open("/")))
    writer.write(b"".join(amqp.encode_method(number, amqp.Channel.Open()) for number in range(1, 50)))
    assert len(await reader.read()) == octets
    writer.close()


async def test_a_connection_ends_once_it_has_sent_so_many_octets(broker: Broker) -> None:
    broker.faults.add(drop(), received=8)
    with pytest.raises((AmqpError, OSError)):
        await connect(broker.url)


async def test_an_answer_is_late_by_the_clock_of_the_broker(broker: Broker) -> None:
    broker.faults.add(late(30), method="queue.declare", times=1)
    async with talk(broker) as client:
        client.stream.connection.send(1, queue())
        client.stream.connection.send(1, queue("q1"))
        await client.quiet(0.02)
        assert client.answers == []
        broker.clock.advance(30)
        await client.quiet(0.02)
        assert [answer[2] for answer in client.answers] == ["q", "q1"]


async def test_a_channel_is_closed_after_what_waits_on_it(broker: Broker) -> None:
    broker.faults.add(late(30), method="queue.declare", times=1)
    async with talk(broker) as client:
        client.stream.connection.send(1, queue())
        client.stream.connection.send(1, queue("q1"))
        client.stream.connection.send(1, Channel.Close(200))
        await client.quiet(0.02)
        assert (client.answers, client.stream.connection.channel_state(1)) == ([], "closing")
        broker.clock.advance(30)
        await client.quiet(0.02)
        assert client.stream.connection.channel_state(1) == "closed"
        assert set(broker.queues()) == {"q", "q1"}
        assert await client.say(Channel.Open(), passive()) == [(1, "queue.declare-ok", "q", 0, 0)]


async def test_a_channel_that_the_broker_closes_gets_no_late_answer(broker: Broker) -> None:
    broker.faults.add(late(30), method="queue.declare", times=1)
    async with talk(broker) as client:
        client.stream.connection.send(1, queue())
        await client.quiet(0.02)
        broker.faults.add(close_channel())
        broker.clock.advance(30)
        await client.quiet(0.02)
        assert [answer[:2] for answer in client.answers] == [
            (number, "channel.close") for number in (1, 2, 3)
        ]
        said = await client.say(Channel.Open(), queue("q2"), is_answered=False)
        assert said == [(1, "queue.declare-ok", "q2", 0, 0)]
        assert list(broker.queues()) == ["q2"]


async def test_a_publisher_that_is_blocked_closes_its_channel_later(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(), Confirm.Select())
        broker.block()
        await client.say(publish("", "q", b"1"), publish("", "q", b"2"), is_answered=False)
        client.stream.connection.send(1, Channel.Close(200))
        await client.quiet(0.02)
        broker.assert_queue("q", ready=[b"1"])
        broker.unblock()
        await client.quiet(0.02)
        assert await client.say(Channel.Open(), passive()) == [(1, "queue.declare-ok", "q", 2, 0)]


@pytest.mark.parametrize("fault", [block(), late(30)], ids=["blocked", "late"])
async def test_a_connection_that_waits_is_closed_without_waiting(broker: Broker, fault: Any) -> None:
    async with talk(broker) as client:
        await client.say(queue())
        broker.faults.add(fault, method="basic.publish")
        await client.say(*[publish("", "q")] * 3, is_answered=False)
        client.stream.connection.send(2, Channel.Close(200))
        await client.quiet(0)
        broker.close_connections()
        async with asyncio.timeout(5):  # half of what is given to a client that does not answer
            await client.ended()
            while broker.connections():
                await asyncio.sleep(0)
        broker.clock.advance(30)
    assert len(broker.queue("q").ready) == (1 if broker.blocked else 0)


async def test_a_connection_that_is_lost_while_something_waits_is_gone(broker: Broker) -> None:
    broker.faults.add(late(30), method="queue.declare", times=1)
    async with talk(broker) as client:
        client.stream.connection.send(1, queue())
        client.stream.connection.send(1, queue("q1"))
        await client.quiet(0.02)
        broker.faults.add(drop())
        await client.ended()
        assert broker.connections() == []
        broker.clock.advance(30)
        assert (broker.queues(), broker.errors) == ({}, [])


async def test_a_channel_is_closed_in_place_of_being_opened(broker: Broker) -> None:
    async with talk(broker) as client:
        broker.faults.add(close_channel(504, "as asked"), method="channel.open", times=1)
        await client.say(Channel.Close(200))
        client.stream.connection.send(1, Channel.Open())
        await client.quiet(0.02)
        assert client.answers[-1] == (1, "channel.close", 504, "as asked", 20, 10)
        assert (await client.say(Channel.Open(), queue()))[-1] == (1, "queue.declare-ok", "q", 0, 0)


@pytest.mark.parametrize(
    ("method", "steps"),
    [
        ("basic.consume-ok", [consume("c")]),
        ("basic.deliver", [consume("c")]),
        ("basic.get-ok", [get(no_ack=False)]),
        ("basic.return", [Confirm.Select(), publish("", "none", mandatory=True)]),
        ("tx.commit-ok", [amqp.Tx.Select(), publish("", "q"), amqp.Tx.Commit()]),
    ],
)
async def test_a_channel_is_closed_in_place_of_an_answer(
    broker: Broker, method: str, steps: list[Any]
) -> None:
    fault = broker.faults.add(close_channel(), method=method)
    async with talk(broker) as client:
        await client.say(queue(), publish("", "q", b"1"))
        said = await client.say(*steps)
        assert [answer[:3] for answer in said if answer[1] != "confirm.select-ok"][-1] == (
            1,
            "channel.close",
            406,
        )
        assert (await client.say(On(2, passive())))[-1][:2] == (2, "queue.declare-ok")
        broker.assert_queue("q", unacknowledged=0, consumers=0)
        assert fault.fired == 1
        assert broker.published(confirm="ack") == broker.errors == []


async def test_a_delivery_is_late(broker: Broker) -> None:
    broker.faults.add(late(30), method="basic.deliver", times=1)
    async with talk(broker) as client:
        await client.say(queue(), consume("c"), publish("", "q", b"1"), is_answered=False)
        assert client.bodies() == []
        broker.clock.advance(30)
        await client.quiet(0.02)
        assert client.bodies() == [b"1"]


async def test_a_stalled_connection_says_nothing_more(broker: Broker) -> None:
    async with talk(broker) as client:
        broker.faults.add(stall(), connection=1)
        client.stream.connection.send(1, queue())
        await client.quiet(0.05)
        assert (client.answers, client.over, broker.queues()) == ([], False, {})


async def test_a_stall_ends(broker: Broker) -> None:
    async with talk(broker) as client:
        broker.faults.add(stall(5))
        client.stream.connection.send(1, queue())
        await client.quiet(0.02)
        assert client.answers == []
        broker.clock.advance(5)
        await client.quiet(0.02)
        assert client.answers == [(1, "queue.declare-ok", "q", 0, 0)]


async def test_a_publish_is_refused(broker: Broker) -> None:
    broker.faults.add(refuse(), method="basic.publish", skip=1, times=1)
    async with talk(broker) as client:
        said = await client.say(queue(), Confirm.Select(), *[publish("", "q")] * 3)
        assert said[2:] == [(1, "basic.ack", 1), (1, "basic.nack", 2), (1, "basic.ack", 3)]
        broker.assert_queue("q", ready=2)


async def test_an_answer_does_not_come(broker: Broker) -> None:
    broker.faults.add(ignore(), method="basic.publish")
    async with talk(broker) as client:
        assert (await client.say(queue(), Confirm.Select(), publish("", "q")))[2:] == []


async def test_publishers_are_blocked_until_they_are_not(broker: Broker) -> None:
    broker.faults.add(block("no room"), method="queue.declare", times=1)
    async with talk(broker) as client:
        await client.say(queue())
        assert client.stream.connection.blocked
        await client.say(*[publish("", "q", bytes(1000))] * 3, is_answered=False)
        client.stream.connection.send(1, queue())
        await client.quiet(0.02)
        assert len(client.answers) == 1  # what stands behind a publish is not read
        broker.unblock()
        await client.quiet(0.02)
        assert not client.stream.connection.blocked
        assert client.answers[-1] == (1, "queue.declare-ok", "q", 3, 0)


async def test_a_message_is_delivered_twice(broker: Broker) -> None:
    broker.faults.add(twice(), method="basic.deliver", times=1)
    async with talk(broker) as client:
        await client.say(queue(), publish("", "q", b"1"), publish("", "q", b"2"), consume("c"))
        assert [(each[4], each[-1]) for each in client.deliveries] == [
            (False, b"1"),
            (True, b"1"),
            (False, b"2"),
        ]


@pytest.mark.parametrize("octets", [1, 3, 9])
async def test_frames_are_cut_in_odd_places(broker: Broker, octets: int) -> None:
    broker.faults.add(cut(octets), received=8)
    async with talk(broker) as client:
        await client.say(queue(), publish("", "q", b"whole"), consume("c"))
        await client.quiet(0.2)
        assert client.bodies() == [b"whole"]


async def test_octets_of_the_test_are_sent(broker: Broker) -> None:
    broker.faults.add(raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), method="queue.declare")
    async with talk(broker) as client:
        await client.say(queue())
        assert client.stream.connection.state != "open"


async def test_heartbeats_get_lost(broker: Broker) -> None:
    async with talk(broker, heartbeat=4) as client, talk(broker, heartbeat=4) as other:
        broker.faults.add(lose_heartbeats(), connection=1)
        wires = [session.wire for session in broker.sessions.values()]
        before = [wire.sent for wire in wires]
        broker.clock.advance(3)
        await asyncio.sleep(0.02)
        assert [wire.sent - sent for wire, sent in zip(wires, before, strict=True)] == [0, 8]
        assert not client.over
        assert not other.over


async def test_a_fault_comes_after_a_time(broker: Broker) -> None:
    broker.faults.add(close_channel(), seconds=10)
    async with talk(broker) as client:
        assert await client.say() == []
        broker.clock.advance(10)
        assert [answer[:3] for answer in await client.say(0)] == [
            (number, "channel.close", 406) for number in (1, 2, 3)
        ]


async def test_a_fault_may_be_of_ones_own(broker: Broker) -> None:
    seen: list[Any] = []

    def watch(session: Any, event: Any) -> bool:
        seen.append((session.number, event.channel, event.method.spec.name))
        return False

    broker.faults.add(watch, method="queue.declare-ok")
    async with talk(broker) as client:
        await client.say(queue())
    assert seen == [(1, 1, "queue.declare-ok")]


def maker() -> Any:
    """Return an action, as functions do that are written for tests."""
    return lambda session, event: False


NEVER: dict[str, tuple[Any, dict[str, Any], type[Exception]]] = {
    "there is no method 'queue.declear'; the nearest name is 'queue.declare'": (
        drop(), {"method": "queue.declear"}, ValueError,
    ),
    "there is no method 'zzz'": (drop(), {"method": "zzz"}, ValueError),
    "no fault happens at channel.close: the connection itself deals with it": (
        late(1), {"method": "channel.close"}, ValueError,
    ),
    "queue.delete has no argument 'quue'; it has queue, if_unused, if_empty, no_wait": (
        drop(), {"method": "queue.delete", "quue": "q"}, TypeError,
    ),
    "basic.get-empty has no argument 'queue'; it has none": (
        drop(), {"method": "basic.get-empty", "queue": "q"}, TypeError,
    ),
    "queue is about a method, and none is named by method=": (drop(), {"queue": "q"}, TypeError),
    "skip is about a method, and none is named by method=": (drop(), {"skip": 1}, TypeError),
    "a fault happens at a method or at octets, not at both": (
        drop(), {"method": "basic.get", "received": 8}, TypeError,
    ),
    "drop makes an action when it is called: drop(...)": (drop, {"method": "queue.declare"}, TypeError),
    "close_channel makes an action when it is called: close_channel(...)": (close_channel, {}, TypeError),
    "maker is no action, which is called with the session and the event: too many positional arguments": (
        maker, {}, TypeError,
    ),
    "'drop' is no action, which is called with the session and the event: 'drop' is not a callable object": (
        "drop", {}, TypeError,
    ),
    "refuse() is for basic.publish, not for basic.get": (refuse(), {"method": "basic.get"}, ValueError),
    "twice() is for basic.deliver, not for basic.get-ok": (twice(), {"method": "basic.get-ok"}, ValueError),
    "twice() is for basic.deliver, not for what is no method": (twice(), {"received": 8}, ValueError),
    "ignore() is for a method, not for what is no method": (ignore(), {"seconds": 1}, ValueError),
    "times is 0, and has to be at least 1": (drop(), {"method": "basic.get", "times": 0}, ValueError),
    "connection is 0, and has to be at least 1": (drop(), {"connection": 0}, ValueError),
    "seconds is -1, and has to be at least 0": (drop(), {"seconds": -1}, ValueError),
    "sent is -1, and has to be at least 0": (drop(), {"sent": -1}, ValueError),
    "skip is -1, and has to be at least 0": (drop(), {"method": "basic.get", "skip": -1}, ValueError),
}  # fmt: skip


@pytest.mark.parametrize("text", NEVER)
async def test_a_fault_that_would_never_happen_is_refused(broker: Broker, text: str) -> None:
    action, when, error = NEVER[text]
    with pytest.raises(error) as raised:
        broker.faults.add(action, **when)
    assert str(raised.value) == text
    broker.faults.assert_fired()  # it was not asked for


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: cut(-1), ValueError, "octets is -1, and has to be at least 0"),
        (lambda: late(-1), ValueError, "seconds is -1, and has to be at least 0"),
        (lambda: late(float("nan")), ValueError, "seconds is nan, and has to be at least 0"),
        (lambda: stall(-1), ValueError, "seconds is -1, and has to be at least 0"),
        (lambda: close_channel(1 << 16), ValueError, "code is 65536, .* 0, and at most 65535"),
        (lambda: close_connection(-1), ValueError, "code is -1, and has to be at least 0, and at most 65535"),
        (lambda: raw("text"), TypeError, "not 'str'"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_an_action_that_cannot_be_is_refused_where_it_is_made(
    make: Callable[[], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make()


async def test_faults_that_have_not_happened_are_told(broker: Broker) -> None:
    broker.faults.add(late(0), method="queue.declare", queue="q")
    async with talk(broker) as client:
        await client.say(queue())
        broker.faults.assert_fired()
        broker.faults.add(close_channel(405), method="queue.declare", queue="other", times=2)
        broker.faults.add(drop(), seconds=60)
        broker.faults.add(lose_heartbeats(), connection=5)
        await client.say(queue())
        with pytest.raises(AssertionError) as raised:
            broker.faults.assert_fired()
    assert str(raised.value).splitlines() == [
        "faults that have not happened:",
        "  <fault close_channel, method='queue.declare', queue='other', times=2; it has happened 0 times>",
        "  <fault drop, seconds=60; it has happened 0 times>",
        "  <fault lose_heartbeats, connection=5; it has happened 0 times>",
    ]
    broker.faults.clear()
    broker.faults.assert_fired()


async def test_channels_are_closed_where_a_method_is_about_none(broker: Broker) -> None:
    broker.faults.add(close_channel(), method="connection.update-secret")
    async with talk(broker) as client:
        await client.do(0, amqp.Connection.UpdateSecret(b"new", "time"))
        await client.quiet(0.02)
        closed = [(number, "channel.close") for number in (1, 2, 3)]
        came = sorted(answer[:2] for answer in client.answers)
        assert came == [(0, "connection.update-secret-ok"), *closed]


async def test_cleared_faults_do_not_happen(broker: Broker) -> None:
    broker.faults.add(drop(), method="queue.declare")
    broker.faults.add(drop(), method="queue.declare", seconds=10)
    broker.faults.add(drop(), seconds=10)
    async with talk(broker) as client:
        broker.faults.clear()
        broker.clock.advance(10)
        assert [each[1] for each in await client.say(queue())] == ["queue.declare-ok"]


async def test_a_broker_with_faults_ends_at_once(options: dict[str, Any]) -> None:
    begin = time.monotonic()
    async with Broker(**options) as broker:
        stream = await connect(broker.url)
        broker.faults.add(stall())
    assert time.monotonic() - begin < 1.5
    stream.end()
