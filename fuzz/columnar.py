"""What is fuzzed of `amqpcodec.arrow`: columns of octets, foreign batches, sessions and their states."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any
from unittest import mock

import pyarrow as pa
from arrays import hostile_table
from promises import BUILDS, NAMES, demand
from states import hostile_state
from structured import Builder
from support.outcomes import describe_error

from amqpcodec import DecodeError, EncodeError, arrow
from amqpcodec import dialect as dialect_named
from amqpcodec._backend import load
from amqpcodec._columns.schemas import TABLES, table_columns
from amqpcodec.arrow import encoding
from amqpcodec.arrow.binary import TABLES as VALUE_TABLES
from amqpcodec.capture import CaptureError
from amqpcodec.options import FRAME_MAX as LARGEST_FRAME

ARRAYS = (pa.binary(), pa.large_binary(), pa.dictionary(pa.int8(), pa.binary()))
LIMITS: tuple[dict[str, Any], ...] = ({}, {"max_body_bytes": 5, "max_open_messages": 1})
SESSIONS: tuple[dict[str, Any], ...] = (
    {},
    {"port": None, "out_of_order_bytes": 2000, "out_of_order_segments": 4, "flow_timeout": 0.5},
    {"port": None, **LIMITS[1], "frame_max": 4096, "dialect": NAMES[4]},
)
FRAME_MAX = (131072, 0, 9, 64, 4096)
LONG, NULL = 254, 255  # in place of the size of a value


def attempt(call: Callable[[], Any], *errors: type[Exception]) -> Any:
    """The result of a call, or everything visible of its error."""
    try:
        return call()
    except errors as error:
        demand(not isinstance(error, UnicodeError), "an error of no text of ours", error)
        return describe_error(error)


# -- columns of octets


def values(data: bytes) -> None:
    """A column of octets, each value read by itself; and what is written of the messages in it."""
    build = Builder(data)
    dialect, table, explode = build.pick(NAMES), build.pick(VALUE_TABLES), build.flag()
    names = [column.name for column in table_columns(table, [dialect])] if build.flag() else None
    given = {
        "dialect": dialect, "explode": explode, "columns": names, "direction": build.octet() & 1,
        "mode": build.pick(("permissive", "fail", "drop") if explode else ("permissive", "fail")),
        "include_credentials": build.flag(), "frame_max": build.pick((LARGEST_FRAME, 40)),
        **build.pick(LIMITS),
    }  # fmt: skip
    kind, start = build.pick(ARRAYS), build.octet() % 3
    column = pa.array(_cells(build), pa.binary()).cast(kind)[start:]
    decoders = [arrow.ValueDecoder(table, _impl=build.name, **given) for build in BUILDS]
    made = [attempt(lambda: decoder.decode(column), DecodeError) for decoder in decoders]  # noqa: B023
    demand(made[0] == made[1], "the builds differ", given, made)
    if not isinstance(made[0], pa.RecordBatch):
        return
    made[0].validate(full=True)
    demand(explode or made[0].num_rows == len(column), "another number of rows than of values", given)
    if table == "messages":
        _rewritten(made[0], dialect)


def _cells(build: Builder) -> list[bytes | None]:
    """Values, each behind its size."""
    cells: list[bytes | None] = []
    while build.at < len(build.data):
        size = build.octet()
        if size == NULL:
            cells.append(None)
            continue
        if size == LONG:
            size = build.octet() << 8 | build.octet()
        cells.append(build.data[build.at : build.at + size])
        build.at += size
    return cells


def _rewritten(batch: pa.RecordBatch, dialect: str) -> None:
    """What can be written of the messages goes into a value each; those, read and written, stay the same."""
    options: dict[str, Any] = {"dialect": dialect, "skip_incomplete": True, "mode": "permissive"}
    octets = [_written(build.name, lambda: arrow.encode_values(batch, **options)) for build in BUILDS]
    demand(octets[0] == octets[1], "the builds write differently", dialect, octets)
    demand(len(octets[0]) == batch.num_rows, "another number of values than of rows", dialect)
    written = octets[0].drop_null().combine_chunks()
    again = arrow.decode_values(written, "messages", dialect=dialect)
    rewritten = arrow.encode_values(again, **options).to_pylist()
    demand(rewritten == written.to_pylist(), "encoding is not stable", again)


# -- messages in batches


def _written(impl: str, call: Callable[[], Any]) -> Any:
    """The result of a call whose messages one of the builds encodes."""
    encoder = load("amqpcodec._columns.encode", impl).MessageEncoder
    with mock.patch.object(encoding, "_MessageEncoder", encoder):
        return attempt(call, EncodeError)


def batches(data: bytes) -> None:
    """Messages in columns of any type: written, or refused with the name of the column."""
    build = Builder(data)
    dialect, call = build.pick(NAMES), build.pick((_messages, _values, _stream, _capture))
    options: dict[str, Any] = {
        "dialect": dialect, "frame_max": build.pick(FRAME_MAX), "skip_incomplete": build.flag()
    }  # fmt: skip
    table = hostile_table(build, table_columns("messages", [dialect]))
    made = [_written(each.name, lambda: call(table, options)) for each in BUILDS]
    demand(made[0] == made[1], "the builds differ", options, made)
    if isinstance(made[0], tuple):
        _, text, *_, field, _ = made[0]
        demand(field is not None or "frame_max" in text, "no column is named", made[0])


def _messages(table: pa.Table, options: dict[str, Any]) -> bytes:
    octets = arrow.encode_messages(table, **options)
    decoder = dialect_named(options["dialect"]).FrameDecoder(frame_max=0, tables="raw")
    attempt(lambda: list(decoder.feed(octets)), DecodeError)
    return octets


def _values(table: pa.Table, options: dict[str, Any]) -> Any:
    octets = arrow.encode_values(table, mode="permissive", **options)
    demand(len(octets) == table.num_rows, "another number of values than of rows")
    octets.validate(full=True)
    return octets


def _stream(table: pa.Table, options: dict[str, Any]) -> Any:
    file, index = io.BytesIO(), io.BytesIO()
    with arrow.StreamWriter(file, index, **options) as writer:
        count = writer.write(table)
    places = pa.ipc.open_file(index.getbuffer()).read_all()
    lengths = places["length"].to_pylist()
    demand(len(lengths) == count, "another number of places than of messages", count)
    demand(sum(lengths) == len(file.getvalue()), "the places are not all of the stream")
    return [file.getvalue(), places.to_pylist()]


def _capture(table: pa.Table, options: dict[str, Any]) -> Any:
    file = io.BytesIO()
    with arrow.CaptureWriter(file, **options) as writer:
        count = writer.write(table)
    given = {"dialect": options["dialect"], "port": None, "columns": ["complete"]}
    rows = _rows(arrow.read_capture(io.BytesIO(file.getvalue()), **given))
    demand(len(rows) == count, "another number of messages than was written", count, rows)
    return file.getvalue()


# -- sessions


def session(data: bytes) -> None:
    """A capture read in parts has the rows of one run; a hostile state is refused, or does no harm."""
    build = Builder(data)
    table, options, turn = build.pick(TABLES), build.pick(SESSIONS), build.octet() & 1
    cuts, program = sorted((build.octet(), build.octet())), build.octets()
    octets = data[build.at :]
    ends = [len(octets) * cut // 256 for cut in cuts]
    whole = attempt(lambda: _rows(arrow.read_capture(io.BytesIO(octets), table, **options)), CaptureError)
    names = BUILDS[turn].name, BUILDS[1 - turn].name, BUILDS[turn].name
    states: list[bytes] = []
    parts = attempt(lambda: _parts(octets, table, ends, names, states, options), CaptureError)
    demand(parts == whole, "the cut of the capture matters", table, options, ends, names, parts, whole)
    for state in states[:1] if program else ():
        hostile = hostile_state(Builder(program), state)
        made = [_resumed(octets, table, hostile, each.name, options) for each in BUILDS]
        demand(made[0] == made[1], "the builds differ", table, options, made)


def _rows(batches: Iterable[pa.RecordBatch]) -> list[Any]:
    return [row for batch in batches for row in batch.to_pylist()]


def _parts(
    octets: bytes,
    table: str,
    ends: list[int],
    names: Iterable[str],
    states: list[bytes],
    options: dict[str, Any],
) -> list[Any]:
    """The rows of a capture, each part by a session of its own; their states are added to a list."""
    rows: list[Any] = []
    state = None
    for name, end in zip(names, (*ends, None), strict=True):
        part = arrow.CaptureSession(table, state=state, _impl=name, **options)
        rows += _rows(part.read(io.BytesIO(octets), end=end))
        state = part.suspend()
        states.append(state)
    return rows + _rows(arrow.CaptureSession(table, state=state, **options).finish())


def _resumed(octets: bytes, table: str, state: bytes, impl: str, options: dict[str, Any]) -> Any:
    """The rows from a state on, which may be of something else."""

    def resume() -> list[Any]:
        resumed = arrow.CaptureSession(table, state=state, _impl=impl, **options)
        rows = _rows(resumed.read(io.BytesIO(octets), end=len(octets)))
        resumed.suspend()
        return rows + _rows(resumed.finish())

    return attempt(resume, ValueError, CaptureError)
