"""What callers may do wrong: refused by an exception, never by a crash, on both builds alike."""

from __future__ import annotations

import copy
import pickle
import sys
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation

from amqpcodec import DecodeError, EncodeError, Limits


class TestRawTable:
    @pytest.mark.parametrize("wrap", [bytearray, memoryview])
    def test_it_copies_what_is_not_bytes(self, impl: Implementation, wrap: Any) -> None:
        table = impl.raw_table(wrap(b"\x01aI\0\0\0\1"))
        assert table.octets == b"\x01aI\0\0\0\1"
        assert dict(table) == {"a": 1}
        assert impl.tables.encode_table({"t": table})[7:] == b"\0\0\0\x07\x01aI\0\0\0\1"

    @pytest.mark.parametrize("octets", ["\x01aI\0\0\0\1", 5, None, ["x"]])
    def test_it_refuses_what_is_not_octets(self, impl: Implementation, octets: Any) -> None:
        with pytest.raises(TypeError):
            impl.raw_table(octets)
        with pytest.raises(TypeError):
            impl.tables.decode_pairs(octets)

    def test_it_cannot_be_changed(self, impl: Implementation) -> None:
        table = impl.raw_table(b"\x01aI\0\0\0\1")
        for name, value in (("octets", b""), ("profile", "0-8")):
            with pytest.raises(AttributeError):
                setattr(table, name, value)

    def test_it_is_matched_as_a_mapping(self, impl: Implementation) -> None:
        match impl.raw_table(b"\x01aI\0\0\0\1"):
            case {"a": value}:
                assert value == 1
            case other:
                pytest.fail(f"{other!r} was not taken for a mapping")

    def test_unreadable_octets_equal_only_themselves(self, impl: Implementation) -> None:
        table = impl.raw_table(b"\x01aZ")
        assert table == impl.raw_table(b"\x01aZ")
        assert table != {}
        assert table != impl.raw_table(b"\x01bZ")

    def test_strict_mode_reads_what_it_keeps(self, amqp: ModuleType) -> None:
        arguments = b"\x01kZ"
        payload = b"\x00\x32\x00\x0a\x00\x00\x01q\x00" + len(arguments).to_bytes(4, "big") + arguments
        frame = b"\x01\x00\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce"
        assert len(list(amqp.FrameDecoder(tables="raw").feed(frame))) == 1
        with pytest.raises(DecodeError, match="tag 'Z' is unknown"):
            list(amqp.FrameDecoder(tables="raw", strict=True).feed(frame))


