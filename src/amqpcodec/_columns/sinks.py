"""Column sinks: where the frames and faults of connections become the rows of a table.

Every row is made by `rows`; the compiled build has its own text for those that are plainly right.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from amqpcodec._kernel.wire import METHOD
from amqpcodec.capture import Fault, LocatedSegment

from .connection_sink import ConnectionSink
from .decoding import Decoding
from .message_sink import MessageSink
from .rows import Place, fault_code
from .sink_base import Sink
from .tables import Column


class FrameSink(Sink):
    """The table `frames`."""

    def frame(self, place: Place, octets: bytes, dialect: ModuleType) -> None:
        """Add a row, without looking into the payload."""
        self._add(self.make.frame_row(place, octets, dialect))


class MethodSink(Sink):
    """The table `methods`."""

    def frame(self, place: Place, octets: bytes, dialect: ModuleType) -> None:
        """Add a row for a method."""
        if octets[0] == METHOD:
            self._add(self.make.method_row(place, octets, dialect))


class ErrorSink(Sink):
    """The table `errors`."""

    payloads = True

    def fault(self, fault: Fault) -> None:
        """Add a row."""
        self._count(fault_code(fault))
        self._add(self.make.fault_row(fault))


class PacketSink(Sink):
    """The table `packets`: segments and faults in, batches out.

    Raises:
        ValueError: payloads are asked for without `include_credentials`: login data cannot be left out of
            them.
    """

    def __init__(self, table: str, columns: Sequence[Column], decoding: Decoding, **options: Any) -> None:
        super().__init__(table, columns, decoding, **options)
        if any(column.name == "payload" for column in columns) and not decoding.include_credentials:
            raise ValueError("the payload of packets has login data in it: include_credentials shows it")

    def packet(self, located: LocatedSegment) -> None:
        """Add a row."""
        self._add(self.make.packet_row(located))


_SINKS: dict[str, type[Sink]] = {
    "frames": FrameSink,
    "methods": MethodSink,
    "messages": MessageSink,
    "connections": ConnectionSink,
    "errors": ErrorSink,
    "packets": PacketSink,
}


def make_sink(table: str, columns: Sequence[Column], decoding: Decoding, **options: Any) -> Sink:
    """The sink of a table; further arguments and errors are those of `Sink`.

    Raises:
        KeyError: no such table.
    """
    return _SINKS[table](table, columns, decoding, **options)
