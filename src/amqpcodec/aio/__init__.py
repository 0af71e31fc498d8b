"""AMQP on asyncio: a client that comes back, and streams of events for clients and servers.

    async with Client("amqp://guest:guest@localhost/", on_connect=declare) as client:
        channel = await client.channel()
        await channel.publish(b"...", routing_key="orders")

`Client` has calls, confirmed publishes and consumers, and connects again. Below it, `connect` and `serve`
make an `AmqpStream`, which has the events of one connection: an asynchronous iterator, unless an
`EventSink` takes them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .channel import Channel
    from .client import Client
    from .connecting import connect, serve
    from .counters import Backoff, ClientStats
    from .credentials import Credentials
    from .deliveries import Consumer, Delivery
    from .failures import (
        AlreadySettledError,
        ConsumerCancelledError,
        LateError,
        NackedError,
        ReturnedError,
        UncertainReturnError,
    )
    from .stream import AmqpStream, EventSink

# Each is imported when it is used: who needs a stream alone does not wait for the client.
_HOMES = {
    "AlreadySettledError": "failures",
    "AmqpStream": "stream",
    "Backoff": "counters",
    "Channel": "channel",
    "Client": "client",
    "ClientStats": "counters",
    "Consumer": "deliveries",
    "ConsumerCancelledError": "failures",
    "Credentials": "credentials",
    "Delivery": "deliveries",
    "EventSink": "stream",
    "LateError": "failures",
    "NackedError": "failures",
    "ReturnedError": "failures",
    "UncertainReturnError": "failures",
    "connect": "connecting",
    "serve": "connecting",
}

__all__ = [
    "AlreadySettledError",
    "AmqpStream",
    "Backoff",
    "Channel",
    "Client",
    "ClientStats",
    "Consumer",
    "ConsumerCancelledError",
    "Credentials",
    "Delivery",
    "EventSink",
    "LateError",
    "NackedError",
    "ReturnedError",
    "UncertainReturnError",
    "connect",
    "serve",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
