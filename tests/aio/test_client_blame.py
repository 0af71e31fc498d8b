"""A client gives up a message that ends its connections, after some ends; all else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from support.scripted_broker import Peer, Received, deliver, hold
from world import World, numbers, outcomes, published

from amqpcodec.aio import Backoff, Client
from amqpcodec.errors import ConnectionLostError
from amqpcodec.reply_errors import AmqpCommandInvalid, AmqpInternalError, AmqpNotAllowed, AmqpNotImplemented

POISON = b"0"
ENDS: dict[str, Callable[[Peer], object]] = {
    "crash": lambda peer: peer.close(541, "INTERNAL_ERROR"),
    "closed": Peer.hang_up,
    "reset": Peer.abort,
}
ERRORS = {"crash": AmqpInternalError, "closed": ConnectionLostError, "reset": ConnectionLostError}


def refuse(received: Received, code: int = 541) -> None:
    """End the connection by a code that names a method, as RabbitMQ does for what it does not permit."""
    spec = received.method.spec
    received.peer.connection.close(code, "not permitted", spec.class_id, spec.method_id)


def dies_of(end: Callable[[Peer], object]) -> Callable[[Received], None]:
    """Confirm messages, and end the connection at the poisonous one."""

    def react(received: Received) -> None:
        if received.body == POISON:
            end(received.peer)
        else:
            received.ack()

    return react


@pytest.mark.parametrize("end", ENDS)
async def test_a_message_that_always_ends_the_connection_is_given_up_with_the_brokers_error(
    world: World, end: str
) -> None:
    world.broker.on("basic.publish", dies_of(ENDS[end]))
    async with world.client() as client:
        channel = await client.channel()
        with pytest.raises(ERRORS[end]) as caught:
            await channel.publish(POISON)
        assert "the broker ends the connection for it" in caught.value.__notes__[0]
        await channel.publish(b"1")
        stats = client.stats()
    assert len(world.broker.peers) == 4
    assert (stats.unconfirmed, stats.confirmed) == (1, 1)


@pytest.mark.parametrize(("most", "connections"), [(1, 2), (2, 3), (5, 6)])
async def test_a_program_says_after_how_many_ends(world: World, most: int, connections: int) -> None:
    world.broker.on("basic.publish", dies_of(ENDS["crash"]))
    async with world.client(give_up_after=most) as client:
        channel = await client.channel()
        with pytest.raises(AmqpInternalError):
            await channel.publish(POISON)
        await channel.publish(b"1")
    assert len(world.broker.peers) == connections


async def test_a_program_that_never_gives_up_says_so(world: World) -> None:
    world.broker.on("basic.publish", dies_of(ENDS["crash"]))
    async with world.client(give_up_after=None) as client:
        sent = asyncio.ensure_future((await client.channel()).publish(POISON))
        await world.broker.connected(8)
        assert not sent.done()
        world.broker.on("basic.publish", Received.answer)
        await sent


def test_a_number_of_ends_is_positive(world: World) -> None:
    with pytest.raises(ValueError, match="give_up_after must be positive, not 0"):
        world.client("amqp://localhost", give_up_after=0)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("place", [1, 10, 30])
async def test_those_that_were_on_their_way_with_it_are_confirmed(world: World, end: str, place: int) -> None:
    """The broker has read none of those that come after it, and its confirms of those before are lost."""
    world.broker.on("basic.publish", dies_of(ENDS[end]))
    async with world.client() as client:
        channel, other = await client.channel(), await client.channel()
        bodies = [b"%d" % number for number in range(1, 31)]
        bodies.insert(place - 1, POISON)
        sent = [asyncio.ensure_future(channel.publish(body)) for body in bodies]
        others = published(other, 10)
        wanted = ["ok"] * 31
        wanted[place - 1] = ERRORS[end].__name__
        assert await outcomes(*sent, *others) == wanted + ["ok"] * 10
    assert len(world.broker.peers) <= 6


async def test_two_of_them_are_both_given_up(world: World) -> None:
    world.broker.on("basic.publish", dies_of(ENDS["crash"]))
    async with world.client() as client:
        first, second = await client.channel(), await client.channel()
        sent = [
            asyncio.ensure_future(each.publish(body))
            for each in (first, second)
            for body in (b"1", POISON, b"2")
        ]
        assert await outcomes(*sent) == ["ok", "AmqpInternalError", "ok"] * 2


async def test_what_is_given_up_costs_no_attempts(world: World) -> None:
    world.broker.on("basic.publish", dies_of(ENDS["crash"]))
    async with world.client(backoff=Backoff(first=0.01, attempts=3)) as client:
        channel = await client.channel()
        with pytest.raises(AmqpInternalError):
            await channel.publish(POISON)
        await channel.publish(b"1")


@pytest.mark.parametrize("end", ["forced", "silent"])
async def test_ends_that_no_message_causes_are_not_counted(world: World, end: str) -> None:
    """A broker that is stopped, and a network that is down."""

    def react(received: Received) -> None:
        if received.connection > 6:
            received.ack()
        elif end == "forced":
            received.peer.close()
        else:
            client._link.stream.connection.on_time()  # type: ignore[union-attr]
            client._link.drop(ConnectionLostError("nothing came"))  # type: ignore[union-attr]

    world.broker.on("basic.publish", react)
    async with world.client() as client:
        await (await client.channel()).publish(b"1")
    assert len(world.broker.peers) == 7


@pytest.mark.parametrize("end", ENDS)
async def test_a_broker_that_does_not_read_ends_nothing_for_a_message(world: World, end: str) -> None:
    """One that is short of memory says so, and is killed again and again."""

    def react(received: Received) -> None:
        if received.connection > 5:
            received.ack()
        else:
            received.peer.block()

    world.broker.on("basic.publish", react)
    async with world.client() as client:
        sent = await (await client.channel()).publish_soon(b"1")
        for number in range(1, 6):
            await world.broker.got("basic.publish", 1, connection=number)
            while client._link is None or not client._link.is_blocked:
                await asyncio.sleep(0)
            ENDS[end](world.broker.peers[-1])
            await world.broker.connected(number + 1)
        await sent


async def test_a_message_that_is_confirmed_between_two_ends_counts_anew(world: World) -> None:
    ended = 0

    def react(received: Received) -> None:
        nonlocal ended
        ended += 1
        if ended % 3:
            received.peer.close(541, "INTERNAL_ERROR")
        else:
            received.ack()

    world.broker.on("basic.publish", react)
    async with world.client() as client:
        channel = await client.channel()
        for _ in range(4):
            await channel.publish(b"1")


async def test_a_broker_that_confirms_nothing_holds_up_no_others_for_long(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amqpcodec.aio.client.ALONE_SECONDS", 0.02)
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel()
        sent = published(channel, 3)
        for number in (1, 2):
            await world.broker.got("basic.publish", 3, connection=number)
            world.broker.peers[number - 1].close(541, "INTERNAL_ERROR")
        await world.broker.got("basic.publish", 1, connection=3)
        await asyncio.wait_for(client.call(world.amqp.Queue.Declare("q")), 1)
        came = await world.broker.got("basic.publish", 3, connection=3)
        for each in came:
            each.ack()
        assert await outcomes(*sent) == ["ok"] * 3


async def test_many_messages_that_are_tried_alone_hold_up_no_others_for_long(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some time those that are left are written together."""
    monkeypatch.setattr("amqpcodec.aio.client.ALONE_SECONDS", 60)
    monkeypatch.setattr("amqpcodec.aio.client.TRYING_SECONDS", 0)
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        sent = published(await client.channel(), 5)
        for number in (1, 2):
            await world.broker.got("basic.publish", 5, connection=number)
            world.broker.peers[number - 1].close(541, "INTERNAL_ERROR")
        [first] = await world.broker.got("basic.publish", 1, connection=3)
        await asyncio.sleep(0.01)
        assert len(world.broker.bodies(connection=3)) == 1
        first.ack()
        for each in (await world.broker.got("basic.publish", 5, connection=3))[1:]:
            each.ack()
        assert await outcomes(*sent) == ["ok"] * 5


