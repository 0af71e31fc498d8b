"""Contents that are cut, out of order, damaged, or too large: what row each leaves."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from support.columns import Table, stream, stream_rows

from amqpcodec import DecodeError, amqp08, rabbitmq
from amqpcodec.capture import Close, Connection, Data, Gap

Row = dict[str, Any]


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack("!BHI", kind, channel, len(payload)) + payload + b"\xce"


def method(channel: int = 1, key: str = "k") -> bytes:
    return rabbitmq.encode_method(channel, rabbitmq.Basic.Publish(exchange="x", routing_key=key))


def header(size: int, channel: int = 1, properties: Any = None) -> bytes:
    return rabbitmq.encode_header(channel, properties or rabbitmq.BasicProperties(), size)


def body(octets: bytes, channel: int = 1) -> bytes:
    return frame(3, channel, octets)


def message(octets: bytes, channel: int = 1) -> bytes:
    return method(channel) + header(len(octets), channel) + body(octets, channel)


def rows(build: str, *frames: bytes, **options: Any) -> list[Row]:
    return stream_rows(build, "messages", b"".join(frames), **options)


def short(row: Row) -> tuple[Any, ...]:
    """What distinguishes the rows here: key, body, complete, error."""
    return row["routing_key"], row["body"], row["complete"], row["_error"]


WHOLE = message(b"one")
HEARTBEAT = rabbitmq.encode_heartbeat()
ACK = rabbitmq.encode_method(1, rabbitmq.Basic.Ack(1))


class TestWhole:
    def test_a_body_in_several_frames_of_several_channels(self, build: str) -> None:
        found = rows(
            build, method(1, "a"), method(2, "b"), header(4, 2), header(2, 1), body(b"12", 2), HEARTBEAT,
            body(b"34", 1), body(b"", 2), body(b"56", 2),
        )  # fmt: skip
        assert [short(row) for row in found] == [("a", b"34", True, None), ("b", b"1256", True, None)]
        assert [row["frames"] for row in found] == [3, 5]

    def test_an_empty_body_needs_no_frame(self, build: str) -> None:
        (row,) = rows(build, method(), header(0))
        assert (row["body"], row["body_size"], row["frames"], row["complete"]) == (b"", 0, 2, True)

    def test_the_place_is_that_of_the_method(self, build: str) -> None:
        assert [row["offset"] for row in rows(build, WHOLE, HEARTBEAT, WHOLE)] == [0, len(WHOLE + HEARTBEAT)]

    def test_times_and_packets_are_of_the_method_and_the_last_frame(self, build: str) -> None:
        connection = Connection(0, None, None)
        chunks, offset, events = [method(), header(1), body(b"x")], 0, []
        for number, chunk in enumerate(chunks):
            events.append(Data(connection, 0, offset, chunk, number + 7, number * 1500))
            offset += len(chunk)
        (row,) = Table(build, "messages").rows([*events, Close(connection, 0, offset, 9, 9000)])
        assert (row["packet"], row["ts_ns"], row["ts"].microsecond, row["ts_last"].microsecond) == (
            7,
            0,
            0,
            3,
        )


class TestCut:
    def test_by_the_end_of_the_stream(self, build: str) -> None:
        (row,) = rows(build, method(), header(5), body(b"12"))
        assert short(row) == ("k", b"12", False, None)
        assert (row["body_size"], row["frames"]) == (5, 3)

    def test_before_its_header(self, build: str) -> None:
        (row,) = rows(build, WHOLE[: len(method())])
        assert short(row) == ("k", None, False, None)
        assert (row["body_size"], row["properties"]) == (None, None)

    def test_by_a_gap(self, build: str) -> None:
        connection = Connection(0, None, None)
        first, second = method(key="a") + header(9) + body(b"123"), message(b"two")
        events = [
            Data(connection, 0, 0, first, None, None),
            Gap(connection, 0, len(first), 100, None, None),
            Data(connection, 0, len(first) + 100, body(b"456789") + second, None, None),
            Close(connection, 0, len(first) + 100 + 14 + len(second), None, None),
        ]
        found = Table(build, "messages").rows(events)
        assert [short(row) for row in found] == [
            ("a", b"123", False, None), (None, b"456789", False, None), ("k", b"two", True, None),
        ]  # fmt: skip

    def test_by_octets_that_are_no_frame(self, build: str) -> None:
        found = rows(build, WHOLE, method(key="a"), b"\x07" * 30, WHOLE, WHOLE)
        offset = len(WHOLE + method(key="a"))
        assert [short(row) for row in found] == [
            ("k", b"one", True, None), ("a", None, False, None),
            (None, None, None, f"FRAME_ERROR at {offset}"),
            ("k", b"one", True, None), ("k", b"one", True, None),
        ]  # fmt: skip

    def test_by_another_method(self, build: str) -> None:
        first, second = rows(build, method(key="a"), header(5), body(b"12"), WHOLE)
        at = len(method(key="a") + header(5) + body(b"12")) + 1
        assert short(first) == ("a", b"12", False, f"UNEXPECTED_FRAME at {at}")
        assert short(second) == ("k", b"one", True, None)

    def test_by_a_method_in_a_dialect_without_a_code_for_it(self, build: str) -> None:
        publish = amqp08.encode_method(1, amqp08.Basic.Publish(1, "x", "k"))
        found = stream_rows(build, "messages", publish * 2, dialect="amqp-0-8")
        assert [row["_error"] for row in found] == [f"FRAME_ERROR at {len(publish) + 1}", None]


class TestOutOfOrder:
    def test_a_body_where_the_recording_begins_is_no_error(self, build: str) -> None:
        found = rows(build, body(b"end"), body(b""), WHOLE)
        assert [short(row) for row in found] == [
            (None, b"end", False, None), (None, b"", False, None), ("k", b"one", True, None),
        ]  # fmt: skip

    def test_a_header_where_the_recording_begins_is_no_error(self, build: str) -> None:
        properties = rabbitmq.BasicProperties(content_type="text/plain")
        (row,) = rows(build, header(3, properties=properties), body(b"end"))
        assert short(row) == (None, b"end", False, None)
        assert (row["name"], row["properties"]["content_type"], row["frames"]) == (None, "text/plain", 2)

    @pytest.mark.parametrize("before", [WHOLE, ACK, header(0)])
    def test_a_body_of_a_known_channel_is_an_error(self, build: str, before: bytes) -> None:
        assert short(rows(build, before, body(b"odd"))[-1]) == (
            None, b"odd", False, f"UNEXPECTED_FRAME at {len(before) + 1}",
        )  # fmt: skip

    def test_a_header_of_a_known_channel_is_an_error(self, build: str) -> None:
        row = rows(build, ACK, header(2), body(b"ab"))[-1]
        assert short(row) == (None, b"ab", False, f"UNEXPECTED_FRAME at {len(ACK) + 1}")

    def test_a_second_header(self, build: str) -> None:
        first, second = rows(build, method(), header(2), header(1), body(b"x"))
        at = len(method() + header(2)) + 1
        assert short(first) == ("k", None, False, f"UNEXPECTED_FRAME at {at}")
        assert short(second) == (None, b"x", False, f"UNEXPECTED_FRAME at {at}")

    def test_a_header_of_another_class(self, build: str) -> None:
        octets = amqp08.encode_method(1, amqp08.Basic.Publish(1, "x", "k")) + amqp08.encode_header(
            1, amqp08.FileProperties(), 0
        )
        first, second = stream_rows(build, "messages", octets, dialect="amqp-0-8")
        assert first["_error"] == second["_error"] == f"FRAME_ERROR at {len(octets) - 21}"

    @pytest.mark.parametrize("class_id", [61, 60 + 256, 60 << 8])
    def test_a_header_of_a_class_that_differs_in_one_octet(self, build: str, class_id: int) -> None:
        octets = method() + frame(2, 1, struct.pack("!HHQH", class_id, 0, 0, 0))
        with pytest.raises(DecodeError) as caught:
            stream_rows(build, "messages", octets, mode="fail")
        assert caught.value.message == f"content header of class {class_id} after basic.publish"
        assert caught.value.offset == len(method()) + 1

    def test_a_body_before_its_header(self, build: str) -> None:
        first, second = rows(build, method(), body(b"x"))
        error = f"UNEXPECTED_FRAME at {len(method()) + 1}"
        assert (short(first), short(second)) == (("k", None, False, error), (None, b"x", False, error))

    def test_more_body_than_announced(self, build: str) -> None:
        frames = method(), header(3), body(b"ab"), body(b"cd")
        (row,) = rows(build, *frames)
        assert short(row) == ("k", b"ab", False, f"FRAME_ERROR at {len(b''.join(frames[:3])) + 1}")

    def test_content_on_channel_0(self, build: str) -> None:
        found = rows(
            build, WHOLE, method(0), header(1)[:1] + b"\0\0" + header(1)[3:], body(b"x", 0), body(b"y", 0)
        )
        at = len(WHOLE + method())
        assert [row["_error"] for row in found] == [
            None, f"CHANNEL_ERROR at {at + 1}", f"CHANNEL_ERROR at {at + len(header(1)) + 10}",
        ]  # fmt: skip


class TestDamaged:
    def test_a_method_leaves_the_rest_of_its_row(self, build: str) -> None:
        broken = frame(1, 1, method()[7:-2])
        (row,) = rows(build, HEARTBEAT, broken, header(1), body(b"x"))
        assert (row["name"], row["exchange"], row["body"], row["complete"]) == (
            "basic.publish",
            None,
            b"x",
            True,
        )
        assert row["_error"].startswith("FRAME_ERROR at ")

    def test_a_header_leaves_the_rest_of_its_row(self, build: str) -> None:
        broken = frame(2, 1, header(1)[7:-2])
        (row,) = rows(build, method(), broken, body(b"x"))
        assert (row["routing_key"], row["properties"], row["body"]) == ("k", None, b"x")
        assert row["_error"] == f"FRAME_ERROR at {len(method()) + 7 + 12}"

    def test_a_header_too_short_for_a_size_ends_its_content(self, build: str) -> None:
        first, second = rows(build, method(), frame(2, 1, header(1)[7:18]), body(b"x"))
        assert (first["routing_key"], first["body_size"], first["complete"]) == ("k", None, False)
        assert first["_error"].startswith("FRAME_ERROR")
        assert second["_error"].startswith("UNEXPECTED_FRAME")

    def test_a_table_leaves_the_other_properties(self, build: str) -> None:
        properties = rabbitmq.BasicProperties(content_type="a", headers={"k": 1}, message_id="m")
        octets = header(1, properties=properties).replace(b"\1kI", b"\1k?")
        (row,) = rows(build, method(), octets, body(b"x"))
        assert (row["headers"], row["headers_raw"]) == (None, b"\1k?\0\0\0\1")
        given = {name: value for name, value in row["properties"].items() if value is not None}
        assert given == {"content_type": "a", "message_id": "m"}
        assert row["_error"] == f"SYNTAX_ERROR at {len(method()) + octets.index(b'?')}"

    @pytest.mark.parametrize("columns", [["_error"], ["args.arguments", "_error"]])
    def test_a_table_among_arguments_is_named_whatever_is_asked_for(
        self, build: str, columns: list[str]
    ) -> None:
        declare = rabbitmq.encode_method(1, rabbitmq.Queue.Declare(queue="q", arguments={"k": True}))
        (row,) = stream_rows(build, "methods", declare.replace(b"kt\x01", b"kZ\x01"), columns=columns)
        assert row.pop("_error") == "SYNTAX_ERROR at 22"
        assert row == ({"args": {"arguments": None}} if len(columns) > 1 else {})

    def test_a_class_that_carries_no_content(self, build: str) -> None:
        broken = frame(2, 1, b"\0\x0a" + header(1)[9:-1])
        first, second = rows(build, method(), broken, body(b"x"))
        assert short(first) == ("k", None, False, f"UNEXPECTED_FRAME at {len(method()) + 1}")
        assert short(second) == (None, b"x", False, f"FRAME_ERROR at {len(method()) + 7}")

    @pytest.mark.parametrize("frames", [frame(1, 1, b"\0\x3c\0\x63"), frame(1, 1, b"\0\x3c")])
    def test_methods_that_nobody_knows_are_no_messages(self, build: str, frames: bytes) -> None:
        first, second = rows(build, HEARTBEAT, method(), frames, WHOLE)
        assert (first["complete"], second["complete"]) == (False, True)


class TestLimits:
    def test_a_body_over_the_limit_leaves_one_row(self, build: str) -> None:
        found = rows(build, method(key="a"), header(5), body(b"123"), body(b"45"), WHOLE, max_body_bytes=4)
        assert [short(row) for row in found] == [
            ("a", None, False, f"CONTENT_TOO_LARGE at {len(method(key='a')) + 1}"), ("k", b"one", True, None),
        ]  # fmt: skip
        assert [row["body_size"] for row in found] == [5, 3]

    def test_a_size_no_column_holds(self, build: str) -> None:
        (row,) = rows(build, method(), header(2**64 - 1))
        assert (row["body_size"], row["_error"]) == (None, f"CONTENT_TOO_LARGE at {len(method()) + 1}")

    def test_more_open_messages_than_allowed(self, build: str) -> None:
        found = rows(build, method(1, "a"), method(2, "b"), max_open_messages=1)
        assert sorted(map(short, found)) == [
            ("a", None, False, None), ("b", None, False, f"RESOURCE_ERROR at {len(method(1, 'a')) + 1}"),
        ]  # fmt: skip

    def test_of_a_content_too_many_nothing_is_taken_up_whatever_it_begins_with(self, build: str) -> None:
        beyond = header(1, 2) + body(b"b", 2)
        found = rows(build, method(1, "a"), beyond, header(1), body(b"a"), max_open_messages=1)
        place = len(method(1, "a"))
        assert sorted(map(short, found), key=str) == [
            ("a", b"a", True, None), (None, None, False, f"RESOURCE_ERROR at {place + 1}"),
            (None, b"b", False, f"UNEXPECTED_FRAME at {place + len(header(1, 2)) + 1}"),
        ]  # fmt: skip


class TestModes:
    FRAMES = WHOLE + method(key="a") + WHOLE

    def test_drop_leaves_rows_in_error_out(self, build: str) -> None:
        assert [row["routing_key"] for row in rows(build, self.FRAMES, mode="drop")] == ["k", "k"]

    def test_fail_names_what_was_cut_off_where_its_method_is_not_in_the_recording(self, build: str) -> None:
        with pytest.raises(DecodeError, match=r"^method basic\.publish before the end of a content \("):
            rows(build, header(5), method(), mode="fail")

    def test_drop_keeps_what_the_recording_lacks(self, build: str) -> None:
        assert len(rows(build, WHOLE, method(), mode="drop")) == 2

    def test_fail_raises_the_first_error(self, build: str) -> None:
        with pytest.raises(DecodeError) as caught:
            rows(build, self.FRAMES, mode="fail", columns=["exchange"])
        error = caught.value
        assert (error.reply_code, error.offset) == (505, len(WHOLE + method(key="a")) + 1)

    @pytest.mark.parametrize("table", ["frames", "methods", "messages"])
    def test_fail_raises_for_octets_that_are_no_frame(self, build: str, table: str) -> None:
        with pytest.raises(DecodeError):
            stream_rows(build, table, WHOLE + b"\x07" * 30, mode="fail")

    def test_fail_raises_for_a_table_nobody_asked_for(self, build: str) -> None:
        broken = header(0, properties=rabbitmq.BasicProperties(headers={"k": 1})).replace(b"\1kI", b"\1k?")
        with pytest.raises(DecodeError, match="tag"):
            rows(build, method(), broken, mode="fail", columns=["exchange"])

    def test_an_unknown_mode_is_refused(self, build: str) -> None:
        with pytest.raises(ValueError, match="mode: 'loud' is none of"):
            rows(build, WHOLE, mode="loud")


class TestCorruptRecord:
    COLUMNS = ("routing_key", "_corrupt_record")

    def test_it_is_the_frame_in_error(self, build: str) -> None:
        found = rows(build, method(key="a"), WHOLE, columns=self.COLUMNS)
        assert [row["_corrupt_record"] for row in found] == [method(), None]

    def test_of_a_damaged_header(self, build: str) -> None:
        broken = frame(2, 1, header(1)[7:-2])
        (row,) = rows(build, method(), broken, columns=self.COLUMNS)
        assert row["_corrupt_record"] == broken

    def test_it_never_shows_login_data(self, build: str) -> None:
        login = rabbitmq.encode_method(1, rabbitmq.Connection.StartOk({}, "PLAIN", b"\0guest\0secret", "en"))
        (row,) = rows(build, method(), login, columns=self.COLUMNS)
        assert row["_corrupt_record"] is None
        (row,) = rows(build, method(), login, columns=self.COLUMNS, include_credentials=True)
        assert row["_corrupt_record"] == login


def test_both_directions_of_many_connections_are_kept_apart(build: str) -> None:
    connections = [Connection(number, None, None) for number in range(3)]
    streams = [
        (connection, direction, message(b"%d%d" % (connection.number, direction)))
        for connection in connections
        for direction in (0, 1)
    ]
    size = len(streams[0][2])
    events = [
        Data(connection, direction, at, octets[at : at + 5], None, None)
        for at in range(0, size, 5)
        for connection, direction, octets in streams
    ]
    closes = [Close(connection, direction, size, None, None) for connection, direction, _ in streams]
    found = Table(build, "messages").rows([*events, *closes])
    assert [row["body"] for row in found] == [octets[-3:-1] for _, _, octets in streams]


def test_what_is_open_is_given_out_in_the_order_of_opening(build: str) -> None:
    events = stream(method(3, "a") + method(1, "b") + header(9, 1) + method(2, "c") + header(9, 3))
    assert [row["routing_key"] for row in Table(build, "messages").rows(events)] == ["a", "b", "c"]


def test_a_body_on_its_own_is_one_frame(build: str) -> None:
    [row] = rows(build, body(b"late"))
    assert (row["body"], row["frames"]) == (b"late", 1)
