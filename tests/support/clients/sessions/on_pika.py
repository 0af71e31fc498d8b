"""A session of pika."""

from __future__ import annotations

from typing import Any

import pika
import pika.exceptions

from . import KEY, SAMPLES, number_of


def session(url: str, name: str) -> dict[str, Any]:
    """All that a session does; what it has seen."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    seen: dict[str, Any] = {}
    channel.exchange_declare(name, "topic")
    seen["declared"] = channel.queue_declare(name).method.message_count
    channel.queue_bind(name, name, "orders.*.created")
    channel.confirm_delivery()
    seen["confirmed"] = 0
    for body, headers, message_id in SAMPLES:
        properties = pika.BasicProperties(headers=headers, message_id=message_id)
        channel.basic_publish(name, KEY, body, properties, mandatory=True)  # raises what is not confirmed
        seen["confirmed"] += 1
    try:
        channel.basic_publish(name, "nowhere", b"lost", mandatory=True)
    except pika.exceptions.UnroutableError as error:
        [returned] = error.messages
        method = returned.method
        seen["returned"] = [method.reply_code, method.reply_text, method.routing_key]
    seen["got"] = []
    for last in (False, True):
        method, properties, body = channel.basic_get(name)
        number = number_of(body, properties.headers, properties.message_id)
        seen["got"].append([number, method.redelivered])
        if last:
            channel.basic_ack(method.delivery_tag)
        else:
            channel.basic_nack(method.delivery_tag, requeue=True)
    seen["consumed"] = consumed(channel, name)
    seen["empty"] = channel.basic_get(name)[0] is None
    seen["deleted"] = channel.queue_delete(name).method.message_count
    channel.exchange_delete(name)
    connection.close()
    seen["closed"] = connection.is_closed
    return seen


def consumed(channel: Any, queue: str) -> list[list[Any]]:
    """Consume two at a time; the first delivery is given back."""
    found: list[list[Any]] = []
    tags: list[int] = []
    channel.basic_qos(prefetch_count=2)
    for method, properties, body in channel.consume(queue, inactivity_timeout=20):
        found.append([number_of(body, properties.headers, properties.message_id), method.redelivered])
        tags.append(method.delivery_tag)
        if len(tags) == 2:
            channel.basic_nack(tags[0], requeue=True)
        elif len(tags) > 2:
            channel.basic_ack(tags[-1])
        if len(tags) == 3:
            channel.basic_ack(tags[1])
        if len(found) == len(SAMPLES):
            break
    channel.cancel()
    return found
