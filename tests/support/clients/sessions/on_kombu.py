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
    producer = kombu.Producer(
        channel, exchange, serializer=None, on_return=lambda *seen: returned.append(seen)
    )
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
    found: list[Any] = []

    def take(message: Any) -> None:
        found.append(message)
        if len(found) == 2:
            found[0].requeue()
        elif len(found) > 2:
            message.ack()
        if len(found) == 3:
            found[1].ack()

    with kombu.Consumer(channel, [queue], on_message=take, prefetch_count=2):
        while len(found) < len(SAMPLES):
            connection.drain_events(timeout=20)
    return [described(message) for message in found]


def described(message: Any) -> list[Any]:
    """Which message it is, and whether it has come before."""
    body = message.body.encode() if isinstance(message.body, str) else message.body  # an empty one is text
    number = number_of(body, message.headers, message.properties.get("message_id"))
    return [number, message.delivery_info["redelivered"]]
