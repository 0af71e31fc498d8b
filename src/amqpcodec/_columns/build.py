"""What fills columns, in the build that is asked for: a sink with its feeder, or a reader of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amqpcodec import _backend

from .decoding import Decoding
from .feeder_py import Feeder
from .packets_py import PacketFeeder
from .sink_base import Sink
from .sinks import make_sink
from .tables import Column
from .values_py import ValueReader


def open_feeder(
    table: str,
    columns: Sequence[Column],
    decoding: Decoding,
    *,
    file: str | None = None,
    faults: dict[str, int] | None = None,
) -> tuple[Sink, Feeder | PacketFeeder]:
    """A sink of a table and its feeder; arguments and errors are those of `sink_base.Sink`."""
    store = _backend.load("amqpcodec._columns.buffers", decoding.impl).Columns
    kept: dict[str, Any] = {}
    if table == "messages":
        kept["open_contents"] = _backend.load("amqpcodec._columns.contents", decoding.impl).OpenContents
    elif table == "connections":
        kept["totals"] = _backend.load("amqpcodec._columns.totals", decoding.impl).Totals
    sink = make_sink(table, columns, decoding, file=file, faults=faults, store=store, **kept)
    if table == "packets":
        return sink, _backend.load("amqpcodec._columns.packets", decoding.impl).PacketFeeder(sink)
    return sink, _backend.load("amqpcodec._columns.feeder", decoding.impl).Feeder(sink)


def open_values(
    table: str, columns: Sequence[Column], decoding: Decoding, *, direction: int, explode: bool
) -> ValueReader:
    """A reader of columns of octets; arguments are those of `values_py.ValueReader`."""
    build = _backend.load("amqpcodec._columns.values", decoding.impl)
    reader: ValueReader = build.ValueReader(table, columns, decoding, direction=direction, explode=explode)
    return reader
