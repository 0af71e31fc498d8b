"""AMQP on asyncio: a client that comes back, and streams of events for clients and servers.

    async with Client("amqp://guest:guest@localhost/", on_connect=declare) as client:
        channel = await client.channel()
        await channel.publish(b"...", routing_key="orders")

`Client` has calls, confirmed publishes and consumers, and connects again. Below it, `connect` and `serve`
make an `AmqpStream`, which has the events of one connection: an asynchronous iterator, unless an
`EventSink` takes them.
"""

from __future__ import annotations

from .channel import Channel
from .client import Client
from .connecting import connect, serve
from .counters import Backoff, ClientStats
from .deliveries import Consumer, Delivery
from .failures import AlreadySettledError, ConsumerCancelledError, NackedError, ReturnedError
from .stream import AmqpStream, EventSink

__all__ = [
    "AlreadySettledError",
    "AmqpStream",
    "Backoff",
    "Channel",
    "Client",
    "ClientStats",
    "Consumer",
    "ConsumerCancelledError",
    "Delivery",
    "EventSink",
    "NackedError",
    "ReturnedError",
    "connect",
    "serve",
]
