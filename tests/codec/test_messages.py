"""Messages: a method, its header and its body frames become one, over any number of channels."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from support.campaign import in_full
from support.outcomes import describe, drain, octet_by_octet

from amqpcodec import DecodeError, EncodeError, Limits


def content_methods(codec: ModuleType) -> list[type]:
    return [cls for cls in codec.METHODS.values() if cls.spec.content]


def message_octets(codec: ModuleType, channel: int, body: bytes, **options: Any) -> bytes:
    octets: bytes = codec.encode_message(channel, codec.Basic.Publish(), None, body, **options)
    return octets


def kinds(values: list[Any]) -> list[Any]:
    """Channel and body of messages, channel and name of methods, type of other frames."""
    shown: list[Any] = []
    for value in values:
        if type(value).__name__ == "Message":
            shown.append((value.channel, value.body))
        else:
            shown.append((value.channel, value.payload.spec.name) if value.type == 1 else value.type)
    return shown


class TestWhole:
    @pytest.mark.parametrize("body", [b"", b"x", b"body" * 3000], ids=len)
    def test_every_method_with_content(self, codec: ModuleType, body: bytes) -> None:
        classes = content_methods(codec)
        assert len(classes) >= 4
        for cls in classes:
            properties = codec.PROPERTIES[cls.spec.class_id]()
            for field in properties.spec.fields:
                setattr(properties, field.attribute, {"table": {"k": 1}, "shortstr": "text"}.get(field.type))
            octets = codec.encode_message(7, cls(), properties, body, frame_max=4096)
            [message] = codec.MessageDecoder(frame_max=4096).feed(octets)
            assert (message.channel, message.complete) == (7, True)
            assert describe(message.method) == describe(cls())
            assert message.properties == properties
            assert describe(message.body) == describe(body)
            assert codec.encode(message, frame_max=4096) == octets

    @pytest.mark.parametrize("size", [1, 4087, 4088, 4089, 8176, 8177])
    def test_bodies_are_cut_to_frame_max(self, codec: ModuleType, size: int) -> None:
        octets = message_octets(codec, 1, b"x" * size, frame_max=4096)
        frames = codec.FrameDecoder(frame_max=4096).feed(octets)
        sizes = [len(frame.payload) for frame in frames if frame.type == 3]
        assert sum(sizes) == size
        assert all(each == 4088 for each in sizes[:-1])
        assert len(sizes) == -(-size // 4088)

    def test_an_empty_body_has_no_frame(self, codec: ModuleType) -> None:
        octets = message_octets(codec, 1, b"")
        assert [frame.type for frame in codec.FrameDecoder().feed(octets)] == [1, 2]

    @pytest.mark.parametrize("cut", [False, True], ids=["whole", "octet-by-octet"])
    def test_a_body_may_come_in_any_frames(self, codec: ModuleType, cut: bool) -> None:
        header = codec.encode_header(1, codec.BasicProperties(), 6)
        method = codec.encode_method(1, codec.Basic.Publish())
        bodies = [b"ab", b"", b"c", b"def"]
        stream = method + header + b"".join(codec.encode_body(1, body) for body in bodies)
        chunks = octet_by_octet(stream) if cut else [stream]
        for form, expected in (("bytes", b"abcdef"), ("chunks", bodies)):
            values, error = drain(codec.MessageDecoder(body=form), chunks)
            assert error is None
            assert [value.body for value in values] == [expected]

    def test_empty_body_frames_take_no_room(self, codec: ModuleType) -> None:
        decoder = codec.MessageDecoder()
        head = codec.encode_method(1, codec.Basic.Publish())
        head += codec.encode_header(1, codec.BasicProperties(), 1)
        assert list(decoder.feed(head)) == []
        empty = codec.encode_body(1, b"") * in_full(10_000, 5_000)
        tracemalloc = pytest.importorskip("tracemalloc")  # PyPy has none
        tracemalloc.start()
        try:
            assert all(list(decoder.feed(empty)) == [] for _ in range(5))
            assert tracemalloc.get_traced_memory()[0] < 200_000
        finally:
            tracemalloc.stop()
        [message] = decoder.feed(codec.encode_body(1, b"x"))
        assert message.body == b"x"

    def test_bodies_of_one_frame_and_of_none(self, codec: ModuleType) -> None:
        stream = message_octets(codec, 1, b"one") + message_octets(codec, 1, b"")
        values = list(codec.MessageDecoder(body="chunks").feed(stream))
        assert [value.body for value in values] == [[b"one"], []]
        assert b"".join(map(codec.encode, values)) == stream

    def test_no_properties_are_the_default_ones(self, codec: ModuleType) -> None:
        for cls in content_methods(codec):
            empty = codec.PROPERTIES[cls.spec.class_id]()
            with_none = codec.encode_message(1, cls(), None, b"x")
            assert with_none == codec.encode_message(1, cls(), empty, b"x")


class TestOrder:
    @pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
    @pytest.mark.parametrize("header_on", [1, 2])
    def test_what_comes_on_another_channel_is_not_of_the_message(
        self, codec: ModuleType, header_on: int, strict: bool
    ) -> None:
        octets = (
            codec.encode_method(1, codec.Basic.Deliver("consumer", 1))
            + codec.encode_header(header_on, codec.BasicProperties(), 4)
            + codec.encode_body(2, b"body")
        )
        with pytest.raises(DecodeError, match=r"without a .* before it"):
            list(codec.MessageDecoder(expect_header=False, strict=strict).feed(octets))

    def test_channels_interleave(self, codec: ModuleType) -> None:
        streams = {
            channel: [
                codec.encode_method(channel, codec.Basic.Publish()),
                codec.encode_header(channel, codec.BasicProperties(), 4),
                codec.encode_body(channel, b"%d-" % channel),
                codec.encode_body(channel, b"%d." % channel),
            ]
            for channel in (1, 2, 3, 9)
        }
        stream = b"".join(octets for step in zip(*streams.values(), strict=True) for octets in step)
        values = list(codec.MessageDecoder().feed(stream))
        assert kinds(values) == [(channel, b"%d-%d." % (channel, channel)) for channel in (1, 2, 3, 9)]
        backwards = b"".join(
            octets for step in zip(*reversed(streams.values()), strict=True) for octets in step
        )
        values = list(codec.MessageDecoder().feed(backwards))
        assert [value.channel for value in values] == [9, 3, 2, 1]

    def test_other_frames_come_in_their_place(self, codec: ModuleType) -> None:
        parts = [
            codec.protocol_header(),
            codec.encode_method(1, codec.Basic.Publish()),
            codec.encode_heartbeat(),
            codec.encode_method(2, codec.Tx.Select()),
            codec.encode_header(1, codec.BasicProperties(), 1),
            codec.encode_method(3, codec.Tx.Select()),
            codec.encode_body(1, b"x"),
            codec.encode_heartbeat(),
        ]
        values = list(codec.MessageDecoder().feed(b"".join(parts)))
        assert kinds(values) == [65, 8, (2, "tx.select"), (3, "tx.select"), (1, b"x"), 8]

    def test_encoding_what_came_out_gives_the_stream_back(self, codec: ModuleType) -> None:
        stream = (
            codec.protocol_header()
            + codec.encode_method(0, codec.Connection.TuneOk(1, 4096, 0))
            + message_octets(codec, 1, b"x" * 10000, frame_max=4096)
            + codec.encode_heartbeat()
            + message_octets(codec, 2, b"")
        )
        for options in ({}, {"body": "chunks"}, {"tables": "raw"}):
            values = codec.MessageDecoder(frame_max=4096, **options).feed(stream)
            assert b"".join(codec.encode(value, frame_max=4096) for value in values) == stream


class TestCutOff:
    """A method on a channel whose content is not complete."""

    def stages(self, codec: ModuleType) -> list[bytes]:
        return [
            codec.encode_method(1, codec.Basic.Publish()),
            codec.encode_header(1, codec.BasicProperties(content_type="t"), 6),
            codec.encode_body(1, b"abc"),
        ]

    @pytest.mark.parametrize("stage", [1, 2, 3])
    def test_is_an_error_by_default(self, codec: ModuleType, dialect: str, stage: int) -> None:
        stream = b"".join(self.stages(codec)[:stage]) + codec.encode_method(1, codec.Tx.Select())
        values, error = drain(codec.MessageDecoder(), [stream])
        assert values == []
        assert error is not None
        assert (error.reply_code, error.fatal) == (505 if "0-9-1" in dialect else 501, False)
        assert error.message == "method tx.select before the end of a basic.publish"

    @pytest.mark.parametrize("stage", [1, 2, 3])
    @pytest.mark.parametrize("body", ["bytes", "chunks"])
    def test_is_kept_if_asked_for(self, codec: ModuleType, stage: int, body: str) -> None:
        stream = b"".join(self.stages(codec)[:stage]) + codec.encode_method(1, codec.Tx.Select())
        values, error = drain(codec.MessageDecoder(aborted="keep", body=body), [stream])
        assert error is None
        message, frame = values
        assert message.complete is False
        assert describe(message.method) == describe(codec.Basic.Publish())
        chunks = [b"abc"] if stage == 3 else []
        assert message.body == (chunks if body == "chunks" else b"".join(chunks))
        assert (message.properties is None) == (stage == 1)
        assert frame.payload.spec.name == "tx.select"

    def test_by_another_content_opens_that_one(self, codec: ModuleType) -> None:
        stream = self.stages(codec)[0] + message_octets(codec, 1, b"second")
        values, error = drain(codec.MessageDecoder(aborted="keep"), [stream])
        assert error is None
        assert [(value.complete, value.body) for value in values] == [(False, b""), (True, b"second")]

    def test_on_one_channel_leaves_the_others_alone(self, codec: ModuleType) -> None:
        parts = self.stages(codec)
        other = message_octets(codec, 2, b"other")
        cut = len(codec.encode_method(2, codec.Basic.Publish()))
        stream = parts[0] + other[:cut] + codec.encode_method(1, codec.Tx.Select()) + other[cut:]
        decoder = codec.MessageDecoder()
        assert drain(decoder, [stream])[1] is not None
        decoder.skip_frame()
        assert kinds(list(decoder)) == [(2, b"other")]

    def test_its_body_is_not_taken_for_the_next(self, codec: ModuleType) -> None:
        parts = self.stages(codec)
        decoder = codec.MessageDecoder()
        stream = parts[0] + parts[1] + codec.encode_method(1, codec.Tx.Select()) + parts[2]
        assert drain(decoder, [stream])[1] is not None
        decoder.skip_frame()
        _, error = drain(decoder, [b""])
        assert error is not None
        assert error.message == "body without a content header before it"

    def test_reset_forgets_open_messages(self, codec: ModuleType) -> None:
        decoder = codec.MessageDecoder()
        assert list(decoder.feed(b"".join(self.stages(codec)))) == []
        decoder.reset()
        assert kinds(list(decoder.feed(message_octets(codec, 1, b"new")))) == [(1, b"new")]


class TestFaults:
    def test_a_body_beyond_the_announced_size(self, codec: ModuleType) -> None:
        stream = codec.encode_method(1, codec.Basic.Publish())
        stream += codec.encode_header(1, codec.BasicProperties(), 3) + codec.encode_body(1, b"four")
        _, error = drain(codec.MessageDecoder(), [stream])
        assert error is not None
        assert (error.reply_code, error.message) == (501, "body of 4 octets, 3 announced")

    def test_a_header_of_another_class(self, codec: ModuleType, dialect: str) -> None:
        others = [cls for cls in codec.PROPERTIES.values() if cls.spec.name != "basic"]
        for cls in others:
            stream = codec.encode_method(1, codec.Basic.Publish()) + codec.encode_header(1, cls(), 0)
            _, error = drain(codec.MessageDecoder(), [stream])
            assert error is not None
            assert error.reply_code == (505 if "0-9-1" in dialect else 501)
        assert bool(others) == ("0-9-1" not in dialect)

    def test_error_codes_follow_the_dialect(self, codec: ModuleType, dialect: str) -> None:
        for stream in (
            codec.encode_header(1, codec.BasicProperties(), 0),
            codec.encode_body(1, b"x"),
            codec.encode_method(1, codec.Basic.Publish()) + codec.encode_body(1, b"x"),
        ):
            values, error = drain(codec.MessageDecoder(), [stream])
            assert values == []
            assert error is not None
            assert error.reply_code == (505 if "0-9-1" in dialect else 501)


class TestSkippedFrames:
    """What cannot be decoded ends the content of its channel; nothing is put together across it."""

    @staticmethod
    def outcomes(codec: ModuleType, octets: bytes) -> list[Any]:
        """Bodies of messages, names of other methods, and reply codes of the frames that were skipped."""
        decoder = codec.MessageDecoder()
        found: list[Any] = []
        decoder.feed(octets)
        while True:
            values, error = drain(decoder, [b""])
            found += [body for _, body in kinds(values)]
            if error is None:
                return found
            assert not error.fatal
            found.append(error.reply_code)
            decoder.skip_frame()

    @pytest.fixture
    def unexpected(self, dialect: str) -> int:
        return 505 if "0-9-1" in dialect else 501

    @staticmethod
    def parts(codec: ModuleType, body: bytes, channel: int = 1) -> tuple[bytes, bytes, bytes]:
        """The frames of a message."""
        header = codec.encode_header(channel, codec.BasicProperties(), len(body))
        return (
            codec.encode_method(channel, codec.Basic.Publish()),
            header,
            codec.encode_body(channel, body),
        )

    @pytest.mark.parametrize(
        ("payload", "code"),
        [(b"\0\x3c\x03\xe7", 503), (b"\0\x3c\0\x28\0\0\xff", 501), (b"\0\x3c", 501)],
        ids=["unknown", "cut", "no-ids"],
    )
    def test_a_method(self, codec: ModuleType, unexpected: int, payload: bytes, code: int) -> None:
        method, header, body = self.parts(codec, b"B")
        bad = b"\1\0\1" + len(payload).to_bytes(4, "big") + payload + b"\xce"
        opened = [method, method + header, method + codec.encode_header(1, codec.BasicProperties(), 9) + body]
        for before in opened:
            found = self.outcomes(codec, before + bad + header + body + method + header + body)
            assert found == [code, unexpected, unexpected, b"B"]

    def test_a_content_header(self, codec: ModuleType, unexpected: int) -> None:
        method, header, body = self.parts(codec, b"B")
        bad = bytearray(header)
        bad[20] = 0x80  # promises a content type, and has none
        found = self.outcomes(codec, method + bytes(bad) + header + body + method + header + body)
        assert found == [501, unexpected, unexpected, b"B"]

    def test_of_another_channel_ends_nothing(self, codec: ModuleType) -> None:
        method, header, body = self.parts(codec, b"B")
        other = self.parts(codec, b"other", 2)
        bad = b"\1\0\2\0\0\0\4\0\x3c\x03\xe7\xce"
        found = self.outcomes(codec, other[0] + method + bad + header + body)
        assert found == [503, b"B"]

    def test_a_heartbeat_is_of_no_content(self, codec: ModuleType) -> None:
        method, header, body = self.parts(codec, b"B")
        assert self.outcomes(codec, method + b"\x08\0\1\0\0\0\0\xce" + header + body) == [501, b"B"]

    def test_a_method_behind_a_body_that_was_refused(self, codec: ModuleType, unexpected: int) -> None:
        decoder = codec.MessageDecoder(limits=Limits(body_size=1))
        method, header, body = self.parts(codec, b"two")
        codes = []
        decoder.feed(method + header + b"\1\0\1\0\0\0\4\0\x3c\x03\xe7\xce" + body)
        for _ in range(3):
            error = drain(decoder, [b""])[1]
            assert error is not None
            codes.append(error.reply_code)
            decoder.skip_frame()
        assert codes == [311, 503, unexpected]


class TestLimits:
    def test_body_size_is_refused_by_its_announcement(self, codec: ModuleType) -> None:
        limits = Limits(body_size=100)
        assert list(codec.MessageDecoder(limits=limits).feed(message_octets(codec, 1, b"x" * 100)))
        _, error = drain(codec.MessageDecoder(limits=limits), [message_octets(codec, 1, b"x" * 101)])
        assert error is not None
        assert (error.reply_code, error.closes, error.fatal) == (311, "channel", False)
        assert error.message == "body of 101 octets, limit 100"

    def test_the_largest_announcement_reserves_nothing(self, codec: ModuleType) -> None:
        limits = Limits(body_size=2**63 - 1)
        decoder = codec.MessageDecoder(limits=limits)
        stream = codec.encode_method(1, codec.Basic.Publish())
        stream += codec.encode_header(1, codec.BasicProperties(), 2**63 - 1) + codec.encode_body(1, b"x")
        assert drain(decoder, [stream]) == ([], None)
        beyond = codec.encode_method(2, codec.Basic.Publish())
        beyond += codec.encode_header(2, codec.BasicProperties(), 2**64 - 1)
        _, error = drain(decoder, [beyond])
        assert error is not None
        assert error.message == f"body of {2**64 - 1} octets, limit {2**63 - 1}"

    @pytest.mark.parametrize("count", [1, 2, 5])
    def test_messages_open_at_once(self, codec: ModuleType, count: int) -> None:
        decoder = codec.MessageDecoder(limits=Limits(open_messages=count))
        publish = codec.Basic.Publish()
        opened = b"".join(codec.encode_method(channel, publish) for channel in range(1, count + 1))
        assert drain(decoder, [opened]) == ([], None)
        _, error = drain(decoder, [codec.encode_method(99, publish)])
        assert error is not None
        assert (error.reply_code, error.message) == (506, f"more than {count} messages open")
        decoder.skip_frame()
        rest = message_octets(codec, 1, b"done")[len(codec.encode_method(1, publish)) :]
        assert kinds(list(decoder.feed(rest))) == [(1, b"done")]
        assert drain(decoder, [codec.encode_method(98, publish)]) == ([], None)


class TestParts:
    """encode_message_parts: the same octets without a copy of the body."""

    @pytest.mark.parametrize("size", [0, 1, 4088, 4089, 50000])
    def test_they_join_to_the_message(self, codec: ModuleType, size: int) -> None:
        given = (3, codec.Basic.Publish(), codec.BasicProperties(message_id="id"), bytes(size))
        parts = codec.encode_message_parts(*given, frame_max=4096)
        assert b"".join(parts) == codec.encode_message(*given, frame_max=4096)

    @pytest.mark.parametrize("make", [bytes, bytearray, lambda data: memoryview(bytearray(data))])
    def test_the_body_is_not_copied(self, codec: ModuleType, make: Any) -> None:
        body = make(b"x" * 10000)
        parts = codec.encode_message_parts(1, codec.Basic.Publish(), None, body, frame_max=4096)
        views = [part for part in parts if isinstance(part, memoryview)]
        assert [len(view) for view in views] == [4088, 4088, 1824]
        assert all(view.obj is (body.obj if isinstance(body, memoryview) else body) for view in views)
        if isinstance(body, bytearray):
            body[0:1] = b"y"
            assert bytes(views[0][:2]) == b"yx"

    def test_buffers_that_are_not_contiguous_are_still_sent(self, codec: ModuleType) -> None:
        body = memoryview(b"a.b.c.")[::2]
        for octets in (
            codec.encode_message(1, codec.Basic.Publish(), None, body),
            b"".join(codec.encode_message_parts(1, codec.Basic.Publish(), None, body)),
        ):
            [message] = codec.MessageDecoder().feed(octets)
            assert message.body == b"abc"

    def test_wide_buffers_count_in_octets(self, codec: ModuleType) -> None:
        body = memoryview(bytearray(range(16))).cast("I")
        [message] = codec.MessageDecoder().feed(codec.encode_message(1, codec.Basic.Publish(), None, body))
        assert message.body == bytes(range(16))


class TestRefusals:
    @pytest.mark.parametrize("function", ["encode_message", "encode_message_parts"])
    def test_what_is_no_message(self, codec: ModuleType, function: str) -> None:
        encode, publish = getattr(codec, function), codec.Basic.Publish()
        with pytest.raises(EncodeError, match=r"basic.ack: carries no content"):
            encode(1, codec.Basic.Ack(1), None, b"")
        with pytest.raises(EncodeError, match="channel 0") as caught:
            encode(0, publish, None, b"")
        assert (caught.value.method, caught.value.field) == ("basic.publish", "channel")
        with pytest.raises(EncodeError, match="frame_max"):
            encode(1, codec.Basic.Publish(exchange="x" * 200), None, b"", frame_max=100)
        with pytest.raises(EncodeError, match="frame_max must be 0 or more than 8"):
            encode(1, publish, None, b"", frame_max=8)
        for cls in codec.PROPERTIES.values():
            if cls.spec.name != "basic":
                with pytest.raises(EncodeError, match=f"properties of class {cls.spec.name} do not belong"):
                    encode(1, publish, cls(), b"")

    def test_validate_checks_the_asserts(self, codec: ModuleType) -> None:
        publish = codec.Basic.Publish(exchange="x" * 200)
        if hasattr(publish, "ticket"):
            publish.ticket = 1
        assert codec.encode_message(1, publish, None, b"")
        with pytest.raises(EncodeError, match="length 127") as caught:
            codec.encode_message(1, publish, None, b"", validate=True)
        assert caught.value.field == "exchange"

    @pytest.mark.parametrize("frame", ["header", "body"])
    def test_content_on_channel_0_is_refused_on_reading(self, codec: ModuleType, frame: str) -> None:
        octets = {
            "header": codec.encode_header(0, codec.BasicProperties(), 0),
            "body": codec.encode_body(0, b"x"),
        }[frame]
        for decoder in (codec.MessageDecoder(), codec.FrameDecoder()):
            with pytest.raises(DecodeError, match="channel 0") as caught:
                next(decoder.feed(octets))
            assert caught.value.reply_code == 504
