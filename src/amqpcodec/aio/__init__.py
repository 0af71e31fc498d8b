"""`amqpcodec.connection` on asyncio: a stream of events for each connection, for clients and servers.

    async with await connect("amqp://guest:guest@localhost/") as stream:
        channel = stream.connection.open_channel()
        async for event in stream:
            ...

What is sent through `AmqpStream.connection` is written soon. `drain` waits for a peer that reads slowly.
"""

from __future__ import annotations

from .connecting import connect, serve
from .stream import AmqpStream, EventSink

__all__ = ["AmqpStream", "EventSink", "connect", "serve"]
