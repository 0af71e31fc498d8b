"""What a worker does with its part of a recording: octets to record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

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
    session = _session(options, columns, part.state)
    yield from _pieces(session, part.pieces)
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
    session = _session(options, (), parts[0].state if parts else None, mode="permissive")
    for part in parts:
        for _ in _pieces(session, part.pieces):
            pass
        yield session.suspend()


def with_states(recording: Recording, options: ReadOptions) -> Recording:
    """A recording whose parts have the states at their beginning."""
    following = zip(recording[1:], states(recording[:-1], options), strict=True)
    return (recording[0], *(replace(part, state=state) for part, state in following))


def _session(options: ReadOptions, columns: Iterable[str], state: bytes | None, **others: Any) -> Any:
    arguments = options.decoding() | options.following() | others
    return arrow.CaptureSession(options.table, columns=columns, state=state, **arguments)


def _pieces(session: Any, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    for piece in pieces:
        with closing(open_file(piece.path)) as file, _naming(piece.path):
            yield from session.read(file, name=piece.path, end=piece.end)


def _stream(piece: Piece, columns: Iterable[str], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    with closing(open_file(piece.path)) as file, _naming(piece.path):
        reader = arrow.read_stream(
            file, options.table, columns=columns, direction=options.direction, **options.decoding()
        )
        for batch in reader:
            yield _named(batch, piece.path)


def _named(batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
    """A batch with the name of its file, which the reader of an open file cannot know."""
    place = batch.schema.get_field_index("file")
    if place < 0:
        return batch
    return batch.set_column(place, batch.schema.field(place), pa.repeat(path, batch.num_rows))


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Has errors in the block name a file."""
    try:
        yield
    except AmqpError as error:
        error.add_note(f"in {path!r}")
        raise
