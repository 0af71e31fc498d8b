"""The broker answers as RabbitMQ has answered, and as one that can be started answers now.

AMQPCODEC_BROKER names the version of that one; ``make test-broker BROKER=4.3`` does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest
from configured_probes import CONFIGURED, OPTIONS, configured
from permission_probes import NAME, PASSWORD, PERMITTED
from probing import QUIET_SECONDS, VERSIONS, probe, stored
from random_frames import main as differing_frames
from random_programs import main as differing_programs
from record_answers import ALL
from record_answers import answers as of_rabbitmq

from amqpcodec.testing import Broker

NODE = os.environ.get("AMQPCODEC_BROKER") or "3.10"  # which is compared with
AT_ONCE = 50
PROGRAMS = 30
SOON = 0.02  # seconds in which what a clock makes due has come


async def answers(options: dict[str, Any], probes: dict[str, list[Any]]) -> dict[str, list[str]]:
    """Return what a broker for tests answers, a new one to each probe."""
    room = asyncio.Semaphore(AT_ONCE)

    async def ask(steps: list[Any]) -> list[str]:
        async with room, Broker(**options) as broker:
            broker.add_user(NAME, PASSWORD, **PERMITTED)
            found = await probe(broker.url, steps, QUIET_SECONDS, passing(broker))
            assert broker.errors == []
            return found

    found = await asyncio.gather(*map(ask, probes.values()))
    return dict(zip(probes, found, strict=True))


def passing(broker: Broker) -> Callable[[float], Any]:
    """Return what lets time pass by the clock of a broker."""

    async def wait(seconds: float) -> None:
        broker.clock.advance(seconds)
        await asyncio.sleep(SOON)

    return wait


def differing(ours: dict[str, list[str]], theirs: dict[str, list[str]]) -> set[str]:
    """Print where answers differ; return of which probes."""
    found = {name for name in ours if ours[name] != theirs.get(name)}
    for name in sorted(found):
        print(name)
        print("  here     ", *ours[name], sep="\n    ")
        print("  RabbitMQ ", *theirs.get(name, ["nothing is stored"]), sep="\n    ")
    return found


async def compare_ours(
    options: dict[str, Any], probes: dict[str, list[Any]], expected: dict[str, list[str]]
) -> None:
    """Compare the answers of a broker for tests with those of a node; as there, it is asked twice."""
    found = await answers(options, probes)
    again = {name: steps for name, steps in probes.items() if found[name] != expected.get(name)}
    assert differing(found | await answers(options, again), expected) == set()


@pytest.mark.parametrize("like", VERSIONS)
async def test_the_broker_answers_as_rabbitmq_has(options: dict[str, Any], like: str) -> None:
    await compare_ours({**options, "like": like}, ALL, stored(like))


@pytest.mark.parametrize("like", VERSIONS)
async def test_the_broker_answers_as_rabbitmq_with_settings_has(options: dict[str, Any], like: str) -> None:
    of_version = {**options, "like": like, **OPTIONS[like]}
    await compare_ours(of_version, CONFIGURED, stored(like, "configured"))


def compare_with(url: str, probes: dict[str, list[Any]], kind: str = "rabbitmq") -> None:
    """Compare the answers of a node with those that are stored; it is asked twice where they differ.

    What only time has caused, on a busy machine, does not stay.
    """
    expected = stored(NODE, kind)
    found = asyncio.run(of_rabbitmq(url, probes))
    again = {name: steps for name, steps in probes.items() if found[name] != expected.get(name)}
    assert differing(expected, found | asyncio.run(of_rabbitmq(url, again))) == set()


def test_rabbitmq_answers_as_it_has(rabbitmq: str) -> None:
    compare_with(rabbitmq, ALL)


@pytest.mark.broker
def test_rabbitmq_with_settings_answers_as_it_has(rabbitmq: str) -> None:
    with configured(NODE) as url:
        compare_with(url, CONFIGURED, "configured")


def test_the_broker_does_with_random_programs_what_rabbitmq_does(rabbitmq: str) -> None:
    assert asyncio.run(differing_programs(rabbitmq, NODE, 0, PROGRAMS)) == 0


def test_the_broker_does_with_random_frames_what_rabbitmq_does(rabbitmq: str) -> None:
    assert asyncio.run(differing_frames(rabbitmq, NODE, 0, 2 * PROGRAMS)) == 0