async def test_a_channel_that_is_closed_while_its_messages_are_tried_alone_raises_to_them(
    world: World,
) -> None:
    world.broker.on("basic.publish", hold)
    world.broker.on("basic.publish", lambda received: received.close_channel(404), connection=3)
    async with world.client() as client:
        channel, other = await client.channel(), await client.channel()
        sent = published(channel, 3)
        for number in (1, 2):
            await world.broker.got("basic.publish", 3, connection=number)
            world.broker.peers[number - 1].close(541, "INTERNAL_ERROR")
        assert await outcomes(*sent) == ["AmqpNotFound"] * 3
        await other.call(world.amqp.Queue.Declare("q"))
    assert len(world.broker.bodies(connection=3)) == 1


async def test_a_message_beside_a_request_of_the_connection_is_not_blamed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amqpcodec.aio.client.ALONE_SECONDS", 0.02)

    def react(received: Received) -> None:
        if received.connection < 6:
            secret.append(asyncio.ensure_future(client.call(world.amqp.Connection.UpdateSecret(b"", ""))))
        else:
            received.ack()

    secret: list[asyncio.Future[Any]] = []
    world.broker.on("basic.publish", react)
    world.broker.on("connection.update-secret", lambda received: ENDS["crash"](received.peer))
    async with world.client(give_up_after=2) as client:
        await (await client.channel()).publish(b"1")
    assert await outcomes(*secret) == ["ConnectionLostError"] * len(secret)


