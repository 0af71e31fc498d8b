"""pika's BlockingConnection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pika

from .samples import CONTENT_TYPE, PREFETCH, Clock, Sample


def properties(sample: Sample) -> pika.BasicProperties:
    """The properties of a message."""
    return pika.BasicProperties(
        content_type=CONTENT_TYPE,
        headers=sample.headers,
        delivery_mode=1,
        message_id=sample.message_id,
        timestamp=sample.seconds,
    )


def publish(url: str, queue: str, samples: Iterable[Sample], clock: Clock) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    with clock:
        for sample in samples:
            channel.basic_publish("", queue, sample.body, properties(sample))
        channel.queue_declare(queue, passive=True)  # all before it has been sent
    connection.close()


def consume(url: str, queue: str, count: int, clock: Clock) -> list[Sample]:
    received: list[Sample] = []

    def take(source: Any, method: Any, found: Any, body: bytes) -> None:
        received.append(Sample(body, found.headers, found.message_id))
        source.basic_ack(method.delivery_tag)
        if len(received) == count:
            source.stop_consuming()

    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.basic_qos(prefetch_count=PREFETCH)
    with clock:
        channel.basic_consume(queue, take)
        channel.start_consuming()
    connection.close()
    return received
