"""After a fault, a decoder returns the frames before it, and behind it only what can be trusted."""

from __future__ import annotations

import inspect
import struct
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation
from support.interpreter import of_full_stack
from support.outcomes import describe_error, drain, octet_by_octet

from amqpcodec import DecodeError, DecoderInUseError, InlineContent, Limits, ReferenceContent
from amqpcodec.spec import Assert

EMPTY_METHOD = b"\x01\0\x01\0\0\0\0\xce"
WRONG_END = b"\x08\0\0\0\0\0\0\xcd"

STRICT_ONLY: dict[str, tuple[Callable[[Any], bytes], int, str | None]] = {
    "connection method off channel 0": (lambda m: m.encode_method(1, m.Connection.CloseOk()), 503, None),
    "other method on channel 0": (lambda m: m.encode_method(0, m.Tx.Select()), 504, None),
    "text that is not UTF-8": (
        lambda m: m.encode_method(1, m.Basic.Cancel("a\udcff")),
        502,
        "consumer-tag",
    ),
    "zero octet in text": (lambda m: m.encode_method(1, m.Basic.Cancel("a\0")), 502, "consumer-tag"),
    "broken assert": (
        lambda m: m.encode_method(0, m.Connection.StartOk({}, "", b"x", "x")),
        502,
        "mechanism",
    ),
    "undefined property flag": (lambda m: flags(m, b"\0\2"), 502, None),
    "undefined flag in a further word": (lambda m: flags(m, b"\0\1\x80\0"), 502, None),
    "key twice": (lambda m: headers(m, b"\x01aI\0\0\0\1\x01aI\0\0\0\2"), 502, "headers"),
    "zero octet in a key": (lambda m: headers(m, b"\x01\0I\0\0\0\1"), 502, "headers"),
    "key that is not UTF-8": (lambda m: headers(m, b"\x01\xffI\0\0\0\1"), 502, "headers"),
}


def cancel(module: ModuleType, tag: str) -> bytes:
    return module.encode_method(1, module.Basic.Cancel(tag))


class TestNotFatal:
    """A frame that is bad inside its envelope can be left out."""

    @pytest.mark.parametrize("kind", ["FrameDecoder", "MessageDecoder"])
    @pytest.mark.parametrize("cut", [False, True], ids=["whole", "octet-by-octet"])
    def test_frames_before_it_come_out_first(self, amqp: ModuleType, kind: str, cut: bool) -> None:
        good = amqp.encode_heartbeat()
        stream = good * 3 + EMPTY_METHOD + good
        values, error = drain(getattr(amqp, kind)(), octet_by_octet(stream) if cut else [stream])
        assert len(values) == 3
        assert error is not None
        assert (error.fatal, error.reply_code, error.offset) == (False, 501, 31)

    def test_the_error_comes_again_until_it_is_skipped(self, amqp: ModuleType) -> None:
        good = amqp.encode_heartbeat()
        decoder = amqp.FrameDecoder()
        errors = [drain(decoder, [chunk])[1] for chunk in (EMPTY_METHOD, good, b"", good)]
        assert len({describe_error(error) for error in errors if error}) == 1
        assert all(errors)
        assert len({id(error) for error in errors}) == 4
        decoder.skip_frame()
        assert [frame.type for frame in decoder] == [8, 8]

    def test_each_of_several_is_reported(self, amqp: ModuleType) -> None:
        good, bad = amqp.encode_heartbeat(), amqp.encode_body(0, b"x")
        decoder = amqp.FrameDecoder().feed(EMPTY_METHOD + good + bad + EMPTY_METHOD + good)
        seen: list[int] = []
        while True:
            values, error = drain(decoder, [b""])
            seen += [value.type for value in values]
            if error is None:
                break
            seen.append(error.reply_code)
            decoder.skip_frame()
        assert seen == [501, 8, 504, 501, 8]
        assert decoder.pending == 0

    def test_skipping_without_an_error_changes_nothing(self, amqp: ModuleType) -> None:
        decoder = amqp.FrameDecoder().feed(amqp.encode_heartbeat())
        decoder.skip_frame()
        assert len(list(decoder)) == 1

    def test_reset_also_gets_past_it(self, amqp: ModuleType) -> None:
        decoder = amqp.FrameDecoder()
        assert drain(decoder, [EMPTY_METHOD])[1] is not None
        decoder.reset()
        assert drain(decoder, [amqp.encode_heartbeat()])[1] is None


