"""Hostile clients neither end the broker nor make it grow; what a client leaves behind is given back."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable
from functools import partial
from struct import pack
from typing import Any

import pytest
from probes import bind, consume, declare, get, queue
from probing import On, publish
from support.hello import OPEN
from talking import talk

from amqpcodec import rabbitmq as amqp
from amqpcodec.connection import ConnectionLimits
from amqpcodec.testing import Broker, records
from amqpcodec.testing import broker as broker_module
from amqpcodec.testing.channels import Subscription


async def send(broker: Broker, octets: bytes) -> None:
    """Send octets, and read until the broker ends the connection or is silent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    try:
        writer.write(octets)
        async with asyncio.timeout(0.1):
            while await reader.read(65536):
                pass
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.transport.abort()


async def until(condition: Callable[[], object]) -> None:
    """Wait until something holds; the test has a limit of its own."""
    while not condition():
        await asyncio.sleep(0.001)


async def is_well(broker: Broker) -> None:
    """Check that the broker serves, and keeps nothing of those who have gone."""
    async with talk(broker) as client:
        said = await client.say(queue("well"), publish("", "well", b"1"), consume("c", "well", no_ack=True))
        assert client.bodies() == [b"1"]
        assert said[0][1] == "queue.declare-ok"
        await client.say(amqp.Queue.Delete(queue="well"))
    await until(lambda: broker.connections() == [])
    assert broker.errors == []


@pytest.mark.parametrize("seed", range(3))
async def test_random_octets_do_no_harm(broker: Broker, seed: int) -> None:
    chance = random.Random(seed)
    floods = [chance.randbytes(chance.randrange(2000)) for _ in range(20)]
    await asyncio.gather(*[send(broker, flood) for flood in floods])
    await asyncio.gather(*[send(broker, OPEN + flood) for flood in floods])
    await is_well(broker)


@pytest.mark.parametrize("seed", range(3))
async def test_random_methods_do_no_harm(broker: Broker, seed: int) -> None:
    chance = random.Random(seed)

    def value(kind: str) -> Any:
        match kind:
            case "bit":
                return chance.random() < 0.3
            case "table":
                key = chance.choice(
                    ["x-message-ttl", "x-max-length", "x-match", "x-priority", "alternate-exchange"]
                )
                return {key: chance.choice([0, 1, -1, "q", "all", True, None, [1], 1 << 40])}
            case "shortstr":
                return chance.choice(
                    ["", "q", "e", "amq.direct", "amq.topic", "fanout", "c", "amq.rabbitmq.reply-to"]
                )
        return chance.choice([0, 1, 2, 200])

    methods = [
        cls for cls in amqp.METHODS.values() if cls.spec.server is not None and cls.spec.class_id != 10
    ]
    for _ in range(60):
        octets = OPEN
        for _ in range(30):
            cls = chance.choice(methods)
            kinds = {field.attribute: field.type for field in cls.spec.fields if not field.reserved}
            method = cls(**{name: value(kind) for name, kind in kinds.items() if kind != "longstr"})
            if cls.spec.content:
                octets += amqp.encode_message(1, method, amqp.BasicProperties(priority=1), b"x")
            else:
                octets += amqp.encode_method(chance.choice([1, 1, 1, 3]), method)
        _, writer = await asyncio.open_connection("127.0.0.1", broker.port)
        writer.write(octets)
        await asyncio.sleep(0.003)
        writer.transport.abort()
    await is_well(broker)


async def test_properties_that_are_no_properties_close_the_connection(broker: Broker) -> None:
    frames = amqp.encode_message(
        1, amqp.Basic.Publish("", "q"), amqp.BasicProperties(content_type="text"), b"x"
    )
    await send(broker, OPEN + frames.replace(b"\x04text", b"\xfftext"))
    await is_well(broker)


