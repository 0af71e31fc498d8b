"""A session of kombu, on py-amqp."""

from __future__ import annotations

from typing import Any

import kombu

from . import KEY, SAMPLES, number_of


def session(url: str, name: str) -> dict[str, Any]:
    """All that a session does; what it has seen."""
    connection = kombu.Connection(url, transport_options={"confirm_publish": True})
    channel = connection.channel()
    seen: dict[str, Any] = {}
    exchange = kombu.Exchange(name, "topic", durable=False)(channel)
    exchange.declare()
    queue = kombu.Queue(name, exchange, "orders.*.created", durable=False)(channel)
    seen["declared"] = queue.queue_declare().message_count
    queue.queue_bind()
    returned: list[Any] = []
    producer = kombu.Producer(channel, exchange, serializer=None, on_return=lambda *seen: returned.append(seen))
    seen["confirmed"] = 0
    for body, headers, message_id in SAMPLES:
        producer.publish(
            body, KEY, headers=headers, message_id=message_id, mandatory=True,
            content_type="application/data", content_encoding="binary", timeout=20,
        )  # fmt: skip
        seen["confirmed"] += 1
    producer.publish(b"lost", "nowhere", mandatory=True, timeout=20)
    [(error, _, routing_key, _)] = returned
    seen["returned"] = [error.reply_code, error.reply_text, routing_key]
    seen["got"] = []
    for last in (False, True):
        message = queue.get()
        seen["got"].append(described(message))
        if last:
            message.ack()
        else:
            message.requeue()  # basic.reject: py-amqp has no basic.nack
    seen["consumed"] = consumed(connection, channel, queue)
    seen["empty"] = queue.get() is None
    seen["deleted"] = queue.delete()
    exchange.delete()
    connection.close()
    seen["closed"] = not connection.connected
    return seen


def consumed(connection: Any, channel: Any, queue: Any) -> list[list[Any]]:
    """Consume two at a time; the first delivery is given back."""
    messages: list[Any] = []
    found: list[list[Any]] = []
    consumer = kombu.Consumer(channel, [queue], on_message=messages.append, prefetch_count=2)
    with consumer:
        first = None
        while len(found) < len(SAMPLES):
            while not messages:
                connection.drain_events(timeout=20)
            message = messages.pop(0)
            found.append(described(message))
            if first is None:
                first = message
                continue
            if len(found) == 2:
                first.requeue()
            message.ack()
    return found


def described(message: Any) -> list[Any]:
    """Which message it is, and whether it has come before."""
    body = message.body.encode() if isinstance(message.body, str) else message.body  # an empty one is text
    number = number_of(body, message.headers, message.properties.get("message_id"))
    return [number, message.delivery_info["redelivered"]]
