"""The broker answers as RabbitMQ has answered, and as one that can be started answers now."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from probing import QUIET_SECONDS, VERSIONS, clean, probe, stored
from random_frames import main as differing_frames
from random_programs import main as differing_programs
from record_answers import ALL

from amqpcodec.testing import Broker

NODE = os.environ.get("AMQPCODEC_BROKER", "3.10")  # which is compared with
AT_ONCE = 25
PROGRAMS = 30


async def answers(options: dict[str, Any]) -> dict[str, list[str]]:
    """Return what a broker for tests answers, a new one to each probe."""
    room = asyncio.Semaphore(AT_ONCE)

    async def ask(steps: list[Any]) -> list[str]:
        async with room, Broker(**options) as broker:
            found = await probe(broker.url, steps, QUIET_SECONDS)
            assert broker.errors == []
            return found

    found = await asyncio.gather(*map(ask, ALL.values()))
    return dict(zip(ALL, found, strict=True))


def differing(ours: dict[str, list[str]], theirs: dict[str, list[str]]) -> set[str]:
    """Print where answers differ; return of which probes."""
    found = {name for name in ours if ours[name] != theirs.get(name)}
    for name in sorted(found):
        print(name)
        print("  here     ", *ours[name], sep="\n    ")
        print("  RabbitMQ ", *theirs.get(name, ["nothing is stored"]), sep="\n    ")
    return found


@pytest.mark.parametrize("like", VERSIONS)
async def test_the_broker_answers_as_rabbitmq_has(options: dict[str, Any], like: str) -> None:
    assert differing(await answers({**options, "like": like}), stored(like)) == set()


def test_rabbitmq_answers_as_it_has(rabbitmq: str) -> None:
    async def ask() -> dict[str, list[str]]:
        found = {}
        for name, steps in ALL.items():
            found[name] = await probe(rabbitmq, steps, QUIET_SECONDS)
            await clean(rabbitmq)
        return found

    assert differing(stored(NODE), asyncio.run(ask())) == set()


def test_the_broker_does_with_random_programs_what_rabbitmq_does(rabbitmq: str) -> None:
    assert asyncio.run(differing_programs(rabbitmq, 0, PROGRAMS)) == 0


def test_the_broker_does_with_random_frames_what_rabbitmq_does(rabbitmq: str) -> None:
    assert asyncio.run(differing_frames(rabbitmq, 0, 2 * PROGRAMS)) == 0
