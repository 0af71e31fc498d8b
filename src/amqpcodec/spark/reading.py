"""What a worker does with its part of a recording: octets to record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import BinaryIO

import pyarrow as pa

from .. import IMPL, arrow
from ..errors import AmqpError
from .files import open_file
from .options import ReadOptions
from .planning import Part, Piece, Recording


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
            'wheel made for it, or ask for the pure build by .option("impl", "py"); docs/spark.md tells how '
            "to ship wheels to workers"
        )


def batches(part: Part, columns: Iterable[str], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of a part.

    Args:
        part: what to read.
        columns: as for `amqpcodec.arrow.read_capture`.
        options: how to read.

    Raises:
        CaptureError, DecodeError, OSError: as iterating over `amqpcodec.arrow.CaptureReader`; a note names
            the file.
        NotCompiledError: see `check_build`.
    """
    check_build(options.impl)
    if part.kind == "stream":
        for piece in part.pieces:
            yield from _stream(piece, columns, options)
        return
    arguments = options.decoding() | options.following()
    session = arrow.CaptureSession(options.table, columns=columns, state=part.state, **arguments)
    for file, name, end in _pieces(part):
        yield from session.read(file, name, end)
    if part.last:
        yield from session.finish()


def states(parts: Sequence[Part], options: ReadOptions) -> Iterator[bytes]:
    """Those behind parts that follow each other: their octets are followed, without making rows.

    Raises:
        CaptureError, OSError: a file cannot be read.
        NotCompiledError: see `check_build`.
    """
    check_build(options.impl)
    # Whether a row is in error is told where it is made.
    arguments = options.decoding() | options.following() | {"mode": "permissive"}
    first = parts[0].state if parts else None
    found = arrow.scan_capture(map(_pieces, parts), options.table, state=first, **arguments)
    next(found)  # the first is known
    return found


def with_states(recording: Recording, options: ReadOptions) -> Recording:
    """A recording whose parts have the states at their beginning."""
    following = zip(recording[1:], states(recording[:-1], options), strict=True)
    return (recording[0], *(replace(part, state=state) for part, state in following))


def _pieces(part: Part) -> Iterator[tuple[Callable[[], BinaryIO], str, int | None]]:
    """The pieces of a part as `CaptureSession.read` takes them."""
    for piece in part.pieces:
        yield partial(open_file, piece.path), piece.path, piece.end


def _stream(piece: Piece, columns: Iterable[str], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    with closing(open_file(piece.path)) as file:
        reader = arrow.read_stream(
            file, options.table, columns=columns, direction=options.direction, **options.decoding()
        )
        try:
            for batch in reader:
                yield _named(batch, piece.path)
        except AmqpError as error:
            error.add_note(f"in {piece.path!r}")
            raise


def _named(batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
    """A batch with the name of its file, which the reader of an open file cannot know."""
    place = batch.schema.get_field_index("file")
    if place < 0:
        return batch
    return batch.set_column(place, batch.schema.field(place), pa.repeat(path, batch.num_rows))
