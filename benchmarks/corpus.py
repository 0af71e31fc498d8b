"""What is decoded and encoded: the fixed delivery, and varied ones from a seeded generator.

Everything here is the same in every run and for every library. Octets come from amqpcodec's pure build;
each library's reading of them is compared with the values below before anything is timed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from amqpcodec._backend import load

SEED = 20240501
FRAME_MAX = 131072
CHANNEL = 1
SIZES = (64, 256, 4096, 131072)

_wire = load("amqpcodec._generated.rabbitmq", "py")
_EPOCH = 1714521600  # seconds; the first of May 2024
_EXCHANGES = ("orders", "billing.events", "audit")
_CONTENT_TYPES = ("application/json", "text/plain", "application/octet-stream")
_REGIONS = ("eu-west", "eu-north", "us-east", "ap-south")
_TRACED_BODY = 278
_HEADER_KEYS = ("x-retries", "x-source", "x-trace", "x-tenant", "x-shard", "x-schema")


@dataclass(frozen=True, slots=True)
class Content:
    """The values of one message, delivered or published; `seconds` and `moment` are the same time."""

    consumer_tag: str
    delivery_tag: int
    exchange: str
    routing_key: str
    content_type: str
    delivery_mode: int
    headers: dict[str, Any]
    seconds: int
    moment: datetime = field(repr=False)
    message_id: str
    body: bytes = field(repr=False)
    correlation_id: str | None = None


# A frame as Python values, the form in which the libraries' results are compared:
# ("method", channel, name, arguments), ("header", channel, body size, properties), ("body", channel, octets)
FrameValues = tuple[Any, ...]


def fixed(size: int, count: int) -> list[Content]:
    """One delivery `count` times over: what the project's first figures were measured with."""
    content = Content(
        consumer_tag="ctag1.5f2f9a", delivery_tag=7, exchange="orders", routing_key="orders.eu.created",
        content_type="application/json", delivery_mode=2,
        headers={"x-retries": 3, "x-source": "billing", "x-trace": "4bf92f3577b34da6"},
        seconds=_EPOCH, moment=datetime.fromtimestamp(_EPOCH, UTC),
        message_id="3f1c8a52-9d0b-4c55-8f43-0d1f6e2b7a90", body=bytes(size),
    )  # fmt: skip
    return [content] * count


def numbered(size: int, count: int) -> list[Content]:
    """The fixed delivery under `count` delivery tags."""
    content = fixed(size, 1)[0]
    return [replace(content, delivery_tag=tag) for tag in range(1, count + 1)]


def varied(size: int, count: int) -> list[Content]:
    """Deliveries whose tags, keys, header values, times and ids all differ."""
    source = random.Random(SEED + size)
    return [_varied_content(source, size, tag) for tag in range(1, count + 1)]


def of_one_publisher(size: int, count: int) -> list[Content]:
    """Varied deliveries that have one exchange, content type and delivery mode."""
    first, *others = varied(size, count)
    same = {name: getattr(first, name) for name in ("exchange", "content_type", "delivery_mode")}
    return [first, *(replace(content, **same) for content in others)]


def traced(count: int) -> list[Content]:
    """Deliveries of 602 octets each whose tags, keys, ids, headers, times and bodies all differ."""
    source = random.Random(SEED)
    return [_traced_content(source, tag) for tag in range(1, count + 1)]


def _traced_content(source: random.Random, tag: int) -> Content:
    seconds = _EPOCH + source.randrange(30_000_000)
    headers = {
        "traceparent": f"00-{source.getrandbits(128):032x}-{source.getrandbits(64):016x}-01",
        "attempt": source.randrange(1, 100),
        "retry": source.random() < 0.5,
        "tenant": f"tenant-{source.randrange(10_000):04}",
        "at": seconds * 1000 + source.randrange(1000),
    }
    return Content(
        consumer_tag="ctag1.5f2f9a",
        delivery_tag=tag,
        exchange="billing.events",
        routing_key=f"orders.{source.randrange(100_000):05}.created",
        content_type="application/json",
        delivery_mode=2,
        headers=headers,
        seconds=seconds,
        moment=datetime.fromtimestamp(seconds, UTC),
        message_id=f"{source.getrandbits(128):032x}",
        body=source.randbytes(_TRACED_BODY),
        correlation_id=f"{source.getrandbits(128):032x}",
    )


def renumbered(count: int) -> list[Content]:
    """Deliveries as `traced`, of which only the tag differs."""
    first = traced(1)[0]
    return [replace(first, delivery_tag=tag) for tag in range(1, count + 1)]


