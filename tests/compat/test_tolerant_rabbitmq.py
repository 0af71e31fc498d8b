"""Headers that a RabbitMQ lets into a queue, and that consumers on other libraries cannot read."""

from __future__ import annotations

import asyncio
import gc

import pytest
from support.marks import replaces
from support.poison import properties, sized

from amqpcodec import RawProperties, compat, rabbitmq
from amqpcodec.aio import connect
from amqpcodec.connection import ChannelClosed, ChannelOpened, ConnectionClosed, MethodReceived, Settled

pytest.importorskip("aio_pika")
pytest.importorskip("kombu")
pika = pytest.importorskip("pika")

from support.compat.consumers import CONSUMERS, PEERS, READ_ANYHOW, TABLES, fill, read_whole  # noqa: E402

pytestmark = [
    replaces,
    # A connection that fails leaves tasks of aio-pika behind, which complain when they are collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LET_IN = {
    "tables without end",
    "a key that is no text",
    "a key that comes twice",
    "a time beyond all calendars",
    "a text that is none",
}
"""Tables that RabbitMQ 3.10 takes; it closes connections for the others."""


@pytest.fixture
def url(rabbitmq: str) -> str:
    """The broker, with an empty queue."""
    with pika.BlockingConnection(pika.URLParameters(rabbitmq)) as connection:
        connection.channel().queue_delete("q")
    fill(rabbitmq)
    return rabbitmq


def let_in(url: str, entries: bytes) -> bool:
    """Publish a message with these headers; whether the broker has taken it."""

    async def publish() -> bool:
        kept = RawProperties(properties(sized(entries)), 60, rabbitmq.DIALECT)
        async with await connect(url) as stream:
            channel = stream.connection.open_channel()
            async for event in stream:
                match event:
                    case ChannelOpened():
                        stream.connection.send(channel, rabbitmq.Confirm.Select())
                    case MethodReceived(method=rabbitmq.Confirm.SelectOk()):
                        publish = rabbitmq.Basic.Publish(routing_key="q")
                        stream.connection.send_message(channel, publish, kept, b"poison")
                    case Settled():
                        return True
                    case ConnectionClosed() | ChannelClosed():
                        return False
        return False

    return asyncio.run(publish())


@pytest.mark.parametrize("name", sorted(TABLES.keys() - LET_IN))
def test_a_broker_refuses_the_others(url: str, name: str) -> None:
    assert not let_in(url, TABLES[name])


@pytest.mark.parametrize("tolerant", [True, False])
@pytest.mark.parametrize("client", CONSUMERS)
@pytest.mark.parametrize("name", sorted(LET_IN))
def test_a_consumer_gets_the_message_and_the_next(url: str, name: str, client: str, tolerant: bool) -> None:
    assert let_in(url, TABLES[name])
    fill(url, "last")
    with compat.installed(PEERS[client], tolerant=tolerant):
        found = CONSUMERS[client](url, 5)
    gc.collect()
    assert read_whole(found) == (tolerant or name in READ_ANYHOW[client]), found
