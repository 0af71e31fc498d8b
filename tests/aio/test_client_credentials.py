"""Credentials that change: asked for before each connection, and renewed on it before they end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.scripted_broker import Received, hold
from world import World

from amqpcodec.aio import Backoff, Credentials, connect, renewal
from amqpcodec.reply_errors import AmqpAccessRefused
from amqpcodec.testing import Broker

QUICK = Backoff(first=0.01, most=0.02)
VERSIONS = ("3.10", "4.0", "4.3")


class Tokens:
    """A service that gives a new token each time, of which the broker knows the last."""

    def __init__(self, world: World, seconds: float | None = None) -> None:
        self.given: list[str] = []
        self._seconds = seconds
        self._broker = world.broker
        self._broker.users.clear()

    async def __call__(self) -> Credentials:
        await asyncio.sleep(0)
        self.given.append(f"token {len(self.given) + 1}")
        self._broker.add_user("app", self.given[-1])
        return Credentials(self.given[-1], "app", self._seconds)


async def test_each_connection_has_new_credentials(world: World) -> None:
    tokens = Tokens(world)
    async with world.client(credentials=tokens) as client:
        channel = await client.channel()
        await channel.publish(b"1")
        world.broker.peers[0].close(320, "CONNECTION_FORCED - credential expired")
        await channel.publish(b"2")
    assert tokens.given == ["token 1", "token 2"]
    assert world.broker.received("connection.update-secret") == []


async def test_a_living_connection_gets_new_credentials_before_the_old_ones_end(world: World) -> None:
    tokens = Tokens(world, seconds=0.05)
    async with world.client(credentials=tokens) as client:
        began = asyncio.get_running_loop().time()
        updates = await world.broker.got("connection.update-secret", 2)
        assert asyncio.get_running_loop().time() - began > 0.06
        await (await client.channel()).publish(b"1")
    assert [each.method.new_secret for each in updates] == [b"token 2", b"token 3"]
    assert len(world.broker.peers) == 1


@pytest.mark.parametrize("like", VERSIONS)
async def test_a_connection_outlives_its_tokens_while_they_are_renewed(world: World, like: Any) -> None:
    async with Broker(like=like, dialect=world.amqp) as broker:
        asked: asyncio.Queue[str] = asyncio.Queue()

        async def provide() -> Credentials:
            asked.put_nowait(token := f"token {asked.qsize()}")
            broker.add_user("app", token, seconds=60)
            return Credentials(token, "app", seconds=0.02)

        async with world.client(broker.url, credentials=provide, backoff=QUICK) as client:
            channel = await client.channel()
            for _ in range(3):
                for _ in range(2):  # who is asked again has been answered about the token before
                    await asked.get()
                broker.clock.advance(40)
            await channel.publish(b"1", mandatory=False)
            assert [each.number for each in broker.connections()] == [1]


@pytest.mark.parametrize(
    ("like", "text"),
    [
        ("3.10", "ACCESS_REFUSED - access to exchange 'amq.default' .* token has expired"),
        ("4.0", "ACCESS_REFUSED - write access to exchange 'amq.default' .* token has expired"),
        ("4.3", "ACCESS_REFUSED - Login was refused"),
    ],
)
async def test_a_token_that_is_over_and_not_renewed_is_told(world: World, like: Any, text: str) -> None:
    async with Broker(like=like, dialect=world.amqp) as broker:
        broker.add_user("app", "token", seconds=60)
        async with world.client(broker.url, login=Credentials("token", "app")) as client:
            channel = await client.channel()
            await channel.publish(b"1", mandatory=False)
            broker.clock.advance(60)
            with pytest.raises(AmqpAccessRefused, match=text):
                await channel.publish(b"2", mandatory=False)


async def test_credentials_that_end_at_once_are_not_renewed_without_a_pause(world: World) -> None:
    tokens = Tokens(world, seconds=0)
    began = asyncio.get_running_loop().time()
    async with world.client(credentials=tokens, backoff=Backoff(first=0.05)):
        await asyncio.sleep(0.12)
        assert len(tokens.given) <= 1 + (asyncio.get_running_loop().time() - began) / 0.05


@pytest.mark.parametrize("how", ["the program", "the broker"])
async def test_a_renewal_that_fails_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    monkeypatch.setattr(renewal, "ASKED_SECONDS", 0.02)
    tokens = Tokens(world, seconds=0.02)
    asked = 0

    async def provide() -> Credentials:
        nonlocal asked
        asked += 1
        if asked == 2 and how == "the program":
            raise RuntimeError("no tokens today")
        return await tokens()

    if how == "the broker":
        world.broker.on("connection.update-secret", hold)
    async with world.client(credentials=provide, backoff=QUICK):
        await world.broker.got("connection.update-secret")
        world.broker.on("connection.update-secret", Received.answer)
        await world.broker.got("connection.update-secret", 2)
    assert len(world.broker.peers) == 1
    why = "no tokens today" if how == "the program" else "no answer to connection.update-secret within 0.02"
    assert "credentials are not renewed" in caplog.text
    assert why in caplog.text
    assert "token 1" not in caplog.text


async def test_a_renewal_that_is_refused_is_followed_by_another_connection(world: World) -> None:
    def refuse(received: Received) -> None:
        spec = received.method.spec
        text = "NOT_ALLOWED - New secret was refused by one of the backends"
        received.peer.connection.close(530, text, spec.class_id, spec.method_id)

    tokens = Tokens(world, seconds=0.02)
    world.broker.on("connection.update-secret", refuse, connection=1)
    async with world.client(credentials=tokens):
        await world.broker.connected(2)
        await world.broker.got("connection.update-secret", 1, connection=2)


async def test_a_connection_that_is_lost_does_not_wait_for_the_program(world: World) -> None:
    began = asyncio.Event()
    asked = 0

    async def provide() -> Credentials:
        nonlocal asked
        asked += 1
        if asked == 2:
            began.set()
            await asyncio.sleep(60)
        return Credentials("guest", "guest", seconds=0.02 if asked == 1 else None)

    async with world.client(credentials=provide) as client:
        await began.wait()
        world.broker.peers[0].abort()
        await world.broker.connected(2)
        await (await client.channel()).publish(b"1")


async def test_a_program_that_has_no_credentials_for_now_is_asked_again(world: World) -> None:
    asked = 0

    async def provide() -> Credentials:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise ConnectionRefusedError("the service is down")
        return Credentials("guest", "guest")

    async with world.client(credentials=provide):
        assert asked == 2


async def late() -> Any:
    await asyncio.sleep(60)


async def wrong() -> Any:
    return "token"


async def faulty() -> Any:
    raise RuntimeError("no tokens")


@pytest.mark.parametrize(
    ("provide", "error", "text"),
    [
        (wrong, TypeError, "credentials must return Credentials, not str"),
        (lambda: "token", TypeError, "credentials must be a coroutine function"),
        (faulty, RuntimeError, "no tokens"),
        (late, TimeoutError, "no credentials within 0.02 seconds"),
    ],
)
async def test_what_a_program_does_wrong_ends_the_client(
    world: World, monkeypatch: pytest.MonkeyPatch, provide: Any, error: type[Exception], text: str
) -> None:
    monkeypatch.setattr(renewal, "ASKED_SECONDS", 0.02)
    with pytest.raises(error, match=text):
        await world.client(credentials=provide, backoff=Backoff(first=0.01, attempts=2)).__aenter__()


async def test_credentials_take_the_place_of_those_of_the_url_and_of_nothing_else(world: World) -> None:
    world.broker.add_user("app", "secret")
    url = f"{world.broker.url}/%2F?name=mine"
    with pytest.raises(AmqpAccessRefused):
        await connect(url, login=Credentials("wrong", "app"), dialect=world.amqp)
    async with await connect(url, login=Credentials("secret", "app"), dialect=world.amqp):
        [*_, start_ok] = world.broker.received("connection.start-ok")
    assert start_ok.method.client_properties["connection_name"] == "mine"
    assert "secret" not in repr(Credentials("secret", "app"))


def test_who_gives_credentials_gives_no_login(world: World) -> None:
    with pytest.raises(ValueError, match="credentials are in place of login"):
        world.client("amqp://localhost", credentials=wrong, login=Credentials("secret"))
