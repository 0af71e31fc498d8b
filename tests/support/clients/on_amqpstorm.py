"""AMQPStorm."""

from __future__ import annotations

from collections.abc import Iterable

import amqpstorm

from .samples import CONTENT_TYPE, PREFETCH, Clock, Sample


def publish(url: str, queue: str, samples: Iterable[Sample], clock: Clock) -> None:
    with amqpstorm.UriConnection(url) as connection, connection.channel() as channel, clock:
        for sample in samples:
            properties = {
                "content_type": CONTENT_TYPE,
                "headers": sample.headers,
                "delivery_mode": 1,
                "message_id": sample.message_id,
                "timestamp": sample.time,
            }
            channel.basic.publish(sample.body, queue, properties=properties)
        channel.queue.declare(queue, passive=True)  # all before it has been sent


def consume(url: str, queue: str, count: int, clock: Clock) -> list[Sample]:
    received: list[Sample] = []

    def take(message: amqpstorm.Message) -> None:
        properties = message.properties
        received.append(Sample(message.body, properties["headers"], properties["message_id"]))
        message.ack()
        if len(received) == count:
            channel.stop_consuming()

    with amqpstorm.UriConnection(url) as connection, connection.channel() as channel:
        channel.basic.qos(PREFETCH)
        with clock:
            channel.basic.consume(take, queue)
            channel.start_consuming(auto_decode=False)
    return received
