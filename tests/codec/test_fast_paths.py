"""The fast paths of the pure build accept ordinary values, and decline all others without a trace."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain
from types import ModuleType
from typing import Any

import pytest
from support.campaign import share, stride
from support.encoder_values import encoder_values
from support.failures import Failures
from support.implementation import Implementation, method_class
from support.outcomes import decoding, describe, drain, encoding

from amqpcodec import DecodeError, EncodeError, FieldValue, InlineContent, Limits
from amqpcodec._kernel import dispatch_py, frames_py, messages_py, reader_py, stream_py, writer_py

SEED = 4711
TABLE = {
    "text": "é", "number": -7, "large": 1 << 40, "yes": True, "none": None, "real": 1.5, "octets": b"\xff\0",
    "when": datetime(2024, 5, 1, tzinfo=UTC), "price": Decimal("12.50"), "inner": {"a": {"b": []}},
    "items": ["x", 1, 1 << 40, None, {"k": "v"}, [False]],
}  # fmt: skip
ORDINARY = {
    "bit": True, "octet": 255, "short": 65535, "long": 2**32 - 1, "longlong": 2**64 - 1,
    "shortstr": "é" * 127, "longstr": b"\xff" * 300, "table": TABLE, "content": InlineContent(b"octets"),
    "timestamp": datetime(2024, 5, 1, 12, 30, 59, tzinfo=UTC),
}  # fmt: skip
# Tables of the oldest dialects have fewer tags; those take the fast path with what they have.
ORDINARY_OLD = ORDINARY | {"table": {"text": "é", "number": -7, "inner": {"when": TABLE["when"]}}}
BEHIND = b"\x01\0\0\0\0\0\x04\0\x0a\0\x33\xce" + bytes(range(256)) * 2  # a frame, then octets that are none


@pytest.fixture
def no_slow_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails a test that takes the slow path."""

    def refuse(*_: Any) -> None:
        raise AssertionError("the slow path was taken")

    monkeypatch.setattr(dispatch_py, "read_slowly", refuse)
    monkeypatch.setattr(dispatch_py, "write_slowly", refuse)
    monkeypatch.setattr(reader_py.Reader, "_pairs", refuse)
    monkeypatch.setattr(writer_py.Writer, "_table", refuse)


def filled(cls: type, values: dict[str, Any]) -> Any:
    return cls(**{field.attribute: values[field.type] for field in cls.spec.fields})  # type: ignore[attr-defined]


def classes_of(dialect: str) -> list[Any]:
    """The methods of a dialect that have a fast path."""
    methods = Implementation("py").dialect(dialect).METHODS.values()
    return [cls for cls in methods if all(field.type != "content" for field in cls.spec.fields)]


@pytest.mark.usefixtures("no_slow_path")
def test_ordinary_values_take_the_fast_path(dialect: str) -> None:
    module = Implementation("py").dialect(dialect)
    values = ORDINARY_OLD if module.DIALECT.profile.name in ("0-8", "0-9") else ORDINARY
    classes = classes_of(dialect)
    assert len(classes) > 40
    for cls in classes:
        for method in (cls(), filled(cls, values)):
            [frame] = module.FrameDecoder().feed(module.encode_method(1, method))
            assert frame.payload == method
    for cls in module.PROPERTIES.values():
        for properties in (cls(), filled(cls, values)):
            [frame] = module.FrameDecoder().feed(module.encode_header(1, properties, 7))
            assert frame.payload.properties == properties


@pytest.mark.usefixtures("no_slow_path")
def test_messages_take_the_fast_path_wherever_they_are_cut() -> None:
    module = Implementation("py").dialect("rabbitmq-0-9-1")
    method, properties = filled(module.BasicPublish, ORDINARY), filled(module.BasicProperties, ORDINARY)
    octets = module.encode_message(1, method, properties, b"body") * 2
    for size in (1, 7, 100, len(octets)):
        decoder = module.MessageDecoder()
        chunks = [octets[at : at + size] for at in range(0, len(octets), size)]
        messages = [message for chunk in chunks for message in decoder.feed(chunk)]
        assert [(each.method, each.properties, each.body) for each in messages] == [
            (method, properties, b"body")
        ] * 2


