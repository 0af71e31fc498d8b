"""Where methods that have come go in py-amqp, accelerated and not: bodies, consumers, answers and errors."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from support.compat.engine import Copy, Pair, pair
from support.marks import replaces

from amqpcodec import compat

amqp = pytest.importorskip("amqp")
pytestmark = replaces

DELIVER = struct.pack("!HH", 60, 60) + b"\5ctag1" + struct.pack("!QB", 7, 0) + b"\2ex\3key"
CONFIRMED = struct.pack("!HHQB", 60, 80, 7, 0)
UNKNOWN = struct.pack("!HH", 99, 1)
PLACES = {"on_inbound_method": "connection.Connection", "dispatch_method": "abstract_channel.AbstractChannel"}


@pytest.fixture
def both() -> Iterator[Pair]:
    """The two copies, one of them accelerated."""
    copies = pair("amqp")
    with compat.installed("amqp"):
        yield copies


class Receiving:
    """A connection of a copy of py-amqp that is given frames, its channel, and what comes of them."""

    def __init__(self, peer: Copy, **options: Any) -> None:
        self.peer = peer
        self.connection = peer.connection.Connection()
        self.connection.channels = {}
        self.channel = peer.channel.Channel.__new__(peer.channel.Channel, self.connection)
        peer.abstract_channel.AbstractChannel.__init__(self.channel, self.connection, 1)
        self.channel.auto_decode = options.get("auto_decode", True)
        self.channel.callbacks, self.channel.events = {}, {"basic_ack": set()}
        self.seen: list[Any] = []
        self.channel.callbacks["ctag1"] = lambda message: self.seen.append(
            (message.body, message.properties, message.delivery_info, message.channel is self.channel)
        )
        handler = peer.connection.frame_handler
        self.take = handler(self.connection, self.connection.on_inbound_method)

    def method(self, octets: bytes) -> list[Any]:
        """Hand in a method; return what is seen of it."""
        try:
            self.take((1, 1, octets))
        except Exception as error:
            self.seen.append((type(error).__name__, str(error)))
        return self.seen

    def message(self, body: bytes, **properties: Any) -> list[Any]:
        """Hand in a message; return what is seen of it."""
        written = self.peer.basic_message.Message(**properties)._serialize_properties()
        self.take((1, 1, DELIVER))
        self.take((2, 1, struct.pack("!HHQ", 60, 0, len(body)) + written))
        if body:
            self.take((3, 1, body))
        return self.seen


ENCODINGS = ("utf-8", "UTF-8", "latin-1", "binary", "no such", "", "hex", None)


@pytest.mark.parametrize("auto_decode", [True, False])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("body", [b"", b"text", "\u00fc".encode(), b"\xff\xfe"])
def test_bodies_become_texts_as_they_ever_did(
    both: Pair, body: bytes, encoding: str | None, auto_decode: bool
) -> None:
    properties = {} if encoding is None else {"content_encoding": encoding}
    stock, accelerated = (
        Receiving(peer, auto_decode=auto_decode).message(body, **properties) for peer in both
    )
    assert accelerated == stock
    assert len(stock) == 1
    assert stock[0][3]


def test_confirms_go_to_who_listens_and_to_who_waits_once(both: Pair) -> None:
    def confirmed(peer: Copy) -> list[Any]:
        receiving = Receiving(peer)
        spec, seen = peer.spec.Basic, receiving.seen
        receiving.channel._callbacks[spec.Ack] = lambda *values: seen.append(("listener", values))
        receiving.method(CONFIRMED)
        receiving.channel._pending[spec.Ack] = lambda *values: seen.append(("waiting", values))
        receiving.method(CONFIRMED)
        receiving.method(CONFIRMED)
        del receiving.channel._callbacks[spec.Ack]
        receiving.method(CONFIRMED)  # nobody does
        receiving.channel._pending[spec.Ack] = None
        return receiving.method(CONFIRMED)

    stock, accelerated = map(confirmed, both)
    assert accelerated == stock
    assert [who for who, _ in stock] == ["listener", "listener", "waiting", "listener"]


@pytest.mark.parametrize("octets", [UNKNOWN, CONFIRMED[:-3], DELIVER[:3]])
def test_what_cannot_be_handed_on_raises_as_ever(both: Pair, octets: bytes) -> None:
    def refused(peer: Copy) -> list[Any]:
        receiving = Receiving(peer)
        receiving.channel._callbacks[peer.spec.Basic.Ack] = print
        return receiving.method(octets)

    stock, accelerated = map(refused, both)
    assert accelerated == stock
    assert stock != []


def test_a_channel_that_is_closing_and_one_that_is_not_there(both: Pair) -> None:
    def closing(peer: Copy) -> list[Any]:
        receiving = Receiving(peer)
        receiving.channel.is_closing = True
        receiving.message(b"lost")
        receiving.channel.is_closing = False
        receiving.connection.channels = {}
        receiving.method(CONFIRMED)
        receiving.connection.channels = None
        return receiving.method(CONFIRMED)

    stock, accelerated = map(closing, both)
    assert accelerated == stock
    assert [name for name, _ in stock] == ["KeyError", "RecoverableConnectionError"]


def owner(peer: Copy, name: str) -> Any:
    module, cls = PLACES[name].split(".")
    return getattr(getattr(peer, module), cls)


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("when", ["before", "after", "on the instance"])
def test_who_replaces_one_of_the_functions_is_asked(
    name: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = pair("amqp").accelerated
    calls: list[Any] = []
    stock = getattr(owner(peer, name), name)

    def counted(self: Any, *arguments: Any) -> Any:
        calls.append(arguments)
        return stock(self, *arguments)

    if when == "before":
        monkeypatch.setattr(owner(peer, name), name, counted)
    with compat.installed("amqp"):
        if when == "after":
            monkeypatch.setattr(owner(peer, name), name, counted)
        receiving = Receiving(peer)
        if when == "on the instance":
            one = receiving.channel if name == "dispatch_method" else receiving.connection
            setattr(one, name, counted.__get__(one))
            receiving.take = peer.connection.frame_handler(
                receiving.connection, receiving.connection.on_inbound_method
            )
        assert len(receiving.message(b"text")) == 1
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["content_encoding", "__getattr__", "__len__"])
def test_a_class_of_messages_that_somebody_changes_is_asked(
    both: Pair, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = {
        "content_encoding": "latin-1",
        "__getattr__": lambda self, asked: "latin-1",
        "__len__": lambda self: 0,
    }
    seen = []
    for peer in both:
        receiving = Receiving(peer)
        with monkeypatch.context() as patch, suppress(AttributeError):
            patch.setattr(peer.basic_message.Message, name, ways[name], raising=False)
            receiving.message("\u00fc".encode())
        seen.append(receiving.seen)
    assert seen[0] == seen[1]
    assert type(seen[0][0][0]) is (bytes if name == "__len__" else str)
