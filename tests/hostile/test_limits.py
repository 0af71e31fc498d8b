"""Every limit refuses what is beyond it, says so, and cannot be circumvented."""

from __future__ import annotations

import inspect
import os
import pickle
import threading
from types import MappingProxyType, ModuleType
from typing import Any

import pytest
from support.implementation import Implementation
from support.interpreter import PYPY
from support.outcomes import drain

from amqpcodec import DecodeError, EncodeError, FieldValue, Limits

REFUSED: dict[str, tuple[int, int, str]] = {
    # limit: its value, the reply code, what the error says
    "frame_size": (60, 501, "frame_size 60"),
    "table_depth": (2, 506, "tables nested deeper than 2"),
    "table_octets": (30, 506, "limit 30"),
    "table_entries": (4, 506, "table of more than 4 entries"),
    "array_items": (3, 506, "array of more than 3 items"),
    "body_size": (9, 311, "body of 10 octets, limit 9"),
    "open_messages": (1, 506, "more than 1 messages open"),
}


@pytest.mark.parametrize("size", range(1, 10))
def test_a_frame_size_that_no_frame_has_refuses_all(amqp: ModuleType, size: int) -> None:
    octets = amqp.encode_method(1, amqp.Basic.Ack(5))
    for chunks in ([octets], [octets[:9], octets[9:]], [bytes([octet]) for octet in octets]):
        frames, error = drain(amqp.FrameDecoder(limits=Limits(frame_size=size)), chunks)
        assert frames == []
        assert isinstance(error, DecodeError)
        assert (error.reply_code, error.message) == (501, f"frame of 21 octets, frame_size {size}")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"frame_max": 20}, "frame_max 20"),
        ({"frame_max": 20, "limits": Limits(frame_size=20)}, "frame_max 20"),
        ({"frame_max": 20, "limits": Limits(frame_size=19)}, "frame_size 19"),
        ({"frame_max": 0, "limits": Limits(frame_size=20)}, "frame_size 20"),
        ({"frame_max": 12, "frame_max_slack": 8}, "frame_max + frame_max_slack 20"),
        ({"frame_max_slack": 8, "limits": Limits(frame_size=12)}, "frame_size + frame_max_slack 20"),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["FrameDecoder", "MessageDecoder"])
def test_a_frame_that_is_too_large_names_the_option_that_refuses_it(
    amqp: ModuleType, name: str, options: dict[str, Any], text: str
) -> None:
    octets = amqp.encode_method(1, amqp.Basic.Ack(5))
    for chunks in ([octets], [octets[:9], octets[9:]]):
        _, error = drain(getattr(amqp, name)(**options), chunks)
        assert error is not None
        assert error.message == f"frame of 21 octets, {text}"


def test_a_frame_max_that_is_set_later_is_named(amqp: ModuleType) -> None:
    octets = amqp.encode_method(1, amqp.Basic.Ack(5))
    for frame_max, text in ((15, "frame_max 15"), (0, "frame_size 20"), (30, "frame_size 20")):
        decoder = amqp.FrameDecoder(limits=Limits(frame_size=20))
        decoder.frame_max = frame_max
        _, error = drain(decoder, [octets])
        assert error is not None
        assert error.message == f"frame of 21 octets, {text}"


