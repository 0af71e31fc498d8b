"""Messages in a row, of which names repeat: what a decoder remembers never changes what it reads."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from support.campaign import share
from support.failures import Failures
from support.implementation import Implementation
from support.outcomes import describe, describe_error, drain

from amqpcodec import DecodeError, Limits

SEED = 2711
NAMES = ("orders", "billing.events", "é-queue", "a" * 48, "b" * 49, "", "x")
KEYS = ("attempt", "tenant", "at", "inner", "items", "price", "clé", "", "k" * 60)
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strict": {"strict": True},
    "raw tables": {"tables": "raw"},
    "raw tables, strict": {"tables": "raw", "strict": True},
    "raw properties": {"properties": "raw"},
    "raw properties, strict": {"properties": "raw", "strict": True},
    "tight limits": {"limits": Limits(table_entries=5, table_depth=2, array_items=2, table_octets=120)},
    "small bodies": {"limits": Limits(body_size=40)},
    "small frames": {"frame_max": 200},
    "qpid tables": {"profile": "qpid"},
}


class Traffic:
    """Messages of one dialect by a seed, encoded by the pure build."""

    def __init__(self, dialect: str, seed: int) -> None:
        self.amqp = Implementation("py").dialect(dialect)
        self.numbers = random.Random(seed)
        self.methods = [cls for cls in self.amqp.METHODS.values() if cls.spec.content]
        self.rich = self.amqp.DIALECT.profile.name not in ("0-8", "0-9")

    def text(self) -> str:
        if self.numbers.random() < 0.6:
            return self.numbers.choice(NAMES)
        return f"{self.numbers.getrandbits(128):032x}"

    def moment(self) -> datetime:
        return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=self.numbers.randrange(50_000_000))

    def item(self, depth: int) -> Any:
        simple = [self.text(), self.numbers.randrange(-(2**31), 2**31), self.moment()]
        if depth < 3:
            simple.append(self.table(depth + 1))
        if not self.rich:
            return self.numbers.choice(simple)
        simple += [self.text(), True, False, None, 1 << 40, 1.5, b"\xff\0", Decimal("1.50"), -1]
        if depth < 3:
            simple.append([self.item(depth + 1) for _ in range(self.numbers.randrange(4))])
        return self.numbers.choice(simple)

    def table(self, depth: int = 1) -> dict[str, Any]:
        count = self.numbers.randrange(7)
        keys = self.numbers.sample(KEYS, count) if depth > 1 else KEYS[:count]
        return {key: self.item(depth) for key in keys}

    def field(self, kind: str) -> Any:
        match kind:
            case "bit":
                return self.numbers.random() < 0.5
            case "octet" | "short" | "long" | "longlong":
                return self.numbers.randrange(256)
            case "shortstr":
                return self.text()
            case "longstr":
                return self.numbers.randbytes(5)
            case "timestamp":
                return self.moment()
            case _:
                return self.table()

    def message(self) -> list[bytes]:
        """The frames of a message: method, content header, bodies."""
        method = self.numbers.choice(self.methods)
        fields = {field.attribute: self.field(field.type) for field in method.spec.fields}
        properties = self.amqp.PROPERTIES[method.spec.class_id]
        present = [field for field in properties.spec.fields if self.numbers.random() < 0.6]
        given = properties(**{field.attribute: self.field(field.type) for field in present})
        body = self.numbers.randbytes(self.numbers.choice((0, 1, 30, 100)))
        channel = 1 if self.numbers.random() < 0.9 else 2
        frames = [
            self.amqp.encode_method(channel, method(**fields)),
            self.amqp.encode_header(channel, given, len(body)),
        ]
        return frames + ([self.amqp.encode_body(channel, body)] if body else [])

    def frames(self, count: int) -> list[bytes]:
        return [frame for _ in range(count) for frame in self.message()]


def damaged(frames: list[bytes], numbers: random.Random) -> bytes:
    """The frames with one thing wrong in the last third, or nothing."""
    at = numbers.randrange(2 * len(frames) // 3, len(frames))
    frame = frames[at]
    match numbers.randrange(7):
        case 0:
            frames[at] = b""
        case 1:
            frames[at] = frame * 2
        case 2:
            frames[at] = b"\x08\0\0\0\0\0\0\xce" + frame
        case 3:
            frames[at] = frame[:1] + b"\0\0" + frame[3:]
        case 4 | 5:
            octets = bytearray(frame)
            octets[numbers.randrange(len(octets))] ^= 1 << numbers.randrange(8)
            frames[at] = bytes(octets)
    return b"".join(frames)


def cut(stream: bytes, numbers: random.Random) -> Iterator[bytes]:
    at = 0
    while at < len(stream):
        size = numbers.choice((1, 100, 1000, 10_000))
        yield stream[at : at + size]
        at += size


def read(decoder: Any, chunks: list[bytes]) -> tuple[Any, ...]:
    """All that can be seen of a decoder that was fed; properties that cannot be read are their error."""
    values, error = drain(decoder, chunks)
    seen = []
    for value in values:
        try:
            seen.append(describe(value))
        except DecodeError as refused:
            seen.append(describe_error(refused))
    return seen, error and describe_error(error), decoder.pending, decoder.offset


@pytest.mark.parametrize("kind", ["MessageDecoder", "FrameDecoder"])
@pytest.mark.parametrize("options", OPTIONS)
def test_both_builds_read_the_same_after_many_messages(
    both: tuple[Implementation, Implementation], kind: str, options: str, dialect: str
) -> None:
    failures = Failures()
    numbers = random.Random(f"{SEED} {kind} {options} {dialect}")
    for _ in range(share(2)):
        stream = damaged(Traffic(dialect, numbers.getrandbits(64)).frames(40), numbers)
        chunks = [stream] if numbers.random() < 0.5 else list(cut(stream, numbers))
        made = [getattr(impl.dialect(dialect), kind)(**OPTIONS[options]) for impl in both]
        with failures.case(stream.hex()):
            ours, theirs = (read(decoder, chunks) for decoder in made)
            assert ours == theirs
    failures.check(at_least=2)


def test_a_message_cut_anywhere_is_the_same_message(impl: Implementation, dialect: str) -> None:
    traffic = Traffic(dialect, SEED)
    before = b"".join(traffic.frames(12))  # names and tables come again from the second on
    last = b"".join(traffic.message())
    amqp = impl.dialect(dialect)
    whole = read(amqp.MessageDecoder(), [before + last])
    assert whole[1] is None
    for at in range(len(last)):
        assert read(amqp.MessageDecoder(), [before + last[:at], last[at:]]) == whole


def test_what_a_lenient_decoder_remembers_no_strict_one_takes(amqp: ModuleType) -> None:
    bad = amqp.BasicProperties(headers={"zero\0key": 1}, message_id="zero\0id", content_type="text\0plain")
    stream = amqp.encode_message(1, amqp.BasicDeliver("tag\0", 1, False, "e\0", "k\0"), bad, b"body") * 40
    lenient = amqp.MessageDecoder()
    assert len(list(lenient.feed(stream))) == 40
    strict = amqp.MessageDecoder(strict=True)
    with pytest.raises(DecodeError, match="zero octet") as caught:
        list(strict.feed(stream))
    assert caught.value.field == "consumer-tag"
    assert len(list(lenient.feed(stream))) == 40


def test_messages_that_are_kept_stay_as_they_are(amqp: ModuleType) -> None:
    traffic = Traffic("rabbitmq-0-9-1", SEED)
    stream = b"".join(traffic.frames(300))
    decoder = amqp.MessageDecoder()
    kept, seen = [], []
    for number, message in enumerate(decoder.feed(stream)):
        if number % 7 == 0:
            kept.append(message)
            seen.append(describe(message))
    gc.collect()
    assert [describe(message) for message in kept] == seen
    assert len({id(message.method) for message in kept}) == len(kept)


def test_values_set_by_a_caller_are_gone_in_the_next_message(amqp: ModuleType) -> None:
    stream = amqp.encode_message(1, amqp.BasicDeliver("tag", 1), amqp.BasicProperties(), b"body")
    decoder = amqp.MessageDecoder()
    for _ in range(40):
        [message] = decoder.feed(stream)
        assert message.properties == amqp.BasicProperties()
        assert message.method == amqp.BasicDeliver("tag", 1)
        message.properties.headers = {"mine": object()}
        message.properties.app_id = "mine"
        message.method.exchange = ["mine"]
        message.body = None
        del message


def test_a_cycle_through_headers_is_collected(amqp: ModuleType) -> None:
    class Sentinel:
        """What a weak reference can refer to."""

    stream = amqp.encode_message(1, amqp.BasicDeliver(), amqp.BasicProperties(headers={"a": 1}), b"")
    alive = []
    for message in amqp.MessageDecoder().feed(stream * 40):
        sentinel = Sentinel()
        alive.append(weakref.ref(sentinel))
        message.properties.headers.update(me=message.properties, sentinel=sentinel)
    del message, sentinel
    gc.collect()
    assert [ref for ref in alive if ref() is not None] == []


def test_instances_of_subclasses_come_and_go_among_others(amqp: ModuleType) -> None:
    gone = []

    class Mine(amqp.BasicDeliver):  # type: ignore[misc, name-defined]
        """A delivery with more to it."""

        def __del__(self) -> None:
            gone.append(self.routing_key)

    stream = amqp.encode_message(1, amqp.BasicDeliver("tag", 7, False, "e", "k"), None, b"")
    for number in range(40):
        mine = Mine("mine", number, routing_key=str(number))
        mine.extra = {"more": mine.delivery_tag}
        [message] = amqp.MessageDecoder().feed(stream)
        assert message.method == amqp.BasicDeliver("tag", 7, False, "e", "k")
        assert mine.extra == {"more": number}
        del mine
    gc.collect()
    assert sorted(gone, key=int) == [str(number) for number in range(40)]  # PyPy has an order of its own
