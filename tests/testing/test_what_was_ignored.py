"""What earlier brokers of this kind ignored without a word: each is done here, or refused."""

from __future__ import annotations

from typing import Any

import pytest
from probes import bind, consume, declare, delete, exchange, get, passive, queue, three
from probing import publish
from talking import talk

from amqpcodec import rabbitmq as amqp
from amqpcodec.testing import Broker

Basic, Exchange = amqp.Basic, amqp.Exchange


def code(answer: Any) -> int:
    """Return the reply code of a close of a channel."""
    assert answer[1] == "channel.close"
    return int(answer[2])


async def test_a_queue_that_is_not_empty_stays_if_it_is_to_be_empty(broker: Broker) -> None:
    async with talk(broker) as client:
        said = await client.say(queue(), publish("", "q"), delete(queue="q", if_empty=True))
        assert code(said[-1]) == 406
        broker.assert_queue("q", ready=1)


async def test_a_queue_that_is_used_stays_if_it_is_to_be_unused(broker: Broker) -> None:
    async with talk(broker) as client:
        said = await client.say(queue(), consume("c"), delete(queue="q", if_unused=True))
        assert code(said[-1]) == 406
        assert "q" in broker.queues()


async def test_an_internal_exchange_takes_nothing_from_clients(broker: Broker) -> None:
    async with talk(broker) as client:
        said = await client.say(exchange(exchange="e", internal=True), publish("e", ""))
        assert code(said[-1]) == 403


async def test_an_exchange_that_deletes_itself_goes_with_its_last_binding(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(), exchange(exchange="e", auto_delete=True), bind(queue="q", exchange="e"))
        assert "e" in broker.exchanges()
        await client.say(delete(queue="q"))
        assert "e" not in broker.exchanges()


async def test_another_durability_is_refused(broker: Broker) -> None:
    async with talk(broker) as client:
        said = await client.say(declare(queue="q", durable=True), declare(queue="q"))
        assert code(said[-1]) == 406


async def test_an_exclusive_consumer_is_the_only_one(broker: Broker) -> None:
    async with talk(broker) as client:
        said = await client.say(queue(), consume("c", exclusive=True), consume("d"))
        assert code(said[-1]) == 403


@pytest.mark.parametrize(
    "step", [declare(queue="amq.q"), exchange(exchange="amq.e")], ids=["queue", "exchange"]
)
async def test_names_of_the_broker_are_reserved(broker: Broker, step: Any) -> None:
    async with talk(broker) as client:
        assert code((await client.say(step))[-1]) == 403


async def test_nothing_is_bound_to_the_default_exchange(broker: Broker) -> None:
    async with talk(broker) as client:
        assert code((await client.say(queue(), bind(queue="q", exchange="")))[-1]) == 403
        assert broker.bindings() == []


async def test_unbinding_what_is_not_bound_needs_no_right_to_the_queue(broker: Broker) -> None:
    async with talk(broker) as owner, talk(broker) as other:
        await owner.say(declare(queue="q", exclusive=True), bind(queue="q", exchange="amq.direct"))
        unbind = amqp.Queue.Unbind(queue="q", exchange="amq.direct", routing_key="none")
        assert await other.say(unbind) == [(1, "queue.unbind-ok")]
        unbind.routing_key = ""
        assert code((await other.say(unbind))[-1]) == 405


async def test_an_alternate_exchange_gets_what_is_not_routed(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(
            queue(), bind(queue="q", exchange="amq.fanout"),
            exchange(exchange="e", arguments={"alternate-exchange": "amq.fanout"}), publish("e", "none"),
        )  # fmt: skip
        broker.assert_queue("q", ready=1)


async def test_a_message_ends_when_it_says_so(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(), publish("", "q", b"1", expiration="1000"))
        broker.assert_queue("q", ready=1)
        broker.clock.advance(1.1)
        broker.assert_queue("q", ready=0)
        broker.assert_published(body=b"1", settled="expired")


async def test_a_limit_of_a_channel_is_of_all_its_consumers(broker: Broker) -> None:
    async with talk(broker) as client:
        qos = Basic.Qos(prefetch_count=2, global_=True)
        await client.say(queue(), qos, consume("c"), consume("d"), *three())
        assert client.bodies() == [b"1", b"2"]


async def test_queues_that_share_the_limit_of_a_channel_take_turns(broker: Broker) -> None:
    async with talk(broker) as client:
        names = ["q", "q1", "q2"]
        full = [step for name in names for step in (queue(name), *[publish("", name, name.encode())] * 2)]
        consumers = [consume(f"c{name}", name) for name in names]
        await client.say(*full, Basic.Qos(prefetch_count=1, global_=True), *consumers)
        for tag in range(1, 6):
            await client.say(Basic.Ack(tag))
        assert client.bodies() == [b"q", b"q1", b"q2"] * 2


async def test_a_queue_that_is_looked_up_lives_longer(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(expires=1000))
        for _ in range(2):
            broker.clock.advance(0.75)
            await client.say(passive())
        broker.assert_queue("q", ready=0)
        broker.clock.advance(1.0)
        assert code((await client.say(passive()))[-1]) == 404


async def test_requeueing_one_by_one_keeps_the_order(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(), *three(), *[get(no_ack=False)] * 3)
        await client.say(*[Basic.Reject(tag, True) for tag in (1, 2, 3)])
        broker.assert_queue("q", ready=[b"1", b"2", b"3"])


async def test_all_exchanges_of_the_broker_are_there(broker: Broker) -> None:
    own = ("direct", "fanout", "topic", "headers", "match", "rabbitmq.trace")
    assert set(broker.exchanges()) == {"", *(f"amq.{name}" for name in own)}
