"""The stream of a decoder: cut anywhere, fed at any time, held in any kind of buffer."""

from __future__ import annotations

import array
import mmap
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from support.outcomes import describe, octet_by_octet

FRAMES = 6
BUFFERS: dict[str, Callable[[bytes], Any]] = {
    "bytes": lambda data: data,
    "bytearray": bytearray,
    "memoryview": lambda data: memoryview(bytearray(data)),
    "array": lambda data: array.array("B", data),
    "signed array": lambda data: array.array("b", data),
    "wide memoryview": lambda data: memoryview(bytearray(data)).cast("H"),
    "strided memoryview": lambda data: memoryview(bytearray(b"".join(bytes([o, 0]) for o in data)))[::2],
    "reversed memoryview": lambda data: memoryview(bytearray(data[::-1]))[::-1],
}


def stream_of(amqp: ModuleType) -> bytes:
    """A small session: six frames of all kinds, the protocol header first."""
    headers = {"key": "value", "octets": b"\xff\x00", "list": [1, {"deep": "text"}]}
    properties = amqp.BasicProperties(content_type="text/plain", headers=headers)
    return (
        amqp.protocol_header()
        + amqp.encode_method(1, amqp.Queue.Declare(queue="a queue", arguments={"x-max-length": 5}))
        + amqp.encode_message(2, amqp.Basic.Publish("exchange", "key"), properties, b"the body \xce of it")
        + amqp.encode_heartbeat()
    )


def whole(amqp: ModuleType) -> list[Any]:
    frames = [describe(frame) for frame in amqp.FrameDecoder().feed(stream_of(amqp))]
    assert len(frames) == FRAMES
    return frames


def fed(decoder: Any, *chunks: Any) -> list[Any]:
    return [describe(frame) for chunk in chunks for frame in decoder.feed(chunk)]


def test_a_stream_cut_in_two_anywhere_gives_the_same_frames(amqp: ModuleType) -> None:
    stream, expected = stream_of(amqp), whole(amqp)
    for at in range(len(stream) + 1):
        decoder = amqp.FrameDecoder()
        assert fed(decoder, stream[:at], stream[at:]) == expected
        assert (decoder.pending, decoder.offset) == (0, len(stream))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 50])
def test_a_stream_in_small_chunks_gives_the_same_frames(amqp: ModuleType, size: int) -> None:
    stream = stream_of(amqp)
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert fed(amqp.FrameDecoder(), *chunks) == whole(amqp)


def test_empty_chunks_change_nothing(amqp: ModuleType) -> None:
    stream = stream_of(amqp)
    chunks = [part for octet in octet_by_octet(stream) for part in (b"", octet, b"")]
    assert fed(amqp.FrameDecoder(), *chunks) == whole(amqp)


def test_octets_fed_before_frames_are_asked_for_are_kept(amqp: ModuleType) -> None:
    stream = stream_of(amqp)
    decoder = amqp.FrameDecoder()
    for octet in octet_by_octet(stream):
        decoder.feed(octet)
    assert (decoder.pending, decoder.offset) == (len(stream), 0)
    assert [describe(frame) for frame in decoder] == whole(amqp)
    assert (decoder.pending, decoder.offset) == (0, len(stream))


def test_frames_are_decoded_only_when_asked_for(amqp: ModuleType) -> None:
    good, bad = amqp.encode_heartbeat(), b"\x01\0\x01\0\0\0\0\xce"
    decoder = amqp.FrameDecoder()
    frames = decoder.feed(good + bad)
    assert frames is decoder
    assert iter(frames) is decoder
    assert next(frames).type == 8
    assert (decoder.pending, decoder.offset) == (len(bad), len(good))
    with pytest.raises(ValueError, match="no ids"):
        next(frames)


def test_a_loop_left_early_goes_on_with_the_next_feed(amqp: ModuleType) -> None:
    stream = stream_of(amqp)
    decoder = amqp.FrameDecoder()
    seen = []
    for frame in decoder.feed(stream):
        seen.append(describe(frame))
        break
    seen += fed(decoder, stream[8:])
    assert seen == whole(amqp) + whole(amqp)[1:]
    assert decoder.offset == 2 * len(stream) - 8


def test_feeding_inside_the_loop_adds_to_it(amqp: ModuleType) -> None:
    heartbeat = amqp.encode_heartbeat()
    decoder = amqp.FrameDecoder()
    count = 0
    for _ in decoder.feed(heartbeat):
        count += 1
        if count < 10:
            decoder.feed(heartbeat[:5])
            decoder.feed(heartbeat[5:])
    assert count == 10
    assert decoder.offset == 80