def _varied_content(source: random.Random, size: int, tag: int) -> Content:
    region = source.choice(_REGIONS)
    seconds = _EPOCH + source.randrange(30_000_000)
    return Content(
        consumer_tag=f"ctag{source.randrange(1, 5)}.5f2f9a",
        delivery_tag=tag,
        exchange=source.choice(_EXCHANGES),
        routing_key=f"orders.{region}.{source.randrange(100_000)}.created",
        content_type=source.choice(_CONTENT_TYPES),
        delivery_mode=source.choice((1, 2)),
        headers=_varied_headers(source),
        seconds=seconds,
        moment=datetime.fromtimestamp(seconds, UTC),
        message_id=f"{source.getrandbits(128):032x}",
        body=source.randbytes(size),
    )


def _varied_headers(source: random.Random) -> dict[str, Any]:
    first, second, third = source.sample(_HEADER_KEYS, 3)
    return {
        first: source.randrange(1_000_000),
        second: f"service-{source.randrange(40)}",
        third: f"{source.getrandbits(64):016x}",
    }


def delivery_stream(contents: Iterable[Content]) -> bytes:
    """The octets of the contents as basic.deliver with their headers and bodies."""
    return b"".join(_delivery(content) for content in contents)


def _delivery(content: Content) -> bytes:
    method = _wire.BasicDeliver(
        content.consumer_tag, content.delivery_tag, False, content.exchange, content.routing_key
    )
    properties = _wire.BasicProperties(
        content_type=content.content_type,
        delivery_mode=content.delivery_mode,
        headers=content.headers,
        timestamp=content.moment,
        message_id=content.message_id,
        correlation_id=content.correlation_id,
    )
    return bytes(_wire.encode_message(CHANNEL, method, properties, content.body, frame_max=FRAME_MAX))


def delivery_frames(contents: Iterable[Content]) -> Iterator[FrameValues]:
    """The frames of `delivery_stream`, as Python values."""
    for content in contents:
        arguments = (
            content.consumer_tag, content.delivery_tag, False, content.exchange, content.routing_key,
        )  # fmt: skip
        yield ("method", CHANNEL, "basic.deliver", arguments)
        yield ("header", CHANNEL, len(content.body), property_values(content))
        for at in range(0, len(content.body), FRAME_MAX - 8):
            yield ("body", CHANNEL, content.body[at : at + FRAME_MAX - 8])


def property_values(content: Content) -> dict[str, Any]:
    """The properties of a content by their names in the specification."""
    values = {
        "content_type": content.content_type,
        "delivery_mode": content.delivery_mode,
        "headers": content.headers,
        "timestamp": content.seconds,
        "message_id": content.message_id,
    }
    return values if content.correlation_id is None else values | {"correlation_id": content.correlation_id}


def all_properties(count: int) -> list[dict[str, Any]]:
    """Sets of all 14 properties of class basic."""
    source = random.Random(SEED)
    return [_property_set(content) for content in (_varied_content(source, 0, tag) for tag in range(count))]


def _property_set(content: Content) -> dict[str, Any]:
    return property_values(content) | {
        "content_encoding": "gzip",
        "priority": content.delivery_tag % 10,
        "correlation_id": f"correlation-{content.delivery_tag}",
        "reply_to": "amq.gen-reply",
        "expiration": "60000",
        "type": "order.created",
        "user_id": "guest",
        "app_id": "shop",
        "reserved": "",
    }


def without_reserved(values: dict[str, Any]) -> dict[str, Any]:
    """Properties without the reserved one, which pamqp reads always and writes never."""
    return {name: value for name, value in values.items() if name != "reserved"}


def header_stream(sets: Sequence[dict[str, Any]]) -> bytes:
    """Content headers alone, each announcing a body of 256 octets that does not follow."""
    frames = []
    for values in sets:
        moment = datetime.fromtimestamp(values["timestamp"], UTC)
        properties = _wire.BasicProperties(**{**values, "timestamp": moment})
        frames.append(_wire.encode_header(CHANNEL, properties, 256))
    return b"".join(frames)


def acks(count: int) -> list[FrameValues]:
    """basic.ack frames with rising tags, as Python values."""
    return [("method", CHANNEL, "basic.ack", (tag, tag % 8 == 0)) for tag in range(1, count + 1)]


def nacks(count: int) -> list[FrameValues]:
    """basic.nack frames with rising tags, as Python values."""
    return [
        ("method", CHANNEL, "basic.nack", (tag, tag % 8 == 0, tag % 3 == 0)) for tag in range(1, count + 1)
    ]