class TestDecoders:
    @pytest.mark.parametrize("name", ["FrameDecoder", "MessageDecoder"])
    def test_one_that_was_not_initialised_refuses_to_work(self, amqp: ModuleType, name: str) -> None:
        decoder = getattr(amqp, name).__new__(getattr(amqp, name))
        with pytest.raises(AttributeError):
            decoder.feed(b"\x08")
        with pytest.raises(AttributeError):
            next(decoder)

    @pytest.mark.parametrize("name", ["FrameDecoder", "MessageDecoder"])
    @pytest.mark.parametrize("times", [1, 2])
    def test_one_whose_constructor_was_broken_off_refuses_to_work(
        self, amqp: ModuleType, name: str, times: int
    ) -> None:
        asked: list[object] = []

        class BrokenOff(getattr(amqp, name)):  # type: ignore[misc]
            @property
            def dialect(self) -> Any:
                asked.append(self)
                if len(asked) == times:
                    raise InterruptedError
                return amqp.DIALECT

        octets = amqp.encode_heartbeat()
        decoder = BrokenOff.__new__(BrokenOff)
        with pytest.raises(InterruptedError):
            decoder.__init__()
        with pytest.raises(AttributeError):
            list(decoder.feed(octets))
        decoder.__init__()
        assert len(list(decoder.feed(octets))) == 1

    def test_an_encoder_without_its_constructor_refuses_to_work(self, impl: Implementation) -> None:
        amqp = impl.dialect("rabbitmq-0-9-1")

        class Uninitialised(amqp.Encoder):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                pass

        encoder = Uninitialised()
        frame = impl.records.Frame(3, 1, b"body")
        for call, arguments in [
            (encoder.encode_method, (1, amqp.BasicPublish())),
            (encoder.encode_header, (1, amqp.BasicProperties(), 0)),
            (encoder.encode_body, (1, b"body")),
            (encoder.encode_message, (1, amqp.BasicPublish(), None, b"body")),
            (encoder.encode_message_parts, (1, amqp.BasicPublish(), None, b"body")),
            (encoder.encode_frame, (frame,)),
        ]:
            with pytest.raises(AttributeError):
                call(*arguments)

    @pytest.mark.parametrize("name", ["FrameDecoder", "MessageDecoder", "Encoder"])
    def test_they_cannot_be_copied_or_pickled(self, amqp: ModuleType, name: str) -> None:
        made = getattr(amqp, name)()
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                attempt(made)

    @pytest.mark.parametrize("options", [{"frame_max": 9.5}, {"frame_max_slack": 1.5}, {"frame_max": "4096"}])
    def test_sizes_must_be_ints(self, amqp: ModuleType, options: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=next(iter(options))):
            amqp.FrameDecoder(**options)

    def test_any_size_beyond_the_wire_will_do(self, amqp: ModuleType) -> None:
        decoder = amqp.FrameDecoder(frame_max=2**70, frame_max_slack=2**70)
        assert len(list(decoder.feed(amqp.encode_heartbeat()))) == 1

    def test_the_limit_holds_below_frame_max(self, amqp: ModuleType) -> None:
        decoder = amqp.FrameDecoder(frame_max=131072, limits=Limits(frame_size=100))
        with pytest.raises(DecodeError, match="frame_size 100"):
            list(decoder.feed(amqp.encode_body(1, b"x" * 93)))

    def test_limits_are_what_their_documentation_says_where_none_are_given(self) -> None:
        assert repr(Limits()) == (
            "Limits(array_items=1000000, body_size=536870912, cached_strings=256, frame_size=4294967303, "
            "open_messages=65535, table_depth=128, table_entries=1000000, table_octets=4294967295)"
        )

    @pytest.mark.parametrize("value", [1.5, "1", None])
    def test_limits_must_be_ints(self, value: Any) -> None:
        with pytest.raises(ValueError, match="must be positive"):
            Limits(table_depth=value)


class TestMessages:
    def test_the_frames_of_a_body_over_the_limit_are_passed_over(self, amqp: ModuleType) -> None:
        octets = amqp.encode_message(1, amqp.Basic.Publish(), None, b"x" * 100, frame_max=48)
        octets += amqp.encode_message(1, amqp.Basic.Publish(routing_key="next"), None, b"y")
        decoder = amqp.MessageDecoder(limits=Limits(body_size=10))
        with pytest.raises(DecodeError) as caught:
            list(decoder.feed(octets))
        assert (caught.value.reply_code, caught.value.closes) == (311, "channel")
        decoder.skip_frame()
        [message] = decoder
        assert (message.method.routing_key, message.body) == ("next", b"y")

    def test_a_method_may_follow_a_body_that_was_refused(self, amqp: ModuleType) -> None:
        octets = amqp.encode_message(1, amqp.Basic.Publish(), None, b"x" * 100, frame_max=48)[:-9]
        first_frames = octets[: octets.index(b"\xce\x03\x00\x01") + 1]
        decoder = amqp.MessageDecoder(limits=Limits(body_size=10))
        with pytest.raises(DecodeError, match="limit 10"):
            list(decoder.feed(first_frames + amqp.encode_method(1, amqp.Channel.Close())))
        decoder.skip_frame()
        [frame] = decoder
        assert frame.payload == amqp.Channel.Close()


