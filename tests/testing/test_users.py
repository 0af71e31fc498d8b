"""Users of a broker: tokens that are over at a time, and what each may use."""

from __future__ import annotations

from typing import Any

import pytest
from probes import Basic, Exchange, Queue, consume, passive, queue
from probing import publish
from talking import SOON, Talk, talk

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import Credentials, connect
from amqpcodec.reply_errors import AmqpAccessRefused
from amqpcodec.testing import Broker

OVER = 320, "CONNECTION_FORCED - credential expired", 0, 0
RENEWED = (0, "connection.update-secret-ok")


def comes(broker: Broker, token: str = "one") -> Any:
    """Connect with a token."""
    return talk(broker, login=Credentials(token, "app"))


async def renew(client: Talk, token: str) -> list[Any]:
    """Give the broker another token; return the answer."""
    before = len(client.answers)
    await client.do(0, amqp.Connection.UpdateSecret(token.encode(), "renewed"))
    return client.answers[before:]


async def test_a_connection_of_4_3_ends_with_its_token(options: dict[str, Any]) -> None:
    async with Broker(like="4.3", **options) as broker:
        broker.add_user("app", "one", seconds=60)
        async with comes(broker) as client:
            broker.clock.advance(59)
            assert await client.say(queue()) == [(1, "queue.declare-ok", "q", 0, 0)]
            broker.clock.advance(1)
            await client.ended()
            assert client.answers[-1] == (0, "connection.close", *OVER)
        with pytest.raises(AmqpAccessRefused, match="ACCESS_REFUSED - Login was refused using"):
            await connect(broker.url, login=Credentials("one", "app"))


@pytest.mark.parametrize(("like", "told"), [("3.10", "access"), ("4.0", "write access")])
async def test_what_a_token_that_is_over_asks_for_is_refused_before_4_3(
    options: dict[str, Any], like: Any, told: str
) -> None:
    async with Broker(like=like, **options) as broker:
        broker.add_user("app", "one", seconds=60)
        async with comes(broker) as client:
            await client.say(queue(), consume("c"))
            broker.clock.advance(60)
            [refused] = await client.say(publish("", "q"), is_answered=False)
            where = f"ACCESS_REFUSED - {told} to exchange 'amq.default' in vhost '/' refused for user 'app', "
            assert refused[1:4] == ("channel.close", 403, refused[3])
            assert refused[3].startswith(f"{where}backend rabbit_auth_backend_oauth2 returned an error: ")
            assert '"Provided JWT token has expired at timestamp ' in refused[3]
            await client.do(2, passive())  # which needs no right
            assert client.answers[-1] == (2, "queue.declare-ok", "q", 0, 0)
            broker.add_user("app", "two", seconds=60)
            assert await renew(client, "two") == [RENEWED]
            await client.do(2, queue())
            assert client.answers[-1] == (2, "queue.declare-ok", "q", 0, 0)


async def test_what_is_consumed_goes_on_after_a_token_is_over_before_4_3(options: dict[str, Any]) -> None:
    async with Broker(like="4.0", **options) as broker:
        broker.add_user("app", "one", seconds=60)
        async with comes(broker) as client:
            await client.say(queue(), consume("c"))
            broker.clock.advance(60)
            broker.publish("", "q", b"1")
            await client.quiet(SOON)
            assert client.bodies() == [b"1"]
            assert await client.say(Basic.Ack(1)) == []


async def test_a_connection_goes_on_with_a_token_that_is_renewed(options: dict[str, Any]) -> None:
    async with Broker(like="4.3", **options) as broker:
        broker.add_user("app", "one", seconds=60)
        async with comes(broker) as client:
            broker.clock.advance(50)
            broker.add_user("app", "two", seconds=60)
            assert await renew(client, "two") == [RENEWED]
            broker.clock.advance(59)
            assert await client.say(queue()) == [(1, "queue.declare-ok", "q", 0, 0)]
            broker.clock.advance(1)
            await client.ended()
            assert client.answers[-1] == (0, "connection.close", *OVER)


