"""A broker in memory: queues, four kinds of exchanges, consumers with prefetch, returns and confirms.

    python examples/broker.py --host 127.0.0.1 --port 5672

`amqpcodec.aio` speaks the protocol, `broker_queues.py` keeps the messages, `broker_channel.py` does what
methods ask for; here are connections. Nothing is on disk. There is one virtual host, and any user may enter.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from broker_channel import Channel
from broker_queues import Store

from amqpcodec import Limits, ReplyError
from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import AmqpStream, serve
from amqpcodec.connection import (
    ChannelClosed,
    ConnectionLimits,
    Event,
    MessageReceived,
    MethodReceived,
    ServerLogin,
    Settled,
    Violation,
)

BODY_BYTES = 128 << 20  # of a message
OPEN_BYTES = 256 << 20  # of the messages of a connection that are not complete


class Session:
    """One connection of a client."""

    def __init__(self, store: Store, stream: AmqpStream) -> None:
        self.store = store
        self.stream = stream
        self.connection = stream.connection
        self.channels: dict[int, Channel] = {}
        self.delivered = asyncio.Event()  # there is something to write, or to wait for

    async def run(self) -> None:
        """Answer the client until the connection is closed."""
        writer = asyncio.create_task(self._write())
        try:
            async for event in self.stream:
                self._handle(event)
                if not self.stream.writable:  # a client that does not read its answers has to wait for more
                    await self.stream.drain()
        except ConnectionResetError:
            pass
        finally:
            writer.cancel()
            for number in list(self.channels):
                self._forget(number)
            for queue in [queue for queue in self.store.queues.values() if queue.owner is self]:
                self.store.delete_queue(queue)

    async def _write(self) -> None:
        """Write what other connections have published for this one, and go on when the client has read it."""
        with suppress(ConnectionResetError):
            while await self.delivered.wait():
                self.delivered.clear()
                await self.stream.drain()
                for channel in self.channels.values():
                    for consumer in channel.consumers.values():
                        consumer.queue.dispatch()

    def _handle(self, event: Event) -> None:
        match event:
            case MethodReceived(number, amqp.Channel.Open()):
                self.channels[number] = Channel(self, number)
                self.connection.send(number, amqp.Channel.OpenOk())
            case MethodReceived(number, method) | MessageReceived(number, method) | Settled(number, method):
                try:
                    self.channels[number].handle(event)
                except ReplyError as error:
                    self._refuse(number, method, error)
            case ChannelClosed(number) | Violation(number):
                self._forget(number)

    def _refuse(self, number: int, method: Any, error: ReplyError) -> None:
        """Close the channel or the connection, whichever the error says."""
        text = f"{error.name.upper().replace('-', '_')} - {error}"[:120]
        close = self.connection.close
        if error.closes == "channel":
            close = partial(self.connection.close_channel, number)
            self._forget(number)
        close(error.code, text, method.spec.class_id, method.spec.method_id)

    def _forget(self, number: int) -> None:
        """A channel is closed: what it has not acknowledged goes back."""
        channel = self.channels.pop(number, None)
        if channel is not None:
            for tag in list(channel.consumers):
                channel.cancel(tag)
            channel.settle(list(channel.held), requeue=True)


async def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5672, help="0 for any that is free")
    arguments = parser.parse_args()
    store = Store()
    login = ServerLogin(lambda name, password: True)
    limits = {
        "limits": Limits(body_size=BODY_BYTES),
        "connection_limits": ConnectionLimits(open_bytes=OPEN_BYTES),
    }
    # Properties stay the octets that they are: nobody here asks what is in them.
    server = await serve(
        lambda stream: Session(store, stream).run(),
        arguments.host, arguments.port, login=login, tables="raw", properties="raw", **limits,
    )  # fmt: skip
    print("listening on {}:{}".format(*server.sockets[0].getsockname()), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
