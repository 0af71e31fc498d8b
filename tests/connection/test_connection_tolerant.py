"""A connection that is tolerant: tables that cannot be read are events like any other."""

from __future__ import annotations

from typing import Any

import pytest
from support.connections import Pair
from support.implementation import Implementation
from support.poison import GOOD, POISON, at, delivery, frame, sized

from amqpcodec import UnreadableTable
from amqpcodec.connection import ConnectionClosed, MessageReceived, MethodReceived, Violation


def consuming(impl: Implementation, name: str, **options: Any) -> Pair:
    """A client that consumes; as strict as the table of this name needs to be refused."""
    given = {"strict": True, **options} if POISON[name].strict else options
    pair = Pair(impl, client=given, server=given).opened()
    pair.client.send(1, pair.amqp.Basic.Consume(queue="q", consumer_tag="c"))
    pair.talk()
    pair.server.send(1, pair.amqp.Basic.ConsumeOk(consumer_tag="c"))
    pair.talk()
    pair.taken("client")
    return pair


@pytest.mark.parametrize("name", POISON)
def test_a_delivery_that_cannot_be_read_whole_is_received_and_so_is_the_next(
    impl: Implementation, name: str
) -> None:
    poison = POISON[name]
    pair = consuming(impl, name, tolerant=True)
    pair.deliver("client", delivery(poison.table) + delivery(sized(GOOD), b"next", tag=2))
    first, following = pair.taken("client")
    assert (type(first), first.body) == (MessageReceived, b"body")
    assert isinstance(at(first.properties.headers, poison.path), UnreadableTable)
    assert (following.body, following.properties.headers) == (b"next", {"good": 1})
    assert pair.client.state == "open"
    pair.client.send_message(1, pair.amqp.Basic.Publish(routing_key="q"), first.properties, b"again")
    assert poison.table in pair.client.data_to_send()


@pytest.mark.parametrize("name", POISON)
def test_without_it_the_connection_closes(impl: Implementation, name: str) -> None:
    pair = consuming(impl, name)
    pair.deliver("client", delivery(POISON[name].table))
    violation, *_ = pair.taken("client")
    assert type(violation) is Violation
    assert pair.client.state == "closing"


@pytest.mark.parametrize("name", POISON)
def test_a_server_takes_arguments_so_too(impl: Implementation, name: str) -> None:
    pair = consuming(impl, name, tolerant=True)
    pair.taken("server")
    pair.deliver("server", frame(1, b"\0\x32\0\x0a\0\0\1q\0" + POISON[name].table))
    [event] = pair.taken("server")
    assert type(event) is MethodReceived
    assert isinstance(at(event.method.arguments, POISON[name].path), UnreadableTable)


def test_properties_of_a_server_that_cannot_be_read_do_not_keep_a_client_out(impl: Implementation) -> None:
    pair = Pair(impl, client={"tolerant": True})
    assert pair.carry("client")
    octets = pair.server.data_to_send()
    start, *_ = pair.amqp.FrameDecoder().feed(octets)
    broken = frame(1, b"\0\x0a\0\x0a\0\x09" + sized(b"\3bad") + sized(b"PLAIN") + sized(b"en_US"), 0)
    assert start.payload.server_properties
    pair.deliver("client", broken)
    pair.talk()
    assert pair.client.state == "open"
    assert not any(isinstance(event, ConnectionClosed) for event in pair.taken("client"))
