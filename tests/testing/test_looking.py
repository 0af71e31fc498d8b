"""What tests may look at: queues, what was published, and texts of assertions; the clock; ids."""

from __future__ import annotations

from typing import Any

import pytest
from probes import bind, consume, declare, get, queue
from probing import publish
from talking import talk

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import connect
from amqpcodec.connection import ClientLogin
from amqpcodec.reply_errors import AmqpAccessRefused, AmqpNotAllowed, AmqpNotFound
from amqpcodec.testing import Broker
from amqpcodec.testing.clock import FORGOTTEN

Basic, Confirm = amqp.Basic, amqp.Confirm


async def test_messages_tell_how_they_went_on(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(
            queue(), Confirm.Select(), *[publish("", "q", b"%d" % number) for number in range(4)]
        )
        await client.say(get(no_ack=False), get(no_ack=False), get(no_ack=False))
        await client.say(Basic.Ack(1), Basic.Reject(2, False))
        states = [message.settled["q"] for message in broker.published(routing_key="q", confirm="ack")]
        assert states == ["acknowledged", "rejected", "unacknowledged", "ready"]
        found = broker.queue("q")
        assert ([each.body for each in found.ready], [each.body for each in found.unacknowledged]) == (
            [b"3"], [b"2"],
        )  # fmt: skip


async def test_consumers_bindings_and_connections_are_seen(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(), bind(queue="q", exchange="amq.topic", routing_key="a.#"))
        await client.say(publish("", "q"), consume("c", arguments={"x-priority": 5}))
        (consumer,) = broker.consumers()
        assert (consumer.tag, consumer.queue, consumer.priority, consumer.unacknowledged) == ("c", "q", 5, 1)
        (binding,) = broker.bindings()
        assert (binding.source, binding.destination, binding.routing_key) == ("amq.topic", "q", "a.#")
        (connection,) = broker.connections()
        assert (connection.number, connection.user, connection.channels) == (1, "guest", (1, 2, 3))
    assert broker.consumers() == []


async def test_an_assertion_says_what_differs(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(), publish("", "q", b"one", message_id="m-1"), publish("", "none", b"two"))
    broker.assert_published(routing_key="q", message_id="m-1", count=1)
    with pytest.raises(AssertionError) as raised:
        broker.assert_published(routing_key="q", body=b"two")
    assert str(raised.value).splitlines() == [
        "published with routing_key='q', body=b'two': 0 messages, not any",
        "  1. <message to '' by 'q': b'one'; q: ready>",
        "       body is b'one', not b'two'",
        "  2. <message to '' by 'none': b'two'; in no queue>",
        "       routing_key is 'none', not 'q'",
    ]


async def test_an_assertion_about_a_queue_says_what_differs(broker: Broker) -> None:
    broker.publish("", "none", b"lost")
    async with talk(broker) as client:
        await client.say(queue())
    broker.publish("", "q", b"1", message_id="m")
    broker.assert_queue("q", ready=[b"1"], unacknowledged=0, durable=False)
    with pytest.raises(AssertionError, match=r"ready is 1, not 2"):
        broker.assert_queue("q", ready=2)
    with pytest.raises(AmqpNotFound):
        broker.queue("none")


async def test_names_that_messages_do_not_have_are_errors(broker: Broker) -> None:
    broker.history.add(broker.publish("", "q", b"1"))
    with pytest.raises(TypeError, match="messages have no 'rooting_key'"):
        broker.published(rooting_key="q")


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (
            {"settled": "acked"},
            "no message is ever settled='acked', but 'ready', 'unacknowledged', 'acknowledged'",
        ),
        ({"settled": {"q": "done"}}, "no message is ever settled='done', but 'ready', "),
        ({"confirm": "acked"}, "no message is ever confirm='acked', but '', 'ack', 'nack'"),
    ],
)
async def test_states_that_messages_are_never_in_are_errors(
    broker: Broker, wanted: dict[str, Any], text: str
) -> None:
    for look in (broker.published, broker.assert_published):
        with pytest.raises(ValueError, match=text):
            look(**wanted)


async def test_what_a_transaction_publishes_is_seen_once_it_is_committed(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(), amqp.Tx.Select(), publish("", "q", b"1"))
        assert broker.published() == []
        await client.say(amqp.Tx.Rollback(), publish("", "q", b"2"), amqp.Tx.Commit())
        assert [message.body for message in broker.published(settled="ready")] == [b"2"]


async def test_old_messages_are_counted_alone(options: dict[str, Any]) -> None:
    async with Broker(kept=2, **options) as broker, talk(broker) as client:
        await client.say(*[publish("", "none", b"%d" % number) for number in range(5)])
        assert [message.body for message in broker.published()] == [b"3", b"4"]
        with pytest.raises(AssertionError, match="3 older messages are not kept"):
            broker.assert_published(body=b"0")


async def test_ids_are_the_same_in_every_run(options: dict[str, Any]) -> None:
    for _ in range(2):
        async with Broker(**options) as broker, talk(broker) as client:
            said = await client.say(declare(), declare(), queue(), consume(""), consume(""))
            assert [answer[2] for answer in said] == [
                "amq.gen-1",
                "amq.gen-2",
                "q",
                "amq.ctag-1",
                "amq.ctag-2",
            ]


