"""What fills columns, in the build in use: a sink with its feeder, or a reader of values."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from amqpcodec import _backend
from amqpcodec.limits import MAX_LIMIT

from .feeder_py import Feeder
from .packets_py import PacketFeeder
from .rows import OVERHEAD
from .sink_base import Sink
from .tables import ALL_DIALECTS, Column
from .values_py import ValueReader


def open_feeder(
    table: str,
    columns: Sequence[Column],
    *,
    dialect: str | ModuleType = "auto",
    max_frame: int,
    report_foreign: bool = True,
    impl: str = _backend.IMPL,
    **options: Any,
) -> tuple[Sink, Feeder | PacketFeeder]:
    """A sink of a table and its feeder.

    Args:
        table: name of the table.
        columns: those to fill.
        dialect, max_frame, report_foreign: as for `feeder_py.Feeder`.
        impl: the build, ``"c"`` or ``"py"``.
        options: further arguments of `sink_base.Sink`, but for `dialects`.

    Raises:
        ValueError: what feeder and sink refuse; a `max_frame` that no frame has.
    """
    _check(max_frame)
    sinks = _backend.load("amqpcodec._columns.sink", impl)
    feeders = _backend.load("amqpcodec._columns.feeder", impl)
    sink = sinks.make_sink(table, columns, dialects=dialects_of(dialect), **options)
    if table == "packets":
        return sink, _backend.load("amqpcodec._columns.packets", impl).PacketFeeder(sink)
    feeder = feeders.Feeder(sink, dialect=dialect, max_frame=max_frame, report_foreign=report_foreign)
    return sink, feeder


def dialects_of(dialect: str | ModuleType) -> tuple[str | ModuleType, ...]:
    """The dialects that a connection may turn out to speak: all, for ``"auto"``, or the one that is given."""
    return ALL_DIALECTS if dialect == "auto" else (dialect,)


def open_values(
    table: str, columns: Sequence[Column], *, max_frame: int, impl: str = _backend.IMPL, **options: Any
) -> ValueReader:
    """A reader of columns of octets; arguments are those of `values_py.ValueReader` and `open_feeder`.

    Raises:
        ValueError: a `max_frame` that no frame has; no such dialect.
    """
    _check(max_frame)
    build = _backend.load("amqpcodec._columns.values", impl)
    reader: ValueReader = build.ValueReader(table, columns, max_frame=max_frame, **options)
    return reader


def _check(max_frame: int) -> None:
    if not OVERHEAD <= max_frame <= MAX_LIMIT:
        raise ValueError(f"max_frame must be {OVERHEAD} to {MAX_LIMIT}, not {max_frame}")
