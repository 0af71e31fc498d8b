"""Messages in columns back to frames: what the object path writes, octet for octet."""

from __future__ import annotations

from array import array
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import columns, strategies, vectors
from support.vectors import arguments, encodable

import amqpcodec
from amqpcodec import EncodeError, Message, _backend, amqp08, arrow, capture, rabbitmq
from amqpcodec.arrow import encoding

EXAMPLES = Path(__file__).parents[2] / "examples"
BEFORE = datetime(1969, 1, 1, tzinfo=UTC)
HEADERS = {"text": "a", "none": None, "é": ""}


def publish(key: str = "k", body: bytes = b"body", **properties: Any) -> bytes:
    method = rabbitmq.Basic.Publish(exchange="x", routing_key=key)
    return bytes(rabbitmq.encode_message(1, method, rabbitmq.BasicProperties(**properties), body))


def batch(**columns: list[Any]) -> pa.RecordBatch:
    schema = arrow.schema("messages")
    fields = [schema.field(name) for name in columns]
    return pa.RecordBatch.from_pylist(
        [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        schema=pa.schema(fields),
    )


class TestObjectPath:
    def test_contents_of_the_vectors_come_back(self, dialect: str) -> None:
        for vector in vectors.vectors(dialect, "content"):
            octets = bytes.fromhex(vector["hex"])
            frame_max = vector["fields"].get("frame-max", 131072)
            found = arrow.encode_messages(
                arrow.decode_messages(octets, dialect=dialect), dialect=dialect, frame_max=frame_max
            )
            assert found == octets

    @pytest.mark.parametrize("name", ["real-bunny", "real-txamqp-0-8"])
    def test_messages_of_captures_are_written_as_their_objects_are(self, name: str) -> None:
        path = EXAMPLES / f"{name}.pcap"
        decoders: dict[tuple[int, int], Any] = {}
        expected = []
        for item in capture.read_frames(path):
            if not isinstance(item, capture.CapturedFrame) or item.frame.type == ord("A"):
                continue
            codec: Any = amqpcodec.dialect(item.dialect)
            decoder = decoders.setdefault(
                (item.connection.number, item.direction), codec.MessageDecoder(tables="raw", frame_max=0)
            )
            expected += [
                codec.Encoder().encode(value)
                for value in decoder.feed(item.octets)
                if isinstance(value, Message)
            ]
        batches = list(arrow.read_capture(path))
        assert arrow.encode_messages(pa.Table.from_batches(batches), dialect=item.dialect) == b"".join(
            expected
        )
        assert expected

    @given(data=st.data())
    @settings(max_examples=20)
    def test_any_message_is_written_as_its_object_is(self, dialect: str, data: st.DataObject) -> None:
        codec: Any = amqpcodec.dialect(dialect)
        profile = codec.DIALECT.profile.name
        cls = codec.Basic.Deliver
        fields = [field for field in cls.spec.fields if not field.reserved]
        values = {
            field.name: data.draw(strategies.arguments(dialect, profile, field.type)) for field in fields
        }
        method = cls(**arguments(fields, values, profile, encodable))
        values = data.draw(strategies.properties(dialect, profile, "basic"))
        properties = codec.BasicProperties(
            **arguments(codec.BasicProperties.spec.fields, values, profile, encodable)
        )
        for record in (method, properties):
            for field in record.spec.fields:
                _make_fit(record, field)
        octets = codec.encode_message(7, method, properties, data.draw(st.binary(max_size=300)), frame_max=0)
        rows = arrow.decode_messages(octets, dialect=dialect)
        assert arrow.encode_messages(rows, dialect=dialect, frame_max=0) == octets


def _make_fit(record: Any, field: Any) -> None:
    """Change a value that a column would not hold as it is."""
    value = getattr(record, field.attribute)
    if not columns.fits(field.type, value):
        setattr(record, field.attribute, 7)
    elif field.type == "shortstr" and value is not None:
        setattr(record, field.attribute, columns.shown(value)[:50])


class TestDefaults:
    def test_a_body_alone_is_published_on_channel_1(self) -> None:
        found = arrow.encode_messages(batch(body=[b"a", None]))
        publish = rabbitmq.Basic.Publish()
        assert found == rabbitmq.encode_message(1, publish, None, b"a") + rabbitmq.encode_message(
            1, publish, None, b""
        )

    def test_no_columns_at_all(self) -> None:
        table = pa.table({"mine": [1]})
        assert arrow.encode_messages(table) == rabbitmq.encode_message(1, rabbitmq.Basic.Publish(), None, b"")

    def test_kind_names_the_method_and_name_goes_before_it(self) -> None:
        found = arrow.encode_messages(
            batch(
                name=[None, "basic.return"],
                kind=["deliver", "deliver"],
                delivery_tag=[5, 5],
                reply_text=["t", "t"],
            )
        )
        deliver, returned = rabbitmq.Basic.Deliver(delivery_tag=5), rabbitmq.Basic.Return(reply_text="t")
        assert found == rabbitmq.encode_message(1, deliver, None, b"") + rabbitmq.encode_message(
            1, returned, None, b""
        )

    def test_other_dialects_and_classes(self) -> None:
        found = arrow.encode_messages(
            batch(name=["file.return"], exchange=["x"], properties=[{"filename": "f"}]), dialect="amqp-0-8"
        )
        method, properties = amqp08.File.Return(exchange="x"), amqp08.FileProperties(filename="f")
        assert found == amqp08.encode_message(1, method, properties, b"")

    def test_bodies_are_cut_to_frame_max(self) -> None:
        found = arrow.encode_messages(batch(body=[bytes(20)]), frame_max=30)
        assert found == rabbitmq.encode_message(1, rabbitmq.Basic.Publish(), None, bytes(20), frame_max=30)

    def test_headers_are_text_unless_their_octets_are_there(self) -> None:
        raw = publish(headers={"n": 1})
        row = arrow.decode_messages(raw)
        assert arrow.encode_messages(row) == raw
        octets = arrow.encode_messages(row.drop_columns(["headers_raw"]))
        assert arrow.decode_messages(octets).column("headers").to_pylist() == [[("n", "1")]]
        found = arrow.encode_messages(batch(headers=[list(HEADERS.items())]))
        properties = rabbitmq.BasicProperties(headers=HEADERS)
        assert found == rabbitmq.encode_message(1, rabbitmq.Basic.Publish(), properties, b"")

    def test_fractions_of_seconds_are_cut_off(self) -> None:
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        found = arrow.encode_messages(batch(properties=[{"timestamp": moment + timedelta(milliseconds=900)}]))
        properties = rabbitmq.BasicProperties(timestamp=moment)
        assert found == rabbitmq.encode_message(1, rabbitmq.Basic.Publish(), properties, b"")


class TestColumnsFromElsewhere:
    @pytest.fixture(autouse=True)
    def _each_build(self, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
        encoder = _backend.load("amqpcodec._columns.encode", build).MessageEncoder
        monkeypatch.setattr(encoding, "_MessageEncoder", encoder)

    ROWS = publish("a", headers={"a": 1}) + publish("b", b"", content_type="t", priority=4) + publish("c")

    def test_slices(self) -> None:
        rows = arrow.decode_messages(self.ROWS)
        assert arrow.encode_messages(rows.slice(1, 1)) == publish("b", b"", content_type="t", priority=4)
        assert arrow.encode_messages(rows.slice(1)) == self.ROWS[len(publish("a", headers={"a": 1})) :]

    def test_tables_of_several_batches(self) -> None:
        rows = arrow.decode_messages(self.ROWS)
        table = pa.Table.from_batches([rows.slice(0, 1), rows.slice(1, 0), rows.slice(1)])
        assert arrow.encode_messages(table) == self.ROWS

    def test_wider_types_and_dictionaries(self) -> None:
        table = pa.table(
            {
                "routing_key": pa.array(["a", "b"]).dictionary_encode(),
                "body": pa.array([b"1", b"2"], pa.large_binary()),
                "exchange": pa.array(["x", "x"], pa.string_view()),
                "channel": pa.array([1, 1], pa.int64()),
                "properties": pa.array([{"mine": 1, "priority": 4}, None]),
            }
        )
        assert arrow.encode_messages(table) == publish("a", b"1", priority=4) + publish("b", b"2")

    @pytest.mark.parametrize(
        "properties", [pa.nulls(1), pa.array([{"mine": 1}]), pa.array([{}], pa.struct([]))]
    )
    def test_structs_with_nothing_of_ours_are_passed_over(self, properties: pa.Array) -> None:
        table = pa.table({"body": [b"a"], "properties": properties})
        assert arrow.encode_messages(table) == rabbitmq.encode_message(
            1, rabbitmq.Basic.Publish(), None, b"a"
        )

    def test_a_map_may_be_a_slice_of_its_entries(self) -> None:
        entries = pa.StructArray.from_arrays(
            [pa.array(["not", "these", "a", "b"]), pa.array(["x", "x", "1", None])],
            fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())],
        )
        offsets = pa.py_buffer(array("i", [0, 2]))
        kind = pa.map_(pa.string(), pa.string())
        headers = pa.Array.from_buffers(kind, 1, [None, offsets], children=[entries.slice(2)])
        found = arrow.encode_messages(pa.table({"headers": headers}))
        properties = rabbitmq.BasicProperties(headers={"a": "1", "b": None})
        assert found == rabbitmq.encode_message(1, rabbitmq.Basic.Publish(), properties, b"")

    @pytest.mark.parametrize("seconds", [253402300800, 2**43])
    def test_times_beyond_the_year_9999(self, seconds: int) -> None:
        times = pa.array([seconds * 1_000_000], pa.timestamp("us", "UTC"))
        table = pa.table({"properties": pa.StructArray.from_arrays([times], ["timestamp"])})
        properties = rabbitmq.BasicProperties(timestamp=seconds)
        assert arrow.encode_messages(table) == rabbitmq.encode_message(
            1, rabbitmq.Basic.Publish(), properties, b""
        )

    def test_times_before_the_year_1_are_refused(self) -> None:
        times = pa.array([-(2**62)], pa.timestamp("us", "UTC"))
        table = pa.table({"properties": pa.StructArray.from_arrays([times], ["timestamp"])})
        with pytest.raises(EncodeError, match=r"basic.properties.timestamp: row 0: longlong must be 0 to"):
            arrow.encode_messages(table)

    @pytest.mark.parametrize("frame_max", [True, 1.5, None, "4096"])
    def test_a_limit_that_is_no_number_is_refused(self, frame_max: Any) -> None:
        with pytest.raises(TypeError, match="frame_max: must be a whole number, not"):
            arrow.encode_messages(batch(body=[b"a"]), frame_max=frame_max)

    def test_a_column_of_another_kind_is_refused(self) -> None:
        with pytest.raises(EncodeError, match="body: not a column of binary"):
            arrow.encode_messages(pa.table({"body": [[1]]}))

    def test_two_columns_of_one_name_are_refused(self) -> None:
        table = pa.Table.from_arrays([pa.array([b"a"])] * 2, names=["body", "body"])
        with pytest.raises(EncodeError, match=r"body: not a column of binary: .*2 times"):
            arrow.encode_messages(table)


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        ({"exchange": ["", "x" * 256]}, r"basic.publish.exchange: row 1: "),
        ({"channel": [1, 65536]}, r"basic.publish.channel: row 1: "),
        ({"channel": [1, 0]}, r"basic.publish.channel: row 1: content does not belong on channel 0"),
        ({"properties": [None, {"priority": 256}]}, r"basic.properties.priority: row 1: "),
        ({"properties": [None, {"user_id": "u" * 256}]}, r"basic.properties.user_id: row 1: "),
        ({"properties": [None, {"timestamp": BEFORE}]}, r"basic.properties.timestamp: row 1"),
        ({"headers": [None, [("k" * 256, "v")]]}, r"basic.headers.*: row 1: "),
        ({"name": [None, "basic.ack"]}, r"name: row 1: rabbitmq-0-9-1 has no method basic.ack with content"),
        ({"kind": [None, "stage"]}, r"kind: row 1: rabbitmq-0-9-1 has no method basic.stage"),
        ({"_error": [None, "FRAME_ERROR at 1"]}, r"_error: row 1: the row is in error: FRAME_ERROR at 1"),
        ({"complete": [True, False]}, r"complete: row 1: the message is not complete"),
        ({"body_size": [0, 4]}, r"body: row 1: the body of 4 octets is not there"),
        ({"kind": ["deliver", "deliver"], "delivery_tag": [1, -1]}, r"basic.deliver.delivery_tag: row 1"),
    ],
)  # fmt: skip
def test_errors_name_row_and_column(cells: dict[str, list[Any]], shown: str) -> None:
    with pytest.raises(EncodeError, match=f"^{shown}"):
        arrow.encode_messages(batch(**cells))


