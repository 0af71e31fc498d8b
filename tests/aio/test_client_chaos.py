"""Chaos by seeds: cuts, confirms of all kinds, flow, blocking and cancellations, all at once.

Whatever happens, once the broker is calm all that waits is done. What was confirmed is there, what was not
written is not; messages keep their order; no window is exceeded; and no message of a queue is lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from typing import Any

import pytest
from support.implementation import Implementation
from support.scripted_broker import END, Peer, Received
from support.tiers import few
from world import World

from amqpcodec.aio import Backoff, Channel, Client, ConsumerCancelledError, NackedError, ReturnedError
from amqpcodec.errors import ConnectionLostError

SEEDS = 100  # on each build, others on each
BATCH = 20
LETTERS = "ab"  # of channels: bodies begin with them, those of `publish_soon` with capitals
MESSAGES = 12  # of a publisher
QUEUED = 10  # messages that wait in the queue
PREFETCH = 4
AT_ONCE = Backoff(first=0.0005, most=0.001)


class Queue:
    """A queue of the broker: what was not acknowledged comes again."""

    def __init__(self) -> None:
        self.ready = deque(b"%d" % number for number in range(QUEUED))
        self.consumers: list[Received] = []
        self._open: dict[tuple[Peer, int, int], bytes] = {}

    def is_empty(self) -> bool:
        return not self.ready and not self._open

    def consume(self, consumer: Received) -> None:
        consumer.answer()
        self.consumers.append(consumer)
        self.deliver()

    def deliver(self) -> None:
        for consumer in self.consumers:
            peer, channel = consumer.peer, consumer.channel
            if peer.connection.channel_state(channel) != "open" or peer.connection.state != "open":
                continue
            while self.ready and len(peer.connection.unacknowledged(channel)) < PREFETCH:
                tag = peer.connection.next_delivery_tag(channel)
                self._open[peer, channel, tag] = body = self.ready.popleft()
                consumer.deliver(body)

    def get(self, received: Received) -> None:
        if not self.ready:
            received.answer()
            return
        tag = received.peer.connection.next_delivery_tag(received.channel)
        self._open[received.peer, received.channel, tag] = body = self.ready.popleft()
        received.hand_out(body)

    def settle(self, received: Received) -> None:
        for tag in received.tags:
            body = self._open.pop((received.peer, received.channel, tag))
            if received.name == "basic.nack":
                self.ready.append(body)
        self.deliver()

    def cancel(self, received: Received) -> None:
        self.leave(received.peer, received.method.consumer_tag)
        received.answer()

    def leave(self, peer: Peer, consumer_tag: str) -> None:
        self.consumers = [
            each for each in self.consumers if (each.peer, each.method.consumer_tag) != (peer, consumer_tag)
        ]

    def end(self, peer: Peer) -> None:
        self.consumers = [each for each in self.consumers if each.peer is not peer]
        for key in [key for key in self._open if key[0] is peer]:
            self.ready.append(self._open.pop(key))
        self.deliver()


class Chaos:
    """A broker that does something at each message, until it is calm."""

    def __init__(self, world: World, random: Random) -> None:
        self.broker = world.broker
        self.random = random
        self.calm = False
        self.cuts = random.randrange(5)
        self.held: list[Received] = []
        self.stopped: set[tuple[Peer, int]] = set()
        self.queue = Queue()
        self.ends: dict[bytes, set[str]] = {}  # what the broker has said of each body
        self.windows: dict[str, int] = {}  # by the letter that bodies begin with
        self.waiting: dict[tuple[Peer, int], dict[int, Received]] = {}  # by number: not settled yet
        for name, reaction in [
            ("basic.publish", self.publish),
            ("basic.consume", self.queue.consume),
            ("basic.cancel", self.queue.cancel),
            ("basic.get", self.queue.get),
            ("basic.ack", self.queue.settle),
            ("basic.nack", self.queue.settle),
            ("queue.declare", self.declare),
            (END, self.queue.end),
        ]:
            world.broker.on(name, reaction)

    def declare(self, received: Received) -> None:
        """`on_connect` asks for it."""
        if self.cut(received.peer, 0.2):
            return
        if not self.calm and self.random.random() < 0.1:
            received.close_channel(405)
        else:
            received.answer()

    def cut(self, peer: Peer, probability: float) -> bool:
        if self.calm or not self.cuts or self.random.random() >= probability:
            return False
        self.cuts -= 1
        self.random.choice([Peer.abort, Peer.close])(peer)
        return True

    def publish(self, received: Received) -> None:
        waiting = self.waiting.setdefault((received.peer, received.channel), {})
        waiting[received.number] = received
        assert len(waiting) <= self.windows[received.body[:1].decode()]
        self.held.append(received)
        if self.cut(received.peer, 0.05):
            return
        while self.held and (self.calm or self.random.random() < 0.7):
            self.settle(self.held.pop(self.random.randrange(len(self.held))))
        if not self.calm and self.random.random() < 0.1:
            self.random.choice([self.stop, self.block])(received)

    def settle(self, received: Received) -> None:
        peer, channel = received.peer, received.channel
        waiting = self.waiting[peer, channel]
        if not is_open(received) or received.number not in waiting:
            return
        how = self.random.choice(["ack", "ack", "ack", "multiple", "nack", "return"])
        settled = [received]
        if how == "multiple":
            settled = [each for number, each in waiting.items() if number <= received.number]
        for each in settled:
            said = {"nack": "nack", "return": "return"}.get(how, "ack")
            self.ends.setdefault(each.body, set()).add(said)
            del waiting[each.number]
        if how == "return":
            received.send_back()
        (received.nack if how == "nack" else received.ack)(how == "multiple")

    def stop(self, received: Received) -> None:
        if is_open(received):
            received.flow(False)
            self.stopped.add((received.peer, received.channel))

    def block(self, received: Received) -> None:
        if received.peer.connection.state == "open":
            received.peer.block()

    def relent(self, peer: Peer | None = None) -> None:
        """Let all go on that was stopped."""
        for peer, channel in self.stopped:
            if peer.connection.state == "open" and peer.connection.channel_state(channel) == "open":
                peer.send(channel, peer.amqp.Channel.Flow(True))
        self.stopped.clear()
        for peer in self.broker.peers:
            if peer.connection.state == "open":
                peer.unblock()

    def interfere(self) -> None:
        """Do something that no message gives rise to."""
        peer = self.broker.peers[-1]
        act = self.random.randrange(4)
        if act == 0:
            self.relent()
        elif act == 1 and self.held:
            self.settle(self.held.pop())
        elif act == 2 and self.queue.consumers and is_open(self.queue.consumers[0]):
            consumer = self.queue.consumers[0]
            self.queue.leave(consumer.peer, consumer.method.consumer_tag)
            consumer.cancel_consumer()
        elif peer.connection.state == "open":
            self.cut(peer, 0.2)

    def become_calm(self) -> None:
        self.calm = True
        self.relent()
        while self.held:
            self.settle(self.held.pop())


def is_open(received: Received) -> bool:
    connection = received.peer.connection
    return bool(connection.state == "open" and connection.channel_state(received.channel) == "open")


class Program:
    """A program that publishes, consumes and calls, and gives some of it up."""

    def __init__(self, client: Client, chaos: Chaos, amqp: Any) -> None:
        self.client = client
        self.chaos = chaos
        self.random = chaos.random
        self.amqp = amqp
        self.ends: dict[bytes, BaseException | None] = {}
        self.read: set[bytes] = set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for letter in LETTERS:
                window = self.random.randint(1, 8)
                self.chaos.windows[letter] = self.chaos.windows[letter.upper()] = window
                channel = await self.client.channel(window=window, prefetch=PREFETCH)
                group.create_task(self.publish(channel, letter))
                group.create_task(self.publish_soon(channel, letter.upper()))
            group.create_task(self.consume(channel))
            group.create_task(self.get(channel))
            group.create_task(self.call(channel))
            for _ in range(50):
                await self.pause()
                self.chaos.interfere()
            self.chaos.become_calm()

    async def pause(self) -> None:
        for _ in range(self.random.randrange(5)):
            await asyncio.sleep(0)

    async def publish(self, channel: Channel, letter: str) -> None:
        tasks = []
        for number in range(MESSAGES):
            body = f"{letter}{number}".encode()
            tasks.append((body, asyncio.ensure_future(channel.publish(body))))
            await self.pause()
            if self.random.random() < 0.2:
                self.random.choice(tasks)[1].cancel()
        await self.note(tasks)

    async def publish_soon(self, channel: Channel, letter: str) -> None:
        futures = []
        for number in range(MESSAGES):
            body = f"{letter}{number}".encode()
            futures.append((body, await channel.publish_soon(body)))
            if self.random.random() < 0.1:
                self.random.choice(futures)[1].cancel()
        await self.note(futures)

    async def note(self, published: list[tuple[bytes, asyncio.Future[None]]]) -> None:
        await asyncio.wait([future for _, future in published])
        for body, future in published:
            try:
                self.ends[body] = future.exception()
            except asyncio.CancelledError as error:
                self.ends[body] = error

    async def consume(self, channel: Channel) -> None:
        """Consume until the queue is empty, in tasks of which some are cancelled."""
        while not self.chaos.queue.is_empty():
            task = asyncio.ensure_future(self.consume_once(channel))
            if self.random.random() < 0.3:
                await self.pause()
                await self.pause()
                task.cancel()
            await asyncio.wait((task,))
            if not task.cancelled():
                task.result()

    async def consume_once(self, channel: Channel) -> None:
        async with channel.consume("q") as deliveries:
            await self.take(deliveries)

    async def get(self, channel: Channel) -> None:
        while not self.chaos.queue.is_empty():
            await self.pause()
            try:
                delivery = await channel.get("q", timeout=self.random.choice([0.001, None]))
            except (TimeoutError, ConnectionLostError):
                continue
            if delivery is None:
                await asyncio.sleep(0.002)
            elif self.random.random() < 0.5:
                delivery.ack()
                self.read.add(delivery.body)
            else:
                delivery.nack()

    async def take(self, deliveries: Any) -> None:
        while not self.chaos.queue.is_empty() and self.random.random() < 0.95:
            try:
                async with asyncio.timeout(0.01):
                    delivery = await anext(deliveries)
            except TimeoutError:
                continue
            except ConsumerCancelledError:
                return
            try:
                await self.pause()
            except asyncio.CancelledError:
                delivery.nack()
                raise
            if self.random.random() < 0.8:
                delivery.ack()
                self.read.add(delivery.body)
            else:
                delivery.nack()

    async def call(self, channel: Channel) -> None:
        for number in range(10):
            await self.pause()
            caller = self.random.choice([channel, self.client])
            try:
                reply = await caller.call(self.amqp.Queue.Purge(f"q{number}"))
            except ConnectionLostError:
                continue
            assert type(reply) is self.amqp.Queue.PurgeOk


def check(program: Program, chaos: Chaos, bodies: list[bytes]) -> None:
    """Hold what became of each message against what the broker has said of it."""
    first = list(dict.fromkeys(bodies))
    written = set(first)
    for body, end in program.ends.items():
        said = chaos.ends.get(body, set())
        match end:
            case None:
                assert "ack" in said, body
            case NackedError():
                assert "nack" in said, body
            case ReturnedError():
                assert "return" in said, body
            case asyncio.CancelledError():
                deferred = body[:1].isupper()
                assert deferred or body not in written or "the broker may have it" in str(end), body
            case _:
                raise AssertionError(f"{body!r}: {end!r}")
    assert len(program.ends) == 2 * len(LETTERS) * MESSAGES
    for letter in LETTERS + LETTERS.upper():
        own = [int(body[1:]) for body in first if body[:1] == letter.encode()]
        assert own == sorted(own), letter
    assert program.read == {b"%d" % number for number in range(QUEUED)}


async def one_of(world: World, seed: int) -> None:
    chaos = Chaos(world, Random(seed))

    async def declare(client: Client) -> None:
        await client.call(world.amqp.Queue.Declare("q"))

    async with world.broker, world.client(on_connect=declare, backoff=AT_ONCE) as client:
        program = Program(client, chaos, world.amqp)
        await asyncio.wait_for(program.run(), 15)
        stats = client.stats()
    check(program, chaos, world.broker.bodies())
    assert stats.unconfirmed == stats.unmatched == stats.dropped == 0
    assert stats.published == len(world.broker.bodies()) or stats.republished


@pytest.mark.parametrize("first", few(range(0, SEEDS, BATCH), 1, "a campaign"))
def test_whatever_happens_nothing_is_lost_and_nobody_waits_for_ever(
    world: World, impl: Implementation, first: int
) -> None:
    offset = SEEDS if impl.name == "py" else 0
    for seed in range(offset + first, offset + first + BATCH):
        again = World(world.amqp)
        try:
            asyncio.run(one_of(again, seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
