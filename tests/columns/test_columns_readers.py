"""Captures and stream files as batches, and what takes them: Polars, DuckDB, pandas."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import make_capture as make
from support.implementation import wanted

from amqpcodec import DecodeError, arrow, capture, rabbitmq

EXAMPLES = Path(__file__).parents[2] / "examples"
BUNNY, TXAMQP = EXAMPLES / "real-bunny.pcap", EXAMPLES / "real-txamqp-0-8.pcap"
COLUMNS = ["file", "ts", "exchange", "routing_key", "body_size", "complete"]


def test_the_messages_of_a_capture() -> None:
    reader = arrow.read_capture(BUNNY)
    table = reader.reader().read_all()
    assert table.schema == reader.schema == arrow.schema("messages")
    assert set(table.column("file").to_pylist()) == {str(BUNNY)}
    assert table.column("complete").to_pylist() == [True] * 20


def test_a_reader_can_be_read_again() -> None:
    reader = arrow.read_capture(BUNNY, columns=COLUMNS)
    assert list(reader) == list(reader)


def test_several_files_one_after_the_other() -> None:
    reader = arrow.read_capture([str(BUNNY), TXAMQP], "connections", columns=["file", "dialect"])
    assert [row for batch in reader for row in batch.to_pylist()] == [
        {"file": str(BUNNY), "dialect": "rabbitmq-0-9-1"},
        {"file": str(TXAMQP), "dialect": "amqp-0-8"},
    ]


@pytest.mark.parametrize("table", ["frames", "methods", "messages", "connections", "errors"])
def test_a_reader_counts_faults_whatever_the_table_and_columns(table: str) -> None:
    packets, _ = make.disturb(make.conversations(5).packets, 5, reorder=0.05, duplicate=0.05, loss=0.02)
    octets = make.pcap(packets)
    errors = arrow.read_capture(io.BytesIO(octets), "errors", columns=["code"]).reader().read_all()
    expected = Counter(errors.column("code").to_pylist())
    assert expected["GAP"] > 5 < expected["LOST"]
    for impl in wanted():
        first = arrow.schema(table).names[0]
        reader = arrow.read_capture(io.BytesIO(octets), table, columns=[first], _impl=impl)
        assert reader.faults == {}
        assert list(reader)
        incomplete = reader.faults.pop("INCOMPLETE", 0)
        assert (reader.faults, incomplete > 0) == (expected, table == "messages")


@pytest.mark.parametrize("impl", wanted())
def test_a_reader_counts_rows_in_error_also_of_columns_not_asked_for(impl: str) -> None:
    late = rabbitmq.BasicProperties(timestamp=2**63)
    truth = make.Truth()
    talk = make.Talk(truth, 0, (1, 1))
    talk.open()
    talk.send(make.CLIENT, rabbitmq.protocol_header())
    for properties in (late, rabbitmq.BasicProperties(), late):
        talk.send(
            make.CLIENT, rabbitmq.encode_message(1, rabbitmq.Basic.Publish(), properties, b"", frame_max=4096)
        )
    talk.close()
    file = make.pcap(truth.packets)

    def read(**options: Any) -> tuple[int, dict[str, int]]:
        reader = arrow.read_capture(io.BytesIO(file), columns=["offset"], _impl=impl, **options)
        return reader.reader().read_all().num_rows, reader.faults

    assert read() == (3, {})
    assert read(_check_all=True) == (3, {"VALUE_RANGE": 2})
    assert read(mode="drop") == (1, {"VALUE_RANGE": 2})


@pytest.mark.parametrize("impl", wanted())
@pytest.mark.parametrize(
    ("column", "read"),
    [("exchange", 0), ("properties", 1), ("headers", 1), ("headers_raw", 1), ("_error", 1)],
)
def test_a_content_header_is_read_for_its_columns_and_for_errors(column: str, read: int, impl: str) -> None:
    truth = make.Truth()
    talk = make.Talk(truth, 0, (1, 1))
    talk.open()
    properties = rabbitmq.BasicProperties(headers={"a": True})
    whole = rabbitmq.encode_message(1, rabbitmq.Basic.Publish("x"), properties, b"body", frame_max=4096)
    at = whole.index(b"\x01at") - 4  # of the size of the table
    talk.send(make.CLIENT, rabbitmq.protocol_header(), whole[:at] + b"\x7f" + whole[at + 1 :])
    talk.close()
    for options, count in (({}, read), ({"_check_all": True}, 1)):
        file = io.BytesIO(make.pcap(truth.packets))
        reader = arrow.read_capture(file, columns=[column], _impl=impl, **options)
        (row,) = reader.reader().read_all().to_pylist()
        assert row.get("exchange", "x") == "x"
        assert sum(reader.faults.values()) == count


def test_faults_are_counted_anew_by_each_iteration(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(BUNNY.read_bytes()[:-5])
    reader = arrow.read_capture([path, path], "connections")
    for _ in range(2):
        assert list(reader)
        assert reader.faults == {"FILE": 2}


def test_file_objects_have_no_name() -> None:
    for source in (io.BytesIO(BUNNY.read_bytes()), capture.ByteSource(io.BytesIO(BUNNY.read_bytes()))):
        (batch,) = arrow.read_capture(source, "connections", columns=["file", "vhost"])
        assert batch.to_pylist() == [{"file": None, "vhost": "/"}]


def test_names_of_files_need_not_be_text(tmp_path: Path) -> None:
    path = tmp_path / "odd-\udcff.pcap"
    try:
        path.write_bytes(BUNNY.read_bytes())
    except OSError:
        pytest.skip("this file system takes text only")
    (batch,) = arrow.read_capture(path, "connections", columns=["file"])
    assert batch.to_pydict() == {"file": [str(tmp_path / "odd-\\xff.pcap")]}


def test_other_ports() -> None:
    assert not list(arrow.read_capture(BUNNY, port=5671))
    assert len(list(arrow.read_capture(BUNNY, port=None))) == 1
    assert len(list(arrow.read_capture(BUNNY, port=[1, 5672]))) == 1


def test_a_file_that_is_no_capture() -> None:
    with pytest.raises(capture.CaptureError):
        list(arrow.read_capture(io.BytesIO(b"no capture at all, just some text")))


def test_rows_in_front_of_an_error_are_given_out(tmp_path: Path) -> None:
    message = rabbitmq.encode_message(1, rabbitmq.Basic.Publish(), None, b"body")
    path = tmp_path / "stream"
    path.write_bytes(message * 2 + b"\x07" * 20)
    batches = []
    with pytest.raises(DecodeError):
        batches.extend(batch.to_pydict() for batch in arrow.read_stream(path, mode="fail", columns=["body"]))
    assert batches == [{"body": [b"body"] * 2}]


def test_rows_in_front_of_an_error_of_the_file_are_given_out() -> None:
    class Failing(io.BytesIO):
        def readinto1(self, buffer: Any) -> int:
            return super().readinto1(buffer) or self.fail()

        def fail(self) -> int:
            raise OSError(5, "Input/output error")

    rows = []
    with pytest.raises(OSError, match="Input/output error"):
        rows.extend(batch.num_rows for batch in arrow.read_capture(Failing(BUNNY.read_bytes())))
    assert sum(rows) == 20


def test_wrong_options_are_refused_before_reading() -> None:
    with pytest.raises(ValueError, match="mode: 'quiet' is none of"):
        arrow.read_capture("nowhere.pcap", mode="quiet")


@pytest.mark.parametrize("table", ["frames", "methods", "messages", "connections"])
class TestOtherLibraries:
    """Through the Arrow PyCapsule protocol alone."""

    def rows(self, table: str) -> int:
        return sum(batch.num_rows for batch in arrow.read_capture(BUNNY, table))

    def test_polars(self, table: str) -> None:
        polars: Any = pytest.importorskip("polars", reason="polars is not installed")
        frame = polars.DataFrame(arrow.read_capture(BUNNY, table))
        assert frame.height == self.rows(table) > 0
        assert frame.columns == arrow.schema(table).names

    def test_duckdb(self, table: str) -> None:
        duckdb: Any = pytest.importorskip("duckdb", reason="duckdb is not installed")
        reader = arrow.read_capture(BUNNY, table).reader()
        found = duckdb.connect().from_arrow(reader).aggregate("count(*)").fetchall()
        assert found == [(self.rows(table),)]

    def test_pandas(self, table: str) -> None:
        pandas: Any = pytest.importorskip("pandas", reason="pandas is not installed")
        if not hasattr(pandas.DataFrame, "from_arrow"):
            pytest.skip("pandas before 3.0 does not know the protocol")
        frame = pandas.DataFrame.from_arrow(arrow.read_capture(BUNNY, table))
        assert len(frame) == self.rows(table)


def test_polars_sums_what_was_published() -> None:
    polars: Any = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame(arrow.read_capture(BUNNY, columns=["kind", "body_size"]))
    sums = dict(frame.group_by("kind").agg(polars.col("body_size").sum()).iter_rows())
    rows = pa.Table.from_batches(arrow.read_capture(BUNNY)).to_pylist()
    assert sums["publish"] == sum(row["body_size"] for row in rows if row["kind"] == "publish") > 0


def test_messages_come_back_from_polars() -> None:
    polars: Any = pytest.importorskip("polars", reason="polars is not installed")
    properties = rabbitmq.BasicProperties(app_id="a", headers={"n": 1})
    octets = rabbitmq.encode_message(1, rabbitmq.Basic.Publish(routing_key="k"), properties, b"body")
    frame = polars.DataFrame(arrow.decode_messages(octets))
    assert arrow.encode_messages(frame) == octets