@pytest.mark.parametrize("name", ["exchang", "Exchange", "exchanges", "exhcange"])
@pytest.mark.parametrize("mode", ["fail", "permissive"])
def test_a_column_that_looks_misspelt_is_refused(name: str, mode: Any) -> None:
    given = pa.table({name: ["orders"], "routing_key": ["a"]})
    message = f"^{name}: no such column; the nearest is 'exchange'$"
    with pytest.raises(EncodeError, match=message):
        arrow.encode_messages(given)
    with pytest.raises(EncodeError, match=message):
        arrow.encode_values(given, mode=mode)


def test_a_property_that_looks_misspelt_is_refused() -> None:
    given = pa.table({"properties": [{"content_typ": "text/plain"}]})
    with pytest.raises(EncodeError, match=r"^properties.content_typ: no such column; .*'content_type'$"):
        arrow.encode_messages(given)


def test_columns_of_other_names_are_ignored() -> None:
    others: dict[str, list[Any]] = {
        "id": [1], "exchange": ["e"], "exchanges": ["x"], "exchange_name": ["x"], "key": [b""], "ts_ms": [1],
        "consumer": ["c"], "delivery": [2], "channel_id": [3],
    }  # fmt: skip
    assert arrow.encode_messages(pa.table(others)) == arrow.encode_messages(pa.table({"exchange": ["e"]}))