async def said(broker: Broker, octets: bytes) -> bytes:
    """Send octets on an open connection; return the connection.close that answers them."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    writer.write(OPEN + octets)
    try:
        async with asyncio.timeout(5):
            await reader.readuntil(amqp.encode_method(2, amqp.Channel.OpenOk()))
            return await reader.readuntil(b"\xce")
    finally:
        writer.transport.abort()


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (pack(">BHI", 1, 1, 1 << 31), b"type 1, all octets = <<>>: {frame_too_large,2147483648,131064}"),
        (pack(">BHI", 1, 1, 16) + b"A" * 17, b'type 1, all octets = <<"AAAAAAAAAAAAAAAA">>'),
        (pack(">BHI", 1, 1, 17) + b"A" * 18, b'type 1, first 16 octets = <<"AAAAAAAAAAAAAAAA">>'),
        (pack(">BHIHHB", 1, 1, 4, 20, 20, 0xCE), b"FRAME_ERROR - cannot decode <<>>"),
    ],
    ids=[
        "a frame that is too large and has not come",
        "sixteen octets, which are shown as all",
        "seventeen octets, which are cut",
        "flow without an argument",
    ],
)
async def test_what_is_looked_for_and_has_not_come_is_refused(
    broker: Broker, octets: bytes, text: bytes
) -> None:
    assert text in await said(broker, octets)
    assert broker.errors == []


async def test_what_a_client_has_is_given_back(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(
            declare(queue="q", exclusive=True), bind(queue="q", exchange="amq.topic"),
            consume("c"), On(2, consume("d")), publish("", "q", bytes(1000)), amqp.Tx.Select(),
            publish("", "q", bytes(1000)),
        )  # fmt: skip
        assert broker.store.octets > 2000
    await until(lambda: broker.connections() == [])
    assert (broker.store.octets, broker.store.objects, broker.queues()) == (0, 0, {})


async def test_too_many_objects_are_refused(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "MOST_OBJECTS", 100)
    broker.reset()
    async with talk(broker) as client:
        said = await client.say(*[queue(f"q{number}") for number in range(200)])
        assert said[-1][1:3] == ("connection.close", 506)
        assert len(broker.queues()) < 100


async def test_a_flood_of_messages_is_blocked(options: dict[str, Any]) -> None:
    async with Broker(memory_limit=1 << 20, **options) as broker, talk(broker) as client:
        flood = [publish("", "q", bytes(100_000)) for _ in range(100)]
        await client.say(queue(), *flood, is_answered=False)
        assert broker.blocked == "low on memory"
        assert broker.store.octets < 3 << 20  # what had come when it was full
        async with talk(broker) as other:
            await other.say(amqp.Queue.Purge(queue="q"))
        assert broker.blocked == "low on memory" or broker.store.octets < 1 << 20
        client.stream._transport.abort()  # the end of a connection that is not read would be waited for


async def test_consumers_are_not_asked_again_with_each_message_that_waits(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    takes_more = Subscription.takes_more

    def counted(self: Subscription) -> bool:
        nonlocal asked
        asked += 1
        return takes_more(self)

    monkeypatch.setattr(Subscription, "takes_more", counted)
    async with talk(broker) as client:
        await client.say(
            queue(), amqp.Basic.Qos(prefetch_count=1), *[consume(f"c{number}") for number in range(20)]
        )
        await client.say(*[publish("", "q") for _ in range(500)])
        broker.assert_queue("q", unacknowledged=20, ready=480)
        assert asked < 20 * 25


async def test_what_properties_and_arguments_take_counts(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "MOST_OBJECTS", 100)
    many = {f"{number:04}": None for number in range(2000)}
    async with Broker(memory_limit=4 << 20, **options) as broker, talk(broker) as client:
        flood = [publish("", "q", headers=many) for _ in range(30)]
        await client.say(queue(), *flood, is_answered=False)
        assert broker.blocked == "low on memory"
        assert len(broker.queue("q").ready) < 30
        async with talk(broker) as other:
            said = await other.say(declare(queue="long", arguments=many))
            assert said[-1][1:3] == ("connection.close", 506)
        client.stream._transport.abort()


async def test_a_client_that_does_not_read_holds_up_nobody_else(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue())
        with socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            silent.connect(("127.0.0.1", broker.port))
            silent.sendall(OPEN + amqp.encode_method(1, amqp.Basic.Consume(queue="q", no_ack=True)))
            await until(broker.consumers)
            for _ in range(60):
                broker.publish("", "q", bytes(1 << 20))
                await asyncio.sleep(0)
            assert len(broker.queue("q").ready) > 30  # the rest is in buffers of sockets
            assert await client.say(queue("other")) == [(1, "queue.declare-ok", "other", 0, 0)]
        await until(lambda: len(broker.connections()) == 1)
        waiting = len(broker.queue("q").ready)
        assert await client.say(amqp.Queue.Delete(queue="q")) == [(1, "queue.delete-ok", waiting)]


async def test_a_client_that_asks_and_does_not_read_is_not_read_either(broker: Broker) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    ask = amqp.encode_message(1, amqp.Basic.Publish("", "none", mandatory=True), None, bytes(100_000))
    writer.write(OPEN)
    for _ in range(400):
        writer.write(ask)
        await asyncio.sleep(0)
    await until(lambda: broker.sessions)
    (session,) = broker.sessions.values()
    await until(lambda: session._pauses == {"answers"})
    await asyncio.sleep(0.05)
    assert session.connection.bytes_to_send < 17 << 20
    writer.transport.abort()
    await is_well(broker)


async def test_half_open_connections_end(broker: Broker) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    await until(lambda: len(broker.connections()) == 1)
    broker.clock.advance(11)
    await until(lambda: broker.connections() == [])
    writer.close()


async def test_long_chains_of_dead_letters_end(broker: Broker) -> None:
    async with talk(broker) as client:
        links = [
            declare(
                queue=f"q{number}",
                arguments={
                    "x-message-ttl": 0, "x-dead-letter-exchange": "",
                    "x-dead-letter-routing-key": f"q{number + 1}",
                },
            )
            for number in range(150)
        ]  # fmt: skip
        await client.say(*links, queue("q150"), publish("", "q0", b"far"))
        broker.assert_queue("q150", ready=[b"far"])


async def test_a_client_that_reads_late_gets_all(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(), consume("c", no_ack=True))
        client.stream._transport.pause_reading()
        for _ in range(40):
            broker.publish("", "q", bytes(1 << 19))
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        assert broker.queue("q").ready
        client.stream._transport.resume_reading()
        while len(client.deliveries) < 40:
            client.came.clear()
            await client.came.wait()
        broker.assert_queue("q", ready=0)


async def test_a_consumer_gets_what_is_more_than_waits_for_a_client(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "ConnectionLimits", partial(ConnectionLimits, send_buffer=1 << 20))
    async with Broker(**options) as broker, talk(broker) as client:
        await client.say(queue(), *[publish("", "q", bytes(1 << 17))] * 40)
        await client.say(consume("c", no_ack=True))
        while len(client.deliveries) < 40 and not client.over:
            client.came.clear()
            await client.came.wait()
        broker.assert_queue("q", ready=0, consumers=["c"])


async def test_answers_that_are_read_late_all_come(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(), publish("", "q", bytes(1 << 20)))
        client.stream._transport.pause_reading()
        for _ in range(100):
            client.stream.connection.send(1, get(no_ack=False))
            client.stream.connection.send(1, amqp.Basic.Recover(True))
        await client.stream.drain()
        await asyncio.sleep(0.1)
        client.stream._transport.resume_reading()
        while len(client.answers) < 201:
            client.came.clear()
            await client.came.wait()


@pytest.mark.parametrize("octets", [1001, 300_000])
async def test_a_body_that_is_too_large_is_refused_once_it_has_come_and_is_not_kept(
    options: dict[str, Any], octets: int
) -> None:
    async with Broker(max_message_size=1000, **options) as broker, talk(broker) as client:
        said = await client.say(queue(), publish("", "q", bytes(1000)), publish("", "q", bytes(octets)))
        text = f"PRECONDITION_FAILED - message size {octets} is larger than configured max size 1000"
        assert said[1] == (1, "channel.close", 406, text, 60, 40)
        broker.assert_queue("q", ready=1)
        await client.say(amqp.Channel.Open(), queue())
        assert (1, "queue.declare-ok", "q", 1, 0) in client.answers


async def test_a_body_without_an_end_takes_no_memory(options: dict[str, Any]) -> None:
    async with Broker(max_message_size=1000, **options) as broker, talk(broker) as client:
        publishing = amqp.encode_method(1, amqp.Basic.Publish("", "q"))
        client.stream._transport.write(publishing + amqp.encode_header(1, amqp.BasicProperties(), 1 << 62))
        for _ in range(20):
            client.stream._transport.write(amqp.encode_body(1, bytes(100_000), frame_max=0))
        assert await client.say(On(2, queue())) == [(2, "queue.declare-ok", "q", 0, 0)]
        (stream,) = broker.streams
        assert len(stream._reader._octets) < 200_000


async def test_what_is_too_large_for_a_consumer_is_not_its_publishers_fault(broker: Broker) -> None:
    async with talk(broker, frame_max=4096) as small, talk(broker) as client:
        await small.say(queue(), consume("c"))
        said = await client.say(publish("", "q", headers={"long": "x" * 10_000}), queue("q1"))
        assert said == [(1, "queue.declare-ok", "q1", 0, 0)]
        await small.ended()
        assert small.answers[-1][:3] == (0, "connection.close", 506)
        broker.assert_queue("q", ready=1)


async def test_a_consumer_that_cannot_be_told_is_not_the_fault_of_who_deletes_its_queue(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "ConnectionLimits", partial(ConnectionLimits, send_buffer=1 << 20))
    async with Broker(**options) as broker, talk(broker) as silent, talk(broker) as client:
        await silent.say(queue(), queue("large"), consume("c"))
        await client.say(*[publish("", "large", bytes(8 << 20))] * 2)
        silent.stream._transport.pause_reading()
        for left in (1, 0):  # the first is in the transport, which takes no more then
            silent.stream.connection.send(1, get("large", no_ack=False))
            await until(lambda left=left: len(broker.queue("large").ready) == left)
        assert await client.say(amqp.Queue.Delete(queue="q")) == [(1, "queue.delete-ok", 0)]
        assert broker.errors == []
        silent.stream._transport.abort()


@pytest.mark.parametrize("lie", [5, {"queue": "q", "reason": "rejected", "count": "many"}])
async def test_a_dead_letter_that_lies_of_its_deaths_is_lost_and_no_other(broker: Broker, lie: Any) -> None:
    async with talk(broker) as client:
        dead = queue(dead_letter_exchange="", dead_letter_routing_key="dead")
        await client.say(queue("dead"), dead, publish("", "q", b"1", headers={"x-death": [lie]}))
        await client.say(publish("", "q", b"2"), get(no_ack=False), get(no_ack=False))
        await client.say(amqp.Basic.Nack(2, True, False))
        broker.assert_queue("dead", ready=[b"2"])
        broker.assert_published(body=b"1", settled="rejected")
        assert broker.errors == []


async def test_counts_of_deaths_have_64_bits(broker: Broker) -> None:
    """An older death, which the publisher has sent as one of 32 bits, as well. The largest goes round."""
    async with talk(broker, tables="raw") as client:
        deaths = {"a": 3, "q": 2**63 - 1}
        before = {"x-death": [{"queue": each, "reason": "rejected", "count": deaths[each]} for each in "aq"]}
        dead = queue(dead_letter_exchange="", dead_letter_routing_key="dead")
        await client.say(queue("dead"), dead, publish("", "q", headers=before), get(no_ack=False))
        await client.say(amqp.Basic.Reject(1, False))
        ((*_, properties, _),) = await client.say(get("dead"))
        for count in (3, -(2**63)):
            assert b"\x05countl" + count.to_bytes(8, "big", signed=True) in properties["headers"].octets
        assert [each["count"] for each in broker.published()[0].headers["x-death"]] == [*deaths.values()]


async def test_what_becomes_of_a_message_in_many_queues_is_not_kept_for_ever(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LOG_OCTETS", 100_000)
    async with talk(broker) as client:
        names = [f"q{number}" for number in range(100)]
        await client.say(*[queue(name, max_length=0) for name in names])
        await client.say(*[bind(queue=name, exchange="amq.fanout") for name in names])
        await client.say(*[publish("amq.fanout", "") for _ in range(50)])
        assert 0 < len(broker.published()) < 10


async def test_many_keys_in_headers_are_no_work_where_keys_do_not_count(broker: Broker) -> None:
    """10,000 keys and 500 bindings are not 5,000,000 comparisons."""
    async with talk(broker) as client:
        exchange = amqp.Exchange.Declare(exchange="e", type="headers")
        never = {"x-match": "all", "h": 1}
        binds = [bind(queue="q", exchange="e", routing_key=str(n), arguments=never) for n in range(500)]
        await client.say(queue(), exchange, *binds)
        asked = 0
        for binding in broker.hosts["/"].exchanges["e"].bindings.values():

            def takes(headers: Any) -> bool:
                nonlocal asked
                asked += 1
                return False

            binding.takes = takes
        await client.say(publish("e", "", headers={"CC": ["k"] * 10_000}))
        assert asked == 500