def samples(module: ModuleType) -> Iterator[bytes]:
    """A frame of every method and content header, its fields filled."""
    values = ORDINARY_OLD if module.DIALECT.profile.name in ("0-8", "0-9") else ORDINARY
    small = values | {"shortstr": "é", "longstr": b"\xff\0"}
    for cls in module.METHODS.values():
        channel = 0 if cls.spec.name.startswith("connection.") else 1
        yield module.encode_method(channel, filled(cls, small))
    for cls in module.PROPERTIES.values():
        yield module.encode_header(1, filled(cls, small), 7)


def lent(decoder: Any, data: bytes) -> Iterator[Any]:
    """Feed by the buffer that the decoder lends, which is a bytearray."""
    decoder.get_buffer(0)[: len(data)] = data
    yield from decoder.buffer_updated(len(data))


class Lending:
    """A decoder that is fed by its own buffer."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    def feed(self, data: bytes) -> Iterator[Any]:
        return lent(self._decoder, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)


def damaged(frame: bytes, numbers: random.Random) -> Iterator[bytes]:
    """The frame with shorter payloads, longer ones, and with octets that are others."""
    payload = frame[7:-1]
    step = stride(3)
    for size in range(numbers.randrange(step), len(payload), step):
        yield payload[:size]
    yield payload + b"\0"
    yield payload + payload[:5]
    for _ in range(share(8)):
        octets = bytearray(payload)
        octets[numbers.randrange(len(octets))] = numbers.choice((0, 1, 0x7F, 0x80, 0xFF))
        yield bytes(octets)


@pytest.mark.parametrize("kind", ["FrameDecoder", "MessageDecoder"])
@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
@pytest.mark.parametrize("wrap", [lambda decoder: decoder, Lending], ids=["bytes", "bytearray"])
def test_damage_with_octets_behind_it_is_seen_alike(
    both: tuple[Implementation, Implementation], dialect: str, kind: str, strict: bool, wrap: Any
) -> None:
    modules = [impl.dialect(dialect) for impl in both]
    decoders = [getattr(module, kind)(strict=strict) for module in modules]
    numbers = random.Random(SEED)
    failures = Failures()
    for frame in list(samples(modules[0]))[:: 1 if wrap is Lending else 2]:
        with failures.case(frame[:40].hex()):
            for payload in damaged(frame, numbers):
                stream = frame[:3] + len(payload).to_bytes(4, "big") + payload + b"\xce" + BEHIND
                outcomes = []
                for decoder in decoders:
                    decoder.reset()
                    outcomes.append(decoding(wrap(decoder), [stream]))
                assert outcomes[0] == outcomes[1], payload
    failures.check(at_least=25)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which of the paths through a field table are taken, in order."""
    taken: list[str] = []
    for owner, name in ((reader_py, "fast_pairs"), (reader_py.Reader, "_pairs")):
        monkeypatch.setattr(owner, name, noting(getattr(owner, name), name, taken))
    return taken


def noting(function: Any, name: str, calls: list[str]) -> Any:
    def noted(*arguments: Any) -> Any:
        calls.append(name)
        return function(*arguments)

    return noted


@pytest.mark.parametrize("size", [1, 4096], ids=["in octets", "at once"])
@pytest.mark.parametrize("kind", ["FrameDecoder", "MessageDecoder"])
def test_a_table_that_is_declined_is_read_once_more_and_not_twice(
    readings: list[str], kind: str, size: int
) -> None:
    module = Implementation("py").dialect("rabbitmq-0-9-1")
    for frame in (
        module.encode_method(1, module.QueueDeclare(queue="q", arguments={"k": "v"})),
        module.encode_message(1, module.BasicPublish(), module.BasicProperties(headers={"k": "v"}), b""),
    ):
        damaged = frame.replace(b"\1kS", b"\1k?")
        decoder = getattr(module, kind)()
        chunks = [damaged[at : at + size] for at in range(0, len(damaged), size)]
        with pytest.raises(DecodeError, match="tag '\\?' is unknown"):
            list(chain.from_iterable(map(decoder.feed, chunks)))
        assert readings == ["fast_pairs", "_pairs"]
        readings.clear()


