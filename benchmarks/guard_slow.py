"""Work items of the guard that few frames are: strict rules, validation, subclasses, queues, full headers.

Each item compares its results with the expected ones once, before anything is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import corpus
from checks import drain, same_frames, same_octets
from corpus import CHANNEL
from peers.ours import Ours

Items = dict[str, Callable[[], None]]


def items(ours: Ours, count: int) -> Items:
    """Return each item's name, and a call that does `count` operations of it."""
    contents, properties = corpus.varied(256, count), corpus.all_properties(count)
    return {**_decoding(ours, contents, properties), **_encoding(ours, contents, properties)}


def _decoding(ours: Ours, contents: list[corpus.Content], properties: list[dict[str, Any]]) -> Items:
    count = len(contents)
    deliveries = corpus.delivery_stream(contents), list(corpus.delivery_frames(contents))
    expected = [("header", CHANNEL, 256, corpus.without_reserved(each)) for each in properties]
    headers = corpus.header_stream(properties), expected
    declares = corpus.declare_stream(count), corpus.declare_frames(count)

    def strictly(octets: bytes) -> Iterable[Any]:
        frames: Iterable[Any] = ours.amqp.FrameDecoder(frame_max=corpus.FRAME_MAX, strict=True).feed(octets)
        return frames

    def decoded(
        decode: Callable[[bytes], Iterable[Any]], octets: bytes, frames: list[corpus.FrameValues]
    ) -> Callable[[], None]:
        same_frames(ours, decode(octets), frames)
        return lambda: drain(decode(octets))

    return {
        "decode delivery 256 B varied, strict": decoded(strictly, *deliveries),
        "decode header 14 properties, strict": decoded(strictly, *headers),
        "decode queue.declare": decoded(ours.decode, *declares),
        "decode queue.declare, strict": decoded(strictly, *declares),
    }


def _encoding(ours: Ours, contents: list[corpus.Content], properties: list[dict[str, Any]]) -> Items:
    amqp, count = ours.amqp, len(contents)
    published = [ours.publish(content) for content in contents]
    declares = [corpus.declare_stream(1)] * count
    headers = [corpus.header_stream([each]) for each in properties]
    sets = [{**each, "timestamp": datetime.fromtimestamp(each["timestamp"], UTC)} for each in properties]
    own_publish = type("OwnPublish", (amqp.BasicPublish,), {})
    own_properties = type("OwnProperties", (amqp.BasicProperties,), {})

    def publish(method: Any, properties: Any, **options: bool) -> Callable[[corpus.Content], bytes]:
        def write(content: corpus.Content) -> bytes:
            octets: bytes = amqp.encode_message(
                CHANNEL,
                method(exchange=content.exchange, routing_key=content.routing_key),
                properties(
                    content_type=content.content_type,
                    delivery_mode=content.delivery_mode,
                    headers=content.headers,
                    timestamp=content.moment,
                    message_id=content.message_id,
                ),
                content.body,
                **options,
            )
            return octets

        return write

    def declare(values: dict[str, Any], **options: bool) -> bytes:
        octets: bytes = amqp.encode_method(CHANNEL, amqp.QueueDeclare(**values), **options)
        return octets

    def header(make: Any) -> Callable[[dict[str, Any]], bytes]:
        return lambda values: amqp.encode_header(CHANNEL, make(**values), 256)

    def encoded(
        write: Callable[[Any], bytes], given: Sequence[Any], expected: Sequence[bytes]
    ) -> Callable[[], None]:
        for each, octets in zip(given, expected, strict=True):
            same_octets(ours, write(each), octets)
        return lambda: drain(map(write, given))

    plain = amqp.BasicPublish, amqp.BasicProperties
    values = [corpus.DECLARE] * count
    return {
        "encode publish 256 B varied, validated": encoded(
            publish(*plain, validate=True), contents, published
        ),
        "encode publish 256 B varied, subclasses": encoded(
            publish(own_publish, own_properties), contents, published
        ),
        "encode queue.declare": encoded(declare, values, declares),
        "encode queue.declare, validated": encoded(
            lambda each: declare(each, validate=True), values, declares
        ),
        "encode header 14 properties": encoded(header(amqp.BasicProperties), sets, headers),
        "encode header 14 properties, subclass": encoded(header(own_properties), sets, headers),
    }
