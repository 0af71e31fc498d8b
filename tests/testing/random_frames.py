"""Compares the broker for tests with a RabbitMQ by random frames, and prints where they differ.

.venv/bin/python tests/testing/random_frames.py amqp://guest:guest@127.0.0.1:5672/ 3.10 [FIRST [COUNT]]

Frames are sent one by one, and in an order that no client of this package would allow. Each connection has a
queue of its own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from difflib import ndiff
from random import Random
from struct import pack
from typing import Any
from urllib.parse import urlsplit

from octet_probes import ACCESS, BODY, HEADER, HEARTBEAT, METHOD, OPEN, frame
from probing import TO_ALL, in_order, methods_in

from amqpcodec import rabbitmq as amqp
from amqpcodec.testing import Broker
from amqpcodec.testing.versions import Like

Basic, Channel, Confirm, Connection, Exchange, Queue, Tx = (
    amqp.Basic, amqp.Channel, amqp.Confirm, amqp.Connection, amqp.Exchange, amqp.Queue, amqp.Tx,
)  # fmt: skip
AT_ONCE = 8
PAUSE_SECONDS = 0.04  # after each frame: channels of a RabbitMQ answer each on its own
QUIET_SECONDS = 0.25
MOST_STEPS = 6
SIZES = (0, 1, 3)
PROPERTIES = (
    b"\0\0",
    b"\0\0",
    b"\x80\0\x02\xff\xfe",
    b"\x10\0\x03",
    b"\x08\0\x05",
    b"\x01\0\x015",
    b"\0\x40\1x",
)


class Frames:
    """The octets of a connection by chance, that is by a number."""

    def __init__(self, number: int) -> None:
        self._random = Random(number)
        self._queue = f"frames.{number}"
        declare = amqp.encode_method(1, Queue.Declare(queue=self._queue, exclusive=True))
        self.steps = [OPEN + declare, *[self._step() for _ in range(self._random.randint(2, MOST_STEPS))]]

    def _step(self) -> bytes:
        choose = self._random.choice
        channel = choose([1, 1, 1, 2, 3, 0])
        method, size = self._method(), choose(SIZES)
        steps: dict[Callable[[], bytes], int] = {
            lambda: amqp.encode_method(channel, method): 14,
            lambda: self._header(channel, size): 2,
            lambda: frame(BODY, channel, bytes(size)): 2,
            lambda: frame(HEARTBEAT, choose([0, 0, channel])): 1,
            lambda: frame(METHOD, channel, ACCESS): 1,
            lambda: self._message(channel, size): 4,
        }
        [step] = self._random.choices([*steps], [*steps.values()])
        return step()

    def _header(self, channel: int, size: int) -> bytes:
        class_id, weight = self._random.choice([60, 60, 50]), self._random.choice([0, 0, 0, 1])
        return frame(HEADER, channel, pack(">HHQ", class_id, weight, size) + self._random.choice(PROPERTIES))

    def _message(self, channel: int, size: int) -> bytes:
        exchange = self._random.choice(["", "", "none", "amq.direct", "amq.rabbitmq.trace"])
        key = self._random.choice([self._queue, "none"])
        header = frame(HEADER, channel, pack(">HHQ", 60, 0, size) + self._random.choice(PROPERTIES))
        method = amqp.encode_method(channel, Basic.Publish(exchange, key, mandatory=True))
        return method + header + (frame(BODY, channel, bytes(size)) if size else b"")

    def _method(self) -> Any:
        choose = self._random.choice
        queue, tag = choose([self._queue, self._queue, "none"]), choose([0, 1, 2])
        yes = choose([True, False])
        return choose([
            Queue.Declare(queue=queue, passive=True), Queue.Purge(queue=queue), Queue.Delete(queue="none"),
            Queue.DeclareOk("q", 0, 0), Channel.Open(), Channel.Close(200), Channel.CloseOk(),
            Channel.Flow(yes), Basic.Publish("", queue), Basic.Get(queue=queue, no_ack=yes),
            Basic.Ack(tag, yes), Basic.Nack(tag, yes), Basic.Reject(1, yes), Basic.Recover(yes),
            Basic.Cancel("c"), Basic.CancelOk("c"), Basic.Qos(prefetch_count=1, global_=yes),
            Basic.Deliver("c", 1, False, "", "q"), Basic.GetEmpty(), Tx.Select(), Tx.Commit(), Tx.Rollback(),
            Confirm.Select(), Connection.Close(200), Connection.Blocked("x"), Connection.Open("/"),
            Exchange.Delete(exchange=choose(["amq.x", "none"])),
        ])  # fmt: skip


async def done(url: str, steps: list[bytes]) -> list[str]:
    """Send octets one after another; return what has come."""
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    came = bytearray()

    async def read() -> None:
        with suppress(ConnectionError):
            while octets := await reader.read(65536):
                came.extend(octets)

    reading = asyncio.create_task(read())
    for step in steps:
        with suppress(ConnectionError):
            writer.write(step)
        await asyncio.sleep(PAUSE_SECONDS)
    await asyncio.sleep(QUIET_SECONDS)
    reading.cancel()
    writer.close()
    return in_order([each for each in methods_in(came) if each[1] not in TO_ALL])


async def main(rabbitmq: str, like: Like, first: int = 0, count: int = 200) -> int:
    """Compare random frames; return how many connections differ."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> bool:
        steps = Frames(number).steps
        async with room, Broker(like=like) as broker:
            theirs, ours = await asyncio.gather(done(rabbitmq, steps), done(broker.url, steps))
            ours += [f"error of the broker: {error!r}" for error in broker.errors]
        if theirs != ours:
            print(
                f"== {number}", *steps[1:], "-- RabbitMQ, + here:", *ndiff(theirs, ours), sep="\n", flush=True
            )
        return theirs != ours

    differing = sum(await asyncio.gather(*map(one, range(first, first + count))))
    print(f"{differing} of {count} connections differ")
    return differing


if __name__ == "__main__":
    sys.exit(bool(asyncio.run(main(*sys.argv[1:3], *map(int, sys.argv[3:])))))