@pytest.mark.parametrize(
    ("method", "left", "said", "field"),
    [
        ("connection.start", 0, "octet needs 1 octets, 0 left", "version-major"),
        ("basic.qos", 3, "long needs 4 octets, 3 left", "prefetch-size"),
        ("basic.qos", 5, "short needs 2 octets, 1 left", "prefetch-count"),
        ("basic.qos", 6, "octet of bits needs 1 octets, 0 left", "global"),
        ("basic.ack", 7, "longlong needs 8 octets, 7 left", "delivery-tag"),
    ],
)
def test_of_a_value_that_is_cut_off_it_is_said_what_it_needs(
    impl: Implementation, method: str, left: int, said: str, field: str
) -> None:
    amqp = impl.dialect("rabbitmq-0-9-1")
    ids = {"connection.start": (10, 10), "basic.qos": (60, 10), "basic.ack": (60, 80)}[method]
    channel = 0 if ids[0] == 10 else 1
    payload = struct.pack("!HH", *ids) + bytes(left)
    with pytest.raises(DecodeError) as caught:
        next(amqp.FrameDecoder().feed(struct.pack("!BHI", 1, channel, len(payload)) + payload + b"\xce"))
    assert (caught.value.message, caught.value.field, caught.value.method) == (said, field, method)
    assert (caught.value.channel, caught.value.class_id, caught.value.method_id) == (channel, *ids)


@pytest.mark.parametrize(
    ("channel", "octets", "said"),
    [(0, b"xyz", "heartbeat with a payload of 3 octets"), (1, b"", "a heartbeat belongs on channel 0")],
)
def test_a_heartbeat_has_no_channel_and_no_payload(
    impl: Implementation, channel: int, octets: bytes, said: str
) -> None:
    amqp = impl.dialect("rabbitmq-0-9-1")
    with pytest.raises(DecodeError) as caught:
        next(amqp.FrameDecoder().feed(struct.pack("!BHI", 8, channel, len(octets)) + octets + b"\xce"))
    assert (caught.value.message, caught.value.reply_code) == (said, 501)


@pytest.mark.parametrize("kind", [2, 255])
def test_a_content_of_0_9_is_inline_or_referred_to(impl: Implementation, kind: int) -> None:
    amqp = impl.dialect("amqp-0-9")
    transfer = amqp.Message.Transfer(body=InlineContent(b"octets"))
    octets = amqp.encode_method(1, transfer)
    content = b"\0\0\0\0\6octets"
    assert octets.count(content) == 1
    assert next(amqp.FrameDecoder().feed(octets)).payload.body == InlineContent(b"octets")
    reference = octets.replace(content, b"\1" + content[1:])
    assert next(amqp.FrameDecoder().feed(reference)).payload.body == ReferenceContent(b"octets")
    with pytest.raises(DecodeError) as caught:
        next(amqp.FrameDecoder().feed(octets.replace(content, bytes([kind]) + content[1:])))
    assert caught.value.message == f"content discriminator {kind}, not 0 or 1"
    assert (caught.value.reply_code, caught.value.field) == (502, "body")
    assert caught.value.offset == octets.index(content)


class TestFatal:
    """Without a valid envelope nothing that follows can be trusted."""

    @pytest.mark.parametrize("bad", [WRONG_END, b"\xff\0\0\0\0\0\0\xce", b"\x01\0\0\xff\xff\xff\xff"])
    def test_it_cannot_be_skipped(self, amqp: ModuleType, bad: bytes) -> None:
        good = amqp.encode_heartbeat()
        decoder = amqp.FrameDecoder()
        values, error = drain(decoder, [good + bad + good])
        assert len(values) == 1
        assert error is not None
        assert error.fatal
        with pytest.raises(DecodeError) as caught:
            decoder.skip_frame()
        assert describe_error(caught.value) == describe_error(error)
        assert drain(decoder, [good])[0] == []

    @pytest.mark.parametrize("size", [1, 5, 7, 8])
    def test_a_frame_with_a_wrong_end_is_pending_however_it_was_cut(
        self, amqp: ModuleType, size: int
    ) -> None:
        decoder = amqp.FrameDecoder()
        chunks = [WRONG_END[at : at + size] for at in range(0, len(WRONG_END), size)]
        with pytest.raises(DecodeError, match="0xcd, not 0xce"):
            [list(decoder.feed(chunk)) for chunk in chunks]
        assert (decoder.pending, decoder.offset) == (len(WRONG_END), 0)
        decoder.reset()
        assert (decoder.pending, decoder.offset) == (0, 0)

    def test_request_frames_of_0_9_say_so(self, impl: Any) -> None:
        module = impl.dialect("amqp-0-9")
        for frame_type in (9, 10):
            _, error = drain(module.FrameDecoder(), [bytes([frame_type, 0, 0, 0, 0, 0, 0, 0xCE])])
            assert error is not None
            assert "request and response frames of 0-9 are not supported" in error.message


