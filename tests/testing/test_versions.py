"""A broker answers as a version of RabbitMQ: beside the stored answers, which `test_probes.py` compares."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from configured_probes import CONFIGURED
from probes import Basic, bind, consume, get, queue
from probing import VERSIONS, publish
from quorum_probes import LETTERS, durable, quorum
from record_answers import ALL
from stream_probes import LIMITED, stream
from talking import talk
from version_probes import RANDOM

from amqpcodec import rabbitmq as amqp
from amqpcodec.testing import Broker

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
LARGEST = 16 << 20  # octets of a body, from 4.0 on
HALF_AN_HOUR = 30 * 60
QUIET: dict[str, Any] = {"heartbeat": 0}  # a client that says nothing for so long would be gone
UNSORTED = {"b": 1, "a": {"z": 1, "y": 2}, "B": 2, "\xe9": 3, "aa": [{"d": 1, "c": 2}]}


def test_the_page_says_how_much_was_compared() -> None:
    assert f"the answers to {len(ALL) + len(CONFIGURED)} probes" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("like", VERSIONS)
async def test_clients_are_told_the_version(options: dict[str, Any], like: str) -> None:
    async with Broker(**options, like=like) as broker:
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
        writer.write(amqp.protocol_header())
        decoder = amqp.FrameDecoder()
        while not (frames := list(decoder.feed(await reader.read(4096)))):
            pass
        writer.close()
    told = frames[0].payload.server_properties["version"]
    assert told == {"3.10": "3.13.0", "4.0": "4.0.5", "4.3": "4.3.6"}[like]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"like": "5.0"}, "like must be one of '3.10', '4.0', '4.3', not '5.0'"),
        ({"denied": ["global_qos"]}, "RabbitMQ 3.10 denies no feature 'global_qos'"),
        ({"like": "4.3", "denied": ["sleep"]}, "RabbitMQ 4.3 denies no feature 'sleep'"),
        ({"default_queue_type": "quorum"}, "queues of RabbitMQ 3.10 are of no type 'quorum' by default"),
        ({"like": "4.0", "default_queue_type": "x"}, "queues of RabbitMQ 4.0 are of no type 'x' by default"),
        ({"consumer_timeout": 0}, "consumer_timeout must be more than 0 seconds, or None, not 0"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_a_version_lacks_is_refused(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$"):
        Broker(**wrong)


@pytest.mark.parametrize(("like", "is_taken"), [("3.10", True), ("4.0", False), ("4.3", False)])
async def test_the_largest_message_is_that_of_the_version(like: str, is_taken: bool) -> None:
    async with Broker(like=like) as broker, talk(broker) as client:
        said = await client.say(
            queue(), publish("", "q", bytes(LARGEST)), publish("", "q", bytes(LARGEST + 1))
        )
        assert (len(said) == 1) is is_taken
        broker.assert_queue("q", ready=1 + is_taken)
    if not is_taken:
        text = "PRECONDITION_FAILED - message size 16777217 is larger than configured max size 16777216"
        assert said[1:] == [(1, "channel.close", 406, text, 60, 40)]


@pytest.mark.parametrize(("like", "is_sorted"), [("3.10", False), ("4.0", True), ("4.3", True)])
async def test_headers_are_sorted_by_name_but_for_tables_in_them(
    options: dict[str, Any], like: str, is_sorted: bool
) -> None:
    async with Broker(**options, like=like) as broker, talk(broker) as client:
        [*_, answer] = await client.say(queue(), publish("", "q", headers=UNSORTED), get())
        headers = answer[-2]["headers"]
        assert headers == UNSORTED
        assert [*headers] == (sorted(UNSORTED) if is_sorted else [*UNSORTED])
        assert [*headers["a"]] == ["z", "y"]
        assert [*headers["aa"][0]] == ["d", "c"]


@pytest.mark.parametrize("like", VERSIONS)
async def test_headers_are_sorted_where_the_broker_adds_some(options: dict[str, Any], like: str) -> None:
    async with Broker(**options, like=like) as broker, talk(broker) as client:
        await client.say(
            quorum(**LETTERS), durable(queue("dead")), publish("", "q", headers={"z": 1, "a": 2})
        )
        again = [get(no_ack=False), Basic.Reject(1, True), get(no_ack=False), Basic.Reject(2, False)]
        *_, second, dead = [each[-2]["headers"] for each in await client.say(*again, get("dead"))]
    counts = ["x-acquired-count", "x-delivery-count"] if like == "4.3" else ["x-delivery-count"]
    assert [*second] == ["a", *counts, "z"]
    assert [*dead] == sorted(dead)


@pytest.mark.parametrize("like", ["3.10", "4.0"])
async def test_a_channel_is_closed_that_settles_nothing_for_half_an_hour(
    options: dict[str, Any], like: str
) -> None:
    async with Broker(**options, like=like) as broker, talk(broker, **QUIET) as client:
        await client.say(queue(), consume("c"), publish("", "q", b"1"))
        broker.clock.advance(HALF_AN_HOUR - 60)
        assert await client.say() == []
        broker.clock.advance(121)
        closed, *_ = await client.say()
        assert (closed[2], "Timeout value used: 1800000 ms" in closed[3]) == (406, True)
        broker.assert_queue("q", ready=[b"1"], consumers=0)


async def test_a_channel_that_settles_now_and_then_stays_open(options: dict[str, Any]) -> None:
    async with Broker(**options) as broker, talk(broker, **QUIET) as client:
        await client.say(queue(), Basic.Qos(prefetch_count=1), consume("c"))
        for tag in range(1, 5):
            await client.say(publish("", "q", b"1"))
            broker.clock.advance(HALF_AN_HOUR - 70)
            await client.say(Basic.Ack(tag))
        assert client.stream.connection.channel_state(1) == "open"
        assert len(client.bodies()) == 4


async def test_without_a_time_deliveries_may_wait_for_ever(options: dict[str, Any]) -> None:
    async with Broker(**options, consumer_timeout=None) as broker, talk(broker, **QUIET) as client:
        await client.say(queue(), consume("c"), publish("", "q", b"1"))
        broker.clock.advance(1000 * HALF_AN_HOUR)
        assert await client.say() == []


async def test_a_late_consumer_of_a_quorum_queue_is_cancelled_and_stays(options: dict[str, Any]) -> None:
    async with Broker(**options, like="4.3") as broker, talk(broker, **QUIET) as client:
        await client.say(quorum(), Basic.Qos(prefetch_count=1), consume("c"), publish("", "q", b"1"))
        broker.clock.advance(HALF_AN_HOUR + 61)
        assert await client.say() == [(1, "basic.cancel", "c", True)]
        broker.assert_queue("q", ready=[b"1"], unacknowledged=0, consumers=0)
        assert [each.tag for each in broker.consumers()] == ["c"]
        await client.say(publish("", "q", b"2"))
        assert client.bodies() == [b"1"]


async def test_the_limit_of_a_quorum_queue_ends_a_message(options: dict[str, Any]) -> None:
    async with Broker(**options, like="4.0") as broker, talk(broker, **QUIET) as client:
        await client.say(quorum(delivery_limit=1), publish("", "q", b"1", message_id="m"))
        for tag in (1, 2):
            await client.say(get(no_ack=False), Basic.Reject(tag, True))
        broker.assert_queue("q", ready=0, unacknowledged=0)
        broker.assert_published(message_id="m", settled={"q": "delivery_limit"})


async def test_each_consumer_of_a_stream_reads_all_of_it(options: dict[str, Any]) -> None:
    first = {"x-stream-offset": "first"}
    async with Broker(**options, like="4.3") as broker, talk(broker, **QUIET) as client:
        await client.say(stream(), publish("", "q", b"1"), LIMITED, consume("c", arguments=first))
        broker.clock.advance(7200)
        await client.say(publish("", "q", b"2"), consume("d", arguments={"x-stream-offset": "1h"}))
        assert client.bodies() == [b"1", b"2", b"2"]
        assert await client.say(Basic.Ack(0, True), Basic.Cancel("c"), publish("", "q", b"3")) != []
        assert client.bodies() == [b"1", b"2", b"2", b"3"]
        broker.assert_queue("q", ready=[b"1", b"2", b"3"], unacknowledged=0)


async def test_a_local_random_exchange_takes_its_queues_by_turns(options: dict[str, Any]) -> None:
    names = ("q", "q1", "q2")
    async with Broker(**options, like="4.0") as broker, talk(broker, **QUIET) as client:
        await client.say(RANDOM, *map(queue, names), *(bind(queue=name, exchange="e") for name in names))
        await client.say(*[publish("e", str(number)) for number in range(6)])
        assert {name: len(each.ready) for name, each in broker.queues().items()} == dict.fromkeys(names, 2)


@pytest.mark.parametrize("declared", [queue(), quorum(), stream(), durable(queue())], ids=str)
async def test_what_a_deleted_queue_held_is_not_kept(options: dict[str, Any], declared: Any) -> None:
    async with Broker(**options, like="4.3") as broker, talk(broker, **QUIET) as client:
        await client.say(declared, *[publish("", "q", b"1")] * 5, LIMITED, consume("c"))
        await client.say(amqp.Queue.Delete(queue="q"))
        assert broker.store.octets == 0
