"""A session of AMQPStorm."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import amqpstorm

from . import KEY, SAMPLES, number_of


def session(url: str, name: str) -> dict[str, Any]:
    """All that a session does; what it has seen."""
    place = urlsplit(url)
    connection = amqpstorm.Connection(place.hostname, "guest", "guest", port=place.port)
    channel = connection.channel(rpc_timeout=20)
    seen: dict[str, Any] = {}
    channel.exchange.declare(name, "topic")
    seen["declared"] = channel.queue.declare(name)["message_count"]
    channel.queue.bind(name, name, "orders.*.created")
    channel.confirm_deliveries()
    seen["confirmed"] = 0
    for body, headers, message_id in SAMPLES:
        properties = {"headers": headers, "message_id": message_id}
        seen["confirmed"] += channel.basic.publish(body, KEY, name, properties, mandatory=True)
    try:
        channel.basic.publish(b"lost", "nowhere", name, mandatory=True)
    except amqpstorm.AMQPMessageError as error:
        seen["returned"] = [
            error.error_code,
            "NO_ROUTE" if "NO_ROUTE" in str(error) else str(error),
            "nowhere",
        ]
    seen["got"] = []
    for last in (False, True):
        message = channel.basic.get(name, auto_decode=False)
        seen["got"].append(described(message))
        if last:
            message.ack()
        else:
            message.nack(requeue=True)
    seen["consumed"] = consumed(channel, name)
    seen["empty"] = not channel.basic.get(name)
    seen["deleted"] = channel.queue.delete(name)["message_count"]
    channel.exchange.delete(name)
    connection.close()
    seen["closed"] = connection.is_closed
    return seen


def consumed(channel: Any, queue: str) -> list[list[Any]]:
    """Consume two at a time; the first delivery is given back."""
    channel.basic.qos(2)
    tag = channel.basic.consume(queue=queue)
    found: list[Any] = []
    for message in channel.build_inbound_messages(auto_decode=False):
        found.append(message)
        if len(found) == 2:
            found[0].nack(requeue=True)
        elif len(found) > 2:
            message.ack()
        if len(found) == 3:
            found[1].ack()
        if len(found) == len(SAMPLES):
            break
    channel.basic.cancel(tag)
    return [described(message) for message in found]


def described(message: Any) -> list[Any]:
    """Which message it is, and whether it has come before."""
    properties = message.properties
    headers = {decoded(key): value for key, value in properties["headers"].items()}
    number = number_of(message.body, decoded(headers), decoded(properties["message_id"]))
    return [number, message.redelivered]


def decoded(value: Any) -> Any:
    """Text for the bytes that come where messages are not decoded."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [decoded(item) for item in value]
    return {decoded(key): decoded(item) for key, item in value.items()} if isinstance(value, dict) else value
