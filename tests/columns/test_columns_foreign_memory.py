"""Columns from elsewhere whose memory is not as Arrow has it: refused by both builds, and never followed."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pyarrow as pa
import pytest

from amqpcodec import EncodeError, _backend, arrow, rabbitmq
from amqpcodec.arrow import encoding

BINARY = pa.binary()


def octets(offsets: tuple[int, ...], text: bytes = b"abcdefgh", kind: pa.DataType = BINARY) -> pa.Array:
    """Octets with these offsets, which are written when pyarrow has seen others."""
    code = "q" if kind == pa.large_binary() else "i"
    memory = bytearray(struct.calcsize(f"{len(offsets)}{code}"))
    made = pa.Array.from_buffers(
        kind, len(offsets) - 1, [None, pa.py_buffer(memory), pa.py_buffer(text)], null_count=0
    )
    struct.pack_into(f"{len(offsets)}{code}", memory, 0, *offsets)
    return made


def claimed(array: pa.Array, name: str, rows: int) -> pa.RecordBatch:
    """A column as it comes out of an IPC stream that claims more rows than there are."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([(name, array.type)])) as writer:
        writer.write_batch(pa.record_batch([array], names=[name]))
    stream, length = sink.getvalue().to_pybytes(), struct.pack("<q", len(array))
    assert stream.count(length) == 2
    return pa.ipc.open_stream(stream.replace(length, struct.pack("<q", rows))).read_next_batch()


HEARTBEAT = rabbitmq.encode_heartbeat()

DAMAGED: dict[str, Callable[[], pa.Array]] = {
    "descending offsets": lambda: octets((0, 4, 2, 6)),
    "descending offsets of a part": lambda: octets((0, 1, 6, 2, 8)).slice(1, 3),
    "a part that ends before it begins": lambda: octets((0, 1, 7, 2, 8)).slice(2, 1),
    "offsets far out": lambda: octets((0, 4, 2**31 - 1)),
    "an offset far out between others": lambda: octets((0, 2**31 - 1, 4)),
    "a negative offset": lambda: octets((-(2**31), 4)),
    "a negative offset between others": lambda: octets((0, -(2**31), 4)),
    "no octets": lambda: octets((0, 2**30), b""),
    "large, descending": lambda: octets((0, 4, 2, 6), kind=pa.large_binary()),
    "large, far out": lambda: octets((0, 2**40, 4), kind=pa.large_binary()),
    "a dictionary without such a value": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, 2**30], pa.int32()), pa.array([b"x"]), safe=False
    ),
}


SEEN_BY_PYARROW = frozenset(  # when a batch is made of them
    ("a part that ends before it begins", "offsets far out", "a negative offset", "no octets")
)


@pytest.fixture
def _encoding_build(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`encode_messages` takes the build in use; here, each in turn."""
    encoder = _backend.load("amqpcodec._columns.encode", build).MessageEncoder
    monkeypatch.setattr(encoding, "_MessageEncoder", encoder)


@pytest.mark.parametrize("name", DAMAGED)
def test_values_whose_memory_is_not_right_are_refused(build: str, name: str) -> None:
    decoder, array = arrow.ValueDecoder("frames", _impl=build), DAMAGED[name]()
    with pytest.raises(ValueError, match=r"."):
        decoder.decode(array)
    assert decoder.decode(pa.array([b""])).num_rows == 1


@pytest.mark.usefixtures("_encoding_build")
@pytest.mark.parametrize("name", [name for name in DAMAGED if name not in SEEN_BY_PYARROW])
@pytest.mark.parametrize("column", ["body", "routing_key", "headers_raw"])
def test_messages_whose_memory_is_not_right_are_refused(name: str, column: str) -> None:
    batch = pa.RecordBatch.from_arrays([DAMAGED[name]()], names=[column])
    with pytest.raises((ValueError, EncodeError), match=r"."):
        arrow.encode_messages(batch)


@pytest.mark.usefixtures("_encoding_build")
def test_columns_inside_others_are_looked_at_as_well() -> None:
    texts = octets((0, 2, 9, 1, 8), b"abcdefghi", kind=pa.string())
    inside = pa.StructArray.from_arrays([texts], names=["content_type"])
    entries = pa.MapArray.from_arrays(pa.array([0, 2, 4], pa.int32()), pa.array(list("abcd")), texts)
    for array, name in ((inside, "properties"), (inside.slice(2, 1), "properties"), (entries, "headers")):
        batch = pa.record_batch([array], names=[name])
        with pytest.raises(ValueError, match=r"."):
            arrow.encode_messages(batch)


@pytest.mark.usefixtures("_encoding_build")
def test_both_builds_say_the_same_of_descending_offsets() -> None:
    batch = pa.record_batch([octets((0, 4, 2, 6))], names=["body"])
    with pytest.raises(ValueError, match="the offsets of a column lead out of its memory"):
        arrow.encode_messages(batch)


@pytest.mark.usefixtures("_encoding_build")
@pytest.mark.parametrize("rows", [10**4, 10**6])
def test_a_batch_with_fewer_values_than_it_says_is_refused(build: str, rows: int) -> None:
    texts, numbers = pa.array([b"x", None] * 77), pa.array([1, None] * 77)
    for array, name in ((texts, "body"), (numbers, "channel")):
        batch = claimed(array, name, rows)
        with pytest.raises(ValueError, match="too small"):
            arrow.encode_messages(batch)
        with pytest.raises(ValueError, match="too small"):
            arrow.ValueDecoder("frames", _impl=build).decode(batch.column(0))


@pytest.mark.parametrize("name", DAMAGED)
def test_chunks_whose_memory_is_not_right_are_refused(build: str, name: str) -> None:
    decoder = arrow.ValueDecoder("frames", _impl=build)
    good = pa.array([HEARTBEAT], DAMAGED[name]().type)
    with pytest.raises(ValueError, match=r"."):
        decoder.decode(pa.chunked_array([good, DAMAGED[name]()]))


def test_chunks_are_read_as_one_array(build: str) -> None:
    chunks = [[HEARTBEAT], [], [HEARTBEAT * 2, HEARTBEAT]]
    for given in (pa.chunked_array(chunks, pa.binary()), pa.chunked_array([], pa.binary())):
        rows = arrow.ValueDecoder("frames", _impl=build).decode(given)
        assert (
            rows.num_rows == arrow.ValueDecoder("frames", _impl=build).decode(given.combine_chunks()).num_rows
        )
