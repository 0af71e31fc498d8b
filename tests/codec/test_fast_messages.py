"""Whole messages in the pure build: what its fast path makes is what the slow path would have made."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
from support.campaign import in_full, share
from support.implementation import Implementation
from support.make_capture import split
from support.outcomes import describe, describe_error
from support.tiers import few

from amqpcodec import DecodeError, Limits
from amqpcodec._kernel import messages_py

HEADERS = {"text": "value", "number": 7, "table": {"nested": ["text"]}}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "strict": {"strict": True},
    "raw tables": {"tables": "raw"},
    "raw properties": {"properties": "raw"},
    "chunks": {"body": "chunks"},
    "kept": {"aborted": "keep"},
    "small bodies": {"limits": Limits(body_size=3)},
    "small frames": {"frame_max": 90},
    "few open": {"limits": Limits(open_messages=1)},
}


@pytest.fixture
def amqp() -> ModuleType:
    return Implementation("py").dialect("rabbitmq-0-9-1")


def frames_of(amqp: ModuleType) -> list[bytes]:
    """Frames of messages, acknowledgements and others, on three channels."""
    properties = amqp.BasicProperties(
        content_type="text/plain",
        headers=HEADERS,
        message_id="m-1",
        timestamp=datetime(2026, 11, 23, tzinfo=UTC),
    )
    deliver, publish = amqp.BasicDeliver("c", 1, False, "x", "key"), amqp.BasicPublish(exchange="x")
    messages = [
        (1, deliver, properties, b"body"),
        (2, publish, amqp.BasicProperties(), b""),
        (3, amqp.BasicGetOk(1, False, "x", "key", 2), properties, b"\xce" * 9),
        (1, amqp.BasicReturn(312, "NO_ROUTE", "x", "key"), amqp.BasicProperties(priority=3), b"z"),
    ]
    frames = [
        part
        for channel, method, values, body in messages
        for part in split(amqp.encode_message(channel, method, values, body))
    ]
    others = [
        amqp.encode_method(1, amqp.BasicAck(5)), amqp.encode_method(0, amqp.ConnectionTune(1, 2, 3)),
        amqp.encode_heartbeat(), amqp.encode_body(1, b"body"), amqp.encode_header(2, properties, 4),
        amqp.encode_header(1, amqp.BasicProperties(), 1 << 63), amqp.encode_method(2, deliver),
    ]  # fmt: skip
    return frames + others


def seen(decoder: Any, chunks: list[bytes], lend: bool = False) -> list[Any]:
    """Everything that a decoder says, also behind errors that it can leave out."""
    found: list[Any] = []
    for chunk in chunks:
        values: Any
        if lend:
            decoder.get_buffer(0)[: len(chunk)] = chunk
            values = decoder.buffer_updated(len(chunk))
        else:
            values = decoder.feed(chunk)
        while True:
            try:
                value = next(values)
            except StopIteration:
                break
            except DecodeError as error:
                found += [describe_error(error), decoder.pending, decoder.offset]
                if error.fatal:
                    return found
                decoder.skip_frame()
                values = decoder
                continue
            found += [told(value), decoder.pending, decoder.offset]
    return [*found, decoder.pending, decoder.offset]


def told(value: Any) -> Any:
    """A value, or the error that raw properties have for whoever asks."""
    try:
        return describe(value)
    except DecodeError as error:
        return describe_error(error), value.properties.octets


def slowly(decoder: Any, chunks: list[bytes]) -> list[Any]:
    def through_next(decoder: Any) -> Any:
        value = decoder._next()
        if value is None:
            raise StopIteration
        return value

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages_py.MessageDecoder, "__next__", through_next)
        patch.setattr(messages_py.MessageDecoder, "_read_fast", lambda decoder: None)
        return seen(decoder, chunks)


def assert_same(amqp: ModuleType, octets: bytes, options: dict[str, Any], cut: int | None = None) -> None:
    chunks = [octets] if cut is None else [octets[:cut], octets[cut:]]
    expected = slowly(amqp.MessageDecoder(**options), chunks)
    assert seen(amqp.MessageDecoder(**options), chunks) == expected
    assert seen(amqp.MessageDecoder(**options), chunks, lend=True) == expected


@pytest.mark.parametrize("options", few(OPTIONS.values(), 6, "further options"), ids=OPTIONS)
def test_messages_cut_anywhere_are_the_same(amqp: ModuleType, options: dict[str, Any]) -> None:
    octets = b"".join(frames_of(amqp)[: in_full(12, 9)])
    for cut in range(len(octets) + 1):
        assert_same(amqp, octets, options, cut)
        assert_same(amqp, octets[:cut], options)


@pytest.mark.parametrize("options", few(OPTIONS.values(), 6, "further options"), ids=OPTIONS)
def test_damaged_messages_are_refused_as_ever(amqp: ModuleType, options: dict[str, Any]) -> None:
    octets = b"".join(frames_of(amqp)[:6])
    for place in range(len(octets)):
        for change in (1, 64, 3, 255)[: in_full(4, 2)]:
            damaged = octets[:place] + bytes([octets[place] ^ change]) + octets[place + 1 :]
            assert_same(amqp, damaged, options)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_frames_in_any_order_are_judged_the_same(amqp: ModuleType, options: dict[str, Any]) -> None:
    frames = frames_of(amqp)
    for seed in range(share(60)):
        rng = random.Random(seed)
        if seed % 2:
            chosen = rng.choices(frames, k=rng.randrange(1, 20))
        else:
            chosen = list(frames)
            for _ in range(rng.randrange(4)):
                at = rng.randrange(len(chosen))
                chosen.insert(rng.randrange(len(chosen)), chosen.pop(at))
        octets = b"".join(chosen)
        assert_same(amqp, octets, options, rng.randrange(len(octets) + 1))


def test_whole_messages_and_methods_take_the_fast_path(
    amqp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    if amqp.MessageDecoder()._lock.locked:
        pytest.skip("without a global lock, messages are read behind a lock of the interpreter")
    monkeypatch.setattr(messages_py.MessageDecoder, "_read", None)
    octets = b"".join(frames_of(amqp)[:12])
    assert len(list(amqp.MessageDecoder().feed(octets))) == 5
    assert len(list(amqp.MessageDecoder(properties="raw").feed(octets))) == 5