class Liar(int):
    """An int that claims to be as small as anyone likes, or as large."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return False

    __le__ = __ge__ = __eq__ = lambda self, other: True
    __hash__ = int.__hash__


def stream(amqp: ModuleType) -> bytes:
    """Octets that go over every limit of the table above."""
    table = {"list": [1, 2, 3, [4]], "table": {"key": "value"}}
    octets: bytes = amqp.encode_method(1, amqp.Queue.Declare(arguments=table))
    octets += amqp.encode_method(2, amqp.Basic.Publish())
    octets += amqp.encode_message(1, amqp.Basic.Publish(), None, b"x" * 10)
    return octets + amqp.encode_header(2, amqp.BasicProperties(), 0)


@pytest.mark.parametrize("name", REFUSED)
def test_going_over_a_limit(amqp: ModuleType, name: str) -> None:
    limit, code, text = REFUSED[name]
    assert drain(amqp.MessageDecoder(), [stream(amqp)])[1] is None
    _, error = drain(amqp.MessageDecoder(limits=Limits(**{name: limit})), [stream(amqp)])
    assert error is not None
    assert (error.reply_code, error.fatal) == (code, name == "frame_size")
    assert text in error.message


def test_every_limit_is_tried() -> None:
    assert {*REFUSED, "cached_strings"} == set(Limits.__slots__)
    assert set(inspect.signature(Limits).parameters) == set(Limits.__slots__)
    for name in Limits.__slots__:
        assert f"{name}: " in str(Limits.__doc__)


def test_items_of_an_array_are_its_own(amqp: ModuleType) -> None:
    nested = {"outer": [[1, 2], [3, 4], [5]]}
    frame = amqp.encode_method(1, amqp.Queue.Declare(arguments=nested))
    [method] = amqp.FrameDecoder(limits=Limits(array_items=3)).feed(frame)
    assert method.payload.arguments == nested
    _, error = drain(amqp.FrameDecoder(limits=Limits(array_items=2)), [frame])
    assert error is not None
    assert (error.message, error.field) == ("array of more than 2 items", "arguments")
    assert frame[error.offset : error.offset + 5] == b"A\0\0\0\5"  # the third of the outer ones


@pytest.mark.parametrize("size", [1, 2, 3, 512, 65536])
def test_strings_come_out_right_however_few_are_kept(amqp: ModuleType, size: int) -> None:
    decoder = amqp.FrameDecoder(limits=Limits(cached_strings=size))
    keys = [f"key-{number}" for number in range(300)] * 2
    octets = b"".join(amqp.encode_method(1, amqp.Basic.Publish(routing_key=key)) for key in keys)
    assert [frame.payload.routing_key for frame in decoder.feed(octets)] == keys


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 47, 48, 49])
def test_strings_that_differ_in_one_octet_are_distinguished(amqp: ModuleType, size: int) -> None:
    decoder = amqp.FrameDecoder(limits=Limits(cached_strings=1))
    keys = ["a" * size] + ["a" * at + "b" + "a" * (size - at - 1) for at in range(size)]
    keys = [key for key in keys for _ in range(3)] + keys * 2
    octets = b"".join(amqp.encode_method(1, amqp.Basic.Publish(routing_key=key)) for key in keys)
    assert [frame.payload.routing_key for frame in decoder.feed(octets)] == keys


def test_a_string_met_twice_is_kept_whatever_passes_by(both: tuple[Implementation, Implementation]) -> None:
    amqp = both[0].dialect("rabbitmq-0-9-1")
    keys = [key for number in range(5000) for key in (f"passing-{number}", "often")]
    octets = b"".join(amqp.encode_method(1, amqp.Basic.Publish(routing_key=key)) for key in keys)
    decoded = [frame.payload.routing_key for frame in amqp.FrameDecoder().feed(octets)]
    assert decoded == keys
    assert len({id(key) for key in decoded if key == "often"}) == 2  # the first, and the second ever since


@pytest.mark.parametrize("name", Limits.__slots__)
def test_a_limit_is_the_number_itself(name: str) -> None:
    for wrong in (Liar(0), Liar(-5), Liar(2**63), Liar(10**30)):
        with pytest.raises(ValueError, match=f"Limits.{name} must be "):
            Limits(**{name: wrong})
    assert type(getattr(Limits(**{name: Liar(3)}), name)) is int
    assert getattr(Limits(**{name: True}), name) == 1


def test_limits_are_frozen_compare_and_travel() -> None:
    given = Limits(1000, 2, 3, 4, 5, 6, 7, 8)
    assert pickle.loads(pickle.dumps(given)) == given != Limits()
    assert hash(given) == hash(Limits(1000, 2, 3, 4, 5, 6, 7, 8))
    for name in Limits.__slots__:
        with pytest.raises(AttributeError):
            setattr(given, name, 10**9)


def test_only_limits_will_do(amqp: ModuleType) -> None:
    class Deeper(Limits):
        table_depth = 10**6

    imitation = type("Imitation", (), dict.fromkeys(Limits.__slots__, 10**6))()
    for wrong in (imitation, Deeper(), 5):
        for make in (amqp.FrameDecoder, amqp.MessageDecoder, amqp.Encoder):
            with pytest.raises(TypeError, match="limits must be Limits"):
                make(limits=wrong)


STACKS = {128: 1 << 20, 256: 1 << 20} if PYPY else {128: 131072, 256: 262144}
"""The depth limit, and the stack that has room for it: for the default the smallest in use, that of musl.

