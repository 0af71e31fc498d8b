"""Consumers on other libraries, which take messages out of a queue until the one that is the last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import aio_pika
import kombu
import pika

from ..poison import GOOD, POISON, entry, sized

Found: TypeAlias = "list[tuple[bytes, Any]]"
"""Bodies with their headers; last the exception with which it ended, as a text, if it did."""

PEERS = {"aio-pika": "pamqp", "pika": "pika", "kombu": "amqp"}
"""The library that each client is built on."""


# Those of `POISON`, and two that some libraries alone cannot read.
TABLES = {name: poison.entries for name, poison in POISON.items()} | {
    "a time beyond all calendars": GOOD + entry(b"bad", b"T" + b"\x7f" * 8),
    "a text that is none": GOOD + entry(b"bad", b"S" + sized(b"\xff")),
}

READ_ANYHOW = {
    "aio-pika": {"a text that is too long", "a key that comes twice", "a text that is none"},
    "pika": {"a key that is no text", "a key that comes twice", "a text that is none"},
    "kombu": {"a key that is no text", "a key that comes twice", "a text that is none"},
}
"""Tables that a library reads by itself, rightly or not: those stay as they are."""


def fill(url: str, *bodies: str) -> None:
    """Put messages into the queue, by a key of their body each."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        for body in bodies:
            channel.queue_bind("q", "amq.direct", body)
            channel.basic_publish("amq.direct", body, body.encode())


def read_whole(found: Found) -> bool:
    """Return whether both messages have come, and nothing else has happened."""
    return [body for body, _ in found] == [b"poison", b"last"]


def by_aio_pika(url: str, seconds: float) -> Found:
    """Consume until the message that is called the last."""
    taken: Found = []

    async def consume() -> None:
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            queue = await channel.get_queue("q", ensure=False)
            async with queue.iterator() as messages:
                async for message in messages:
                    taken.append((message.body, message.headers))
                    await message.ack()
                    if message.body == b"last":
                        return

    async def limited() -> None:
        async with asyncio.timeout(seconds):
            await consume()

    try:
        asyncio.run(limited())
    except Exception as error:
        taken.append((b"ended", repr(error)))
    return taken


def by_pika(url: str, seconds: float) -> Found:
    taken: Found = []
    try:
        connection = pika.BlockingConnection(pika.URLParameters(url))
        channel = connection.channel()
        for method, found, body in channel.consume("q", inactivity_timeout=seconds):
            if method is None:
                break
            taken.append((body, found.headers))
            channel.basic_ack(method.delivery_tag)
            if body == b"last":
                break
        connection.close()
    except Exception as error:
        taken.append((b"ended", repr(error)))
    return taken


def by_kombu(url: str, seconds: float, **options: Any) -> Found:
    taken: Found = []

    def on_message(message: Any) -> None:
        taken.append((bytes(message.body), message.headers))
        message.ack()

    try:
        queues = [kombu.Queue("q", no_declare=True)]
        with (
            kombu.Connection(url, **options) as connection,
            connection.Consumer(queues, on_message=on_message),
        ):
            while not taken or taken[-1][0] != b"last":
                connection.drain_events(timeout=seconds)
    except Exception as error:
        taken.append((b"ended", repr(error)))
    return taken


CONSUMERS: dict[str, Callable[..., Found]] = {
    "aio-pika": by_aio_pika,
    "pika": by_pika,
    "kombu": by_kombu,
}