class TestErrorsTellWhere:
    def test_method_field_dialect_and_offset(self, codec: ModuleType, dialect: str) -> None:
        good = codec.encode_heartbeat()
        frame = codec.encode_method(1, codec.Basic.Cancel("tag"))
        broken = frame.replace(b"\x03tag", b"\x09tag")
        _, error = drain(codec.FrameDecoder(), [good + broken])
        assert error is not None
        assert (error.method, error.field, error.dialect) == ("basic.cancel", "consumer-tag", dialect)
        assert error.offset == 8 + broken.index(b"\x09tag")
        assert str(error) == (
            "shortstr of 9 octets, 4 left (basic.cancel.consumer-tag, "
            f"offset {error.offset}, {dialect}, 501 frame-error)"
        )

    def test_class_and_property(self, codec: ModuleType) -> None:
        frame = codec.encode_header(1, codec.BasicProperties(headers={"k": "v"}), 0)
        _, error = drain(codec.FrameDecoder(), [frame.replace(b"\x01kS", b"\x01kz")])
        assert error is not None
        assert (error.method, error.field, error.reply_code) == ("basic", "headers", 502)
        assert error.offset == frame.index(b"\x01kS") + 2

    def test_offsets_count_from_the_start_of_the_stream(self, amqp: ModuleType) -> None:
        decoder = amqp.FrameDecoder()
        stream = amqp.protocol_header() + amqp.encode_heartbeat() * 10
        assert drain(decoder, octet_by_octet(stream))[1] is None
        _, error = drain(decoder, octet_by_octet(EMPTY_METHOD))
        assert error is not None
        assert error.offset == len(stream) + 7

    def test_one_error_does_not_colour_the_next(self, amqp: ModuleType) -> None:
        bad_method = amqp.encode_method(1, amqp.Basic.Cancel("tag")).replace(b"\x03tag", b"\x09tag")
        decoder = amqp.FrameDecoder()
        assert drain(decoder, [bad_method])[1].method == "basic.cancel"
        decoder.skip_frame()
        assert drain(decoder, [EMPTY_METHOD])[1].method is None


class TestStrict:
    """What strict mode refuses and the default carries."""

    @pytest.mark.parametrize("case", STRICT_ONLY)
    def test_refuses(self, codec: ModuleType, case: str) -> None:
        make, code, field = STRICT_ONLY[case]
        _, error = drain(codec.FrameDecoder(strict=True), [make(codec)])
        assert error is not None
        assert (error.reply_code, error.field, error.fatal) == (code, field, False)

    @pytest.mark.parametrize("case", STRICT_ONLY)
    def test_default_carries(self, codec: ModuleType, case: str) -> None:
        values, error = drain(codec.FrameDecoder(), [STRICT_ONLY[case][0](codec)])
        assert (len(values), error) == (1, None)

    def test_weight_is_refused_with_the_code_of_the_dialect(self, codec: ModuleType, dialect: str) -> None:
        frame = codec.encode_header(1, codec.BasicProperties(), 0, weight=1)
        assert next(codec.FrameDecoder().feed(frame)).payload.weight == 1
        _, error = drain(codec.FrameDecoder(strict=True), [frame])
        assert error is not None
        assert error.reply_code == (505 if "0-9-1" in dialect else 540)

    def test_a_further_word_of_flags_without_any_is_not_refused(self, codec: ModuleType) -> None:
        values, error = drain(codec.FrameDecoder(strict=True), [flags(codec, b"\0\1\0\0")])
        assert (len(values), error) == (1, None)

    @pytest.mark.parametrize("dialect", ["amqp-0-8", "amqp-0-9"])
    def test_tags_of_other_dialects_are_refused(self, impl: Any, dialect: str) -> None:
        module = impl.dialect(dialect)
        frame = headers(module, b"\x01al\0\0\0\0\0\0\0\5")
        assert next(module.FrameDecoder().feed(frame)).payload.properties.headers == {"a": 5}
        _, error = drain(module.FrameDecoder(strict=True), [frame])
        assert error is not None
        assert (error.reply_code, error.field) == (502, "headers")