def test_pending_and_offset_follow_the_stream(amqp: ModuleType) -> None:
    stream = stream_of(amqp)
    decoder = amqp.FrameDecoder()
    for count, octet in enumerate(octet_by_octet(stream), start=1):
        list(decoder.feed(octet))
        assert decoder.pending + decoder.offset == count
    decoder.reset()
    ends = [decoder.offset for _ in decoder.feed(stream)]
    assert ends[0] == 8
    assert ends[-1] == len(stream)
    assert ends == sorted(set(ends))


def test_an_exhausted_decoder_stops_until_it_is_fed(amqp: ModuleType) -> None:
    decoder = amqp.FrameDecoder()
    assert next(decoder, None) is None
    assert next(decoder, None) is None
    assert next(decoder.feed(amqp.encode_heartbeat())).type == 8


class TestInput:
    """Every bytes-like object is accepted, and no result refers to it."""

    @pytest.mark.parametrize("kind", BUFFERS)
    @pytest.mark.parametrize("decoder", ["FrameDecoder", "MessageDecoder"])
    def test_kinds_of_buffers(self, amqp: ModuleType, kind: str, decoder: str) -> None:
        stream = stream_of(amqp) + amqp.encode_body(1, b"odd")[:1]
        stream = stream if len(stream) % 2 == 0 else stream + b"\0"
        expected = fed(getattr(amqp, decoder)(), stream)
        assert fed(getattr(amqp, decoder)(), BUFFERS[kind](stream)) == expected

    def test_mmap(self, amqp: ModuleType) -> None:
        stream = stream_of(amqp)
        with mmap.mmap(-1, len(stream)) as mapped:
            mapped[:] = stream
            assert fed(amqp.FrameDecoder(), mapped) == whole(amqp)

    @pytest.mark.parametrize("tables", ["dict", "raw"])
    def test_results_do_not_alias_the_input(self, amqp: ModuleType, tables: str) -> None:
        stream = bytearray(stream_of(amqp))
        decoder = amqp.FrameDecoder(tables=tables)
        cut = len(stream) // 2
        first = list(decoder.feed(memoryview(stream)[:cut]))
        rest = decoder.feed(memoryview(stream)[cut:])
        stream[:] = bytes(len(stream))
        frames = [*first, *rest]
        clean = amqp.FrameDecoder(tables=tables).feed(stream_of(amqp))
        assert [describe(frame) for frame in frames] == [describe(frame) for frame in clean]
        assert type(frames[4].payload) is bytes
        table = frames[3].payload.properties.headers
        assert type(table).__name__ == ("RawTable" if tables == "raw" else "dict")
        assert type(table["octets"]) is bytes

    def test_the_input_is_free_to_change_after_feeding(self, amqp: ModuleType) -> None:
        stream = bytearray(stream_of(amqp))
        frames = amqp.FrameDecoder().feed(stream)
        stream.clear()
        assert [describe(frame) for frame in frames] == whole(amqp)

    @pytest.mark.parametrize("wrong", ["text", 5, None, [1, 2]])
    def test_other_objects_are_a_type_error(self, amqp: ModuleType, wrong: Any) -> None:
        decoder = amqp.FrameDecoder()
        with pytest.raises(TypeError):
            decoder.feed(wrong)
        assert fed(decoder, stream_of(amqp)) == whole(amqp)