With less than a MiB, PyPy crashes where any function calls itself without end.
"""


def in_a_thread(stack: int, work: Any) -> Any:
    """The outcome of some work in a thread with a stack of that many octets."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:
            outcome.append(error)

    before = threading.stack_size(stack)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return outcome[0]


def nested(tag: bytes, depth: int) -> bytes:
    """Entries of a table that holds `depth` tables or arrays inside one another."""
    entries = b""
    for _ in range(depth):
        entries = (b"\1k" if tag == b"F" else b"") + tag + len(entries).to_bytes(4, "big") + entries
    return entries if tag == b"F" else b"\1k" + entries


SANITIZED = "AMQPCODEC_SANITIZED" in os.environ


@pytest.mark.skipif(SANITIZED, reason="an instrumented build needs several times the stack")
@pytest.mark.parametrize("tag", [b"F", b"A"], ids=["tables", "arrays"])
@pytest.mark.parametrize("limit", STACKS)
def test_depth_in_a_small_thread(amqp: ModuleType, tag: bytes, limit: int) -> None:
    limits, stack = Limits(table_depth=limit), STACKS[limit]
    decoder = amqp.FrameDecoder(frame_max=0, limits=limits)
    for depth in (limit, limit + 1, 20_000):
        error = in_a_thread(stack, lambda depth=depth: list(decoder.feed(declaring(nested(tag, depth)))))
        decoder.reset()
        assert isinstance(error, DecodeError)
        assert (error.reply_code, error.message) == (506, f"tables nested deeper than {limit}")
    frame = declaring(nested(tag, limit - 1))
    frames = in_a_thread(stack, lambda: list(decoder.feed(frame)))
    assert in_a_thread(stack, lambda: amqp.Encoder(limits=limits).encode_frame(frames[0])) == frame


def declaring(entries: bytes) -> bytes:
    """A queue.declare frame with these entries for arguments."""
    payload = b"\0\x32\0\x0a\0\0\x01q\0" + len(entries).to_bytes(4, "big") + entries
    return b"\x01\0\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce"


@pytest.mark.skipif(SANITIZED, reason="an instrumented build needs several times the stack")
@pytest.mark.parametrize("kind", ["dict", "list", "tuple of lists", "tagged", "mapping"])
@pytest.mark.parametrize("limit", STACKS)
def test_values_without_end_in_a_small_thread(amqp: ModuleType, kind: str, limit: int) -> None:
    table: dict[str, Any] = {}
    items: list[Any] = [table]
    table["again"] = {
        "dict": table,
        "list": items,
        "tuple of lists": (items,),
        "tagged": FieldValue("F", table),
        "mapping": MappingProxyType(table),
    }[kind]
    items.append(items)
    encoder = amqp.Encoder(limits=Limits(table_depth=limit))
    declare = amqp.Queue.Declare(arguments=table)
    error = in_a_thread(STACKS[limit], lambda: encoder.encode_method(1, declare))
    assert isinstance(error, EncodeError)
    assert error.message == f"tables nested deeper than {limit}"
    assert len(error.path) <= limit + 1
    assert len(str(error)) < 4000


def test_a_frame_may_by_default_be_as_long_as_its_length_can_say() -> None:
    assert Limits().frame_size == 7 + (2**32 - 1) + 1