@pytest.mark.parametrize(
    ("like", "secret", "text"),
    [
        ("3.10", "none", "New secret was refused by one of the backends"),
        ("4.0", "none", "New secret was refused by one of the backends"),
        ("4.3", "none", "Secret update failed"),
        ("4.3", "guest", "New secret was refused by one of the backends"),
    ],
)
async def test_a_secret_that_is_not_the_users_ends_the_connection(
    options: dict[str, Any], like: Any, secret: str, text: str
) -> None:
    async with Broker(like=like, **options) as broker:
        broker.add_user("app", "one", seconds=60)
        async with comes(broker) as client:
            assert await renew(client, secret) == [
                (0, "connection.close", 530, f"NOT_ALLOWED - {text}", 10, 70)
            ]


async def test_a_secret_that_is_over_is_refused_from_4_3_on(options: dict[str, Any]) -> None:
    async with Broker(like="4.3", **options) as broker:
        broker.add_user("app", "one", seconds=60)
        async with comes(broker) as client:
            broker.add_user("app", "two", seconds=1)
            broker.clock.advance(2)
            [closed] = await renew(client, "two")
            assert closed[:3] == (0, "connection.close", 530)
            assert closed[3].startswith(
                "NOT_ALLOWED - access to vhost '/' refused for user 'app', backend rabbit"
            )


async def test_a_password_is_over_at_no_time_and_any_secret_takes_its_place(options: dict[str, Any]) -> None:
    async with Broker(like="4.3", **options) as broker:
        broker.add_user("app", "one")
        async with talk(broker, login=Credentials("one", "app"), heartbeat=0) as client:
            broker.clock.advance(3600)
            assert await renew(client, "anything") == [RENEWED]
            assert await client.say(queue()) == [(1, "queue.declare-ok", "q", 0, 0)]


async def test_a_token_that_is_over_ends_no_other_connection(options: dict[str, Any]) -> None:
    async with Broker(like="4.3", **options) as broker:
        broker.add_user("app", "one", seconds=60)
        async with comes(broker) as client, talk(broker) as other:
            broker.clock.advance(60)
            await client.ended()
            assert await other.say(queue()) == [(1, "queue.declare-ok", "q", 0, 0)]


async def test_a_user_may_use_what_its_patterns_name(broker: Broker) -> None:
    broker.add_user("app", "one", configure="^mine", write="^(mine|amq.default)", read="")
    async with comes(broker) as client:
        assert await client.say(queue("mine"), publish("", "mine")) == [(1, "queue.declare-ok", "mine", 0, 0)]
        for channel, step, what in (
            (1, Basic.Get(queue="mine"), "queue 'mine'"),
            (2, Exchange.Declare(exchange="e", type="topic"), "exchange 'e'"),
            (3, Queue.Declare(queue="", exclusive=True), "queue 'amq.gen-1'"),
        ):
            await client.do(channel, step)
            text = f"ACCESS_REFUSED - access to {what} in vhost '/' refused for user 'app'"
            assert client.answers[-1][:4] == (channel, "channel.close", 403, text)
    broker.assert_queue("mine", ready=1)


async def test_users_that_a_test_has_added_are_gone_after_a_reset(broker: Broker) -> None:
    broker.add_user("app", "one")
    assert broker.url_of("app").startswith("amqp://app:one@")
    broker.reset()
    with pytest.raises(ValueError, match="no user 'app'; there are guest"):
        broker.url_of("app")


@pytest.mark.parametrize(
    ("options_of_user", "text"),
    [
        ({"seconds": 0}, "a token holds for more than 0 seconds, not for 0"),
        ({"read": "("}, r"read='\(' is no pattern: missing \)"),
    ],
)
async def test_a_user_who_cannot_be_is_refused(
    broker: Broker, options_of_user: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        broker.add_user("app", "one", **options_of_user)
