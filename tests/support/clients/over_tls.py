"""A short session of each client over TLS: declare, publish with confirms, get, consume, acknowledge, close.

Each is a function of a port of 127.0.0.1 and the file of the authority that the server's certificate is of.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

MESSAGES = 12
SIZE = 40_000  # so that all of them are many reads, which cut frames anywhere
HEADERS = {"kind": "sample", "n": 7}


def context(authority: str) -> ssl.SSLContext:
    """A context that trusts an authority."""
    return ssl.create_default_context(cafile=authority)


def pika_blocking(port: int, authority: str) -> None:
    import pika

    options = pika.SSLOptions(context(authority), "localhost")
    connection = pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", port, ssl_options=options, heartbeat=0)
    )
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("orders", auto_delete=True)
    properties = pika.BasicProperties(headers=HEADERS, delivery_mode=1)
    for _ in range(MESSAGES):
        channel.basic_publish("", "orders", bytes(SIZE), properties, mandatory=True)
    method, _, _ = channel.basic_get("orders")
    channel.basic_ack(method.delivery_tag)
    for count, (delivery, _, _) in enumerate(channel.consume("orders"), 2):
        channel.basic_ack(delivery.delivery_tag)
        if count == MESSAGES:
            break
    channel.cancel()
    connection.close()


def pika_select(port: int, authority: str) -> None:
    import pika

    received = 0

    def opened(channel: Any) -> None:
        channel.confirm_delivery(lambda _: None)
        channel.queue_declare("orders", auto_delete=True, callback=lambda _: publish(channel))

    def publish(channel: Any) -> None:
        for _ in range(MESSAGES):
            channel.basic_publish("", "orders", bytes(SIZE), pika.BasicProperties(headers=HEADERS))
        channel.basic_consume("orders", taken)

    def taken(channel: Any, method: Any, _: Any, body: bytes) -> None:
        nonlocal received
        received += 1
        channel.basic_ack(method.delivery_tag)
        if received == MESSAGES:
            channel.connection.close()

    options = pika.SSLOptions(context(authority), "localhost")
    connection = pika.SelectConnection(
        pika.ConnectionParameters("127.0.0.1", port, ssl_options=options, heartbeat=0),
        on_open_callback=lambda made: made.channel(on_open_callback=opened),
        on_close_callback=lambda made, _: made.ioloop.stop(),
    )
    connection.ioloop.start()
    connection.ioloop.close()


def aio_pika(port: int, authority: str) -> None:
    import aio_pika

    async def work() -> None:
        connection = await aio_pika.connect(
            f"amqps://guest:guest@localhost:{port}/", ssl_context=context(authority)
        )
        async with connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("orders", auto_delete=True)
            for _ in range(MESSAGES):
                message = aio_pika.Message(bytes(SIZE), headers=HEADERS)
                await channel.default_exchange.publish(message, "orders")
            received = 0
            async with queue.iterator() as deliveries:
                async for delivery in deliveries:
                    await delivery.ack()
                    received += 1
                    if received == MESSAGES:
                        break

    asyncio.run(work())


def kombu(port: int, authority: str) -> None:
    import kombu

    options = {"ca_certs": authority, "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": "localhost"}
    received: list[Any] = []

    def taken(_: Any, message: Any) -> None:
        message.ack()
        received.append(message)

    with kombu.Connection(
        "amqp://guest:guest@localhost//", port=port, ssl=options, transport_options={"confirm_publish": True}
    ) as connection:
        queue = kombu.Queue(
            "orders", kombu.Exchange("sales", "topic", durable=False), "#", durable=False, auto_delete=True
        )
        with connection.Producer() as producer:
            for _ in range(MESSAGES):
                producer.publish(
                    "x" * SIZE, exchange=queue.exchange, routing_key="eu", declare=[queue], headers=HEADERS
                )
        with connection.Consumer(queue, callbacks=[taken]):
            while len(received) < MESSAGES:
                connection.drain_events(timeout=20)


def py_amqp(port: int, authority: str) -> None:
    import amqp

    options = {"ca_certs": authority, "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": "localhost"}
    received: list[Any] = []
    with amqp.Connection(f"localhost:{port}", ssl=options, confirm_publish=True) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        for _ in range(MESSAGES):
            message = amqp.Message(bytes(SIZE), application_headers=HEADERS)
            channel.basic_publish_confirm(message, routing_key="orders")
        tag = channel.basic_consume("orders", callback=received.append)
        while len(received) < MESSAGES:
            connection.drain_events(timeout=20)
        channel.basic_ack(received[-1].delivery_tag, multiple=True)
        channel.basic_cancel(tag)
        channel.queue_delete("orders")


def amqpstorm(port: int, authority: str) -> None:
    import amqpstorm

    options = {"context": context(authority), "server_hostname": "localhost"}
    with amqpstorm.Connection(
        "localhost", "guest", "guest", port=port, ssl=True, ssl_options=options
    ) as connection:
        channel = connection.channel()
        channel.confirm_deliveries()
        channel.queue.declare("orders", auto_delete=True)
        for _ in range(MESSAGES):
            channel.basic.publish(bytes(SIZE), "orders", properties={"headers": dict(HEADERS)})
        channel.basic.consume(queue="orders")
        for _, message in zip(range(MESSAGES), channel.build_inbound_messages(), strict=False):
            message.ack()
        channel.close()


def rabbitpy(port: int, authority: str) -> None:
    import rabbitpy

    url = f"amqps://guest:guest@localhost:{port}/%2f?cacertfile={authority}&verify=required"
    with rabbitpy.Connection(url) as connection, connection.channel() as channel:
        channel.enable_publisher_confirms()
        queue = rabbitpy.Queue(channel, "orders")
        queue.declare()
        for _ in range(MESSAGES):
            rabbitpy.Message(channel, bytes(SIZE), {"headers": dict(HEADERS)}).publish("", "orders")
        for _ in range(MESSAGES):
            message = queue.get()
            message.ack()
        queue.delete()


def amqpcodec(port: int, authority: str) -> None:
    from amqpcodec import aio
    from amqpcodec import rabbitmq as ours

    async def work() -> None:
        url = f"amqps://guest:guest@localhost:{port}/?cacertfile={authority}"
        async with aio.Client(url) as client:
            await client.call(ours.Queue.Declare("orders", auto_delete=True))
            channel = await client.channel(prefetch=5)
            for _ in range(MESSAGES):
                await channel.publish(
                    bytes(SIZE), routing_key="orders", properties=ours.BasicProperties(headers=HEADERS)
                )
            received = 0
            async with channel.consume("orders") as deliveries:
                async for delivery in deliveries:
                    delivery.ack()
                    received += 1
                    if received == MESSAGES:
                        break

    asyncio.run(work())


CLIENTS: dict[str, Callable[[int, str], None]] = {
    each.__name__: each
    for each in (pika_blocking, pika_select, aio_pika, kombu, py_amqp, amqpstorm, rabbitpy, amqpcodec)
}
LIBRARIES = {"pika_blocking": "pika", "pika_select": "pika", "py_amqp": "amqp"}  # else of that name
