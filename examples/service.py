"""Answers requests (RPC) until SIGTERM or Ctrl-C, and then ends without losing any.

    python examples/service.py amqp://guest:guest@localhost:5672/ --queue calls --handlers 10

Change first: what `work` does, and which queue `serve` declares. A request says by `reply_to` where its reply
goes to: a queue, or direct reply-to. At the signal no more requests are taken. Those that are being worked on
are answered and acknowledged, and others go back to the queue.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import Channel, Client, Consumer

log = logging.getLogger("service")


async def work(request: bytes) -> bytes:
    """Return the reply to a request."""
    return request.upper()


async def handle(channel: Channel, requests: Consumer) -> None:
    """Answer requests one after another; the loop ends once the consumer is left."""
    async for request in requests:
        asked = request.properties
        try:
            reply = await work(request.body)
        except Exception:
            log.exception("a request cannot be answered")
            request.reject()
            continue
        if asked.reply_to is not None:
            properties = amqp.BasicProperties(correlation_id=asked.correlation_id)
            # Who has asked may have gone: then nobody wants the reply.
            await channel.publish(reply, routing_key=asked.reply_to, properties=properties, mandatory=False)
        request.ack()


async def serve(url: str, queue: str, handlers: int, stop: asyncio.Event) -> int:
    """Answer requests, several at once, until the event is set; return how many."""

    async def declare(client: Client) -> None:
        await client.call(amqp.Queue.Declare(queue=queue, durable=True))

    async with (
        Client(url, on_connect=declare) as client,
        await client.channel(prefetch=handlers) as channel,  # closed once the handlers have ended,
        asyncio.TaskGroup() as tasks,
        channel.consume(queue) as requests,  # which they do once this is left
    ):
        for _ in range(handlers):
            tasks.create_task(handle(channel, requests))
        await stop.wait()
    return client.stats().acknowledged


async def main() -> None:
    """Serve until a signal says to stop."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--queue", default="calls")
    parser.add_argument("--handlers", type=int, default=10, help="requests that are worked on at once")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
    print(await serve(arguments.url, arguments.queue, arguments.handlers, stop), "requests answered")


if __name__ == "__main__":
    asyncio.run(main())
