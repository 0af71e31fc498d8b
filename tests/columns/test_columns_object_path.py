"""What is in the columns is what the object path gives, for every golden vector and every capture."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support import columns, vectors
from support.columns import Table, captured, cell, error_text, in_sync, stream, stream_rows
from support.implementation import Implementation
from support.make_capture import split

import amqpcodec
import amqpcodec.rabbitmq
from amqpcodec import DecodeError, ProtocolHeader, RawTable, capture
from amqpcodec.capture import CapturedFrame, Connection

EXAMPLES = Path(__file__).parents[2] / "examples"
SHARED = Path(__file__).parents[3] / "shared" / "captures"
CAPTURES = [*sorted(EXAMPLES.glob("real-*.pcap")), *sorted(SHARED.glob("*.pcap"))]
CONTENT = b"\x03\0\1\0\0\0\1x\xce"


def name_of(path: Path) -> str:
    return path.stem


def column_of(field: Any) -> str:
    """The column of a field: of its own name, but for a result that is a number elsewhere."""
    return "result_longstr" if (field.name, field.type) == ("result", "longstr") else field.attribute


def fields_of(record: Any) -> dict[str, Any]:
    """Cells of a decoded method or of properties, those that are there."""
    cells = {}
    for field in record.spec.fields:
        value = cell(field.type, getattr(record, field.attribute))
        secret = (record.spec.name, field.attribute) in (
            ("connection.start-ok", "response"),
            ("connection.secure-ok", "response"),
            ("connection.update-secret", "new_secret"),
        )
        if not secret and value is not None and not (isinstance(record, amqpcodec.Method) and field.reserved):
            cells[column_of(field)] = value
    return cells


def given(struct: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (struct or {}).items() if value is not None}


def decoded(codec: ModuleType, octets: bytes, offset: int = 0, **options: Any) -> tuple[Any, str | None]:
    """What a frame at an offset carries, or the text of its error."""
    try:
        return next(codec.FrameDecoder(frame_max=0, **options).feed(octets)).payload, None
    except DecodeError as error:
        error.offset += offset
        return None, error_text(error)


def range_faults(record: Any) -> bool:
    return any(not columns.fits(field.type, getattr(record, field.attribute)) for field in record.spec.fields)


class TestVectors:
    """One stream of all vectors of a kind and dialect."""

    @staticmethod
    def vectors(dialect: str, *kinds: str) -> list[bytes]:
        return [bytes.fromhex(vector["hex"]) for vector in vectors.vectors(dialect, *kinds)]

    def test_methods(self, build: str, dialect: str) -> None:
        codec = amqpcodec.dialect(dialect)
        frames = self.vectors(dialect, "method")
        octets, offset = in_sync(b"".join(frames))
        rows = stream_rows(build, "methods", octets, dialect=dialect, include_credentials=False)
        assert len(rows) == len(frames) > 100
        for row, frame in zip(rows, frames, strict=True):
            assert row["offset"] == offset
            method, error = decoded(codec, frame, offset)
            if error is None:
                spec = method.spec
                assert (row["class_id"], row["method_id"]) == (spec.class_id, spec.method_id)
                assert (row["name"], given(row["args"])) == (spec.name, fields_of(method))
                error = f"VALUE_RANGE at {offset}" if range_faults(method) else None
            assert row["_error"] == error
            offset += len(frame)

    def test_properties(self, build: str, dialect: str) -> None:
        codec = amqpcodec.dialect(dialect)
        frames = self.vectors(dialect, "header")
        octets, offset = in_sync(b"".join(frames))
        rows = stream_rows(build, "messages", octets, dialect=dialect)
        by_offset = {row["offset"]: row for row in rows}
        checked = 0
        for frame in frames:
            row, offset = by_offset[offset], offset + len(frame)
            header, error = decoded(codec, frame, row["offset"])
            if error is not None:
                assert row["_error"] == error
                continue
            expected = fields_of(header.properties)
            assert given(row["properties"]) == {
                name: value for name, value in expected.items() if name != "headers"
            }
            assert row["headers"] == expected.get("headers")
            raw = getattr(decoded(codec, frame, tables="raw")[0].properties, "headers", None)
            assert row["headers_raw"] == (raw.octets if isinstance(raw, RawTable) else None)
            assert row["body_size"] == (header.body_size if header.body_size <= columns.MOST else None)
            checked += 1
        assert checked > 20

    def test_contents(self, build: str, dialect: str) -> None:
        frames = self.vectors(dialect, "content")
        octets = b"".join(frames)
        check_messages(
            stream_rows(build, "messages", octets, dialect=dialect), amqpcodec.dialect(dialect), octets
        )

    def test_frames(self, build: str, dialect: str) -> None:
        kinds = ("method", "header", "body", "heartbeat", "raw-frame", "tolerate", "content")
        frames = self.vectors(dialect, *kinds[:-1])
        octets, offset = in_sync(b"".join(frames))
        names = ["offset", "frame_type", "channel", "size", "payload"]
        rows = stream_rows(build, "frames", octets, dialect=dialect, columns=names, include_credentials=True)[
            1:
        ]
        for row, frame in zip(rows, frames, strict=True):
            assert row == {
                "offset": offset, "frame_type": frame[0], "channel": int.from_bytes(frame[1:3], "big"),
                "size": len(frame) - 8, "payload": frame[7:-1],
            }  # fmt: skip
            offset += len(frame)


def check_messages(rows: list[dict[str, Any]], codec: ModuleType, octets: bytes) -> None:
    """Rows of a stream without faults against what a message decoder makes of it."""
    values = codec.MessageDecoder(frame_max=0, aborted="keep").feed(octets)
    messages = [value for value in values if isinstance(value, amqpcodec.Message)]
    assert len(rows) == len(messages) > 0
    for row, message in zip(rows, messages, strict=True):
        names = {field.attribute for field in message.method.spec.fields if not field.reserved}
        assert {name: row[name] for name in names if row[name] is not None} == fields_of(message.method)
        properties = fields_of(message.properties)
        assert row["headers"] == properties.pop("headers", None)
        assert given(row["properties"]) == properties
        assert (row["name"], row["channel"]) == (message.method.spec.name, message.channel)
        assert row["kind"] == message.method.spec.name.partition(".")[2]
        assert (row["body"], row["body_size"]) == (message.body, len(message.body))
        assert (row["complete"], row["_error"]) == (True, None)


@pytest.mark.parametrize("path", CAPTURES, ids=name_of)
class TestCaptures:
    def items(self, path: Path) -> list[capture.Item]:
        return list(capture.read_frames(path))

    @staticmethod
    def lead(item: CapturedFrame) -> dict[str, Any]:
        return {
            "file": "trace",
            "flow": item.connection.number,
            "client": str(item.connection.client),
            "server": str(item.connection.server),
            "direction": item.direction,
            "ts_ns": item.time_ns,
            "offset": item.offset,
            "packet": item.packet,
        }

    def rows(self, build: str, path: Path, table: str) -> list[dict[str, Any]]:
        return Table(build, table, dialect="auto", file="trace").rows(captured(path))

    def test_frames(self, build: str, path: Path) -> None:
        rows = self.rows(build, path, "frames")
        frames = [item for item in self.items(path) if item.octets]
        assert len(rows) == len(frames)
        for row, item in zip(rows, frames, strict=True):
            assert isinstance(item, CapturedFrame)
            assert {name: row[name] for name in self.lead(item)} == self.lead(item)
            method = isinstance(item.frame.payload, amqpcodec.Method)
            spec = item.frame.payload.spec if method else None
            assert (row["frame_type"], row["channel"]) == (item.frame.type, item.frame.channel)
            assert row["name"] == (spec.name if spec else None)
            assert (row["size"], row["_error"]) == (item.size, None)
            header = isinstance(item.frame.payload, amqpcodec.ContentHeader)
            assert row["class_id"] == (
                spec.class_id if spec else item.frame.payload.properties.spec.class_id if header else None
            )

    def test_methods(self, build: str, path: Path) -> None:
        rows = self.rows(build, path, "methods")
        items = [
            item
            for item in self.items(path)
            if isinstance(item, CapturedFrame) and isinstance(item.frame.payload, amqpcodec.Method)
        ]
        assert len(rows) == len(items)
        for row, item in zip(rows, items, strict=True):
            assert {name: row[name] for name in self.lead(item)} == self.lead(item)
            assert given(row["args"]) == fields_of(item.frame.payload)

    def test_messages(self, build: str, path: Path) -> None:
        by_stream: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
        for row in self.rows(build, path, "messages"):
            by_stream[row["flow"], row["direction"]].append(row)
        octets: dict[tuple[int, int], list[CapturedFrame]] = defaultdict(list)
        for item in self.items(path):
            if isinstance(item, CapturedFrame) and not isinstance(item.frame.payload, ProtocolHeader):
                octets[item.connection.number, item.direction].append(item)
        assert set(by_stream) <= set(octets)
        for key, rows in by_stream.items():
            whole = [row for row in rows if row["complete"]]
            assert whole == rows or "error" in path.stem
            codec = amqpcodec.dialect(octets[key][-1].dialect)
            check_messages(whole, codec, b"".join(item.octets for item in octets[key]))

    def test_a_connection(self, build: str, path: Path) -> None:
        rows = {row["flow"]: row for row in self.rows(build, path, "connections")}
        items = self.items(path)
        connections: dict[int, Connection] = {
            item.connection.number: item.connection for item in items if item.connection
        }
        assert sorted(rows) == sorted(connections)
        for number, connection in connections.items():
            own = [item for item in items if item.connection is connection]
            row = rows[number]
            assert row["dialect"] == connection.dialect
            counts = [sum(bool(item.octets) and item.direction == side for item in own) for side in (0, 1)]
            assert [row["frames_sent"], row["frames_received"]] == counts
            assert row["errors"] == sum(
                isinstance(item, capture.Fault) and item.kind == "error" for item in own
            )

    def test_errors(self, build: str, path: Path) -> None:
        rows = self.rows(build, path, "errors")
        faults = [item for item in self.items(path) if isinstance(item, capture.Fault)]
        assert [(row["kind"], row["offset"], row["length"], row["message"]) for row in rows] == [
            (fault.kind, fault.offset, fault.length, fault.message) for fault in faults
        ]


class TestDamagedSequences:
    """The contents of the golden vectors, with frames bent, lost, repeated and mixed."""

    UNKNOWN = b"\1\0\1\0\0\0\4\0\x3c\x03\xe7\xce"

    @staticmethod
    def frames(dialect: str) -> list[bytes]:
        cases = [*vectors.vectors(dialect, "content"), *vectors.vectors(dialect, "invalid")]
        octets = [
            bytes.fromhex(case["hex"]) for case in cases if case["kind"] == "content" or "sequence" in case
        ]
        return [frame for each in octets for frame in split(each)]

    def bent(self, frames: list[bytes], source: random.Random) -> list[bytes]:
        frames = source.sample(frames, len(frames)) if source.random() < 0.2 else list(frames)
        for _ in range(source.randrange(1, 6)):
            at = source.randrange(len(frames))
            frame = bytearray(frames[at])
            match source.randrange(5):
                case 0:
                    frames.insert(at, self.UNKNOWN)
                case 1:
                    del frames[at]
                case 2:
                    frames.insert(source.randrange(len(frames)), frames[at])
                case 3 if len(frame) > 8:
                    frame[source.randrange(7, len(frame) - 1)] ^= 1 << source.randrange(8)
                    frames[at] = bytes(frame)
                case _:
                    size = source.randrange(len(frame) - 7)
                    frames[at] = (
                        bytes(frame[:3]) + size.to_bytes(4, "big") + bytes(frame[7 : 7 + size]) + b"\xce"
                    )
        return frames

    @staticmethod
    def whole(codec: ModuleType, octets: bytes) -> list[tuple[Any, ...]]:
        """What `MessageDecoder` puts together, bad frames skipped."""
        decoder = codec.MessageDecoder(frame_max=0, aborted="keep")
        decoder.feed(octets)
        found: list[tuple[Any, ...]] = []
        while True:
            try:
                for value in decoder:
                    if getattr(value, "complete", False):
                        found.append((value.channel, value.method.spec.name, value.body))
            except DecodeError as error:
                if error.fatal:
                    return found
                decoder.skip_frame()
            else:
                return found

    def test_the_same_messages_are_whole(self, codec: ModuleType, impl: Implementation, dialect: str) -> None:
        source, frames = random.Random(dialect), self.frames(dialect)
        for _ in range(60):
            octets = b"".join(self.bent(frames, source))
            rows = stream_rows(impl.name, "messages", in_sync(octets)[0], dialect=dialect, _check_all=True)
            valid = [row for row in rows if row["complete"] and row["_error"] is None]
            found = [(row["channel"], row["name"], row["body"]) for row in valid]
            assert found == self.whole(codec, octets)


@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("chunk", [1, 13, 2**30])
def test_a_second_protocol_header_is_no_frame(build: str, chunk: int, direction: int) -> None:
    header, heartbeat = amqpcodec.rabbitmq.protocol_header(), amqpcodec.rabbitmq.encode_heartbeat()
    octets = header + header + heartbeat * 2 + header + heartbeat * 2
    chunks = (octets[at : at + chunk] for at in range(0, len(octets), chunk))
    events = list(stream(*chunks, direction=direction))
    items = list(capture.read_items(events, dialect="auto"))
    sizes = [(item.offset, item.size) for item in items if isinstance(item, CapturedFrame)]
    assert sizes == [(0, 8), (16, 0), (24, 0), (40, 0), (48, 0)]
    rows = Table(build, "frames", dialect="auto").rows(events)
    assert [(row["offset"], row["size"]) for row in rows if row["frame_type"] is not None] == sizes
    assert [(row["offset"], row["_error"]) for row in rows if row["frame_type"] is None] == [
        (8, "FRAME_ERROR at 8"), (32, "FRAME_ERROR at 32"),
    ]  # fmt: skip
    errors = Table(build, "errors", dialect="auto").rows(events)
    assert [(row["offset"], row["kind"]) for row in errors] == [
        (8, "error"), (8, "lost"), (32, "error"), (32, "lost"),
    ]  # fmt: skip