def small_methods(count: int) -> list[FrameValues]:
    """The short answers a server sends while a client sets up, over and over."""
    source = random.Random(SEED)
    frames: list[FrameValues] = []
    while len(frames) < count:
        queue = f"queue-{source.randrange(1000)}"
        frames += [
            ("method", CHANNEL, "basic.qos-ok", ()),
            ("method", CHANNEL, "queue.declare-ok", (queue, source.randrange(5000), source.randrange(9))),
            ("method", CHANNEL, "queue.bind-ok", ()),
            ("method", CHANNEL, "basic.consume-ok", (f"ctag{source.randrange(9)}.5f2f9a",)),
            ("method", CHANNEL, "channel.flow", (True,)),
        ]
    return frames[:count]


def method_stream(frames: Iterable[FrameValues]) -> bytes:
    """The octets of method frames given as Python values."""
    by_name = {method.spec.name: method for method in _wire.METHODS.values()}
    return b"".join(
        _wire.encode_method(channel, by_name[name](*values)) for _, channel, name, values in frames
    )


SERVER_PROPERTIES: dict[str, Any] = {
    "capabilities": {
        "publisher_confirms": True,
        "exchange_exchange_bindings": True,
        "basic.nack": True,
        "consumer_cancel_notify": True,
        "connection.blocked": True,
        "consumer_priorities": True,
        "authentication_failure_close": True,
        "per_consumer_qos": True,
        "direct_reply_to": True,
    },
    "cluster_name": "rabbit@bench",
    "copyright": "a line of some length about who wrote the server and when",
    "information": "where to read on about its licence",
    "platform": "Erlang/OTP 26.2.5",
    "product": "RabbitMQ",
    "version": "3.13.2",
}
MECHANISMS = b"AMQPLAIN PLAIN"
LOCALES = b"en_US"


def start_stream(count: int) -> bytes:
    """connection.start as a broker sends it, `count` times."""
    method = _wire.ConnectionStart(0, 9, SERVER_PROPERTIES, MECHANISMS, LOCALES)
    return bytes(_wire.encode_method(0, method)) * count


def start_frames(count: int) -> list[FrameValues]:
    """The frames of `start_stream`, as Python values."""
    return [("method", 0, "connection.start", (0, 9, SERVER_PROPERTIES, MECHANISMS, LOCALES))] * count


DECLARE: dict[str, Any] = {"queue": "orders.eu", "durable": True, "arguments": {"x-queue-type": "quorum"}}


def declare_stream(count: int) -> bytes:
    """queue.declare of a quorum queue, `count` times."""
    return bytes(_wire.encode_method(CHANNEL, _wire.QueueDeclare(**DECLARE))) * count


def declare_frames(count: int) -> list[FrameValues]:
    """The frames of `declare_stream`, as Python values."""
    values = (0, DECLARE["queue"], False, True, False, False, False, DECLARE["arguments"])
    return [("method", CHANNEL, "queue.declare", values)] * count


def tables() -> dict[str, dict[str, Any]]:
    """Field tables by the name of their work item; only kinds of values that every library can write."""
    mixed = {
        "x-message-ttl": 60000,
        "x-queue-mode": "lazy",
        "x-dead-letter-exchange": "dead.letters",
        "x-delta": -5,
        "x-offset": 1 << 40,
        "x-single-active-consumer": True,
        "x-since": datetime.fromtimestamp(_EPOCH, UTC),
        "x-none": None,
        "x-death": {"count": 2, "reason": "rejected"},
        "x-routing-keys": ["orders.eu", "orders.us", 7],
    }
    nested = {"a": {"b": {"c": "deep", "count": 3}, "name": "middle"}, "name": "outer"}
    large = {f"key-{number:03}": number if number % 2 else f"value {number}" for number in range(500)}
    return {
        "small": {"x-retries": 3, "x-source": "billing", "x-trace": "4bf92f3577b34da6"},
        "10 mixed": mixed,
        "nested three deep": nested,
        "500 entries": large,
    }


def varied_tables(count: int) -> list[dict[str, Any]]:
    """The ten mixed entries, no table like another."""
    source = random.Random(SEED)
    mixed = tables()["10 mixed"]
    return [
        mixed
        | {
            "x-queue-mode": f"{source.getrandbits(64):016x}",
            "x-delta": source.randrange(1_000_000),
            "x-since": datetime.fromtimestamp(_EPOCH + source.randrange(30_000_000), UTC),
            "x-death": {"count": source.randrange(100), "reason": source.choice(("rejected", "expired"))},
        }
        for _ in range(count)
    ]


def encoded_table(table: dict[str, Any]) -> bytes:
    """A table's octets, its length in front."""
    return bytes(_wire.encode_table(table))


def chunks(data: bytes, size: int) -> list[bytes]:
    """The stream cut into chunks of `size` octets, the last one shorter."""
    return [data[at : at + size] for at in range(0, len(data), size)]