def test_rows_count_through_the_batches_of_a_table() -> None:
    rows = batch(complete=[True, True, False])
    table = pa.Table.from_batches([rows.slice(0, 2), rows.slice(2)])
    with pytest.raises(EncodeError, match="row 2"):
        arrow.encode_messages(table)


def test_incomplete_rows_can_be_left_out() -> None:
    octets = publish("a") + publish("b")[:-3]
    rows = arrow.decode_messages(octets)
    assert arrow.encode_messages(rows, skip_incomplete=True) == publish("a")


class TestStreamWriter:
    def test_a_file_and_its_index(self, tmp_path: Path) -> None:
        path = tmp_path / "out.amqp"
        decoded = arrow.decode_messages(publish("a") + publish("b", bytes(500)) + publish("c")[:-3])
        rows = decoded.slice(0, 3)  # without the one that reports the octets in no frame
        times = rows.set_column(rows.schema.get_field_index("ts_ns"), "ts_ns", pa.array([5, None, 7]))
        with arrow.StreamWriter(path, skip_incomplete=True) as writer:
            assert writer.write(times) == 2
            assert writer.write(times.slice(2)) == 0
            assert writer.write(rows.select(["routing_key", "exchange", "body", "complete"])) == 2
        octets = publish("a") + publish("b", bytes(500))
        assert path.read_bytes() == octets * 2
        index = pa.ipc.open_file(tmp_path / "out.amqp.index.arrow").read_all()
        one, two = len(publish("a")), len(publish("b", bytes(500)))
        assert index.to_pydict() == {
            "offset": [0, one, one + two, one + two + one],
            "length": [one, two, one, two],
            "ts_ns": [5, None, None, None],
        }

    def test_what_it_wrote_is_read_again(self, tmp_path: Path) -> None:
        path = tmp_path / "out.amqp"
        rows = arrow.decode_messages(publish("a") + publish("b"))
        with arrow.StreamWriter(path, tmp_path / "index") as writer:
            writer.write(rows)
        (found,) = arrow.read_stream(path, columns=["file", "routing_key", "body"])
        assert found.to_pylist() == [
            {"file": str(path), "routing_key": key, "body": b"body"} for key in ("a", "b")
        ]
        assert (tmp_path / "index").exists()

    def test_a_batch_with_a_refused_row_is_not_written(self, tmp_path: Path) -> None:
        path = tmp_path / "out.amqp"
        with arrow.StreamWriter(path) as writer, pytest.raises(EncodeError):
            writer.write(batch(complete=[True, False]))
        assert path.read_bytes() == b""

    def test_wrong_dialects_leave_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="no dialect"):
            arrow.StreamWriter(tmp_path / "out.amqp", dialect="amqp-1-0")
        assert not list(tmp_path.iterdir())


def test_modules_of_dialects_serve_in_place_of_their_names(codec: ModuleType) -> None:
    name = codec.DIALECT.name
    octets = codec.encode_message(1, codec.Basic.Publish(routing_key="k"), None, b"b")
    rows = arrow.decode_messages(octets, dialect=codec)
    assert rows.equals(arrow.decode_messages(octets, dialect=name))
    assert arrow.encode_messages(rows, dialect=codec) == octets