class TestEncoder:
    def test_a_frame_must_be_of_its_payloads_type(self, impl: Implementation, amqp: ModuleType) -> None:
        frame, heartbeat, header = impl.records.Frame, impl.records.Heartbeat, impl.records.ProtocolHeader
        for wrong in (
            frame(3, 5, amqp.Channel.Open()),
            frame(8, 5, heartbeat()),
            frame(65, 0, header("abc")),
            frame(65, 0, header(b"AMQP")),
            frame(65, 0, header(None)),
            "no frame",
            None,
        ):
            with pytest.raises(EncodeError):
                amqp.encode_frame(wrong)

    @pytest.mark.parametrize("compiled", [True, False])
    def test_records_of_the_other_build_are_refused_by_its_name(
        self, both: tuple[Implementation, Implementation], compiled: bool
    ) -> None:
        (ours, theirs), (our, their) = both, ("compiled", "pure")
        if not compiled:
            (theirs, ours), (their, our) = both, ("compiled", "pure")
        m, other = (impl.dialect("rabbitmq-0-9-1") for impl in (ours, theirs))
        ack, properties = other.Basic.Ack(), other.BasicProperties()
        message = theirs.records.Message(1, other.Basic.Publish(), None, b"")
        mixed = ours.records.Frame(2, 1, theirs.records.ContentHeader(properties, 0))
        for call, before in (
            (lambda: m.encode_method(1, ack), "expected a method, such as Queue.Declare(), not BasicAck"),
            (
                lambda: m.encode_header(1, properties, 0),
                "expected properties, such as BasicProperties(), not BasicProperties",
            ),
            (lambda: m.encode_frame(theirs.records.Frame(1, 1, ack)), "expected a frame, not Frame"),
            (lambda: m.encode(message), "expected a frame, not Message"),
            (lambda: m.encode_frame(mixed), "a frame of type 2 does not carry ContentHeader"),
        ):
            with pytest.raises(EncodeError) as caught:
                call()
            after = f"of the {their} build, which an encoder of the {our} build does not take"
            assert str(caught.value) == f"{before} {after}"

    def test_an_incomplete_message_is_not_passed_off_as_a_whole_one(
        self, impl: Implementation, amqp: ModuleType
    ) -> None:
        message = impl.records.Message(1, amqp.Basic.Publish(), None, b"half", False)
        with pytest.raises(EncodeError, match="not complete"):
            amqp.encode(message)

    @pytest.mark.parametrize("queue", [None, b"x", 5, "q" * 300])
    def test_validation_names_the_field_of_any_wrong_value(self, amqp: ModuleType, queue: Any) -> None:
        with pytest.raises(EncodeError) as caught:
            amqp.encode_method(1, amqp.Queue.Declare(queue=queue), validate=True)
        assert (caught.value.method, caught.value.field) == ("queue.declare", "queue")

    def test_the_error_of_a_callers_mapping_is_kept_as_the_cause(self, impl: Implementation) -> None:
        class Gone(dict[str, Any]):
            def items(self) -> Any:
                raise RuntimeError("database gone")

        with pytest.raises(EncodeError) as caught:
            impl.tables.encode_table(Gone())
        assert "database gone" in str(caught.value.__cause__)


class TestSubclasses:
    def test_they_survive_copying_and_pickling(self, amqp: ModuleType) -> None:
        class Sub(amqp.Basic.Publish):  # type: ignore[misc, name-defined]
            pass

        made = Sub(exchange="e", routing_key="r")
        made.note = "kept"
        for twin in (copy.copy(made), copy.deepcopy(made)):
            assert type(twin) is Sub
            assert (twin, twin.note) == (made, "kept")


class TestLentBuffers:
    @pytest.mark.skipif(
        sys.implementation.name == "pypy", reason="PyPy resizes a bytearray that a memoryview refers to"
    )
    def test_one_being_read_cannot_be_resized(self, amqp: ModuleType) -> None:
        decoder = amqp.FrameDecoder()
        octets = amqp.encode_heartbeat() * 2
        lent = decoder.get_buffer(-1)
        owner = lent.obj
        lent[: len(octets)] = octets
        lent.release()
        frames = decoder.buffer_updated(len(octets))
        next(frames)
        decoder.get_buffer(-1).release()  # another, since the first is still being read
        with pytest.raises(BufferError):
            owner.clear()
        assert len(list(frames)) == 1
