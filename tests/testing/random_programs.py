"""Compares the broker for tests with a RabbitMQ by random programs, and prints where they differ.

.venv/bin/python tests/testing/random_programs.py amqp://guest:guest@127.0.0.1:5672/ 3.10 [FIRST [COUNT]]

A program is a list of steps as of a probe, made by its number. Its names begin with that number, so that
many run at once. One that differs is done again, slowly: what only time has caused does not stay.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from decimal import Decimal
from difflib import ndiff
from random import Random
from typing import Any

from probes import get, publish, queue
from probing import On, Raw, probe

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import connect
from amqpcodec.testing import Broker
from amqpcodec.testing.versions import Like

Basic, Confirm, Exchange, Queue, Tx = amqp.Basic, amqp.Confirm, amqp.Exchange, amqp.Queue, amqp.Tx
KINDS = ("direct", "fanout", "topic", "headers")
VALUES = (1, 1, "x", "x", b"x", 1.0, Decimal(1), True, [1], None)
KEYS = ("", "a", "a.b", "a.b.c", "*.b", "#", "a.#", "a.*")
STEPS = 25
AT_ONCE = 10
SHORT_MS, LONG_MS = 5000, 60_000  # the program is over before, or waits for it
PAUSES = (0.04, 0.2)  # seconds after each step: at first, and again where a program differs
QUIET_SECONDS = 0.3
OF_QUORUM_QUEUES: dict[str, tuple[Any, ...]] = {
    "overflow": ("drop-head", "reject-publish"),
    "delivery_limit": (0, 1, 2),
}
OF_CLASSIC_QUEUES: dict[str, tuple[Any, ...]] = {
    "max_length_bytes": (0, 3, 10), "overflow": ("drop-head", "reject-publish", "reject-publish-dlx"),
    "max_priority": (2, 5), "expires": (LONG_MS,), "queue_type": ("classic",), "queue_mode": ("default",),
    "queue_version": (1, 2),
}  # fmt: skip
FIRST_NAMES = ("q0", "q1", "q2")
EXCHANGES = ("e0", "e1", "e2")


@dataclass
class Settle:
    """Settles one of the deliveries that are open, if there are any."""

    kind: str
    place: int
    multiple: bool
    requeue: bool

    def __call__(self, connection: Any) -> Any:
        """Return the method."""
        tags = connection.unacknowledged(1)
        if not tags:
            return None
        tag = tags[min(self.place, len(tags) - 1)]
        if self.kind == "ack":
            return Basic.Ack(tag, self.multiple)
        return (
            Basic.Nack(tag, self.multiple, self.requeue)
            if self.kind == "nack"
            else Basic.Reject(tag, self.requeue)
        )


@dataclass
class Stale:
    """Settles a delivery that the client takes for settled, if its channel is open."""

    tag: int

    def __call__(self, connection: Any) -> Any:
        """Return the method."""
        is_open = connection.channel_state(1) == "open" and self.tag not in connection.unacknowledged(1)
        return Raw(Basic.Ack(self.tag)) if is_open else None


def reopen(connection: Any) -> Any:
    """Return a method that opens the channel again, if it was closed."""
    return amqp.Channel.Open() if connection.channel_state(1) == "closed" else None


class Program:
    """Steps by chance, that is by a number."""

    def __init__(self, number: int) -> None:
        self._random = Random(number)
        self.prefix = f"p{number}."
        self._tags = 0
        self._has_waited = False
        self.steps = [*self._declare(), *self._declare(), *self._exchange(), *self._exchange(), *self._bind()]
        self.steps += [step for _ in range(STEPS) for step in self._some()]

    def _name(self, names: tuple[str, ...]) -> str:
        return self.prefix + self._random.choice(names)

    def _maybe(self, probability: float) -> bool:
        return self._random.random() < probability

    def _some(self) -> list[Any]:
        """Return a step, mostly on the first channel."""
        makers: dict[Any, int] = {
            self._declare: 6, self._exchange: 3, self._bind: 5, self._unbind: 1, self._publish: 10,
            self._get: 5, self._settle: 7, self._consume: 4, self._cancel: 1, self._other: 3,
            self._delete: 1, self._wait: 1,
        }  # fmt: skip
        [maker] = self._random.choices([*makers], [*makers.values()])
        return [On(2, step) if self._maybe(0.1) and not callable(step) else step for step in maker()]

    def _declare(self) -> list[Any]:
        is_quorum = self._maybe(0.3)
        arguments: dict[str, Any] = {"queue_type": "quorum"} if is_quorum else {}
        choices = {
            "message_ttl": (0, SHORT_MS, LONG_MS), "max_length": (0, 1, 2),
            "dead_letter_routing_key": (self._name(FIRST_NAMES), "a.b"), "single_active_consumer": (True,),
        }  # fmt: skip
        choices |= OF_QUORUM_QUEUES if is_quorum else OF_CLASSIC_QUEUES
        for name, values in choices.items():
            if self._maybe(0.2):
                arguments[name] = self._random.choice(values)
        if "dead_letter_routing_key" in arguments or self._maybe(0.4):
            arguments["dead_letter_exchange"] = self._random.choice(["", self._name(EXCHANGES)])
        method = queue(self._name(FIRST_NAMES), **arguments)
        method.durable = is_quorum
        method.auto_delete = not is_quorum and self._maybe(0.1)
        method.passive = self._maybe(0.1)
        return [method]

    def _exchange(self) -> list[Any]:
        arguments = {"alternate-exchange": self._name(EXCHANGES)} if self._maybe(0.3) else {}
        return [
            Exchange.Declare(
                exchange=self._name(EXCHANGES), type=self._random.choice(KINDS),
                auto_delete=self._maybe(0.1), internal=self._maybe(0.05), arguments=arguments,
            )
        ]  # fmt: skip

    def _binding(self) -> dict[str, Any]:
        arguments = {}
        if self._maybe(0.3):
            arguments = {"x-match": self._random.choice(["all", "any"]), "h": self._random.choice(VALUES)}
        return {"routing_key": self._random.choice(KEYS), "arguments": arguments}

    def _bind(self) -> list[Any]:
        if self._maybe(0.3):
            return [Exchange.Bind(self._name(EXCHANGES), self._name(EXCHANGES), **self._binding())]
        return [Queue.Bind(self._name(FIRST_NAMES), self._name(EXCHANGES), **self._binding())]

    def _unbind(self) -> list[Any]:
        return [Queue.Unbind(self._name(FIRST_NAMES), self._name(EXCHANGES), **self._binding())]

    def _publish(self) -> list[Any]:
        properties: dict[str, Any] = {}
        if self._maybe(0.2):
            properties["expiration"] = str(self._random.choice([0, SHORT_MS, LONG_MS]))
        if self._maybe(0.3):
            properties["priority"] = self._random.randrange(4)
        if self._maybe(0.2):
            properties["delivery_mode"] = self._random.choice([1, 1, 1, 2, 2, 3])
        headers: dict[str, Any] = {}
        if self._maybe(0.2):
            headers["h"] = self._random.choice(VALUES)
        if self._maybe(0.1):
            headers[self._random.choice(["CC", "BCC"])] = [self._name(FIRST_NAMES), "a", 1]
        if self._maybe(0.1):
            deaths = [self._death() for _ in range(self._random.randrange(4))]
            headers["x-death"] = self._random.choice([deaths, deaths, deaths, [*deaths, 1], "never"])
        if headers:
            properties["headers"] = headers
        exchange, key = "", self._name(FIRST_NAMES)
        if self._maybe(0.5):
            exchange, key = self._name(EXCHANGES), self._random.choice(KEYS)
        body = bytes(self._random.choices(b"abc", k=self._random.randrange(5)))
        return [publish(exchange, key, body, mandatory=self._maybe(0.3), **properties)]

    def _death(self) -> dict[str, Any]:
        """Return what the publisher says of a death, which may be of one of the queues."""
        reason = self._random.choice(["rejected", "expired", "maxlen"])
        death = {"queue": self._name(FIRST_NAMES), "reason": reason, "exchange": "", "routing-keys": []}
        return {**death, "count": self._random.randrange(3)} if self._maybe(0.7) else death

    def _get(self) -> list[Any]:
        return [get(self._name(FIRST_NAMES), no_ack=self._maybe(0.3))]

    def _settle(self) -> list[Any]:
        kind = self._random.choice(["ack", "nack", "reject"])
        return [Settle(kind, self._random.randrange(3), self._maybe(0.2), self._maybe(0.5))]

    def _consume(self) -> list[Any]:
        self._tags += 1
        return [
            Basic.Qos(prefetch_count=self._random.choice([1, 2, 3])),
            Basic.Consume(
                queue=self._name(FIRST_NAMES), consumer_tag=f"c{self._tags}", no_ack=self._maybe(0.3),
                exclusive=self._maybe(0.1), arguments={"x-priority": 1} if self._maybe(0.2) else {},
            ),
        ]  # fmt: skip

    def _cancel(self) -> list[Any]:
        return [Basic.Cancel(consumer_tag=f"c{self._random.randint(1, self._tags + 1)}")]

    def _other(self) -> list[Any]:
        steps = (
            Queue.Purge(queue=self._name(FIRST_NAMES)), Basic.Recover(True), Confirm.Select(), Tx.Select(),
            Tx.Commit(), Tx.Rollback(), Basic.Qos(prefetch_count=2, global_=True),
            amqp.Channel.Close(200, "", 0, 0), Stale(self._random.randint(1, 3)),
        )  # fmt: skip
        return [self._random.choice(steps)]

    def _delete(self) -> list[Any]:
        if self._maybe(0.5):
            return [Exchange.Delete(exchange=self._name(EXCHANGES), if_unused=self._maybe(0.5))]
        if_unused, if_empty = self._maybe(0.5), self._maybe(0.5)
        return [Queue.Delete(queue=self._name(FIRST_NAMES), if_unused=if_unused, if_empty=if_empty)]

    def _wait(self) -> list[Any]:
        """Let messages expire, once."""
        if self._has_waited:
            return []
        self._has_waited = True
        return [SHORT_MS / 1000 + 0.7]


async def clean(url: str, prefix: str) -> None:
    """Delete what a program may have declared."""
    async with await connect(url) as stream:
        stream.connection.send(1, amqp.Channel.Open())
        for name in FIRST_NAMES:
            stream.connection.send(1, Queue.Delete(queue=prefix + name))
        for name in EXCHANGES:
            stream.connection.send(1, Exchange.Delete(exchange=prefix + name))
        left = len(FIRST_NAMES) + len(EXCHANGES)
        async for event in stream:
            left -= hasattr(event, "method")
            if left == 0:
                break


async def done(url: str, program: Program, pause: float) -> list[str]:
    """Do a program; return what has come, and at last what is left in its queues."""
    steps = [each for step in program.steps for each in (reopen, step, pause)]
    try:
        found = await probe(url, steps, QUIET_SECONDS)
    except TimeoutError:
        found = ["no answer"]
    for name in FIRST_NAMES:
        emptying = [each for _ in range(6) for each in (get(program.prefix + name), pause)]
        found += await probe(url, emptying, 0.05)
    await clean(url, program.prefix)
    return found


async def compare(rabbitmq: str, like: Like, number: int) -> tuple[list[str], list[str], Program]:
    """Return what a RabbitMQ and the broker for tests answer, the second time where they have differed."""
    program = Program(number)
    theirs: list[str] = []
    ours: list[str] = []
    for pause in PAUSES:
        async with Broker(like=like) as broker:
            theirs, ours = await asyncio.gather(
                done(rabbitmq, program, pause), done(broker.url, program, pause)
            )
            ours += [f"error of the broker: {error!r}" for error in broker.errors]
        if theirs == ours:
            break
    return theirs, ours, program


async def main(rabbitmq: str, like: Like, first: int = 0, count: int = 200) -> int:
    """Compare programs; return how many differ."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> bool:
        async with room:
            theirs, ours, program = await compare(rabbitmq, like, number)
        if theirs == ours:
            return False
        print(
            f"== {number}", *program.steps, "-- RabbitMQ, + here:", *ndiff(theirs, ours), sep="\n", flush=True
        )
        return True

    differing = sum(await asyncio.gather(*map(one, range(first, first + count))))
    print(f"{differing} of {count} programs differ")
    return differing


if __name__ == "__main__":
    sys.exit(bool(asyncio.run(main(*sys.argv[1:3], *map(int, sys.argv[3:])))))
