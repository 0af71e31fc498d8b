"""Both builds write the same frames from the same columns, and refuse the same rows in the same words."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import share
from support.implementation import wanted

import amqpcodec
from amqpcodec import _backend
from amqpcodec._columns.buffers_py import Batch, Filled
from amqpcodec._columns.schemas import Column, table_columns
from amqpcodec._protocol.index import DIALECTS
from amqpcodec.arrow.arrays import arrow_type, memory_of

pytestmark = pytest.mark.skipif(len(wanted()) < 2, reason="one build has nothing to be compared with")


def cell(source: random.Random, column: Column) -> Any:
    """A value of a column: mostly one that can be written."""
    if source.random() < 0.3:
        return None
    invalid = source.random() < 0.02
    match column.kind:
        case "bool":
            return invalid or source.random() < 0.5
        case "string":
            return "k" * 256 if invalid else source.choice(("", "orders", "größe", "k" * 255))
        case "binary":
            return source.randbytes(source.choice((0, 3, 40)))
        case "timestamp":
            times = (0, 1714521600_000_000, 1714521600_999_999, 253402300799_999_999)
            return -1 if invalid else source.choice(times)
        case "map":
            keys = source.sample(("a", "b", "c", "größe"), source.randrange(4))
            pairs = [(key, source.choice((None, "", "text"))) for key in keys]
            return pairs + source.choice(([("k" * 256, "")], pairs)) if invalid else pairs
        case "struct" | "content":
            return {child.name: cell(source, child) for child in column.children}
        case _:
            most = {"int8": 1, "int16": 255, "int32": 65535}.get(column.kind, 2**32 - 1)
            return source.choice((-1, most + 1)) if invalid else source.choice((0, 1, most))


def special(source: random.Random, column: Column, dialect: str) -> Any:
    """The same for the columns that say what to write."""
    carriers = [cls.spec.name for cls in amqpcodec.dialect(dialect).METHODS.values() if cls.spec.content]
    invalid = source.random() < 0.02
    match column.name:
        case "name":
            return "basic.ack" if invalid else source.choice((None, "", *carriers))
        case "kind":
            return "nonsense" if invalid else source.choice((None, "", "publish", "deliver", "return"))
        case "channel":
            return source.choice((0, 65536)) if invalid else source.choice((None, 1, 65535))
        case "_error":
            return "FRAME_ERROR at 5" if invalid else None
        case "complete":
            return source.choice((None, True, not invalid))
        case "body_size":
            return 5 if invalid else None
        case _:
            return cell(source, column)


def written(impl: str, seed: int, dialect: str) -> Any:
    """What an encoder makes of a batch: its octets, or its error."""
    source = random.Random(seed)
    columns = [column for column in table_columns("messages", [dialect]) if source.random() < 0.7]
    rows = source.randrange(1, 6)
    memory: list[Filled] = []
    for column in columns:
        values = [special(source, column, dialect) for _ in range(rows)]
        memory.append(memory_of(column, pa.array(values, arrow_type(column))))
    encoder = _backend.load("amqpcodec._columns.encode", impl).MessageEncoder(
        columns, amqpcodec.dialect(dialect), frame_max=source.choice((0, 131072, 131072, 400)),
        skip_incomplete=source.random() < 0.8,
    )  # fmt: skip
    try:
        return encoder.encode(Batch(rows, tuple(memory)), 7)
    except amqpcodec.EncodeError as error:
        return repr(error), str(error), error.field


@settings(max_examples=share(50))
@given(seed=st.integers(0, 2**32), dialect=st.sampled_from(tuple(DIALECTS)))
def test_the_builds_write_the_same(seed: int, dialect: str) -> None:
    assert written("c", seed, dialect) == written("py", seed, dialect)


@pytest.mark.parametrize("impl", wanted())
def test_text_that_is_not_utf_8_is_written_as_it_is(impl: str) -> None:
    keys = pa.array([b"k\xff", b"k"], pa.binary()).view(pa.string())
    entries = pa.MapArray.from_arrays(pa.array([0, 1, 1], pa.int32()), keys[:1], keys[:1])
    columns = [Column("routing_key", "string"), Column("headers", "map")]
    memory = tuple(memory_of(column, array) for column, array in zip(columns, (keys, entries), strict=True))
    encoder = _backend.load("amqpcodec._columns.encode", impl).MessageEncoder(
        columns, amqpcodec.dialect("rabbitmq-0-9-1"), frame_max=0, skip_incomplete=False
    )
    octets = encoder.encode(Batch(2, memory)).octets
    messages = amqpcodec.dialect("rabbitmq-0-9-1").MessageDecoder().feed(octets)
    assert [(message.method.routing_key, message.properties.headers) for message in messages] == [
        ("k\udcff", {"k\udcff": b"k\xff"}),
        ("k", {}),
    ]


@pytest.mark.parametrize("impl", wanted())
@pytest.mark.parametrize("name", ["name", "_error"])
def test_errors_show_text_that_is_not_utf_8(impl: str, name: str) -> None:
    text = pa.array([b"odd\xff"], pa.binary()).view(pa.string())
    column = Column(name, "string")
    encoder = _backend.load("amqpcodec._columns.encode", impl).MessageEncoder(
        [column], amqpcodec.dialect("rabbitmq-0-9-1"), frame_max=0, skip_incomplete=False
    )
    with pytest.raises(amqpcodec.EncodeError, match=r"row 0: .*odd\\xff"):
        encoder.encode(Batch(1, (memory_of(column, text),)))


@pytest.mark.parametrize("rows", [1, 9])
def test_memory_that_is_not_all_there_is_refused(rows: int) -> None:
    column = Column("exchange", "string")
    encoder: Any = _backend.load("amqpcodec._columns.encode", "c").MessageEncoder(
        [column], amqpcodec.dialect("rabbitmq-0-9-1"), frame_max=0, skip_incomplete=False
    )
    offsets = (0).to_bytes(4, "little") + (5).to_bytes(4, "little")
    for buffers in (
        (None, offsets, b"four"),
        (None, offsets[:7], b"fives"),
        (None, offsets[4:] * 2, b"five"),
    ):
        with pytest.raises(ValueError, match=r"memory|octets"):
            encoder.encode(Batch(rows, (Filled(rows, 0, buffers),)))
