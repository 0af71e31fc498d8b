"""rabbitpy."""

from __future__ import annotations

from collections.abc import Iterable

import rabbitpy

from .samples import CONTENT_TYPE, PREFETCH, Clock, Sample


def publish(url: str, queue: str, samples: Iterable[Sample], clock: Clock) -> None:
    with rabbitpy.Connection(url) as connection, connection.channel() as channel, clock:
        for sample in samples:
            properties = {
                "content_type": CONTENT_TYPE,
                "headers": sample.headers,
                "delivery_mode": 1,
                "message_id": sample.message_id,
                "timestamp": sample.time,
            }
            rabbitpy.Message(channel, sample.body, properties).publish("", queue)
        rabbitpy.Queue(channel, queue).declare(passive=True)  # all before it has been sent


def consume(url: str, queue: str, count: int, clock: Clock) -> list[Sample]:
    received: list[Sample] = []
    with rabbitpy.Connection(url) as connection, connection.channel() as channel:
        source = rabbitpy.Queue(channel, queue)
        with clock:
            for message in source.consume(prefetch=PREFETCH):
                properties = message.properties
                received.append(Sample(message.body, properties["headers"], properties["message_id"]))
                message.ack()
                if len(received) == count:
                    break
    return received
