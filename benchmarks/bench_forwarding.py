"""Publishes in, deliveries out, with the same properties and body: what a broker does with each message.

As a broker meets them: no two messages are equal, and they come in chunks of 64 KiB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import corpus
import pytest

COUNT = 2000
CHUNK = 65536
WAYS: dict[str, dict[str, str]] = {
    "dicts": {},
    "raw tables": {"tables": "raw"},
    "raw properties": {"properties": "raw"},
}

Write = Callable[[list[bytes]], object]


def publishes(ours: Any, headers: int, count: int = COUNT) -> list[bytes]:
    """Chunks of a stream of messages with so many headers each, half of them text."""
    amqp = ours.amqp
    octets = []
    for content in corpus.varied(256, count):
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
    return corpus.chunks(b"".join(octets), CHUNK)


def forwarding(ours: Any, chunks: list[bytes], way: str, write: Write) -> Callable[[], None]:
    """A call that makes deliveries of publishes, and passes those of each chunk on."""
    amqp = ours.amqp
    options = WAYS[way]

    def forward() -> None:
        encode, deliver = amqp.encode_message, amqp.BasicDeliver
        decoder = amqp.MessageDecoder(**options)
        tag = 0
        for chunk in chunks:
            deliveries = []
            for message in decoder.feed(chunk):
                tag += 1
                published = message.method
                method = deliver("ctag1", tag, False, published.exchange, published.routing_key)
                deliveries.append(encode(corpus.CHANNEL, method, message.properties, message.body))
            write(deliveries)

    return forward


@pytest.mark.parametrize("headers", [3, 10])
@pytest.mark.parametrize("way", WAYS)
def test_forward(ours: Any, timed: Any, way: str, headers: int) -> None:
    """Each way makes the same octets, and they are read back as what was published."""
    chunks = publishes(ours, headers)
    deliveries: list[bytes] = []
    by_dicts: list[bytes] = []
    forwarding(ours, chunks, way, deliveries.extend)()
    forwarding(ours, chunks, "dicts", by_dicts.extend)()
    assert deliveries == by_dicts
    for octets, published in zip(deliveries, ours.messages(b"".join(chunks)), strict=True):
        (delivered,) = ours.messages(octets)
        assert (delivered.properties, delivered.body) == (published.properties, published.body)
        assert len(delivered.properties.headers) == headers
    timed(ours.name, f"forward, {headers} headers, {way}", COUNT, forwarding(ours, chunks, way, len))
