"""pika's SelectConnection: callbacks that publish as confirms make room, and one that consumes."""

from __future__ import annotations

from itertools import islice, takewhile
from typing import Any

import pika
from support.clients.on_pika_select import _run as run

from . import CONTENT_TYPE, PREFETCH, TRANSIENT, WINDOW, Clock, expected, messages


def publish(url: str, queue: str, count: int, clock: Clock) -> None:
    source = messages(count)
    numbers = iter(range(1, count + 1))
    outstanding: dict[int, None] = {}

    def begin(channel: Any) -> None:
        channel.confirm_delivery(
            lambda frame: settled(channel, frame.method), callback=lambda _: start(channel)
        )

    def start(channel: Any) -> None:
        clock.__enter__()
        fill(channel)

    def fill(channel: Any) -> None:
        for body, headers, message_id, seconds in islice(source, WINDOW - len(outstanding)):
            properties = pika.BasicProperties(
                content_type=CONTENT_TYPE,
                headers=headers,
                delivery_mode=TRANSIENT,
                message_id=message_id,
                timestamp=seconds,
            )
            channel.basic_publish("", queue, body, properties, mandatory=True)
            outstanding[next(numbers)] = None

    def settled(channel: Any, method: Any) -> None:
        if not isinstance(method, pika.spec.Basic.Ack):
            raise AssertionError(f"not confirmed: {method}")
        tag = method.delivery_tag
        for number in list(takewhile(tag.__ge__, outstanding)) if method.multiple else (tag,):
            del outstanding[number]
        fill(channel)
        if not outstanding:
            clock.__exit__(None, None, None)
            channel.connection.close()

    run(url, begin)


def consume(url: str, queue: str, count: int, clock: Clock) -> None:
    wanted = expected(count)
    left = count

    def begin(channel: Any) -> None:
        channel.basic_qos(prefetch_count=PREFETCH)
        clock.__enter__()
        channel.basic_consume(queue, take)

    def take(channel: Any, method: Any, found: Any, body: bytes) -> None:
        nonlocal left
        if (body, found.headers, found.message_id) != next(wanted):
            raise AssertionError(f"not what was published: {found!r:.500}")
        channel.basic_ack(method.delivery_tag)
        left -= 1
        if not left:
            clock.__exit__(None, None, None)
            channel.connection.close()

    run(url, begin)
