"""py-amqp on its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import amqp

from .samples import CONTENT_TYPE, PREFETCH, Clock, Sample


def connect(url: str) -> amqp.Connection:
    """An open connection."""
    parts = urlsplit(url)
    connection = amqp.Connection(f"{parts.hostname}:{parts.port or 5672}", parts.username, parts.password)
    connection.connect()
    return connection


def publish(url: str, queue: str, samples: Iterable[Sample], clock: Clock) -> None:
    connection = connect(url)
    channel = connection.channel()
    with clock:
        for sample in samples:
            message = amqp.Message(
                sample.body,
                content_type=CONTENT_TYPE,
                application_headers=sample.headers,
                delivery_mode=1,
                message_id=sample.message_id,
                timestamp=sample.seconds,
            )
            channel.basic_publish(message, routing_key=queue)
        channel.queue_declare(queue, passive=True)  # all before it has been sent
    connection.close()


def consume(url: str, queue: str, count: int, clock: Clock) -> list[Sample]:
    connection = connect(url)
    channel = connection.channel()
    channel.basic_qos(0, PREFETCH, False)
    received: list[Sample] = []

    def take(message: Any) -> None:
        found = message.properties
        received.append(Sample(message.body, found["application_headers"], found["message_id"]))
        channel.basic_ack(message.delivery_tag)

    with clock:
        channel.basic_consume(queue, callback=take)
        while len(received) < count:
            connection.drain_events()
    connection.close()
    return received