@pytest.mark.parametrize("call", ["encode_method", "encode_message"])
def test_a_method_that_is_declined_is_written_once_more_and_not_twice(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    module = Implementation("py").dialect("rabbitmq-0-9-1")
    calls: list[str] = []
    writers = module.DIALECT.method_dispatch.writers
    ids, values, write = writers[module.BasicPublish]
    monkeypatch.setitem(writers, module.BasicPublish, (ids, values, noting(write, "fast", calls)))
    monkeypatch.setattr(dispatch_py, "write_slowly", noting(dispatch_py.write_slowly, "slow", calls))
    arguments = () if call == "encode_method" else (None, b"")
    with pytest.raises(EncodeError, match="mandatory"):
        getattr(module, call)(1, module.BasicPublish(mandatory=1), *arguments)
    assert calls == ["fast", "slow"]


def test_both_builds_write_the_same_of_an_unusual_value_in_any_field(
    both: tuple[Implementation, Implementation], dialect: str
) -> None:
    modules = [impl.dialect(dialect) for impl in both]
    values = encoder_values()
    failures = Failures()
    for index, cls in modules[0].METHODS.items():
        twin = modules[1].METHODS[index]
        for position, field in enumerate(cls.spec.fields):
            with failures.case(f"{cls.spec.name} {field.name}"):
                # Each field gets a part of the values; there are enough fields for all.
                for _, make in values[position % 4 :: 4]:
                    value = make()
                    one = encoding(modules[0].encode_method, 1, cls(**{field.attribute: value}))
                    two = encoding(modules[1].encode_method, 1, twin(**{field.attribute: value}))
                    assert one == two, value
    failures.check(at_least=90)


def test_both_builds_write_the_same_of_an_unusual_value_in_any_property(
    both: tuple[Implementation, Implementation],
) -> None:
    one, two = (impl.dialect("rabbitmq-0-9-1") for impl in both)
    failures = Failures()
    for field in one.BasicProperties.spec.fields:
        for name, make in encoder_values():
            with failures.case(f"{field.name} {name}"):
                given = {"content_type": "before", "app_id": "after", field.attribute: make()}
                outcomes = [
                    encoding(m.encode_message, 1, m.BasicPublish(), m.BasicProperties(**given), b"body")
                    for m in (one, two)
                ]
                assert outcomes[0] == outcomes[1]
    failures.check(at_least=1000)


@pytest.mark.parametrize("value", [FieldValue("s", 5), Decimal(1), {"k": FieldValue("b", 1)}, ("\udcff", 2)])
def test_a_fast_path_that_declines_an_entry_leaves_no_state(
    both: tuple[Implementation, Implementation], value: Any
) -> None:
    table = {"before": "text", "unusual": value, "behind": 1}
    outcomes = []
    for impl in both:
        module = impl.dialect("rabbitmq-0-9-1")
        octets = module.encode_table(table)
        outcomes.append(octets)
        frame = module.encode_method(1, module.QueueDeclare(queue="q", arguments=table))
        assert frame.count(octets) == 1
        assert len(frame) == len(octets) + 17
    assert outcomes[0] == outcomes[1]


class TestPieces:
    """Octets that leave a frame incomplete, which are only added to it."""

    def test_frames_come_with_their_last_octet(self, amqp: ModuleType) -> None:
        method = method_class(amqp, "basic.deliver")("tag", 1, False, "x", "k")
        octets = amqp.encode_method(1, method) * 2
        decoder = amqp.FrameDecoder()
        size = len(octets) // 2
        for at in range(len(octets)):
            given = [frame.payload for frame in decoder.feed(octets[at : at + 1])]
            assert given == ([method] if (at + 1) % size == 0 else [])
            assert decoder.pending == (at + 1) % size
            assert decoder.offset == (at + 1) // size * size

    def test_what_is_given_out_for_them_stays_empty(self, amqp: ModuleType) -> None:
        octets = amqp.encode_heartbeat()
        decoder = amqp.FrameDecoder()
        assert list(decoder.feed(octets[:1])) == []
        nothing = decoder.feed(octets[1:2])
        assert list(nothing) == []
        assert len(list(decoder.feed(octets[2:]))) == 1
        assert list(nothing) == []

    @pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
    def test_an_error_in_the_envelope_is_raised_again_for_further_octets(
        self, amqp: ModuleType, wrap: Any
    ) -> None:
        decoder = amqp.FrameDecoder()
        for octet in b"\x63\0\0\0\0\0":
            assert list(decoder.feed(wrap(bytes([octet])))) == []
        for _ in range(3):
            with pytest.raises(DecodeError, match="frame type 99"):
                list(decoder.feed(wrap(b"\0")))

    def test_what_was_not_asked_for_is_not_passed_over(self, amqp: ModuleType) -> None:
        octets = amqp.encode_heartbeat()
        decoder = amqp.FrameDecoder()
        assert list(decoder.feed(octets[:3])) == []
        decoder.feed(octets[3:] + octets)
        frames = list(decoder.feed(b""))
        assert [describe(frame) for frame in frames] == [describe(frames[0])] * 2


def test_a_frame_ends_where_framing_says_whatever_its_envelope_is(
    both: tuple[Implementation, Implementation], dialect: str
) -> None:
    modules = [impl.dialect(dialect) for impl in both]
    body = b"\x03\0\x01\0\0\0\x14" + b"\xce" * 20 + b"\xce"
    method = modules[0].encode_method(1, modules[0].Basic.Qos())
    changes = [(at, octet) for at in range(7) for octet in (0, 1, 2, 3, 4, 8, 9, 19, 20, 21, 22, 255)]
    failures = Failures()
    for frame in (body, method):
        for at, octet in [*changes, (len(frame) - 1, 0), (len(frame) - 1, 0xCD)]:
            octets = bytearray(frame)
            octets[at] = octet
            for behind in (b"", BEHIND[:12], BEHIND):
                for options in ({}, {"payloads": "raw"}, {"frame_max": 28}, {"frame_max": 27}):
                    for wrap in (lambda decoder: decoder, Lending):
                        with failures.case(f"{frame.hex()} {at} {octet} {len(behind)} {options}"):
                            decoders = [wrap(module.FrameDecoder(**options)) for module in modules]
                            one, two = (decoding(decoder, [bytes(octets) + behind]) for decoder in decoders)
                            assert one == two
    failures.check(at_least=1000)


def test_bodies_that_hold_whole_frames_stay_bodies_wherever_they_are_cut(amqp: ModuleType) -> None:
    header = amqp.encode_header(1, amqp.BasicProperties(message_id="inner"), 3)
    inner = amqp.encode_method(1, amqp.Basic.Ack(7)) + header + amqp.encode_body(1, b"abc")
    publish, ack = amqp.Basic.Publish(), amqp.encode_method(1, amqp.Basic.Ack(9))
    whole = amqp.encode_message(1, publish, None, inner * 2) + ack
    for options in ({}, {"payloads": "raw"}):
        expected = [describe(frame) for frame in amqp.FrameDecoder(**options).feed(whole)]
        assert len(expected) == 4
        for cut in range(1, len(whole)):
            decoder = amqp.FrameDecoder(**options)
            found = [frame for chunk in (whole[:cut], whole[cut:]) for frame in decoder.feed(chunk)]
            assert [describe(frame) for frame in found] == expected, cut
    for cut in range(1, len(whole)):
        decoder = amqp.MessageDecoder()
        message, frame = (each for chunk in (whole[:cut], whole[cut:]) for each in decoder.feed(chunk))
        assert (message.body, frame.payload) == (inner * 2, amqp.Basic.Ack(9)), cut


@pytest.mark.parametrize(
    "options", [{}, {"payloads": "raw"}, {"tables": "raw"}, {"properties": "raw"}], ids=str
)
def test_iterating_takes_the_fast_path(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    module = Implementation("py").dialect("rabbitmq-0-9-1")
    method, properties = filled(module.BasicPublish, ORDINARY), filled(module.BasicProperties, ORDINARY)
    octets = module.encode_message(1, method, properties, b"body") * 3
    decoder = module.FrameDecoder(**options)
    if decoder._lock.locked:
        pytest.skip("without a global lock, frames are read behind a lock of the interpreter")
    expected = [describe(frame) for frame in module.FrameDecoder(**options).feed(octets)]

    def refuse(*_: Any) -> None:
        raise AssertionError("the slow path was taken")

    for name in ("_next", "_advance", "_read"):
        monkeypatch.setattr(stream_py.StreamDecoder, name, refuse)
    monkeypatch.setattr(frames_py.FrameDecoder, "_read", refuse)
    assert [describe(frame) for frame in decoder.feed(octets)] == expected
    assert len(expected) == 9


def test_a_message_that_lies_whole_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Implementation("py").dialect("rabbitmq-0-9-1")
    octets = module.encode_message(1, module.Basic.Publish(routing_key="k"), None, b"body") * 3

    def refuse(*_: Any) -> None:
        raise AssertionError("a content was opened")

    monkeypatch.setattr(messages_py.MessageDecoder, "_begin", refuse)
    assert [message.body for message in module.MessageDecoder().feed(octets)] == [b"body"] * 3


def in_lists(levels: int, wrap: Any) -> dict[str, Any]:
    """A table that holds a value in lists inside each other; it is itself the first level."""
    value: Any = 5
    for _ in range(levels - 1):
        value = wrap(value)
    return {"k": value}


WRAPS = {
    "list": lambda value: [value],
    "tuple": lambda value: (value,),
    "list of several": lambda value: [1, value, "x"],
    "tagged": lambda value: FieldValue("A", [value]),
}
LEVELS = 6


@pytest.mark.parametrize("wrap", WRAPS)
def test_lists_nest_as_deep_as_tables_may(amqp: ModuleType, wrap: str) -> None:
    encoder = amqp.Encoder(limits=Limits(table_depth=LEVELS))
    for levels in range(1, LEVELS + 1):
        octets = encoder.encode_method(1, amqp.Queue.Declare(arguments=in_lists(levels, WRAPS[wrap])))
        [frame] = amqp.FrameDecoder(limits=Limits(table_depth=levels)).feed(octets)
        assert len(frame.payload.arguments) == 1
        if levels > 1:
            _, error = drain(amqp.FrameDecoder(limits=Limits(table_depth=levels - 1)), [octets])
            assert error is not None
            assert error.message == f"tables nested deeper than {levels - 1}"
    for levels in (LEVELS + 1, LEVELS + 2, LEVELS + 20):
        with pytest.raises(EncodeError, match=f"tables nested deeper than {LEVELS}") as caught:
            encoder.encode_method(1, amqp.Queue.Declare(arguments=in_lists(levels, WRAPS[wrap])))
        assert len(caught.value.path) == LEVELS


@pytest.mark.usefixtures("no_slow_path")
@pytest.mark.parametrize("inner", [[], {}, 5, [5, "x"]], ids=str)
def test_tables_as_deep_as_they_may_be_take_the_fast_path(inner: Any) -> None:
    module = Implementation("py").dialect("rabbitmq-0-9-1")
    levels = LEVELS - (type(inner) is not int)
    limits = Limits(table_depth=LEVELS)
    for wrap in (WRAPS["list"], lambda value: {"k": value}, WRAPS["list of several"]):
        table: Any = inner
        for _ in range(levels - 1):
            table = wrap(table)
        method = module.Queue.Declare(arguments={"k": table})
        octets = module.Encoder(limits=limits).encode_method(1, method)
        [frame] = module.FrameDecoder(limits=limits).feed(octets)
        assert frame.payload == method
