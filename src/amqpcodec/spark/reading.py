"""The work on a part of a recording: octets to record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa

from .. import IMPL, arrow
from .._options import select
from ..arrow.arrays import repeated, with_file
from ..capture.elsewhere import hint
from ..errors import AmqpError
from ..options import AllCaptureOptions, AllStreamOptions, SparkReadOptions
from .files import open_file
from .planning import FileRange, Part, Recording
from .schemas import RECORDING, recording_place, without_recording


class NotCompiledError(RuntimeError):
    """The package that a worker has is without its compiled part."""


def check_build(impl: str) -> None:
    """Make sure of the build that was asked for.

    Raises:
        NotCompiledError: the compiled one is not there.
    """
    if impl == "c" and IMPL != "c":
        raise NotCompiledError(
            "this Python has amqpcodec without its compiled part, and would be many times slower: install a "
            'wheel made for it, or ask for the pure build by .option("impl", "py"); docs/spark.md says how '
            "to ship wheels to workers"
        )


def batches(
    part: Part,
    columns: Iterable[str],
    options: SparkReadOptions,
    *,
    on_state: Callable[[bytes], object] | None = None,
    on_hint: Callable[[str], object] | None = None,
    **others: int,
) -> Iterator[pa.RecordBatch]:
    """The rows of a part.

    Args:
        part: what to read.
        columns: as for `amqpcodec.arrow.read_capture`, and `recording`.
        options: how to read.
        on_state: is called with the state behind the part, unless the recording ends there.
        on_hint: is called with where else to look for AMQP, at the end of the part.
        others: those of `amqpcodec.arrow` that differ from `options`.

    Raises:
        CaptureError, DecodeError, OSError: as iterating over `amqpcodec.arrow.CaptureReader`; a note names
            the file.
        NotCompiledError: see `check_build`.
    """
    check_build(options["impl"])
    named = list(columns)
    theirs = without_recording(named)
    for batch in _batches(part, theirs, options, on_state, on_hint, others):
        place = recording_place(named, batch.schema)
        if place is None:
            yield batch
        else:
            names = repeated(part.recording, batch.num_rows)
            arrays = [*batch.columns[:place], names, *batch.columns[place:]]
            schema = batch.schema.insert(place, pa.field(RECORDING, pa.string()))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _batches(
    part: Part,
    columns: list[str],
    options: SparkReadOptions,
    on_state: Callable[[bytes], object] | None,
    on_hint: Callable[[str], object] | None,
    others: dict[str, int],
) -> Iterator[pa.RecordBatch]:
    if part.kind == "bad":
        if options["table"] == "errors":
            yield _fault_row(part, columns)
        return
    if part.kind == "stream":
        for each in part.ranges:
            yield from _stream(each, columns, options, others)
        return
    arguments = _arguments(options, AllCaptureOptions) | {"columns": columns} | others
    session = arrow.CaptureSession(options["table"], state=part.state, **arguments)
    for file, name, end in _ranges(part):
        yield from session.read(file, name, end)
    if part.last:
        yield from session.finish()
    elif on_state is not None:
        on_state(session.suspend())
    if on_hint is not None:
        on_hint(hint(session.tracker, "port="))


def states(parts: Sequence[Part], options: SparkReadOptions) -> Iterator[bytes]:
    """Return the states behind parts that follow each other, without making rows.

    Raises:
        CaptureError, OSError: a file cannot be read.
        NotCompiledError: see `check_build`.
    """
    check_build(options["impl"])
    # Whether a row is in error is decided where it is made.
    arguments = _arguments(options, AllCaptureOptions) | {"mode": "permissive"}
    first = parts[0].state if parts else None
    found = arrow.scan_capture(map(_ranges, parts), options["table"], state=first, **arguments)
    next(found)  # the first is known
    return found


def with_states(recording: Recording, options: SparkReadOptions) -> Recording:
    """A recording whose parts have the states at their beginning."""
    following = zip(recording[1:], states(recording[:-1], options), strict=True)
    return (recording[0], *(replace(part, state=state) for part, state in following))


def _arguments(options: SparkReadOptions, taken: type) -> dict[str, Any]:
    """Select the options that a function of `amqpcodec.arrow` takes."""
    chosen = select(taken, options) | {"_impl": options["impl"]}
    columns = chosen.get("columns")
    return chosen if columns is None else chosen | {"columns": without_recording(columns)}


def _ranges(part: Part) -> Iterator[tuple[Callable[[], BinaryIO] | None, str, int | None]]:
    """The ranges of a part as `CaptureSession.read` takes them."""
    for each in part.ranges:
        yield None if each.gone else partial(open_file, each.path, each.end), each.path, each.end


def _fault_row(part: Part, columns: Iterable[str]) -> pa.RecordBatch:
    """Return the row of a file that is not read."""
    row = {"file": part.ranges[0].path, "kind": "file", "code": "FILE", "message": part.fault}
    return pa.RecordBatch.from_pylist([row], arrow.schema("errors", columns=columns))


def _stream(
    each: FileRange, columns: Iterable[str], options: SparkReadOptions, others: dict[str, int]
) -> Iterator[pa.RecordBatch]:
    with closing(open_file(each.path)) as file:
        arguments = _arguments(options, AllStreamOptions) | {"columns": columns} | others
        reader = arrow.read_stream(file, options["table"], **arguments)
        try:
            for batch in reader:
                yield with_file(batch, each.path)
        except AmqpError as error:
            error.add_note(f"in {each.path!r}")
            raise