async def test_the_clock_moves_time_to_live_and_dead_letters(broker: Broker) -> None:
    async with talk(broker) as client:
        dead = queue(message_ttl=60_000, dead_letter_exchange="", dead_letter_routing_key="dead")
        await client.say(queue("dead"), dead, publish("", "q", b"1"))
        before = broker.clock.now()
        broker.clock.advance(3600)
        broker.assert_queue("q", ready=0)
        (letter,) = broker.queue("dead").ready
        (death,) = letter.headers["x-death"]
        assert (
            59 <= (death["time"] - before).total_seconds() <= 62
        )  # when it died, not when the clock stood still


async def test_the_clock_moves_expiry_of_queues(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(expires=60_000))
        broker.clock.advance(59)
        await client.say(get())
        broker.clock.advance(59)
        assert "q" in broker.queues()
        broker.clock.advance(2)
        assert "q" not in broker.queues()


async def test_a_silent_client_is_given_up_by_the_clock(broker: Broker) -> None:
    async with talk(broker, heartbeat=60) as client:
        broker.clock.advance(179)  # the first interval is that in which it has come
        assert len(broker.connections()) == 1
        broker.clock.advance(1)
        await client.ended()
        assert broker.connections() == []


async def test_a_client_that_sends_late_in_an_interval_may_be_silent_for_two_more(broker: Broker) -> None:
    async with talk(broker, heartbeat=60) as client:
        broker.clock.advance(119)
        await client.say(queue())
        broker.clock.advance(60)
        assert await client.say(queue()) == [(1, "queue.declare-ok", "q", 0, 0)]
        broker.clock.advance(121)
        await client.ended()


async def test_a_client_that_is_not_read_is_not_silent(broker: Broker) -> None:
    async with talk(broker, heartbeat=60) as client:
        broker.block()
        await client.say(publish("", "q"), is_answered=False)
        broker.clock.advance(600)
        broker.unblock()
        assert await client.say(queue()) == [(1, "queue.declare-ok", "q", 0, 0)]


async def test_what_is_cancelled_does_not_become_due_and_is_forgotten(broker: Broker) -> None:
    done: list[int] = []
    at = broker.clock.time() + 5
    timers = [broker.clock.call_at(at, done.append, number) for number in range(1000)]
    assert {timer.when() for timer in timers} == {at}
    for timer in timers[2:]:
        timer.cancel()
    assert len(broker.clock._timers) < 2 * FORGOTTEN + 10
    broker.clock.advance(6)
    assert done == [0, 1]


async def test_the_clock_does_not_run_backwards(broker: Broker) -> None:
    with pytest.raises(ValueError, match="forwards"):
        broker.clock.advance(-1)


async def test_users_and_virtual_hosts_are_checked(options: dict[str, Any]) -> None:
    async with Broker(users={"ann": "s3cret"}, virtual_hosts=("/", "other/one"), **options) as broker:
        async with talk(broker, broker.url_of("ann", "other/one")) as client:
            await client.say(queue())
        assert (broker.queues(), list(broker.queues("other/one"))) == ({}, ["q"])
        with pytest.raises(AmqpAccessRefused, match="ACCESS_REFUSED - Login was refused using"):
            await connect(broker.url, login=ClientLogin("ann", "wrong"))
        with pytest.raises(AmqpNotAllowed, match="NOT_ALLOWED - vhost none not found"):
            await connect(broker.url, login=ClientLogin("ann", "s3cret", "none"))


async def test_a_secret_may_be_updated(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.do(0, amqp.Connection.UpdateSecret(b"new", "time"))
        await client.quiet(0.02)
        assert client.answers == [(0, "connection.update-secret-ok")]


async def test_replies_come_without_a_queue(broker: Broker) -> None:
    async with talk(broker) as asking, talk(broker) as answering:
        await asking.say(consume("r", "amq.rabbitmq.reply-to", no_ack=True))
        await answering.say(queue(), consume("c"))
        await asking.say(publish("", "q", b"ask", reply_to="amq.rabbitmq.reply-to"))
        await answering.quiet(0.02)
        name = answering.deliveries[0][-2]["reply_to"]
        returned = await answering.say(publish("", name, b"answer", mandatory=True))
        assert returned == [(1, "basic.return", 312, "NO_ROUTE", "", name, {}, b"answer")]
        broker.publish("", name, b"of the test")
        await asking.quiet(0.02)
        assert asking.bodies() == [b"answer", b"of the test"]
        await asking.say(Basic.Cancel("r"))
        assert (await answering.say(publish("", name, mandatory=True)))[-1][1:3] == ("basic.return", 312)


async def test_a_broker_that_is_reset_is_empty(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(), publish("", "q", b"1"))
        broker.reset()
        await client.ended()
    assert (broker.queues(), broker.published(), broker.store.objects, broker.store.octets) == ({}, [], 0, 0)