class TestOwnBuffer:
    """The decoder lends a buffer to receive into, for asyncio.BufferedProtocol."""

    def receive(self, decoder: Any, data: bytes) -> Any:
        buffer = decoder.get_buffer(len(data))
        buffer[: len(data)] = data
        return decoder.buffer_updated(len(data))

    @pytest.mark.parametrize("size", [1, 7, 20, 1000])
    def test_octets_received_are_decoded(self, amqp: ModuleType, size: int) -> None:
        stream, decoder = stream_of(amqp), amqp.FrameDecoder()
        frames = []
        for at in range(0, len(stream), size):
            frames += [describe(frame) for frame in self.receive(decoder, stream[at : at + size])]
        assert frames == whole(amqp)
        assert (decoder.pending, decoder.offset) == (0, len(stream))

    def test_frames_not_asked_for_survive_the_next_receive(self, amqp: ModuleType) -> None:
        stream, decoder = stream_of(amqp), amqp.FrameDecoder()
        frames = [describe(next(self.receive(decoder, stream)))]
        for _ in range(3):
            self.receive(decoder, stream[8:])
        frames += [describe(frame) for frame in decoder]
        assert frames == whole(amqp) + 3 * whole(amqp)[1:]

    def test_results_do_not_alias_the_buffer(self, amqp: ModuleType) -> None:
        decoder = amqp.FrameDecoder(tables="raw")
        frames = list(self.receive(decoder, stream_of(amqp)))
        buffer = decoder.get_buffer(0)
        buffer[:] = bytes(len(buffer))
        clean = amqp.FrameDecoder(tables="raw").feed(stream_of(amqp))
        assert [describe(frame) for frame in frames] == [describe(frame) for frame in clean]

    def test_the_buffer_is_lent_again_once_it_is_used_up(self, amqp: ModuleType) -> None:
        decoder = amqp.FrameDecoder()
        first = decoder.get_buffer(1)
        list(self.receive(decoder, stream_of(amqp)))
        assert decoder.get_buffer(1).obj is first.obj
        assert len(first) >= 65536

    def test_feeding_and_receiving_may_be_mixed(self, amqp: ModuleType) -> None:
        stream, decoder = stream_of(amqp), amqp.FrameDecoder()
        decoder.feed(stream[:20])
        self.receive(decoder, stream[20:50])
        decoder.feed(stream[50:60])
        self.receive(decoder, stream[60:])
        assert [describe(frame) for frame in decoder] == whole(amqp)

    @pytest.mark.parametrize("count", [-1, 65537])
    def test_counts_beyond_the_buffer_are_refused(self, amqp: ModuleType, count: int) -> None:
        decoder = amqp.FrameDecoder()
        decoder.get_buffer(0)
        with pytest.raises(ValueError, match="no buffer"):
            decoder.buffer_updated(count)

    def test_a_read_of_nothing_or_of_all_that_was_lent_is_taken(self, amqp: ModuleType) -> None:
        stream, decoder = stream_of(amqp), amqp.FrameDecoder()
        lent = decoder.get_buffer(0)
        assert list(decoder.buffer_updated(0)) == []
        body = bytes(len(lent) - len(stream) - 8)
        octets = stream + amqp.encode_body(1, body)
        decoder.get_buffer(0)[:] = octets
        assert [describe(frame) for frame in decoder.buffer_updated(len(octets))][:-1] == whole(amqp)
        assert (decoder.pending, decoder.offset) == (0, len(octets))

    def test_updating_a_buffer_never_lent_is_refused(self, amqp: ModuleType) -> None:
        with pytest.raises(ValueError, match="no buffer"):
            amqp.FrameDecoder().buffer_updated(0)


class TestReset:
    def test_everything_is_forgotten(self, amqp: ModuleType) -> None:
        stream, decoder = stream_of(amqp), amqp.FrameDecoder()
        list(decoder.feed(stream[:-3]))
        decoder.feed(stream)
        decoder.reset()
        assert (decoder.pending, decoder.offset) == (0, 0)
        assert list(decoder) == []
        assert fed(decoder, stream) == whole(amqp)

    def test_an_error_is_forgotten(self, amqp: ModuleType) -> None:
        decoder = amqp.FrameDecoder()
        with pytest.raises(ValueError, match="not known"):
            next(decoder.feed(b"\xffGET / HTTP/1.1\r\n"))
        decoder.reset()
        assert fed(decoder, stream_of(amqp)) == whole(amqp)

    def test_the_options_stay(self, amqp: ModuleType) -> None:
        decoder = amqp.FrameDecoder(frame_max=20, tables="raw")
        decoder.reset()
        with pytest.raises(ValueError, match="frame_max 20"):
            next(decoder.feed(amqp.encode_body(1, b"x" * 13)))


