"""Consumers on other libraries, and headers that these cannot read: each is delivered once, as is the next.

A broker for tests rewrites the deliveries: a RabbitMQ would not let most of these headers in.
"""

from __future__ import annotations

import gc
import importlib
from types import SimpleNamespace
from typing import Any

import pytest
from support.marks import replaces
from support.poison import POISON, at, entry, header, properties, sized
from support.tiers import few

from amqpcodec import AmqpError, DecodeError, EncodeError, RawProperties, UnreadableTable, compat, rabbitmq
from amqpcodec.compat.kombu import transport_options
from amqpcodec.testing import running_broker
from amqpcodec.testing.faults import Action

amqp = pytest.importorskip("amqp")
pytest.importorskip("aio_pika")
pytest.importorskip("kombu")
pika = pytest.importorskip("pika")
pamqp_frame = pytest.importorskip("pamqp.frame")

from support.compat.consumers import (  # noqa: E402
    CONSUMERS,
    PEERS,
    READ_ANYHOW,
    TABLES,
    Found,
    fill,
    read_whole,
)

pytestmark = replaces
# A connection that fails leaves tasks of aio-pika behind, which complain when they are collected.
leaves_tasks = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def rewritten(entries: bytes) -> Action:
    """Deliver a message with other headers."""
    octets = properties(sized(entries))

    def act(session: Any, event: Any) -> bool:
        kept = RawProperties(octets, 60, rabbitmq.DIALECT)
        session.connection.send_message(event.channel, event.method, kept, b"poison")
        return True

    return act


