"""The client and a real RabbitMQ: what each failure raises, and what the client goes on with."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from support.broker import NoBrokerError, Node, free_ports, started
from support.certificates import self_signed
from support.relay import Relay
from support.soak_faults import control
from world import World, numbers, outcomes, published

from amqpcodec import EncodeError
from amqpcodec.aio import Backoff, ConsumerCancelledError, ReturnedError
from amqpcodec.connection import ConnectionLimits
from amqpcodec.errors import ConnectionLostError, LocalProtocolError
from amqpcodec.reply_errors import (
    AmqpAccessRefused,
    AmqpFrameError,
    AmqpInternalError,
    AmqpNotAllowed,
    AmqpNotFound,
    AmqpPreconditionFailed,
    AmqpResourceLocked,
)

FINE_TIME = datetime(2026, 11, 25, 12, 0, 0, 5, UTC)  # finer than the field, which has seconds


# -- failures


@pytest.fixture
def queue() -> str:
    """A name that no other test has."""
    return f"amqpcodec-{uuid4()}"


@pytest.mark.slow("needs a RabbitMQ")
async def test_a_message_goes_to_a_rabbitmq_and_back(world: World, rabbitmq: str, queue: str) -> None:
    amqp = world.amqp
    async with world.client(rabbitmq) as client, await client.channel(prefetch=10) as channel:
        await channel.call(amqp.Queue.Declare(queue=queue, exclusive=True))
        await asyncio.gather(*published(channel, 100, routing_key=queue))
        async with channel.consume(queue) as deliveries:
            bodies = []
            async for delivery in deliveries:
                assert delivery.ack()
                bodies.append(delivery.body)
                if len(bodies) == 100:
                    break
        assert numbers(bodies) == list(range(1, 101))
        assert await channel.get(queue) is None
        with pytest.raises(ReturnedError, match="312 NO_ROUTE"):
            await channel.publish(b"", routing_key=f"{queue}-none")


async def test_what_is_not_there_or_otherwise_closes_its_channel_alone(
    world: World, rabbitmq: str, queue: str
) -> None:
    amqp, none = world.amqp, f"{queue}-none"
    async with world.client(rabbitmq) as client:
        await client.call(amqp.Queue.Declare(queue=queue, exclusive=True))
        wrong = {
            "declare": lambda channel: channel.call(amqp.Queue.Declare(queue=none, passive=True)),
            "get": lambda channel: channel.get(none),
            "consume": lambda channel: channel.consume(none).__aenter__(),
            "publish": lambda channel: channel.publish(b"", exchange=none),
        }
        for ask in wrong.values():
            channel = await client.channel()
            with pytest.raises(AmqpNotFound):
                await ask(channel)
            with pytest.raises(AmqpNotFound):
                await channel.publish(b"", routing_key=queue)
        with pytest.raises(AmqpPreconditionFailed):
            await client.call(amqp.Queue.Declare(queue=queue, exclusive=True, auto_delete=True))
        async with world.client(rabbitmq) as other:
            with pytest.raises(AmqpResourceLocked):
                await other.call(amqp.Queue.Declare(queue=queue, passive=True))
        await client.call(amqp.Queue.Declare(queue=queue, passive=True))
        assert client.stats().connections == 1


@pytest.mark.parametrize("channel_max", [3, 2047])
async def test_deliveries_after_the_close_of_their_channel_harm_nobody(
    world: World, rabbitmq: str, queue: str, channel_max: int
) -> None:
    """The broker sends them in most rounds: all ten without one are as good as impossible.

    With 3 channels, each round has the channel number of the round before.
    """
    amqp = world.amqp
    async with world.client(f"{rabbitmq}?channel_max={channel_max}") as client:
        await client.call(amqp.Queue.Declare(queue=queue, exclusive=True))
        channel = await client.channel(window=2000)
        await asyncio.gather(*published(channel, 2000, routing_key=queue))
        for _ in range(10):
            channel = await client.channel()
            async with channel.consume(queue) as deliveries:
                for _ in range(100):
                    await anext(deliveries)
                with pytest.raises(AmqpNotFound):
                    await channel.call(amqp.Queue.Declare(queue=f"{queue}-none", passive=True))
        reply = await client.call(amqp.Queue.Declare(queue=queue, passive=True))
        assert (reply.message_count, client.stats().connections) == (2000, 1)
        assert client.stats().ignored > 0


async def test_headers_above_frame_max_are_read(world: World, rabbitmq: str, queue: str) -> None:
    """The broker cuts bodies alone."""
    amqp = world.amqp
    properties = amqp.BasicProperties(headers={"large": "x" * 20_000})
    small = world.client(rabbitmq + "?frame_max=8192")
    async with world.client(rabbitmq) as client, small as reader:
        channel = await reader.channel()
        await channel.call(amqp.Queue.Declare(queue=queue, auto_delete=True))
        async with channel.consume(queue) as deliveries:
            await (await client.channel()).publish(bytes(9000), routing_key=queue, properties=properties)
            delivery = await anext(deliveries)
        assert (delivery.properties.headers, delivery.body) == (properties.headers, bytes(9000))
        assert reader.stats().connections == 1


@pytest.mark.parametrize(
    ("login", "vhost", "error"),
    [("guest:wrong", "", AmqpAccessRefused), ("guest:guest", "none", AmqpNotAllowed)],
    ids=["password", "vhost"],
)
async def test_who_may_not_come_in_is_told_at_once(
    world: World, rabbitmq: str, login: str, vhost: str, error: type[Exception]
) -> None:
    client = world.client(rabbitmq.replace("guest:guest", login) + vhost)
    with pytest.raises(error) as raised:
        await client.__aenter__()
    assert "wrong" not in repr(raised.value)
    with pytest.raises(error):
        await client.channel()


async def test_every_return_goes_to_its_own_message(world: World, rabbitmq: str, queue: str) -> None:
    """By routing keys, and by headers alone."""
    amqp = world.amqp
    async with world.client(rabbitmq) as client:
        await client.call(amqp.Queue.Declare(queue=queue, exclusive=True))
        await client.call(amqp.Exchange.Declare(exchange=queue, type="headers", auto_delete=True))
        await client.call(amqp.Queue.Bind(queue=queue, exchange=queue, arguments={"there": True}))
        channel = await client.channel()
        futures, wanted = [], []
        for number in range(3000):
            is_lost = number % 3 == 1
            if number % 2:
                target = {"exchange": queue, "routing_key": "same"}
            else:
                target = {"exchange": "", "routing_key": f"{queue}-none" if is_lost else queue}
            properties = amqp.BasicProperties(
                message_id="same", headers={"there": not is_lost}, timestamp=FINE_TIME
            )
            futures.append(await channel.publish_soon(b"same", properties=properties, **target))
            wanted.append("ReturnedError" if is_lost else "ok")
        assert await outcomes(*futures) == wanted
        stats = client.stats()
        assert (stats.returned, stats.confirmed, stats.unmatched) == (1000, 2000, 0)
        reply = await client.call(amqp.Queue.Declare(queue=queue, passive=True))
        assert reply.message_count == 2000


async def test_messages_that_differ_in_bcc_alone_are_told_that_it_is_uncertain(
    world: World, rabbitmq: str, queue: str
) -> None:
    """RabbitMQ leaves BCC out of what it returns; no other header of the message changes by that."""
    amqp = world.amqp
    async with world.client(rabbitmq) as client:
        await client.call(amqp.Queue.Declare(queue=queue, exclusive=True))
        channel = await client.channel()
        kept = {"when": FINE_TIME, "list": [1, "2", None], "small": 7, "real": 0.5, "octets": b"\xff"}
        futures = []
        for headers in (
            {"BCC": [queue]},
            {"BCC": ["none"]},
            {"BCC": ["none"], **kept},
            {"BCC": [queue], "id": 2},
        ):
            properties = amqp.BasicProperties(headers=headers, timestamp=FINE_TIME)
            futures.append(await channel.publish_soon(b"same", routing_key="none", properties=properties))
        assert await outcomes(*futures) == [
            "UncertainReturnError", "UncertainReturnError", "ReturnedError", "ok",
        ]  # fmt: skip
        reply = await client.call(amqp.Queue.Declare(queue=queue, passive=True))
        assert reply.message_count == 2


async def test_what_a_full_queue_refuses_is_nacked(world: World, rabbitmq: str, queue: str) -> None:
    amqp = world.amqp
    async with world.client(rabbitmq) as client, await client.channel() as channel:
        arguments = {"x-max-length": 10, "x-overflow": "reject-publish"}
        await channel.call(amqp.Queue.Declare(queue=queue, exclusive=True, arguments=arguments))
        ended = Counter(await outcomes(*published(channel, 100, routing_key=queue)))
        assert ended.keys() == {"ok", "NackedError"}
        assert ended["NackedError"] == client.stats().nacked >= 80


async def test_a_consumer_of_a_deleted_queue_is_told(world: World, rabbitmq: str, queue: str) -> None:
    amqp = world.amqp
    async with world.client(rabbitmq) as client, await client.channel() as channel:
        await channel.call(amqp.Queue.Declare(queue=queue))
        async with channel.consume(queue) as deliveries:
            await client.call(amqp.Queue.Delete(queue=queue))
            with pytest.raises(ConsumerCancelledError):
                await anext(deliveries)


async def test_recover_brings_deliveries_again(world: World, rabbitmq: str, queue: str) -> None:
    amqp = world.amqp
    async with world.client(rabbitmq) as client, await client.channel(prefetch=5) as channel:
        await channel.call(amqp.Queue.Declare(queue=queue, exclusive=True))
        await asyncio.gather(*published(channel, 3, routing_key=queue))
        fetched = await channel.get(queue)
        assert fetched is not None
        async with channel.consume(queue) as deliveries:
            before = [await anext(deliveries) for _ in range(2)]
            await channel.call(amqp.Basic.Recover(requeue=True))
            assert [each.ack() for each in (fetched, *before)] == [False, False, False]
            after = [await anext(deliveries) for _ in range(3)]
            assert all(each.method.redelivered and each.ack() for each in after)
            assert sorted(numbers(each.body for each in after)) == [1, 2, 3]
        assert await channel.get(queue) is None


async def test_transactions_work_on_a_channel_without_confirms(
    world: World, rabbitmq: str, queue: str
) -> None:
    amqp = world.amqp
    async with world.client(rabbitmq) as client, await client.channel(confirm=False) as channel:
        await client.call(amqp.Queue.Declare(queue=queue, exclusive=True))
        await channel.call(amqp.Tx.Select())
        for end, count in ((amqp.Tx.Rollback(), 0), (amqp.Tx.Commit(), 1)):
            await channel.publish(b"", routing_key=queue)
            await channel.call(end)
            reply = await client.call(amqp.Queue.Declare(queue=queue, passive=True))
            assert reply.message_count == count


async def test_what_is_settled_before_a_rollback_is_settled_once_more_after_it(
    world: World, rabbitmq: str, queue: str
) -> None:
    amqp = world.amqp
    async with world.client(rabbitmq) as client:
        await client.call(amqp.Queue.Declare(queue=queue, exclusive=True))
        await asyncio.gather(*published(await client.channel(), 4, routing_key=queue))
        async with await client.channel(confirm=False) as channel, channel.consume(queue) as deliveries:
            await channel.call(amqp.Tx.Select())
            four = [await anext(deliveries) for _ in range(4)]
            assert four[0].ack()
            await channel.call(amqp.Tx.Rollback())
            assert all(delivery.ack() for delivery in four[1:3])
            await channel.call(amqp.Tx.Commit())
            assert four[0].nack()
            await channel.call(amqp.Tx.Commit())
            again = await anext(deliveries)
            assert (again.body, again.method.redelivered) == (b"1", True)
            assert again.ack()
            assert four[3].ack()
            await channel.call(amqp.Tx.Commit())  # else 406 in its place


async def test_an_acknowledgement_while_the_broker_takes_all_back_costs_no_channel(
    world: World, rabbitmq: str, queue: str
) -> None:
    amqp = world.amqp
    async with world.client(rabbitmq) as client, await client.channel(prefetch=5) as channel:
        await channel.call(amqp.Queue.Declare(queue=queue, exclusive=True))
        await asyncio.gather(*published(channel, 3, routing_key=queue))
        async with channel.consume(queue) as deliveries:
            delivery = await anext(deliveries)
            recovering = asyncio.ensure_future(channel.call(amqp.Basic.Recover(requeue=True)))
            await asyncio.sleep(0)
            assert (delivery.ack(), recovering.done()) == (False, False)
            await recovering
            again = [await anext(deliveries) for _ in range(3)]
            assert all(each.method.redelivered and each.ack() for each in again)
        assert await channel.get(queue) is None


async def test_a_consumer_of_a_stream_is_left_with_deliveries_unread(
    world: World, rabbitmq: str, queue: str
) -> None:
    amqp = world.amqp
    async with world.client(rabbitmq) as client, await client.channel(prefetch=10) as channel:
        arguments = {"x-queue-type": "stream"}
        await channel.call(amqp.Queue.Declare(queue=queue, durable=True, arguments=arguments))
        try:
            await asyncio.gather(*published(channel, 20, routing_key=queue))
            for _ in range(2):
                async with channel.consume(queue, arguments={"x-stream-offset": "first"}) as deliveries:
                    delivery = await anext(deliveries)
                    assert (delivery.body, delivery.ack()) == (b"1", True)
            assert client.stats().connections == 1
        finally:
            await client.call(amqp.Queue.Delete(queue=queue))


async def test_a_secret_may_be_updated(world: World, rabbitmq: str) -> None:
    amqp = world.amqp
    async with world.client(rabbitmq) as client:
        reply = await client.call(amqp.Connection.UpdateSecret(new_secret=b"guest", reason="it is time"))
        assert isinstance(reply, amqp.Connection.UpdateSecretOk)
        await client.call(amqp.Queue.Declare(queue="", exclusive=True))


async def test_two_thousand_channels_are_open(world: World, rabbitmq: str, queue: str) -> None:
    amqp = world.amqp
    async with world.client(rabbitmq) as client:
        channels = [await client.channel() for _ in range(2000)]
        request = amqp.Queue.Declare(queue=queue, exclusive=True)
        asked = [channel.call(request) for channel in channels]
        assert await outcomes(*asked) == ["ok"] * 2000
        opened = len(channels)
        with suppress(LocalProtocolError):
            while opened <= 2047:  # RabbitMQ's channel_max
                await client.channel()
                opened += 1
        assert opened == 2047


# -- no way to a broker


async def test_what_is_no_broker_is_tried_again_and_raised(world: World, rabbitmq: str) -> None:
    """A proxy without a broker, one that says nothing, and a name that does not exist."""
    few = Backoff(first=0.01, attempts=3)
    port = urlsplit(rabbitmq).port
    assert port is not None
    async with Relay(port) as relay:
        relay.refuses = True
        with pytest.raises(ConnectionLostError):
            await world.client(relay.url, backoff=few).__aenter__()
        assert relay.accepted == 3
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connects, and never answers
        limits = ConnectionLimits(handshake_seconds=0.2)
        url = f"amqp://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(ConnectionLostError):
            await world.client(url, backoff=few, connection_limits=limits).__aenter__()
    with pytest.raises(socket.gaierror):
        await world.client("amqp://amqpcodec.invalid/", backoff=few).__aenter__()


async def test_a_half_open_connection_is_found_out(world: World, rabbitmq: str) -> None:
    amqp = world.amqp
    async with Relay(urlsplit(rabbitmq).port) as relay, world.client(relay.url + "?heartbeat=1") as client:
        relay.swallow()
        with pytest.raises(ConnectionLostError):
            await client.call(amqp.Queue.Declare(queue="", exclusive=True))
        await client.call(amqp.Queue.Declare(queue="", exclusive=True))
        assert client.stats().connections == 2


async def test_an_exclusive_queue_of_the_connection_before_is_waited_for(
    world: World, rabbitmq: str, queue: str
) -> None:
    """The broker takes some seconds to find out that the client has gone: 405 until then."""
    amqp = world.amqp
    refused = 0

    async def declare(client: Any) -> None:
        nonlocal refused
        try:
            await client.call(amqp.Queue.Declare(queue=queue, exclusive=True))
        except AmqpResourceLocked:
            refused += 1
            raise

    async with (
        Relay(urlsplit(rabbitmq).port) as relay,
        world.client(relay.url + "?heartbeat=1", on_connect=declare) as client,
    ):
        channel = await client.channel()
        relay.orphan()
        await channel.publish(b"", routing_key=queue)
        assert (client.stats().connections, refused > 0) == (2, True)


async def test_an_exclusive_consumer_of_the_connection_before_is_waited_for(
    world: World, rabbitmq: str, queue: str
) -> None:
    """403 until the broker has found out; calls, and publishes on other channels, go on meanwhile."""
    amqp = world.amqp
    async with (
        Relay(urlsplit(rabbitmq).port) as relay,
        world.client(relay.url + "?heartbeat=1") as client,
    ):
        await client.call(amqp.Queue.Declare(queue=queue, durable=True))
        channel, other = await client.channel(), await client.channel()
        async with channel.consume(queue, exclusive=True) as deliveries:
            relay.orphan()
            await other.publish(b"1", routing_key=queue)
            assert client.stats().delivered == 0
            delivery = await anext(deliveries)
            assert delivery.body == b"1"
            delivery.ack()
        await client.call(amqp.Queue.Delete(queue=queue))
        assert client.stats().connections == 2


NOT_FINITE = {"number": float("nan")}


async def test_what_a_rabbitmq_ends_the_connection_for_is_given_up(
    world: World, rabbitmq: str, queue: str
) -> None:
    """NaN anywhere, and a decimal in a stream; what is beside them is confirmed."""
    amqp = world.amqp
    nan, decimal = (amqp.BasicProperties(headers={"number": each}) for each in (float("nan"), Decimal("1.5")))
    async with world.client(rabbitmq, profile="rabbitmq-nan") as client:
        for name, kind in ((queue, "classic"), (f"{queue}-stream", "stream")):
            await client.call(amqp.Queue.Declare(queue=name, durable=True, arguments={"x-queue-type": kind}))
        channel, other = await client.channel(), await client.channel()
        sent = [
            *published(channel, 20, routing_key=queue),
            asyncio.ensure_future(channel.publish(b"", routing_key=queue, properties=nan)),
            *published(channel, 20, routing_key=queue),
            *published(other, 20, routing_key=queue),
        ]
        assert await outcomes(*sent) == ["ok"] * 20 + ["AmqpInternalError"] + ["ok"] * 40
        with pytest.raises(AmqpInternalError):
            await channel.publish(b"", routing_key=f"{queue}-stream", properties=decimal)
        with pytest.raises((AmqpInternalError, ConnectionLostError)):
            await channel.consume(queue, arguments=NOT_FINITE).__aenter__()
        await channel.publish(b"", routing_key=f"{queue}-stream")
        for name in (queue, f"{queue}-stream"):
            await client.call(amqp.Queue.Delete(queue=name))


async def test_a_setup_for_which_a_rabbitmq_ends_the_connection_is_raised(
    world: World, rabbitmq: str, queue: str
) -> None:
    amqp = world.amqp
    declare = amqp.Queue.Declare(queue=queue, exclusive=True, arguments=NOT_FINITE)
    client = world.client(rabbitmq, profile="rabbitmq-nan", on_connect=lambda client: client.call(declare))
    with pytest.raises((AmqpInternalError, ConnectionLostError)):
        await client.__aenter__()


async def test_a_number_for_which_a_rabbitmq_ends_the_connection_is_not_sent(
    world: World, rabbitmq: str, queue: str
) -> None:
    amqp = world.amqp
    async with world.client(rabbitmq) as client, await client.channel() as channel:
        for ask in (
            client.call(amqp.Queue.Declare(queue=queue, arguments=NOT_FINITE)),
            channel.publish(b"", properties=amqp.BasicProperties(headers={"deep": [NOT_FINITE]})),
            channel.consume(queue, arguments=NOT_FINITE).__aenter__(),
        ):
            with pytest.raises(EncodeError, match=r"\['number'\]: table profile rabbitmq refuses nan"):
                await ask
        await client.call(amqp.Queue.Declare(queue=queue, exclusive=True))
        assert client.stats().connections == 1


@pytest.fixture(scope="module")
def tls_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, int, Path]]:
    """A node with TLS: it, the port, and its certificate, which says "localhost" and is signed by itself."""
    certificate, key = self_signed(tmp_path_factory.mktemp("tls"), "localhost")
    [port] = free_ports(1)
    settings = f"listeners.ssl.1 = 127.0.0.1:{port}\nssl_options.verify = verify_none\n"
    settings += f"ssl_options.cacertfile = {certificate}\nssl_options.certfile = {certificate}\n"
    try:
        with started(settings=settings + f"ssl_options.keyfile = {key}") as found:
            yield found, port, certificate
    except NoBrokerError as reason:
        pytest.skip(str(reason))


@pytest.mark.broker
async def test_tls_lets_in_whom_the_certificate_names(world: World, tls_node: tuple[Node, int, Path]) -> None:
    node, port, certificate = tls_node
    few = Backoff(first=0.01, attempts=2)
    trusted = f"?cacertfile={certificate}"
    right = f"amqps://guest:guest@127.0.0.1:{port}/{trusted}&server_name_indication=localhost"
    async with world.client(right) as client:
        await client.call(world.amqp.Queue.Declare(queue="", exclusive=True))
    for url in (f"amqps://localhost:{port}/", f"amqps://127.0.0.1:{port}/{trusted}"):
        with pytest.raises(ssl.SSLCertVerificationError):
            await world.client(url).__aenter__()  # without end, were it tried again
    with pytest.raises(ssl.SSLError):
        await world.client(f"amqps://localhost:{node.port}/{trusted}", backoff=few).__aenter__()
    with pytest.raises(AmqpFrameError, match="connect with TLS"):
        await world.client(f"amqp://localhost:{port}/", backoff=few).__aenter__()


# -- a memory alarm


@pytest.mark.broker
async def test_an_alarm_holds_publishers_back_until_it_is_over(world: World, node: Node, queue: str) -> None:
    amqp = world.amqp
    async with world.client(node.url, close_seconds=1) as client, world.client(node.url) as other:
        channel = await client.channel()
        await channel.call(amqp.Queue.Declare(queue=queue))
        consumer = await (await client.channel()).consume(queue).__aenter__()
        await asyncio.to_thread(control, node, "set_vm_memory_high_watermark", "0.000001")
        try:
            publishing = published(channel, 1000, routing_key=queue)
            await asyncio.sleep(1)
            assert not any(task.done() for task in publishing)
            reply = await other.call(amqp.Queue.Declare(queue=queue, passive=True))
            assert reply.message_count < 1000
            # RabbitMQ reads nothing more of a connection that has published.
            with pytest.raises(TimeoutError):
                await client.call(amqp.Queue.Declare(queue=queue, passive=True), timeout=1)
            await asyncio.wait_for(consumer.__aexit__(None, None, None), 5)
        finally:
            await asyncio.to_thread(control, node, "set_vm_memory_high_watermark", "0.4")
        await asyncio.gather(*publishing)
        assert (client.stats().confirmed, client.stats().connections) == (1000, 1)
        await client.call(amqp.Queue.Delete(queue=queue))
