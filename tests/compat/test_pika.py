"""pika accelerated: patches of others win, pickles and looks stay, hostile octets end as pika ends others."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from support.compat import inputs
from support.compat.engine import Copy, Pair, pair
from support.implementation import wanted

from amqpcodec import compat

pytest.importorskip("pika")
pytestmark = pytest.mark.skipif("c" not in wanted(), reason="the pure build changes nothing")


@pytest.fixture
def both() -> Iterator[Pair]:
    """The two copies, one of them accelerated."""
    copies = pair("pika")
    with compat.installed("pika"):
        yield copies


@pytest.fixture
def pika(both: Pair) -> Copy:
    """The accelerated copy."""
    return both.accelerated


def status() -> Any:
    return compat.status()["pika"]


def ordinary(peer: Copy) -> list[Any]:
    """The frames of a publish and a delivery, and of what goes with them."""
    spec, frame = peer.spec, peer.frame
    properties = spec.BasicProperties(
        content_type="application/json", headers={"n": 1, "s": "x", "t": {"l": [True, None, 2**30]}},
        delivery_mode=2, message_id="an id", timestamp=1700000000,
    )  # fmt: skip
    methods = [
        spec.Basic.Publish(0, "an exchange", "a.key", True), spec.Basic.Deliver("ctag", 7, False, "e", "k"),
        spec.Basic.Ack(2**40, True), spec.Basic.Nack(3), spec.Basic.Qos(0, 50), spec.Channel.CloseOk(),
        spec.Queue.Declare(queue="q", durable=True, arguments={"x-max-length": 5}), spec.Confirm.SelectOk(),
        spec.Connection.StartOk({"a": "b"}, "PLAIN", b"\0u\0p", "en_US"), spec.Basic.ConsumeOk("ctag"),
        spec.Connection.Tune(2047, 131072, 60), spec.Access.RequestOk(3),
    ]  # fmt: skip
    return [
        *[frame.Method(1, method) for method in methods],
        frame.Header(1, 256, properties),
        frame.Header(1, 0, spec.BasicProperties()),
        frame.Body(1, b"x" * 256),
        frame.Body(1, b""),
        frame.Heartbeat(),
    ]


def test_ordinary_frames_do_not_fall_back(both: Pair) -> None:
    octets = [found.marshal() for found in ordinary(both.accelerated)]
    assert octets == [found.marshal() for found in ordinary(both.stock)]
    for frame in octets:
        assert both.accelerated.frame.decode_frame(frame)[0] == len(frame)
        assert both.accelerated.frame.decode_frame(frame[:-1]) == (0, None)
    assert (status().fallbacks, status().stock) == ({}, {})
    assert status().fast == 3 * len(octets)


def test_a_new_secret_is_sent_and_its_callback_gets_what_pika_gives(both: Pair) -> None:
    peer = both.accelerated
    octets = peer.frame.Method(0, peer.spec.Connection.UpdateSecret(b"secret", "expired")).marshal()
    assert status().fallbacks == {}
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        peer.frame.decode_frame(octets)
    assert status().fallbacks == {"decode_frame: octets": 1}


def test_pickles_are_the_same_octets_with_acceleration_and_without(both: Pair) -> None:
    for mine, theirs in zip(*map(ordinary, both), strict=True):
        octets = mine.marshal()
        pickled = [pickle.dumps(found.frame.decode_frame(octets)[1], 4) for found in both if _in_use(found)]
        assert len(set(pickled)) == 1
        assert vars(pickle.loads(pickled[0])).keys() == vars(theirs).keys()


def _in_use(peer: Copy) -> bool:
    """Whether pickle finds the classes of this copy."""
    return sys.modules["pika.frame"] is peer.frame


def test_frames_that_were_read_look_copy_and_compare_like_those_that_were_made(pika: Copy) -> None:
    for made in ordinary(pika):
        read = pika.frame.decode_frame(made.marshal())[1]
        if not isinstance(made, pika.frame.Method) or made.method.NAME != "Connection.StartOk":
            assert repr(read) == repr(made)
        assert list(vars(read)) == list(vars(made))
        assert copy.deepcopy(read) == read
        assert pickle.loads(pickle.dumps(read)) == read
        assert read.marshal() == made.marshal()


def test_the_functions_look_like_those_that_they_stand_for(both: Pair) -> None:
    mine, theirs = both.accelerated.frame.decode_frame, both.stock.frame.decode_frame
    assert str(inspect.signature(mine)) == str(inspect.signature(theirs))
    assert (mine.__name__, mine.__module__, mine.__doc__) == (
        theirs.__name__,
        theirs.__module__,
        theirs.__doc__,
    )
    assert list(status().originals) == [
        "pika.frame.decode_frame", "pika.frame.Method.marshal", "pika.frame.Header.marshal",
        "pika.frame.Body.marshal", "pika.frame.Heartbeat.marshal",
        "pika.connection.Connection._output_marshaled_frames",
        "pika.connection.Connection._on_data_available", "pika.callback.CallbackManager.pending",
        "pika.adapters.utils.io_services_utils._AsyncPlaintextTransport._on_socket_writable",
    ]  # fmt: skip


def test_arguments_by_name_and_wrong_ones_are_what_pika_says_of_them(both: Pair) -> None:
    octets = both.stock.frame.Body(1, b"x").marshal()
    assert both.accelerated.frame.decode_frame(data_in=octets)[0] == len(octets)
    for arguments in ((), (octets, 1), (None,), ("text",), ([],)):
        said = []
        for peer in both:
            with pytest.raises(Exception) as caught:  # noqa: PT011, RUF100
                peer.frame.decode_frame(*arguments)
            said.append((type(caught.value), str(caught.value)))
        assert said[0] == said[1]


# -- patches of others

ACK = inputs.enveloped(b"\0\x3c\0\x50" + bytes(7) + b"\7\0")


@pytest.mark.parametrize("name", ["__init__", "decode"])
def test_a_class_that_somebody_patches_is_read_by_pika_until_it_is_put_back(pika: Copy, name: str) -> None:
    cls = pika.spec.Basic.Ack
    stock = getattr(cls, name)
    calls: list[Any] = []

    def patched(self: Any, *arguments: Any) -> Any:
        calls.append(name)
        return stock(self, *arguments)

    with mock.patch.object(cls, name, patched):
        assert pika.frame.decode_frame(ACK)[1].method.delivery_tag == 7
    assert calls == [name]
    assert sum(status().fallbacks.values()) == 1
    assert pika.frame.decode_frame(ACK)[1].method.delivery_tag == 7
    assert calls == [name]
    assert sum(status().fallbacks.values()) == 1


@pytest.mark.parametrize(
    ("dotted", "name"),
    [
        ("spec.Basic.Ack", "encode"), ("frame.Method", "_marshal"), ("frame.Frame", "_marshal"),
        ("amqp_object.AMQPObject", "__getattribute__"), ("data", "encode_value"), ("data", "long"),
        ("spec", "struct"), ("frame", "byte"),
    ],
)  # fmt: skip
def test_what_somebody_patches_is_called_when_frames_are_written(pika: Copy, dotted: str, name: str) -> None:
    module, *path = dotted.split(".")
    owner = getattr(pika, module)
    for part in path:
        owner = getattr(owner, part)
    made = pika.frame.Method(1, pika.spec.Basic.Ack(7))
    assert made.marshal() == ACK
    with mock.patch.object(owner, name, getattr(owner, name), create=True):
        pass  # the same thing in its place is no patch
    assert made.marshal() == ACK
    assert status().fallbacks == {}
    stock = getattr(owner, name)
    other = type(
        "other",
        (),
        {"__call__": lambda self, *found: stock(*found), "__getattr__": lambda _, key: getattr(stock, key)},
    )()
    if isinstance(owner, type):
        other = lambda *found: stock(*found)  # noqa: E731
    with mock.patch.object(owner, name, other):
        made.marshal()
    assert status().fallbacks == {"Method.marshal: values": 1}


def test_another_class_for_an_index_is_the_one_that_is_read(pika: Copy) -> None:
    class Ack(pika.spec.Basic.Ack):  # type: ignore[name-defined,misc]
        pass

    with mock.patch.dict(pika.spec.methods, {Ack.INDEX: Ack}):
        assert type(pika.frame.decode_frame(ACK)[1].method) is Ack
    assert type(pika.frame.decode_frame(ACK)[1].method) is pika.spec.Basic.Ack
    with mock.patch.object(pika.frame, "Method", Ack):
        assert type(pika.frame.decode_frame(ACK)[1]) is Ack


def test_subclasses_of_frames_and_methods_are_written_by_pika(pika: Copy) -> None:
    class Ack(pika.spec.Basic.Ack):  # type: ignore[name-defined,misc]
        def encode(self) -> list[bytes]:
            return [b"mine"]

    class Method(pika.frame.Method):  # type: ignore[name-defined,misc]
        def _marshal(self, chunks: list[bytes]) -> bytes:
            return b"/".join(chunks)

    assert pika.frame.Method(1, Ack()).marshal() == inputs.enveloped(b"\0\x3c\0\x50mine")
    assert Method(1, pika.spec.Channel.CloseOk()).marshal() == b"\0\x14\0\x29"


def test_a_marshal_that_somebody_put_on_a_class_stays_when_ours_is_taken_back(pika: Copy) -> None:
    stock = status().originals["pika.frame.Body.marshal"]
    pika.frame.Body.marshal = lambda self: b"own"
    compat.uninstall("pika")
    try:
        assert pika.frame.Body(1, b"x").marshal() == b"own"
        assert pika.frame.Heartbeat.marshal.__qualname__ == "Heartbeat.marshal"
    finally:
        pika.frame.Body.marshal = stock


def test_a_class_that_is_not_as_expected_stays_as_it_is() -> None:
    peer = pair("pika").accelerated
    other = lambda self, delivery_tag=5, multiple=False: None  # noqa: E731
    with mock.patch.object(peer.spec.Basic.Ack, "__init__", other), compat.installed("pika"):
        assert status().stock == {"Basic.Ack": "was replaced before"}
        assert pickle.dumps(peer.frame.decode_frame(ACK)[1])
        assert status().fallbacks == {"decode_frame: octets": 1}


# -- threads, memory, hostile octets


def test_threads_read_and_write_at_once(both: Pair) -> None:
    peer = both.accelerated
    frames = ordinary(peer)
    wanted_octets = [found.marshal() for found in ordinary(both.stock)]
    failed: list[Any] = []

    def work() -> None:
        for _ in range(60):
            for made, octets in zip(frames, wanted_octets, strict=True):
                if made.marshal() != octets or peer.frame.decode_frame(octets)[1].marshal() != octets:
                    failed.append(made)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_nothing_is_left_behind_by_what_is_read_written_or_refused(pika: Copy) -> None:
    frames = ordinary(pika)
    octets = [found.marshal() for found in frames]
    bad = [
        inputs.enveloped(b"\0\x3c\0\x50"),
        inputs.enveloped(b"\0\x3c\0\x51"),
        b"AMQP\0\0\x09\x01",
        b"\x09" * 9,
    ]

    def work() -> None:
        for made in frames:
            made.marshal()
        for frame in octets:
            pika.frame.decode_frame(frame)
        for frame in bad:
            try:
                pika.frame.decode_frame(frame)
            except Exception:
                continue

    for _ in range(50):
        work()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(200):
        work()
    gc.collect()
    assert sys.getallocatedblocks() - before < 100


def nested(depth: int, tag: bytes = b"F", behind: bytes = b"") -> bytes:
    """The start of a connection with tables or arrays inside each other, which others follow."""
    octets = b""
    for _ in range(depth):
        octets = (b"\1k" if tag == b"F" else b"") + tag + struct.pack(">I", len(octets)) + octets
    if tag == b"A":
        octets = b"\1k" + octets
    others = behind or 2 * struct.pack(">I", 0)
    return inputs.enveloped(b"\0\x0a\0\x0a\0\x09" + struct.pack(">I", len(octets)) + octets + others)


@pytest.mark.parametrize("tag", [b"F", b"A"])
def test_damage_behind_tables_within_tables_ends_in_an_exception_of_pika_if_tolerant(tag: bytes) -> None:
    peer = pair("pika").accelerated
    with compat.installed("pika", tolerant=True):
        assert peer.frame.decode_frame(nested(200, tag))[1].method.server_properties
        assert peer.frame.decode_frame(nested(5000, tag))[1].method.mechanisms == b""
        with pytest.raises(
            peer.exceptions.InvalidFrameError, match=r"^Tables are nested too deeply$"
        ) as caught:
            peer.frame.decode_frame(nested(5000, tag, b"\xff"))
        assert caught.value.__cause__ is None
    with compat.installed("pika"), pytest.raises(RecursionError):
        peer.frame.decode_frame(nested(5000, tag))


def test_words_of_flags_without_end_are_refused_at_once_if_tolerant() -> None:
    peer = pair("pika").accelerated
    head = b"\0\x3c\0\0" + bytes(8)
    endless = inputs.enveloped(head + b"\0\1" * 60_000 + b"\0\0", 2)
    with compat.installed("pika", tolerant=True):
        start = time.process_time()
        with pytest.raises(peer.exceptions.InvalidFrameError, match=r"^Too many words of property flags$"):
            peer.frame.decode_frame(endless)
        assert time.process_time() - start < 0.05
        some = peer.frame.decode_frame(inputs.enveloped(head + b"\0\1" * 60 + b"\0\0", 2))[1]
        assert vars(some.properties) == vars(peer.spec.BasicProperties())
        assert peer.frame.decode_frame(endless[:-1]) == (0, None)


def test_octets_that_are_no_text_stay_the_same_however_often_they_come(both: Pair) -> None:
    texts = [b"\xc3", b"\xff\xfe", b"\xc3" * 9, b"abc\xe9" * 5, b"\xed\xa0\x80"]
    frames = [
        inputs.enveloped(b"\0\x3c\0\x1e" + bytes([len(text)]) + text + b"\0") for text in texts
    ]  # basic.cancel
    for _ in range(4):
        for text, octets in zip(texts, frames, strict=True):
            assert both.accelerated.frame.decode_frame(octets)[1].method.consumer_tag == text
    assert status().fallbacks == {}
