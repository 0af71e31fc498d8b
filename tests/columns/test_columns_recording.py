"""Messages in columns written as captures are read back as the same messages."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import synthetic_capture

from amqpcodec import EncodeError, arrow

MOVED = ["file", "flow", "offset", "packet", "queue", "ts_last"]  # the packets are others


def table(*files: Any, columns: Any = None) -> pa.Table:
    reader = arrow.read_capture(files, columns=columns)
    return pa.Table.from_batches(list(reader), reader.schema)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    path = tmp_path_factory.mktemp("recorded") / "a.pcap"
    synthetic_capture.record(path, 400_000, 6, seed=11, bursts=20)
    return table(path)


def test_messages_of_a_capture_come_back(recorded: pa.Table, tmp_path: Path) -> None:
    with arrow.CaptureWriter(tmp_path / "b.pcap") as writer:
        assert writer.write(recorded) == recorded.num_rows > 500
    found = table(tmp_path / "b.pcap")
    assert found.drop_columns(MOVED).equals(recorded.drop_columns(MOVED))
    assert not list(arrow.read_capture(tmp_path / "b.pcap", "errors"))


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_what_was_written(recorded: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "b.pcap"
    with arrow.CaptureWriter(path) as writer:
        writer.write(recorded)
    asked = ["tshark", "-r", str(path), "-T", "fields", "-e", "amqp.method.arguments.routing_key"]
    asked += ["-e", "tcp.analysis.flags", "-e", "_ws.malformed"]
    lines = subprocess.run(asked, capture_output=True, encoding="utf-8", check=True).stdout.splitlines()
    keys, flags, malformed = zip(*(line.split("\t") for line in lines), strict=True)
    assert [key for each in keys if each for key in each.split(",")] == recorded["routing_key"].to_pylist()
    assert {*flags, *malformed} == {""}


def test_a_file_object_is_written_and_left_open(recorded: pa.Table) -> None:
    file = io.BytesIO()
    with arrow.CaptureWriter(file) as writer:
        writer.write(recorded.slice(0, 5))
    file.seek(0)
    assert table(file).num_rows == 5


def test_messages_without_a_place_share_a_connection(tmp_path: Path) -> None:
    path = tmp_path / "b.pcap"
    rows = pa.table({"routing_key": ["a", "b", "c"], "body": [b"x" * 5000, b"", None]})
    with arrow.CaptureWriter(path) as writer:
        writer.write(rows)
    found = table(path, columns=["routing_key", "flow", "direction", "body_size", "complete", "ts_ns"])
    assert found.to_pylist() == [
        {"routing_key": key, "flow": 0, "direction": 0, "body_size": size, "complete": True, "ts_ns": time}
        for key, size, time in (("a", 5000, 1000), ("b", 0, 2000), ("c", 0, 3000))
    ]


def test_two_connections_between_the_same_ends_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "b.pcap"
    rows = pa.table({
        "flow": [1, 2, 2, 1, 3],
        "client": ["[::1]:4000"] * 5,
        "server": ["[::1]:5672"] * 5,
        "kind": ["publish", "publish", "deliver", "publish", "publish"],
        "routing_key": list("abcde"),
        "ts_ns": [10**18 + number for number in range(5)],
    })  # fmt: skip
    with arrow.CaptureWriter(path) as writer:
        writer.write(rows)
    names = ["routing_key", "flow", "client", "direction", "ts_ns"]
    found = table(path, columns=names).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (key, flow, "[::1]:4000", direction, 10**18 + at)
        for at, (key, flow, direction) in enumerate(
            zip("abcde", [0, 1, 1, 2, 3], [0, 0, 1, 0, 0], strict=True)
        )
    ]
    assert not list(arrow.read_capture(path, "errors"))


def test_times_of_other_columns_and_cut_ends_are_made_do_with(tmp_path: Path) -> None:
    path = tmp_path / "b.pcap"
    times = pa.array([5, None], pa.timestamp("us", "UTC"))
    rows = pa.table({"ts": times, "client": ["nobody:1", "1.2.3.4:99999"], "server": ["::1", None]})
    with arrow.CaptureWriter(path) as writer:
        writer.write(rows)
    assert table(path, columns=["ts_ns"])["ts_ns"].to_pylist() == [5000, 6000]


def test_times_that_a_capture_cannot_hold_are_the_nearest_it_can(tmp_path: Path) -> None:
    path = tmp_path / "b.pcap"
    with arrow.CaptureWriter(path) as writer:
        writer.write(pa.table({"ts_ns": [-1, 1000, 2**63 - 1]}))
    assert table(path, columns=["ts_ns"])["ts_ns"].to_pylist() == [0, 1000, 2**32 * 10**9 - 1]


def test_a_row_that_is_refused_leaves_nothing_of_its_batch(tmp_path: Path) -> None:
    path = tmp_path / "b.pcap"
    with arrow.CaptureWriter(path) as writer:
        with pytest.raises(EncodeError, match="row 1"):
            writer.write(pa.table({"routing_key": ["a", "k" * 256]}))
        writer.write(pa.table({"routing_key": ["c"]}))
    assert table(path, columns=["routing_key"])["routing_key"].to_pylist() == ["c"]


def test_a_stream_is_written_to_file_objects() -> None:
    octets, index = io.BytesIO(), io.BytesIO()
    with arrow.StreamWriter(octets, index) as writer:
        writer.write(pa.table({"routing_key": ["a", "b"], "ts_ns": [7, None]}))
    assert arrow.decode_messages(octets.getvalue())["routing_key"].to_pylist() == ["a", "b"]
    rows = pa.ipc.open_file(index.getvalue()).read_all().to_pylist()
    assert [row["ts_ns"] for row in rows] == [7, None]
    assert rows[1]["offset"] == rows[0]["length"]
    with pytest.raises(ValueError, match="no name for the index"):
        arrow.StreamWriter(octets)


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        ({"direction": [0, 7]}, "direction: row 1: it must be 0 or 1, not 7"),
        ({"direction": [-1, 0]}, "direction: row 0: it must be 0 or 1, not -1"),
        ({"direction": [0, 300]}, "direction: not a column of int8"),
        ({"flow": [[1], [2]]}, "flow: not a column of int64"),
        ({"client": [{"a": 1}] * 2}, "client: not a column of string"),
        ({"ts": ["soon", "later"]}, "ts: not a column of timestamp"),
        ({"ts_ns": [[1], [2]]}, "ts_ns: not a column of int64"),
    ],
)
def test_columns_that_describe_no_packet_are_refused(columns: dict[str, Any], shown: str) -> None:
    file = io.BytesIO()
    with arrow.CaptureWriter(file) as writer:
        begin = file.tell()
        with pytest.raises(EncodeError, match=shown):
            writer.write(pa.table(columns))
        assert file.tell() == begin


@pytest.mark.parametrize("name", ["flow", "ts", "ts_ns"])
def test_a_column_that_is_there_twice_is_refused(name: str) -> None:
    twice = pa.table([pa.array([0]), pa.array([1])], names=[name, name])
    with (
        arrow.CaptureWriter(io.BytesIO()) as writer,
        pytest.raises(EncodeError, match=f"{name}: not a column"),
    ):
        writer.write(twice)


def test_text_of_ends_and_files_need_not_be_utf_8() -> None:
    invalid = pa.array([b"\xff", b"\xfe"], pa.binary()).view(pa.string())
    file = io.BytesIO()
    with arrow.CaptureWriter(file) as writer:
        assert writer.write(pa.table({"file": invalid, "client": invalid, "server": invalid})) == 2
    file.seek(0)
    assert table(file, columns=["flow"])["flow"].to_pylist() == [0, 1]


def test_times_of_an_index_that_are_none_are_refused() -> None:
    file = io.BytesIO()
    with arrow.StreamWriter(file, io.BytesIO()) as writer:
        with pytest.raises(EncodeError, match="ts_ns: not a column of int64"):
            writer.write(pa.table({"ts_ns": ["soon"]}))
        assert not file.getvalue()
