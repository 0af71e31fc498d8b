"""A client that comes back: it publishes with confirms, consumes, and connects again when the broker is gone.

    python examples/client.py amqp://guest:guest@localhost:5672/ --queue hello --count 1000 --size 256

publishes so many messages to a queue, consumes them, and says how long that took. No confirmed message is
lost, since the queue is durable and messages are persistent. One may come twice, after a connection was lost.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from time import perf_counter
from typing import Any, NamedTuple

from amqpcodec import AmqpError, EncodeError, ReplyError
from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import AmqpStream, connect
from amqpcodec.connection import events
from amqpcodec.reply_errors import REPLY_ERRORS, AmqpConnectionForced, AmqpInternalError

PUBLISHING, CONSUMING = 1, 2  # the channels
BATCH_BYTES = 1 << 18  # to be written at once
PASSING = (OSError, AmqpConnectionForced, AmqpInternalError)  # worth another try


class Publish(NamedTuple):
    """A message on its way to the broker."""

    method: Any
    properties: Any
    body: bytes
    confirmed: asyncio.Future[None]

    def end(self, error: Exception | None) -> None:
        """The broker has it, or there is a reason why not."""
        if not self.confirmed.done():
            self.confirmed.set_exception(error) if error else self.confirmed.set_result(None)


class Delivery(NamedTuple):
    """A message that was consumed."""

    stream: AmqpStream
    method: Any
    properties: Any
    body: bytes


class Client:
    """Publishes and consumes, whatever happens to the connection.

    Args:
        url: where the broker is, as ``amqp://user:password@host:port/virtual-host``.
        queue: a durable queue, which is declared.
        window: how many messages may wait to be confirmed.
        prefetch: how many deliveries may wait to be acknowledged.
        options: as for `amqpcodec.aio.connect`.
    """

    def __init__(
        self, url: str, queue: str, *, window: int = 1000, prefetch: int = 500, **options: Any
    ) -> None:
        self._url, self._queue, self._prefetch = url, queue, prefetch
        self._window = asyncio.Semaphore(window)
        self._options = options
        self._stream: AmqpStream | None = None
        self._unsent: deque[Publish] = deque()
        self._unconfirmed: dict[int, Publish] = {}  # by sequence number
        self._deliveries: asyncio.Queue[Delivery | None] = asyncio.Queue()
        self._declared = self._consuming = False
        self._work = asyncio.Event()  # there is something to publish
        self.returned: list[events.MessageReceived] = []  # mandatory messages that no queue took
        self.connections = 0
        self._task = asyncio.create_task(self._run())

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    # -- what a program calls

    async def publish(
        self, body: bytes, properties: Any = None, *, exchange: str = "", routing_key: str | None = None
    ) -> asyncio.Future[None]:
        """Publish a message; to the client's queue if nothing else is said.

        Returns:
            A future that is done when the broker has confirmed the message. Only so many may wait.

        Raises:
            AmqpError: by the future: the broker does not take the message, or the connection.
        """
        await self._window.acquire()
        confirmed = asyncio.get_running_loop().create_future()
        confirmed.add_done_callback(lambda future: self._window.release())
        if self._task.done():
            self._task.result()
        key = self._queue if routing_key is None else routing_key
        method = amqp.Basic.Publish(exchange, key, mandatory=True)
        self._unsent.append(Publish(method, properties, body, confirmed))
        self._work.set()
        return confirmed

    async def deliveries(self) -> AsyncIterator[Delivery]:
        """The messages of the queue, each of which is to be acknowledged; AmqpError as by `publish`."""
        self._consuming = True
        self._consume()  # else once the queue is there
        while (delivery := await self._deliveries.get()) is not None:
            if delivery.stream is self._stream:  # else it comes again
                yield delivery
        self._task.result()

    def acknowledge(self, delivery: Delivery) -> None:
        """A message is dealt with. If its connection is gone, it comes again."""
        connection = delivery.stream.connection
        if delivery.stream is self._stream and connection.channel_state(CONSUMING) == "open":
            connection.send(CONSUMING, amqp.Basic.Ack(delivery.method.delivery_tag))

    # -- one connection after the other

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._serve(await self._connect())
                except PASSING as error:
                    logging.warning("connecting again: %r", error)
                    await asyncio.sleep(0.2)
        except AmqpError as error:
            for waiting in (*self._unsent, *self._unconfirmed.values()):
                waiting.end(error)
            self._deliveries.put_nowait(None)
            raise

    async def _connect(self) -> AmqpStream:
        return await connect(self._url, **self._options)

    async def _serve(self, stream: AmqpStream) -> None:
        """Publish and consume on a connection until it ends, by an exception."""
        self._stream = stream
        connection = stream.connection
        for channel in (PUBLISHING, CONSUMING):
            connection.send(channel, amqp.Channel.Open())
        connection.send(PUBLISHING, amqp.Queue.Declare(queue=self._queue, durable=True))
        connection.send(PUBLISHING, amqp.Confirm.Select())
        connection.send(CONSUMING, amqp.Basic.Qos(prefetch_count=self._prefetch))
        self.connections += 1
        writer = asyncio.create_task(self._write(stream))
        try:
            async with stream:
                async for event in stream:
                    self._handle(event, stream)
        finally:
            self._stream, self._declared = None, False
            writer.cancel()
            await asyncio.wait((writer,))
            self._unsent.extendleft(reversed(self._unconfirmed.values()))
            self._unconfirmed.clear()

    def _consume(self) -> None:
        if self._stream is not None and self._declared and self._consuming:
            self._stream.connection.send(CONSUMING, amqp.Basic.Consume(queue=self._queue, consumer_tag="c"))

    def _handle(self, event: events.Event, stream: AmqpStream) -> None:
        match event:
            case events.MessageReceived(_, amqp.Basic.Deliver() as method, properties, body):
                self._deliveries.put_nowait(Delivery(stream, method, properties, body))
            case events.MethodReceived(_, amqp.Queue.DeclareOk()):
                self._declared = True
                self._consume()
            case events.MessageReceived(_, amqp.Basic.Return()):
                self.returned.append(event)
            case events.Settled(_, method, tags):
                refused = None if isinstance(method, amqp.Basic.Ack) else AmqpError("the broker refuses it")
                for tag in tags:
                    self._unconfirmed.pop(tag).end(refused)
            case events.Unblocked():
                self._work.set()
            case events.ChannelClosed(_, _, code, text) | events.ConnectionClosed("peer", code, text):
                raise REPLY_ERRORS.get(code, ReplyError)(text)
            case events.ConnectionClosed(reply_text=text):
                raise ConnectionResetError(text)

    async def _write(self, stream: AmqpStream) -> None:
        """Send what is to be published, no faster than the broker reads it."""
        connection = stream.connection
        with suppress(ConnectionResetError):
            while True:
                self._work.clear()
                while self._unsent and not connection.blocked:
                    self._send(connection, self._unsent.popleft())
                    if connection.bytes_to_send > BATCH_BYTES:
                        await stream.drain()
                await stream.drain()
                await self._work.wait()

    def _send(self, connection: Any, message: Publish) -> None:
        try:
            number = connection.send_message(PUBLISHING, message.method, message.properties, message.body)
        except EncodeError as error:
            message.end(error)
        else:
            self._unconfirmed[number] = message


async def main() -> None:
    """Publish, and consume."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--queue", default="hello")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--size", type=int, default=256, help="bytes of a body")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s")
    body, properties = bytes(arguments.size), amqp.BasicProperties(delivery_mode=2, headers={"example": True})
    async with Client(arguments.url, arguments.queue) as client:
        begin = perf_counter()
        await asyncio.gather(*[await client.publish(body, properties) for _ in range(arguments.count)])
        middle, left = perf_counter(), arguments.count
        async for delivery in client.deliveries():
            client.acknowledge(delivery)
            left -= 1
            if left == 0:
                break
        print(f"published and confirmed {arguments.count / (middle - begin):.0f} messages a second")
        end = perf_counter()
        print(f"consumed and acknowledged {arguments.count / (end - middle):.0f} messages a second")


if __name__ == "__main__":
    asyncio.run(main())
