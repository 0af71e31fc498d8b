"""Makes the sink of a table, and a feeder for it, in the build that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from amqpcodec import _backend

from .decoding import Decoding
from .delivery_sink import DeliverySink
from .message_sink import MessageSink
from .schemas import Column
from .sinks import ConnectionSink, ErrorSink, FrameSink, MethodSink, PacketSink, Sink

if TYPE_CHECKING:
    from .feeder_py import Feeder
    from .packet_feeder_py import PacketFeeder

_SINKS: dict[str, type[Sink]] = {
    "frames": FrameSink,
    "methods": MethodSink,
    "messages": MessageSink,
    "connections": ConnectionSink,
    "deliveries": DeliverySink,
    "errors": ErrorSink,
    "packets": PacketSink,
}


def make_sink(table: str, columns: Sequence[Column], decoding: Decoding, **options: Any) -> Sink:
    """The sink of a table; further arguments and errors are those of `Sink`.

    Raises:
        KeyError: no such table.
    """
    return _SINKS[table](table, columns, decoding, **options)


def open_feeder(
    table: str,
    columns: Sequence[Column],
    decoding: Decoding,
    *,
    file: str | None = None,
    faults: dict[str, int] | None = None,
    **kept: Any,
) -> tuple[Sink, Feeder | PacketFeeder]:
    """A sink of a table and its feeder; arguments and errors are those of the table's sink."""
    store = _backend.load("amqpcodec._columns.buffers", decoding.impl).Columns
    if table in ("messages", "deliveries"):
        kept["open_contents"] = _backend.load("amqpcodec._columns.contents", decoding.impl).OpenContents
        following = _backend.load("amqpcodec._columns.following", decoding.impl)
        kept["follower"] = following.Follower
        kept["message"] = following.Message
    elif table == "connections":
        kept["totals"] = _backend.load("amqpcodec._columns.contents", decoding.impl).Totals
    sink = make_sink(table, columns, decoding, file=file, faults=faults, store=store, **kept)
    if table == "packets":
        return sink, _backend.load("amqpcodec._columns.packet_feeder", decoding.impl).PacketFeeder(sink)
    return sink, _backend.load("amqpcodec._columns.feeder", decoding.impl).Feeder(sink)