def flags(module: ModuleType, words: bytes) -> bytes:
    """A content header with these property flags and no property."""
    size = (12 + len(words)).to_bytes(4, "big")
    return b"\x02\0\x01" + size + b"\0\x3c\0\0" + bytes(8) + words + b"\xce"


def headers(module: ModuleType, entries: bytes) -> bytes:
    """A content header whose headers hold these octets."""
    table = len(entries).to_bytes(4, "big") + entries
    payload = b"\0\x3c\0\0" + bytes(8) + b"\x20\0" + table
    return b"\x02\0\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce"


class TestLimits:
    """Our own limits hold whatever was negotiated."""

    def refused(self, amqp: ModuleType, frame: bytes, **limits: int) -> DecodeError:
        _, error = drain(amqp.FrameDecoder(frame_max=0, limits=Limits(**limits)), [frame])
        assert error is not None
        return error

    def taken(self, amqp: ModuleType, frame: bytes, **limits: int) -> Any:
        [value] = amqp.FrameDecoder(frame_max=0, limits=Limits(**limits)).feed(frame)
        return value

    def test_frame_size_stands_in_for_a_frame_max_of_zero(self, amqp: ModuleType) -> None:
        frame = amqp.encode_body(1, b"x" * 92)
        assert self.taken(amqp, frame, frame_size=100)
        error = self.refused(amqp, frame, frame_size=99)
        assert (error.reply_code, error.fatal) == (501, True)

    @pytest.mark.parametrize("value", [{}, []], ids=["tables", "arrays"])
    def test_depth(self, amqp: ModuleType, value: Any) -> None:
        for _ in range(8):
            value = {"k": value} if isinstance(value, dict) else [value]
        table = {"k": value}
        frame = amqp.encode_method(1, amqp.Queue.Declare(arguments=table))
        assert self.taken(amqp, frame, table_depth=10).payload.arguments == table
        error = self.refused(amqp, frame, table_depth=9)
        assert (error.reply_code, error.field, error.fatal) == (506, "arguments", False)
        assert error.message == "tables nested deeper than 9"

    def test_depth_of_what_is_encoded(self, amqp: ModuleType) -> None:
        table: dict[str, Any] = {}
        for _ in range(9):
            table = {"k": table}
        method = amqp.Queue.Declare(arguments=table)
        assert amqp.Encoder(limits=Limits(table_depth=10)).encode_method(1, method)
        with pytest.raises(ValueError, match="nested deeper than 9"):
            amqp.Encoder(limits=Limits(table_depth=9)).encode_method(1, method)

    @pytest.mark.parametrize("kind", ["dict", "list"])
    def test_the_greatest_depth_works(self, amqp: ModuleType, kind: str) -> None:
        value: Any = 1
        for _ in range(255):
            value = {"k": value} if kind == "dict" else [value]
        limits = Limits(table_depth=256)
        frame = amqp.Encoder(limits=limits).encode_method(1, amqp.Queue.Declare(arguments={"k": value}))
        assert self.taken(amqp, frame, table_depth=256).payload.arguments["k"]

    def test_a_full_stack_is_not_taken_for_a_fault_of_the_table(self, amqp: ModuleType) -> None:
        value: Any = 1
        for _ in range(126):
            value = {"k": value}
        method = amqp.Queue.Declare(arguments={"k": value})

        def far_down(levels: int) -> bytes:
            octets: bytes = amqp.encode_method(1, method) if levels == 0 else far_down(levels - 1)
            return octets

        room = sys.getrecursionlimit() - len(inspect.stack(0)) - 200
        try:
            octets = far_down(room)
        except (RecursionError, TypeError) as error:
            if not of_full_stack(error):
                raise
            octets = b""  # a fault of the caller's stack, and raised as that
        assert octets in (b"", amqp.encode_method(1, method))

    def test_octets_of_a_table(self, amqp: ModuleType) -> None:
        frame = amqp.encode_method(1, amqp.Queue.Declare(arguments={"k": 1}))
        assert self.taken(amqp, frame, table_octets=7)
        error = self.refused(amqp, frame, table_octets=6)
        assert (error.reply_code, error.message) == (506, "table of 7 octets, limit 6")

    def test_entries_of_a_table_with_those_inside(self, amqp: ModuleType) -> None:
        frame = amqp.encode_method(1, amqp.Queue.Declare(arguments={"a": [1, 2], "b": {"c": 1}}))
        assert self.taken(amqp, frame, table_entries=5)
        error = self.refused(amqp, frame, table_entries=4)
        assert (error.reply_code, error.message) == (506, "table of more than 4 entries")

    def test_entries_are_counted_table_by_table(self, amqp: ModuleType) -> None:
        frame = amqp.encode_method(1, amqp.Queue.Declare(arguments={"a": 1, "b": 2}))
        decoder = amqp.FrameDecoder(limits=Limits(table_entries=2))
        assert len(list(decoder.feed(frame * 3))) == 3

    @pytest.mark.parametrize("name", Limits.__slots__)
    def test_limits_are_positive(self, name: str) -> None:
        with pytest.raises(ValueError, match=f"{name} must be positive"):
            Limits(**{name: 0})

    def test_depth_is_bounded_itself(self) -> None:
        with pytest.raises(ValueError, match="table_depth must be at most 256"):
            Limits(table_depth=257)


