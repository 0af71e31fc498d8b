"""Tables of messages as foreign programs may make them: any columns, of any types, with nulls anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from structured import Builder

from amqpcodec._columns.schemas import Column
from amqpcodec.arrow.arrays import arrow_type

MOST_ROWS = 5
FOREIGN: tuple[pa.DataType, ...] = (
    pa.null(), pa.bool_(), pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64(), pa.float64(),
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary(2),
    pa.date32(), pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.timestamp("us", "Europe/Berlin"),
    pa.duration("s"), pa.decimal128(5, 2), pa.list_(pa.string()), pa.map_(pa.string(), pa.int64()),
    pa.map_(pa.string(), pa.string()), pa.struct([]), pa.dictionary(pa.int8(), pa.string()),
    pa.struct([("type", pa.int64()), ("inline", pa.string())]),
)  # fmt: skip
TEXTS = (
    b"",
    b"publish",
    b"deliver",
    b"basic.publish",
    b"basic.ack",
    b"k" * 255,
    b"k" * 256,
    b"10.0.0.1:5672",
)
NUMBERS = (0, 1, -1, 255, 256, 65535, 65536, 2**31, 2**32 - 1, 2**32, 2**63 - 1, -(2**63))


def hostile_table(build: Builder, columns: Sequence[Column]) -> pa.Table:
    """A table of a few rows, part of a larger one, with some of these columns."""
    rows, start, many = build.octet() % MOST_ROWS, build.octet() % MOST_ROWS, build.flag()
    names: list[str] = []
    arrays: list[pa.Array] = []
    for _ in range(build.octet() % 16):
        column = build.pick(columns)
        names.append(column.name)
        arrays.append(_array(build, column, start + rows))
    made = pa.table(arrays, names=names) if arrays else pa.table({"other": pa.nulls(start + rows)})
    half = made.slice(start, rows // 2), made.slice(start + rows // 2)
    return pa.concat_tables(half) if many else made.slice(start)


def _array(build: Builder, column: Column, rows: int) -> pa.Array:
    """The values of a column, mostly of its own type."""
    how = build.octet()
    if how % 8 == 0:
        return _foreign(build, build.pick(FOREIGN), rows)
    validity = build.octet() if how % 8 == 1 else 255
    given = [bool(validity >> row % 8 & 1) for row in range(rows)]
    match column.kind:
        case "struct" | "content":
            return _struct(build, column, given)
        case "map":
            return _map(build, given)
        case "string":
            # Not every program takes care that its text is UTF-8.
            return pa.array([_text(build) if each else None for each in given], pa.binary()).view(pa.string())
        case "binary":
            return pa.array([build.octets() if each else None for each in given], pa.binary())
        case "bool":
            return pa.array([build.flag() if each else None for each in given])
    numbers = [_number(build) if each else None for each in given]
    return _fitting(numbers, arrow_type(column))


def _struct(build: Builder, column: Column, given: list[bool]) -> pa.Array:
    """A struct with some of its children, which have values even where it has none."""
    inside = column.children or (Column("inline", "binary"), Column("reference", "binary"))
    chosen = [child for child in inside if build.flag()] if build.flag() else inside
    arrays = [_array(build, child, len(given)) for child in chosen]
    if not arrays:
        return pa.array([{} if each else None for each in given], pa.struct([]))
    mask = pa.array([not each for each in given], pa.bool_())
    return pa.StructArray.from_arrays(arrays, names=[child.name for child in chosen], mask=mask)


def _map(build: Builder, given: list[bool]) -> pa.Array:
    sizes = [build.octet() % 4 for _ in given]
    offsets = [sum(sizes[:row]) for row in range(len(given))]
    keys = pa.array([_text(build) for _ in range(sum(sizes))], pa.binary()).view(pa.string())
    texts = pa.array([_text(build) if build.octet() & 3 else None for _ in range(sum(sizes))], pa.binary())
    begins = [offset if each else None for offset, each in zip(offsets, given, strict=True)]
    return pa.MapArray.from_arrays(pa.array([*begins, sum(sizes)], pa.int32()), keys, texts.view(pa.string()))


def _text(build: Builder) -> bytes:
    how = build.octet()
    if how < 128:
        return TEXTS[how % len(TEXTS)]
    octets = build.octets()
    return octets if how & 1 else octets.decode("utf-8", "replace").encode()


def _number(build: Builder) -> int:
    how = build.octet()
    return build.number() if how & 1 else NUMBERS[how // 2 % len(NUMBERS)]


def _foreign(build: Builder, kind: pa.DataType, rows: int) -> pa.Array:
    """Values of a type that may have nothing to do with the column's."""
    choices = None, "12", b"ab", [("a", "b")], {}
    return _fitting([build.pick((_number(build), *choices)) for _ in range(rows)], kind)


def _fitting(values: list[Any], kind: pa.DataType) -> pa.Array:
    """An array of those values that its type can hold, nulls for the others."""
    return pa.concat_arrays([pa.array([], kind), *(_one(value, kind) for value in values)])


def _one(value: Any, kind: pa.DataType) -> pa.Array:
    try:
        return pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.nulls(1, kind)