class TestFrameMax:
    """frame_max counts whole frames; the slack is on top; 0 is no limit."""

    def outcome(self, amqp: ModuleType, octets: int, **options: Any) -> int:
        frame = amqp.encode_body(1, b"x" * (octets - 8))
        return len(next(amqp.FrameDecoder(**options).feed(frame)).payload)

    @pytest.mark.parametrize("frame_max", [9, 4096, 131072])
    def test_frames_of_just_that_size_are_taken(self, amqp: ModuleType, frame_max: int) -> None:
        assert self.outcome(amqp, frame_max, frame_max=frame_max) == frame_max - 8
        with pytest.raises(ValueError, match=f"frame of {frame_max + 1} octets, frame_max {frame_max}"):
            self.outcome(amqp, frame_max + 1, frame_max=frame_max)

    def test_the_default_is_131072(self, amqp: ModuleType) -> None:
        assert self.outcome(amqp, 131072) == 131064
        with pytest.raises(ValueError, match="frame of 131073 octets"):
            self.outcome(amqp, 131073)

    def test_the_slack_forgives_some_octets(self, amqp: ModuleType) -> None:
        assert self.outcome(amqp, 4104, frame_max=4096, frame_max_slack=8) == 4096
        with pytest.raises(ValueError, match="frame of 4105 octets"):
            self.outcome(amqp, 4105, frame_max=4096, frame_max_slack=8)

    def test_zero_is_no_limit(self, amqp: ModuleType) -> None:
        assert self.outcome(amqp, 1_000_000, frame_max=0) == 999_992

    def test_too_large_a_frame_is_refused_by_its_first_seven_octets(self, amqp: ModuleType) -> None:
        decoder = amqp.FrameDecoder(frame_max=4096)
        assert list(decoder.feed(b"\x03\0\x01\0\0\x0f")) == []
        with pytest.raises(ValueError, match="frame_max 4096") as caught:
            next(decoder.feed(b"\xf9"))
        assert (caught.value.fatal, caught.value.offset, caught.value.reply_code) == (True, 3, 501)

    @pytest.mark.parametrize("octets", [10, 4096])
    def test_encoders_keep_to_it(self, amqp: ModuleType, octets: int) -> None:
        calls: list[tuple[Callable[..., bytes], Any]] = [
            (amqp.encode_body, b"x" * octets),
            (amqp.encode_method, amqp.Connection.Secure(b"x" * (octets - 8))),
        ]
        for encode, value in calls:
            assert len(encode(1, value, frame_max=octets + 8)) == octets + 8
            with pytest.raises(ValueError, match=f"frame of {octets + 8} octets, frame_max {octets + 7}"):
                encode(1, value, frame_max=octets + 7)

    @pytest.mark.parametrize("frame_max", [1, 8, -1])
    def test_sizes_that_leave_no_room_are_refused(self, amqp: ModuleType, frame_max: int) -> None:
        with pytest.raises(ValueError, match="frame_max must be 0 or more than 8"):
            amqp.FrameDecoder(frame_max=frame_max)
        with pytest.raises(ValueError, match="frame_max must be 0 or more than 8"):
            amqp.encode_body(1, b"", frame_max=frame_max)


@pytest.mark.parametrize(
    ("option", "value"),
    [("frame_max_slack", -1), ("tables", "lazy"), ("profile", "0-7"), ("body", "list"), ("aborted", "drop")],
)
def test_options_that_make_no_sense_are_refused(amqp: ModuleType, option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=option):
        amqp.MessageDecoder(**{option: value})


class TestProtocolHeader:
    """A protocol header is one only as the first octets of a stream."""

    def test_all_headers_of_the_dialect_are_taken(self, codec: ModuleType) -> None:
        for header in codec.DIALECT.accepted_headers:
            [frame] = codec.FrameDecoder().feed(header)
            assert frame.payload.octets == header

    def test_not_after_another_frame(self, codec: ModuleType) -> None:
        decoder = codec.FrameDecoder().feed(codec.encode_heartbeat() + codec.protocol_header())
        next(decoder)
        with pytest.raises(ValueError, match="frame type 65 is not known") as caught:
            next(decoder)
        assert caught.value.fatal

    def test_not_twice(self, codec: ModuleType) -> None:
        decoder = codec.FrameDecoder().feed(codec.protocol_header() * 2)
        next(decoder)
        with pytest.raises(ValueError, match="frame type 65 is not known"):
            next(decoder)

    @pytest.mark.parametrize(
        "octets", [b"AMQP\x02\x02\x00\x0a", b"AMQP\x00\x01\x00\x00", b"AMQX\x00\x00\x09\x01"]
    )
    def test_of_another_version_is_refused_for_good(self, codec: ModuleType, octets: bytes) -> None:
        decoder = codec.FrameDecoder()
        assert list(decoder.feed(octets[:7])) == []
        with pytest.raises(ValueError, match="protocol header") as caught:
            next(decoder.feed(octets[7:]))
        assert (caught.value.fatal, caught.value.reply_code) == (True, 501)
