"""A user's use of the client on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, assert_type

from amqpcodec import connection
from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import (
    AlreadySettledError,
    AmqpStream,
    Backoff,
    Channel,
    Client,
    ClientStats,
    Consumer,
    ConsumerCancelledError,
    Credentials,
    Delivery,
    EventSink,
    LateError,
    NackedError,
    ReturnedError,
    UncertainReturnError,
)


async def declare(client: Client) -> None:
    """Declare what the program needs."""
    await client.call(amqp.Queue.Declare(queue="orders"), timeout=10)


async def credentials() -> Credentials:
    """Return a token."""
    return Credentials("token", username="", seconds=60)


def before_publish(method: Any, properties: Any) -> Any:
    """Return the properties to publish with."""
    return properties or amqp.BasicProperties(message_id=method.routing_key)


@contextmanager
def around_delivery(delivery: Delivery) -> Generator[None, None, None]:
    """Do something around a delivery."""
    assert_type(delivery.body, bytes)
    yield


async def work(url: str) -> ClientStats:
    """Publish, consume, and return what was done."""
    client = Client(
        [url, "amqp://localhost"], on_connect=declare, backoff=Backoff(first=0.1, attempts=5),
        close_seconds=5, give_up_after=5, before_publish=before_publish, around_delivery=around_delivery,
        credentials=credentials, heartbeat=30,
    )  # fmt: skip
    async with client as same:
        assert_type(same, Client)
        channel = assert_type(await client.channel(window=10, prefetch=20, reopen=3), Channel)
        await publish(channel)
        consumer = assert_type(channel.consume("orders", arguments={"x-priority": 1}), Consumer)
        async with consumer as deliveries:
            await consume(deliveries)
        assert_type(await channel.get("orders", no_ack=True, timeout=1), Delivery | None)
        await channel.call(amqp.Basic.Qos(prefetch_count=1))
        assert_type(await channel.close(timeout=1), None)
        await client.close()
    return assert_type(client.stats(), ClientStats)


async def publish(channel: Channel) -> None:
    """Publish messages."""
    try:
        await channel.publish(
            b"body", exchange="", routing_key="orders", properties=amqp.BasicProperties(), timeout=5
        )
    except LateError as late:
        assert_type(late.was_sent, bool)
    except UncertainReturnError as error:
        assert_type(error.reply_code, int)
    except ReturnedError as error:
        assert_type(error.reply_code, int)
        assert_type(error.reply_text, str)
        assert_type(error.exchange, str)
        assert_type(error.routing_key, str)
    except NackedError:
        pass
    pending = await channel.publish_soon(memoryview(b"body"), routing_key="orders", mandatory=False)
    assert_type(pending, asyncio.Future[None])
    await pending


async def consume(deliveries: Consumer) -> None:
    """Settle deliveries."""
    try:
        async for delivery in deliveries:
            assert_type(delivery, Delivery)
            try:
                assert_type(delivery.ack(), bool)
            except AlreadySettledError:
                continue
            assert_type(delivery.nack(requeue=False) or delivery.reject(requeue=True), bool)
    except ConsumerCancelledError:
        print(deliveries.tag, assert_type(deliveries.offset, int | None))


class Printer:
    """Prints events as they come."""

    def __init__(self, stream: AmqpStream) -> None:
        sink: EventSink = self
        stream.set_sink(sink)

    def event_received(self, event: connection.Event) -> None:
        """Print an event."""
        print(event)

    def resume_writing(self) -> None:
        """Do nothing: nothing is sent."""

    def stream_ended(self, error: Exception | None) -> None:
        """Print the end."""
        print(error)