@pytest.mark.parametrize("end", ["named", *ENDS])
async def test_a_message_beside_one_that_is_never_confirmed_is_not_blamed(
    world: World, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The client sends that one once, but the program may send the like again and again."""
    monkeypatch.setattr("amqpcodec.aio.client.ALONE_SECONDS", 0.02)

    def react(received: Received) -> None:
        if received.body == POISON:
            refuse(received) if end == "named" else ENDS[end](received.peer)
        elif received.connection > 4:
            received.ack()

    world.broker.on("basic.publish", react)
    async with world.client(give_up_after=2) as client:
        plain, channel = await client.channel(confirm=False), await client.channel()
        sent = await channel.publish_soon(b"1")
        for number in range(1, 5):
            await world.broker.got("basic.publish", 1, connection=number)
            await plain.publish(POISON)
            await world.broker.connected(number + 1)
        await sent


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("publishes", [False, True], ids=["alone", "beside a publisher"])
async def test_entering_a_consumer_that_always_ends_the_connection_raises_the_brokers_error(
    world: World, end: str, publishes: bool
) -> None:
    def react(received: Received) -> None:
        if received.method.queue == "bad":
            ENDS[end](received.peer)
        else:
            received.answer()
            received.deliver(b"1")

    world.broker.on("basic.consume", react)
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("good") as deliveries:
            sent = published(channel, 3) if publishes else []
            with pytest.raises(ERRORS[end]):
                await channel.consume("bad").__aenter__()
            assert (await anext(deliveries)).body == b"1"
            assert await outcomes(*sent) == ["ok"] * len(sent)
            await channel.publish(b"")
    assert len(world.broker.peers) <= 6


async def test_a_consumer_that_ends_connections_later_raises_to_who_iterates(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            world.broker.on("basic.consume", lambda received: ENDS["crash"](received.peer))
            world.broker.peers[0].abort()
            with pytest.raises(AmqpInternalError):
                await anext(deliveries)
        await channel.publish(b"")


@pytest.mark.parametrize("end", ENDS)
async def test_a_setup_that_always_ends_the_connection_in_one_way_is_raised_by_entering(
    world: World, end: str
) -> None:
    async def declare(client: Client) -> None:
        await client.call(world.amqp.Queue.Declare("q"))

    world.broker.on("queue.declare", lambda received: ENDS[end](received.peer))
    with pytest.raises(ERRORS[end]):
        await world.client(on_connect=declare).__aenter__()
    assert len(world.broker.peers) == 3


async def test_a_setup_that_succeeds_in_between_counts_anew(world: World) -> None:
    async def declare(client: Client) -> None:
        await client.call(world.amqp.Queue.Declare("q"))

    def react(received: Received) -> None:
        if received.connection % 3:
            ENDS["crash"](received.peer)
        else:
            received.answer()

    world.broker.on("queue.declare", react)
    async with world.client(on_connect=declare) as client:
        channel = await client.channel()
        for number in (6, 9):
            world.broker.peers[-1].abort()
            await world.broker.got("queue.declare", number)
            await channel.publish(b"")


# -- what is no crash: a code with the ids of a method

CODES = {503: AmqpCommandInvalid, 530: AmqpNotAllowed, 540: AmqpNotImplemented, 541: AmqpInternalError}


@pytest.fixture(params=CODES)
def code(request: pytest.FixtureRequest) -> int:
    """A code with which RabbitMQ ends the connection for one method."""
    number: int = request.param
    return number


async def test_a_method_that_is_refused_is_final_for_the_setup(world: World, code: int) -> None:
    """RabbitMQ refuses transient queues that are not exclusive by 541, where they are not permitted."""

    async def declare(client: Client) -> None:
        await client.call(world.amqp.Queue.Declare("q"))

    world.broker.on("queue.declare", lambda received: refuse(received, code))
    with pytest.raises(CODES[code], match="not permitted") as caught:
        await world.client(on_connect=declare).__aenter__()
    assert (caught.value.class_id, caught.value.method_id) == (50, 10)
    assert len(world.broker.peers) == 1


async def test_a_method_that_is_refused_is_raised_by_its_call_and_others_go_on(
    world: World, code: int
) -> None:
    """RabbitMQ deletes no quorum queue ``if_unused``, and says so by 540."""

    def react(received: Received) -> None:
        refuse(received, code) if received.method.queue == "bad" else hold(received)

    world.broker.on("queue.declare", react)
    world.broker.on("queue.purge", hold)
    world.broker.on("basic.publish", hold, connection=1)
    async with world.client() as client:
        channel = await client.channel()
        sent = published(channel, 2)
        purge = asyncio.ensure_future(client.call(world.amqp.Queue.Purge("q")))
        await world.broker.got("queue.purge")
        with pytest.raises(CODES[code], match="not permitted"):
            await client.call(world.amqp.Queue.Declare("bad"))
        assert await outcomes(purge, *sent) == ["ConnectionLostError", "ok", "ok"]
        assert client.stats().connections == 2


@pytest.mark.parametrize("name", ["basic.publish", "basic.consume"])
async def test_a_message_or_consumer_that_is_refused_is_not_sent_again(
    world: World, name: str, code: int
) -> None:
    world.broker.on(name, lambda received: refuse(received, code), connection=1)
    async with world.client() as client:
        channel = await client.channel()
        ask: Any = channel.publish(b"") if name == "basic.publish" else channel.consume("q").__aenter__()
        with pytest.raises(CODES[code], match="not permitted"):
            await ask
        await channel.publish(b"1")
    assert numbers(world.broker.bodies(connection=2)) == [1]
    assert world.broker.received("basic.consume", connection=2) == []


async def test_the_one_that_is_refused_of_many_messages_is_found(world: World, code: int) -> None:
    def react(received: Received) -> None:
        refuse(received, code) if received.body == POISON else received.ack()

    world.broker.on("basic.publish", react)
    async with world.client() as client:
        channel = await client.channel()
        sent = [asyncio.ensure_future(channel.publish(body)) for body in (b"1", b"2", POISON, b"3")]
        assert await outcomes(*sent) == ["ok", "ok", CODES[code].__name__, "ok"]
    assert len(world.broker.peers) == 3


@pytest.mark.parametrize("code", [503, 530, 540])
async def test_a_refusal_of_what_no_one_waits_for_ends_the_client(world: World, code: int) -> None:
    """An acknowledgement, say: another connection would end as soon."""
    world.broker.on("basic.ack", lambda received: refuse(received, code))
    world.broker.on("basic.consume", deliver(b"1"))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            assert (await anext(deliveries)).ack()
            with pytest.raises(CODES[code], match="not permitted"):
                await anext(deliveries)
    assert len(world.broker.peers) == 1


@pytest.mark.parametrize(
    "whose", ["access to vhost '/' refused for user 'a': ", "refused for user 'a': user "]
)
@pytest.mark.parametrize("servers", [1, 2])
async def test_a_place_among_connections_is_waited_for(world: World, whose: str, servers: int) -> None:
    """Where there is another server, it is tried at once."""

    def full(received: Received) -> None:
        spec, text = received.method.spec, f"NOT_ALLOWED - {whose}connection limit (1) is reached"
        received.peer.connection.close(530, text, spec.class_id, spec.method_id)

    world.broker.on("connection.open", full, connection=1)
    backoff = Backoff(first=0.01, attempts=3 - servers)
    async with world.client([world.broker.url] * servers, backoff=backoff) as client:
        await (await client.channel()).publish(b"")
    assert len(world.broker.peers) == 2


async def test_a_virtual_host_that_is_down_is_waited_for(world: World) -> None:
    """RabbitMQ says so by the 541 of connection.open."""
    world.broker.on("connection.open", refuse, connection=1)
    async with world.client() as client:
        await (await client.channel()).publish(b"")
    assert len(world.broker.peers) == 2
