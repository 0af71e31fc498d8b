"""kombu over py-amqp."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import kombu

from .samples import CONTENT_TYPE, PREFETCH, Clock, Sample


def publish(url: str, queue: str, samples: Iterable[Sample], clock: Clock) -> None:
    with kombu.Connection(url) as connection, connection.channel() as channel:
        producer = kombu.Producer(channel, auto_declare=False)
        with clock:
            for sample in samples:
                producer.publish(
                    sample.body,
                    routing_key=queue,
                    content_type=CONTENT_TYPE,
                    content_encoding="binary",
                    headers=sample.headers,
                    delivery_mode=1,
                    message_id=sample.message_id,
                    timestamp=sample.seconds,
                )
            channel.queue_declare(queue, passive=True)  # all before it has been sent


def consume(url: str, queue: str, count: int, clock: Clock) -> list[Sample]:
    received: list[Sample] = []

    def take(message: Any) -> None:
        received.append(Sample(message.body, message.headers, message.properties["message_id"]))
        message.ack()

    with kombu.Connection(url) as connection, connection.channel() as channel:
        source = kombu.Queue(queue, channel=channel, no_declare=True)
        consumer = kombu.Consumer(
            channel, [source], on_message=take, auto_declare=False, prefetch_count=PREFETCH
        )
        with clock, consumer:
            while len(received) < count:
                connection.drain_events()
    return received