ENTRIES: dict[str, Callable[[Any], Any]] = {
    "feed": lambda decoder: decoder.feed(b""),
    "next": next,
    "reset": lambda decoder: decoder.reset(),
    "get_buffer": lambda decoder: decoder.get_buffer(1),
    "buffer_updated": lambda decoder: decoder.buffer_updated(0),
    "constructor": lambda decoder: decoder.__init__(),
}


class TestInUse:
    """A decoder that is decoding refuses to be entered again."""

    @pytest.mark.parametrize("entry", ENTRIES)
    @pytest.mark.parametrize("kind", ["FrameDecoder", "MessageDecoder"])
    def test_entering_it_from_a_callback_is_refused(
        self, amqp: ModuleType, monkeypatch: pytest.MonkeyPatch, entry: str, kind: str
    ) -> None:
        # Strict mode checks asserts in Python code while it decodes: the way in for this test.
        decoder = getattr(amqp, kind)(strict=True)
        caught: list[type[BaseException]] = []

        def holds(check: Assert, value: Any) -> bool:
            with pytest.raises(DecoderInUseError, match="decoding"):
                ENTRIES[entry](decoder)
            caught.append(DecoderInUseError)
            return True

        monkeypatch.setattr(Assert, "holds", holds)
        frame = amqp.encode_method(1, amqp.Exchange.Delete("name"))
        assert len(list(decoder.feed(frame))) == 1
        assert caught
        assert len(list(decoder.feed(amqp.encode_heartbeat()))) == 1

    def test_a_constructor_called_again_begins_anew_with_its_options(self, amqp: ModuleType) -> None:
        heartbeat = amqp.encode_heartbeat()
        decoder = amqp.FrameDecoder(payloads="raw")
        assert [frame.payload for frame in decoder.feed(heartbeat + heartbeat[:3])] == [b""]
        with pytest.raises(ValueError, match="frame_max"):
            decoder.__init__(frame_max=1)
        assert [frame.payload for frame in decoder.feed(heartbeat[3:])] == [b""]
        decoder.__init__()
        assert (decoder.offset, decoder.pending) == (0, 0)
        assert [frame.type for frame in decoder.feed(amqp.protocol_header() + heartbeat)] == [65, 8]
        assert next(decoder.feed(amqp.encode_body(1, b"x" * 100))).payload == b"x" * 100

    def test_the_decoder_is_of_use_after_any_exception(
        self, amqp: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        decoder = amqp.FrameDecoder(strict=True)

        def holds(check: Assert, value: Any) -> bool:
            raise KeyboardInterrupt

        frame = amqp.encode_method(1, amqp.Exchange.Delete("name"))
        with monkeypatch.context() as patch:
            patch.setattr(Assert, "holds", holds)
            with pytest.raises(KeyboardInterrupt):
                next(decoder.feed(frame))
        assert len(list(decoder.feed(frame))) == 1
        # Nothing of the interrupted method is left over to be named by a later error.
        assert drain(decoder, [EMPTY_METHOD])[1].method is None
