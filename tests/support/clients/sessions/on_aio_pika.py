"""A session of aio-pika."""

from __future__ import annotations

import asyncio
from typing import Any

import aio_pika
from aio_pika.exceptions import PublishError

from . import KEY, SAMPLES, number_of


def session(url: str, name: str) -> dict[str, Any]:
    """All that a session does; what it has seen."""
    return asyncio.run(asyncio.wait_for(_session(url, name), 60))


async def _session(url: str, name: str) -> dict[str, Any]:
    connection = await aio_pika.connect(url)
    channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
    seen: dict[str, Any] = {}
    exchange = await channel.declare_exchange(name, aio_pika.ExchangeType.TOPIC)
    queue = await channel.declare_queue(name)
    seen["declared"] = queue.declaration_result.message_count
    await queue.bind(exchange, "orders.*.created")
    seen["confirmed"] = 0
    for body, headers, message_id in SAMPLES:
        message = aio_pika.Message(body, headers=headers, message_id=message_id)
        confirmed = await exchange.publish(message, KEY)
        seen["confirmed"] += type(confirmed).__name__ == "Ack"
    try:
        await exchange.publish(aio_pika.Message(b"lost"), "nowhere")
    except PublishError as error:
        returned = error.message.delivery
        seen["returned"] = [returned.reply_code, returned.reply_text, returned.routing_key]
    seen["got"] = []
    for last in (False, True):
        message = await queue.get()
        seen["got"].append(described(message))
        await (message.ack() if last else message.nack(requeue=True))
    seen["consumed"] = await consumed(channel, queue)
    seen["empty"] = await queue.get(fail=False) is None
    seen["deleted"] = (await queue.delete()).message_count
    await exchange.delete()
    await connection.close()
    seen["closed"] = connection.is_closed
    return seen


async def consumed(channel: Any, queue: Any) -> list[list[Any]]:
    """Consume two at a time; the first delivery is given back."""
    await channel.set_qos(prefetch_count=2)
    messages: asyncio.Queue[Any] = asyncio.Queue()
    tag = await queue.consume(messages.put)
    first, second = await messages.get(), await messages.get()
    await first.nack(requeue=True)
    found = [first, second, await messages.get()]
    for message in found[1:]:
        await message.ack()
    for _ in SAMPLES[3:]:
        found.append(await messages.get())
        await found[-1].ack()
    await queue.cancel(tag)
    return [described(message) for message in found]


def described(message: Any) -> list[Any]:
    """Which message it is, and whether it has come before."""
    return [number_of(message.body, message.headers, message.message_id), message.redelivered]
