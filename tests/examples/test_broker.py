"""What the broker of the examples does beyond what ordinary sessions need, and what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from support.examples import example, serving
from support.implementation import Implementation

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import AmqpStream, connect
from amqpcodec.connection import ChannelClosed, ConnectionClosed, MessageReceived, MethodReceived, Settled

matches = example("broker_queues").matches


@pytest.fixture(scope="module")
def port(impl: Implementation) -> Iterator[int]:
    with serving("broker", impl.name) as (number, log):
        yield number
        assert log.read_text() == ""


def conversation(port: int, work: Callable[[AmqpStream], Awaitable[None]]) -> None:
    """Open a connection with channel 1, and talk."""

    async def talk() -> None:
        async with await connect("127.0.0.1", port) as stream:
            stream.connection.send(1, amqp.Channel.Open())
            await work(stream)

    asyncio.run(asyncio.wait_for(talk(), 30))


async def until(stream: AmqpStream, kind: type, method: type | None = None) -> Any:
    """The next event of a kind, and of a method."""
    async for event in stream:
        if isinstance(event, kind) and (method is None or isinstance(event.method, method)):
            return event
    raise AssertionError(f"no {kind.__name__} came")


def publish(stream: AmqpStream, exchange: str, key: str, body: bytes = b"") -> int | None:
    return stream.connection.send_message(1, amqp.Basic.Publish(exchange, key), None, body)


async def declare(stream: AmqpStream, **arguments: Any) -> str:
    stream.connection.send(1, amqp.Queue.Declare(**arguments))
    event = await until(stream, MethodReceived, amqp.Queue.DeclareOk)
    return str(event.method.queue)


async def count(stream: AmqpStream, queue: str) -> int:
    stream.connection.send(1, amqp.Queue.Declare(queue=queue, passive=True))
    event = await until(stream, MethodReceived, amqp.Queue.DeclareOk)
    return int(event.method.message_count)


@pytest.mark.parametrize(
    ("pattern", "key", "expected"),
    [
        ("a.b", "a.b", True), ("a.b", "a.c", False), ("*.b", "a.b", True), ("*", "a.b", False),
        ("#", "", True), ("#", "a.b.c", True), ("a.#", "a", True), ("a.#.c", "a.c", True),
        ("a.#.c", "a.b.b.c", True), ("a.#.c", "a.b.b.d", False), ("#.#", "a", True), ("*.#", "", False),
        ("", "", True), ("*", "", False), ("#.a.#", "b.a.a.c", True), ("a.*.c", "a..c", True),
    ],
)  # fmt: skip
def test_topics_match_words(pattern: str, key: str, expected: bool) -> None:
    assert matches(pattern, key) is expected


def test_many_wildcards_take_no_time() -> None:
    assert not matches("#.a." * 200 + "b", "a." * 400 + "c")


@pytest.mark.parametrize(
    ("kind", "bound", "key", "routed"),
    [
        ("direct", "k", "k", True), ("direct", "k", "other", False), ("fanout", "k", "other", True),
        ("topic", "a.*", "a.b", True), ("topic", "a.*", "b.b", False),
    ],
)  # fmt: skip
def test_exchanges_route_by_their_kind(port: int, kind: str, bound: str, key: str, routed: bool) -> None:
    async def work(stream: AmqpStream) -> None:
        name = await declare(stream, exclusive=True)
        stream.connection.send(1, amqp.Queue.Bind(queue=name, exchange=f"amq.{kind}", routing_key=bound))
        publish(stream, f"amq.{kind}", key)
        assert await count(stream, name) == routed
        stream.connection.send(1, amqp.Queue.Unbind(queue=name, exchange=f"amq.{kind}", routing_key=bound))
        publish(stream, f"amq.{kind}", key)
        assert await count(stream, name) == routed

    conversation(port, work)


@pytest.mark.parametrize(
    ("method", "code"),
    [
        (amqp.Queue.Declare(queue="none", passive=True), 404),
        (amqp.Basic.Consume(queue="none"), 404),
        (amqp.Queue.Bind(queue="none", exchange="amq.direct"), 404),
        (amqp.Exchange.Declare(exchange="none", passive=True), 404),
        (amqp.Exchange.Declare(exchange="amq.direct", type="fanout"), 406),
        (amqp.Exchange.Delete(exchange="amq.direct"), 403),
    ],
)
def test_a_soft_error_closes_the_channel_and_no_more(port: int, method: Any, code: int) -> None:
    async def work(stream: AmqpStream) -> None:
        stream.connection.send(1, method)
        closed = await until(stream, ChannelClosed)
        spec = method.spec
        assert (closed.reply_code, closed.class_id, closed.method_id) == (code, spec.class_id, spec.method_id)
        stream.connection.send(1, amqp.Channel.Open())
        await declare(stream, exclusive=True)

    conversation(port, work)


@pytest.mark.parametrize(
    "method",
    [
        amqp.Tx.Select(),
        amqp.Exchange.Declare(exchange="e", type="headers"),
        amqp.Queue.Declare(queue="q", arguments={"x-message-ttl": 5}),
        amqp.Exchange.Bind(destination="amq.direct", source="amq.topic"),
    ],
    ids=lambda method: method.spec.name,
)
def test_what_is_not_there_is_refused(port: int, method: Any) -> None:
    async def work(stream: AmqpStream) -> None:
        stream.connection.send(1, method)
        closed = await until(stream, ConnectionClosed)
        assert (closed.by, closed.reply_code) == ("peer", 540)

    conversation(port, work)


def test_an_exclusive_queue_is_of_one_connection_and_goes_with_it(port: int) -> None:
    async def work(stream: AmqpStream) -> None:
        async with await connect("127.0.0.1", port) as other:
            other.connection.send(1, amqp.Channel.Open())
            name = await declare(other, exclusive=True)
            stream.connection.send(1, amqp.Queue.Declare(queue=name, passive=True))
            assert (await until(stream, ChannelClosed)).reply_code == 405
        stream.connection.send(1, amqp.Channel.Open())
        stream.connection.send(1, amqp.Queue.Declare(queue=name, passive=True))
        assert (await until(stream, ChannelClosed)).reply_code == 404

    conversation(port, work)


def test_what_is_not_acknowledged_goes_back_when_the_connection_ends(port: int) -> None:
    async def work(stream: AmqpStream) -> None:
        name = await declare(stream, queue="kept")
        for number in range(5):
            publish(stream, "", name, b"%d" % number)
        await stream.drain()
        async with await connect("127.0.0.1", port) as other:
            other.connection.send(1, amqp.Channel.Open())
            other.connection.send(1, amqp.Basic.Qos(prefetch_count=3))
            other.connection.send(1, amqp.Basic.Consume(queue=name))
            for _ in range(3):
                last = await until(other, MessageReceived)
            other.connection.send(1, amqp.Basic.Ack(last.method.delivery_tag))
        stream.connection.send(1, amqp.Basic.Consume(queue=name))
        found = [await until(stream, MessageReceived) for _ in range(4)]
        assert [(event.body, event.method.redelivered) for event in found[:2]] == [(b"0", True), (b"1", True)]
        assert [event.body for event in found[2:]] == [b"3", b"4"]
        stream.connection.send(1, amqp.Queue.Delete(queue=name))
        await until(stream, MethodReceived, amqp.Queue.DeleteOk)

    conversation(port, work)


def test_consumers_take_turns(port: int) -> None:
    async def work(stream: AmqpStream) -> None:
        name = await declare(stream, exclusive=True)
        for tag in ("one", "two"):
            stream.connection.send(1, amqp.Basic.Consume(queue=name, consumer_tag=tag, no_ack=True))
        for _ in range(10):
            publish(stream, "", name)
        tags = [(await until(stream, MessageReceived)).method.consumer_tag for _ in range(10)]
        assert tags.count("one") == tags.count("two") == 5

    conversation(port, work)


def test_a_queue_that_deletes_itself_goes_with_its_last_consumer(port: int) -> None:
    async def work(stream: AmqpStream) -> None:
        name = await declare(stream, auto_delete=True)
        stream.connection.send(1, amqp.Basic.Consume(queue=name, consumer_tag="one"))
        stream.connection.send(1, amqp.Basic.Cancel("one"))
        await until(stream, MethodReceived, amqp.Basic.CancelOk)
        stream.connection.send(1, amqp.Queue.Declare(queue=name, passive=True))
        assert (await until(stream, ChannelClosed)).reply_code == 404

    conversation(port, work)


def test_a_consumer_is_told_when_its_queue_is_deleted(port: int) -> None:
    async def work(stream: AmqpStream) -> None:
        name = await declare(stream)
        stream.connection.send(1, amqp.Basic.Consume(queue=name, consumer_tag="one"))
        stream.connection.send(1, amqp.Queue.Delete(queue=name))
        assert (await until(stream, MethodReceived, amqp.Basic.Cancel)).method.consumer_tag == "one"

    conversation(port, work)


def test_a_client_that_does_not_read_holds_up_nobody_else(port: int) -> None:
    async def work(stream: AmqpStream) -> None:
        body = bytes(1 << 20)
        name = await declare(stream, queue="large")
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            silent = [
                amqp.protocol_header(),
                amqp.encode_method(0, amqp.Connection.StartOk({}, "PLAIN", b"\0guest\0guest", "en_US")),
                amqp.encode_method(0, amqp.Connection.TuneOk(0, 131072, 0)),
                amqp.encode_method(0, amqp.Connection.Open("/")),
                amqp.encode_method(1, amqp.Channel.Open()),
                amqp.encode_method(1, amqp.Basic.Consume(queue=name, no_ack=True)),
            ]
            for octets in silent:
                writer.write(octets)
                await asyncio.sleep(0.05)
            stream.connection.send(1, amqp.Confirm.Select())
            for _ in range(60):
                publish(stream, "", name, body)
                await until(stream, Settled)
            waiting = await count(stream, name)
            assert waiting > 30  # the rest is in buffers of sockets
        finally:
            writer.transport.abort()
        stream.connection.send(1, amqp.Queue.Delete(queue=name))
        deleted = await until(stream, MethodReceived, amqp.Queue.DeleteOk)
        assert deleted.method.message_count == waiting

    conversation(port, work)
