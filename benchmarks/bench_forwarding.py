"""Publishes in, deliveries out, with the same properties and body: what a broker does with each message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import corpus
import pytest

COUNT = 128
WAYS: dict[str, dict[str, str]] = {
    "dicts": {},
    "raw tables": {"tables": "raw"},
    "raw properties": {"properties": "raw"},
}


def publishes(ours: Any, headers: int) -> bytes:
    """A stream of messages with so many headers each, half of them text."""
    amqp = ours.amqp
    octets = []
    for content in corpus.varied(256, COUNT):
        table = {f"x-header-{at}": f"value {content.delivery_tag}" if at % 2 else at for at in range(headers)}
        properties = amqp.BasicProperties(
            content_type=content.content_type,
            delivery_mode=content.delivery_mode,
            headers=table,
            timestamp=content.moment,
            message_id=content.message_id,
        )
        method = amqp.BasicPublish(exchange=content.exchange, routing_key=content.routing_key)
        octets.append(amqp.encode_message(corpus.CHANNEL, method, properties, content.body))
    return b"".join(octets)


def forwarding(ours: Any, stream: bytes, way: str) -> Callable[[], list[bytes]]:
    """A call that makes deliveries of a stream of publishes."""
    amqp = ours.amqp
    options = WAYS[way]

    def forward() -> list[bytes]:
        encode, deliver = amqp.encode_message, amqp.BasicDeliver
        deliveries = []
        for tag, message in enumerate(amqp.MessageDecoder(**options).feed(stream)):
            method = deliver("ctag1", tag, False, message.method.exchange, message.method.routing_key)
            deliveries.append(encode(corpus.CHANNEL, method, message.properties, message.body))
        return deliveries

    return forward


@pytest.mark.parametrize("headers", [3, 10])
@pytest.mark.parametrize("way", WAYS)
def test_forward(ours: Any, timed: Any, way: str, headers: int) -> None:
    """Each way makes the same octets, and they are read back as what was published."""
    stream = publishes(ours, headers)
    forward = forwarding(ours, stream, way)
    deliveries = forward()
    assert deliveries == forwarding(ours, stream, "dicts")()
    for octets, published in zip(deliveries, ours.messages(stream), strict=True):
        (delivered,) = ours.messages(octets)
        assert (delivered.properties, delivered.body) == (published.properties, published.body)
        assert len(delivered.properties.headers) == headers
    timed(ours.name, f"forward, {headers} headers, {way}", COUNT, forward)
