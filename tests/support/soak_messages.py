"""Messages with numbers, published and consumed while a broker comes and goes; what has become of each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from types import ModuleType
from typing import Any

from amqpcodec.aio import Channel, Client, connect
from amqpcodec.connection import MessageReceived, MethodReceived
from amqpcodec.errors import ConnectionLostError
from support.broker import Node
from support.relay import Relay
from support.soak_faults import TEN, Fault, kill

LANES = 2  # channels, each with numbers of its own
TASKS = 128
SIZE = 200  # octets of a body
ROUND_TRIP_SECONDS = 0.02
QUIET_SECONDS = 1  # without a message, of a queue that says that it is empty

Place = tuple[int, int]  # the lane of a message, and its number there


class Faults:
    """Faults in turn, at places of the work that divide it evenly.

    Args:
        node, relay, client: which they concern.
        faults: ten of many kinds, if no others are given.

    Attributes:
        begun: how many have begun.
        kills: how many of them kill the process of the node.
    """

    def __init__(self, node: Node, relay: Relay, client: Client, faults: Sequence[Fault] = TEN) -> None:
        self.node = node
        self.relay = relay
        self.client = client
        self.faults = faults
        self.begun = 0
        self.kills = 0

    async def run(self, progress: Callable[[], int], count: int) -> None:
        """Let them happen while some work of so many steps goes on; wait after each for a new connection."""
        for number, fault in enumerate(self.faults, 1):
            while progress() < number * count // (len(self.faults) + 1):
                await asyncio.sleep(0.002)
            before = self.client.stats().connections
            self.begun += 1
            self.kills += fault is kill
            await fault(self.node, self.relay)
            while self.client.stats().connections == before:
                assert self.node.process.poll() is None, "the node does not start again"
                await asyncio.sleep(0.002)


class Lane:
    """The messages of one channel: their numbers, and the futures of those that are published.

    Args:
        number: of the lane.
        count: how many messages at least; they go on while `goes_on` says so.
    """

    def __init__(self, number: int, count: int, goes_on: Callable[[], bool]) -> None:
        self.number = number
        self.count = count
        self.goes_on = goes_on
        self.published = 0
        self.confirmed: set[int] = set()
        self.outcomes: Counter[str] = Counter()

    def next(self) -> int | None:
        """Return the number of the next message; None if there is no other."""
        if self.published >= self.count and not self.goes_on():
            return None
        self.published += 1
        return self.published

    def body(self, number: int) -> bytes:
        return b"%d-%d" % (self.number, number) + b" " * SIZE

    def done(self, number: int, error: BaseException | None) -> None:
        """Take the end of a publish."""
        self.outcomes["confirmed" if error is None else type(error).__name__] += 1
        if error is None:
            self.confirmed.add(number)

    async def publish(self, channel: Channel, **options: Any) -> None:
        """Publish from many tasks, each of which waits for its message."""

        async def work() -> None:
            while (number := self.next()) is not None:
                try:
                    await channel.publish(self.body(number), **options)
                except Exception as error:
                    self.done(number, error)
                else:
                    self.done(number, None)

        await asyncio.gather(*(work() for _ in range(TASKS)))

    async def publish_soon(self, channel: Channel, **options: Any) -> None:
        """Publish from one task, which waits for the window only, and at the end for all futures."""
        waiting: set[asyncio.Future[None]] = set()
        while (number := self.next()) is not None:
            future = await channel.publish_soon(self.body(number), **options)
            waiting.add(future)
            future.add_done_callback(lambda future, number=number: self.done(number, future.exception()))
            future.add_done_callback(waiting.discard)
        while waiting:
            await asyncio.wait(waiting)


def lane_and_number(body: bytes) -> Place:
    """Return what a body says it is."""
    lane, _, number = body.rstrip().partition(b"-")
    return int(lane), int(number)


async def read_all(url: str, queue: str, amqp: ModuleType) -> list[Place]:
    """Empty a queue by a connection of its own, below the client; return its messages in order.

    A queue that has come back says for a moment that it is empty. It is once nothing comes meanwhile.
    """
    found: list[Place] = []
    async with await connect(url, dialect=amqp) as stream:
        connection = stream.connection
        channel = connection.open_channel()
        connection.send(channel, amqp.Basic.Consume(queue=queue, no_ack=True))
        count = amqp.Queue.Declare(queue=queue, passive=True)
        connection.send(channel, count)
        before = -1
        async for event in stream:
            if isinstance(event, MessageReceived):
                found.append(lane_and_number(event.body))
            elif isinstance(event, MethodReceived) and isinstance(event.method, amqp.Queue.DeclareOk):
                if event.method.message_count == 0 and len(found) == before:
                    break
                before = len(found)
                await asyncio.sleep(QUIET_SECONDS)
                connection.send(channel, count)
    return found


class Ledger:
    """Keep what has become of the messages of a queue that is consumed.

    A round trip on a channel that succeeds makes certain what was acknowledged before on its connection.

    Attributes:
        times: how often each message has come.
        certain: acknowledged before a round trip that succeeded; with the number of kills until then.
        unflagged: messages that came again without ``redelivered``.
        wrongly: messages that were certain, and came again though the node was not killed since.
        forgotten: those that came again after a kill: the node had not written down the acknowledgement.
        stale: acknowledgements after the connection was gone.
    """

    def __init__(self, client: Client, queue: str, faults: Faults, amqp: ModuleType) -> None:
        self.client = client
        self.queue = queue
        self.faults = faults
        self.amqp = amqp
        self.times: Counter[Place] = Counter()
        self.certain: dict[Place, int] = {}
        self.unflagged: list[Place] = []
        self.wrongly: list[Place] = []
        self.forgotten: list[Place] = []
        self.stale = 0
        self.round_trips = 0
        self.ready = -1  # messages in the queue, by the last round trip
        self._last = monotonic()

    async def consume(self, channel: Channel, pause: float) -> None:
        """Consume until cancelled; while the round trips make certain what is settled."""
        acked: list[tuple[Place, int]] = []
        trips = asyncio.ensure_future(self._make_certain(channel, acked))
        try:
            async with channel.consume(self.queue) as deliveries:
                async for delivery in deliveries:
                    place = lane_and_number(delivery.body)
                    self._came(place, delivery.method.redelivered)
                    if delivery.ack():
                        acked.append((place, self.client.stats().connections))
                    else:
                        self.stale += 1
                    if pause:
                        await asyncio.sleep(pause)
        finally:
            trips.cancel()
            await asyncio.wait((trips,))

    def quiet(self) -> float:
        """Return for how many seconds nothing has come."""
        return monotonic() - self._last

    def _came(self, place: Place, redelivered: bool) -> None:
        self._last = monotonic()
        self.times[place] += 1
        if self.times[place] > 1 and not redelivered:
            self.unflagged.append(place)
        kills = self.certain.get(place)
        if kills == self.faults.kills:
            self.wrongly.append(place)
        elif kills is not None:
            self.forgotten.append(place)
            del self.certain[place]

    async def _make_certain(self, channel: Channel, acked: list[tuple[Place, int]]) -> None:
        request = self.amqp.Queue.Declare
        while True:
            await asyncio.sleep(ROUND_TRIP_SECONDS)
            taken, acked[:] = list(acked), []
            before, kills = self.client.stats().connections, self.faults.kills
            with suppress(ConnectionLostError):
                reply = await channel.call(request(queue=self.queue, passive=True))
                self.round_trips += 1
                self.ready = reply.message_count
                if self.client.stats().connections == before:
                    self.certain.update((place, kills) for place, on in taken if on == before)


__all__ = ["LANES", "Faults", "Lane", "Ledger", "lane_and_number", "read_all"]