@pytest.fixture(params=CONSUMERS)
def client(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def consumed(client: str, entries: bytes, seconds: float, **options: Any) -> tuple[Found, int]:
    """Return what a consumer gets, and how often the message was delivered whose headers are rewritten."""
    with running_broker() as broker:
        fill(broker.url, "poison", "last")
        fault = broker.faults.add(rewritten(entries), method="basic.deliver", routing_key="poison")
        found = CONSUMERS[client](broker.url, seconds, **options)
        return found, fault.fired


@pytest.mark.parametrize("name", TABLES)
def test_a_consumer_gets_the_message_once_and_the_next(client: str, name: str) -> None:
    with compat.installed(PEERS[client], tolerant=True):
        found, times = consumed(client, TABLES[name], 10)
        tolerated = compat.status()[PEERS[client]].tolerated
    assert read_whole(found), found
    assert times == 1
    headers = found[0][1]
    assert tolerated == (name not in READ_ANYHOW[client])
    if tolerated:
        path = POISON[name].path if name in POISON else ()
        assert isinstance(at(headers, path), UnreadableTable)
        assert not path or headers["good"] == 1
    assert found[1][1] in ({}, None)


@leaves_tasks
@pytest.mark.parametrize("name", few(TABLES, 5, "further tables"))
def test_without_it_the_library_does_as_ever(client: str, name: str) -> None:
    with compat.installed(PEERS[client]):
        found, _ = consumed(client, TABLES[name], 1)
    gc.collect()
    assert read_whole(found) == (name in READ_ANYHOW[client]), found


def test_the_loops_are_tolerant_too(client: str) -> None:
    with compat.installed(PEERS[client], tolerant=True, loops=True):
        found, times = consumed(client, TABLES["an unknown tag"], 10)
    assert read_whole(found), found
    assert times == 1


def test_kombu_is_tolerant_where_nothing_is_replaced() -> None:
    options = transport_options(tolerant=True)
    found, times = consumed("kombu", TABLES["an unknown tag"], 10, transport_options=options)
    assert read_whole(found), found
    assert times == 1


@leaves_tasks
@pytest.mark.parametrize("tolerant", [False, True])
def test_without_it_a_program_that_is_begun_again_gets_the_message_again(client: str, tolerant: bool) -> None:
    with running_broker() as broker, compat.installed(PEERS[client], tolerant=tolerant):
        fill(broker.url, "poison", "last")
        action = rewritten(TABLES["an unknown tag"])
        fault = broker.faults.add(action, method="basic.deliver", routing_key="poison")
        for _ in range(3):
            CONSUMERS[client](broker.url, 0.3)
    gc.collect()
    assert fault.fired == (1 if tolerant else 3)


# -- encoded again


class Text(str):
    """A text that fast paths leave to the library."""


WAYS = {"here": "text", "by the library": Text("text")}
FORWARDED = {
    "all of it": TABLES["an unknown tag"],
    "a table inside": entry(b"in", b"F" + sized(entry(b"bad", b"Zxx"))),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", FORWARDED)
def test_pamqp_writes_the_table_as_it_came(way: str, what: str) -> None:
    octets = header(sized(FORWARDED[what]))
    with compat.installed("pamqp", tolerant=True):
        _, channel, found = pamqp_frame.unmarshal(octets)
        found.properties.content_type = WAYS[way]
        assert pamqp_frame.marshal(found, channel) == octets
        assert bool(compat.status()["pamqp"].fallbacks.get("pamqp.frame.marshal: values")) == (way != "here")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", FORWARDED)
def test_pika_writes_the_table_as_it_came(way: str, what: str) -> None:
    octets = header(sized(FORWARDED[what]))
    with compat.installed("pika", tolerant=True):
        _, found = pika.frame.decode_frame(octets)
        found.properties.content_type = WAYS[way]
        assert found.marshal() == octets
        assert bool(compat.status()["pika"].fallbacks.get("Header.marshal: values")) == (way != "here")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", FORWARDED)
def test_py_amqp_writes_the_table_as_it_came(way: str, what: str) -> None:
    octets = properties(sized(FORWARDED[what]))
    with compat.installed("amqp", tolerant=True):
        found, _ = amqp.serialization.decode_properties_basic(octets, 0)
        found["content_type"] = WAYS[way]
        message = amqp.Message(b"", **found)
        assert message._serialize_properties() == octets
        assert bool(compat.status()["amqp"].fallbacks.get("_serialize_properties")) == (way != "here")


OWN_WRITERS = {
    "pamqp": lambda table: importlib.import_module("pamqp.encode").field_table(table),
    "pika": lambda table: importlib.import_module("pika.data").encode_table([], table),
    "amqp": lambda table: amqp.serialization.dumps("F", [table]),
}
REFUSALS = {"all of it": "would lose a table.*: a fault", "a table inside": "bad|would lose a table"}


@pytest.mark.parametrize("peer", OWN_WRITERS)
@pytest.mark.parametrize("what", REFUSALS)
def test_writers_of_libraries_that_know_of_no_such_table_refuse_it(peer: str, what: str) -> None:
    table = UnreadableTable(b"", DecodeError("a fault"))
    with pytest.raises((AmqpError, TypeError, amqp.exceptions.FrameSyntaxError), match=REFUSALS[what]):
        OWN_WRITERS[peer](table if what == "all of it" else {"bad": table})


@pytest.mark.parametrize("what", FORWARDED)
def test_kombu_forwards_or_refuses_the_table_where_nothing_is_replaced(what: str) -> None:
    table = sized(FORWARDED[what])
    with compat.installed("amqp", tolerant=True):
        found, _ = amqp.serialization.decode_properties_basic(properties(table), 0)
    written: list[bytes] = []
    transport = SimpleNamespace(write=lambda octets: written.append(bytes(octets)))
    connection = SimpleNamespace(frame_max=131072, bytes_sent=0)
    write = transport_options(tolerant=True)["frame_writer"](connection, transport)
    write(1, 1, (60, 40), b"", amqp.Message(b"", **found))
    assert table in written.pop()
    with pytest.raises((EncodeError, amqp.exceptions.FrameSyntaxError), match=r"application_headers|b'in'"):
        write(1, 1, (60, 40), b"", amqp.Message(b"", **found, message_id=Text("text")))
    assert not written


@pytest.mark.parametrize("peer", ["pamqp", "pika", "amqp"])
def test_what_was_replaced_for_that_is_put_back(peer: str) -> None:
    names = {"pamqp": "encode.field_table", "pika": "data.encode_table", "amqp": "serialization._write_table"}
    module, _, name = names[peer].partition(".")
    owner = importlib.import_module(f"{peer}.{module}")
    stock = getattr(owner, name)
    with compat.installed(peer):
        assert getattr(owner, name) is stock
        with compat.installed(peer, tolerant=True):
            assert compat.status()[peer].active
            assert getattr(owner, name) is not stock
    assert getattr(owner, name) is stock
