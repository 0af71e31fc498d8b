"""The example for maintainers of clients: both of its receivers make the same of the same octets."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from typing import Any

import pytest
from support.examples import EXAMPLES, example

pytest.importorskip("pamqp")

from pamqp import body, commands, frame, header

module = example("frame_receiver")
both = pytest.mark.parametrize("own", [False, True], ids=["native", "own"])


def content(method: Any, channel: int, octets: bytes, cut: int = 128) -> list[bytes]:
    """Return the frames of a message, its body in several of them."""
    properties = commands.Basic.Properties(content_type="text/plain", headers={"attempt": channel})
    parts = [body.ContentBody(octets[at : at + cut]) for at in range(0, len(octets), cut)]
    return [
        frame.marshal(each, channel)
        for each in (method, header.ContentHeader(0, len(octets), properties), *parts)
    ]


def session() -> bytes:
    """Return what a broker sends: replies, heartbeats, messages of three kinds, two of them interleaved."""
    one = content(commands.Basic.Deliver("c1", 7, False, "orders", "eu.created"), 1, b"body" * 64)
    two = content(commands.Basic.GetOk(9, False, "orders", "eu.created", 0), 2, b"")
    returned = content(commands.Basic.Return(312, "NO_ROUTE", "orders", "no"), 3, b"back")
    beats = [bytes.fromhex("08000000000000ce")]
    replies = [
        frame.marshal(commands.Basic.QosOk(), 1),
        frame.marshal(commands.Queue.DeclareOk("q", 1, 2), 1),
    ]
    return b"".join([replies[0], *one[:3], *beats, *two, *one[3:], replies[1], *returned, *beats])


def events(own: bool, octets: bytes, size: int) -> list[Any]:
    """Return all events of octets that come in chunks of one size."""
    receiver = module.receiver(own=own)
    chunks = (octets[begin : begin + size] for begin in range(0, len(octets), size))
    return [event for chunk in chunks for event in receiver.feed(chunk)]


@both
@pytest.mark.parametrize("size", [1, 7, 1460, 65536])
def test_both_receivers_give_the_same_events_however_octets_are_cut(own: bool, size: int) -> None:
    assert events(own, session(), size) == [
        "BasicQosOk",
        (2, 9, {"attempt": 2}, b""),
        (1, 7, {"attempt": 1}, b"body" * 64),
        "QueueDeclareOk",
        (3, None, {"attempt": 3}, b"back"),
    ]


@both
@pytest.mark.parametrize("text", ["010001 00000004 003cffff ce", "010001 00000004 003c003c 00"])
def test_octets_that_are_not_amqp_are_an_error_of_the_library(own: bool, text: str) -> None:
    with pytest.raises(module.ProtocolError):
        events(own, bytes.fromhex(text), 100)


def test_without_amqpcodec_the_library_uses_its_own_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amqpcodec", None)
    without: dict[str, Callable[[], Any]] = runpy.run_path(str(EXAMPLES / "frame_receiver.py"))
    assert type(without["receiver"]()) is without["OwnReceiver"]
    assert type(module.receiver()) is module.NativeReceiver
