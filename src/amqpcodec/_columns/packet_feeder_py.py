"""From captures to the table `packets`: segments to a sink; their octets are not read. The pure build."""

from __future__ import annotations

from typing import Any

from amqpcodec._state import Fields, Note
from amqpcodec.capture import Event, Fault, Gap, Segment
from amqpcodec.capture.streams_py import StreamTracker

from .sinks import Flows, PacketSink


class PacketFeeder:
    """Passes the segments of connections to a sink, in the order of the recording.

    Args:
        sink: where they go.
    """

    def __init__(self, sink: PacketSink) -> None:
        self._sink = sink

    def feed(self, event: Event | Fault) -> None:
        """Take what a tracker has found, or a fault of the file: those are counted, and gaps."""
        count_fault(event, self._sink)

    def segment(self, segment: Segment, tracker: StreamTracker) -> None:
        """Feed a tracker with a segment, and add a row for it if its connection is of interest."""
        for event in tracker.feed(segment):
            count_fault(event, self._sink)
        located = tracker.locate(segment)
        if located is not None:
            self._sink.packet(located)

    def begin_file(self, before: int, name: str | None) -> None:
        """Packets behind the first `before` ones of the recording are of the file of this name."""
        self._sink.make.files.begin(before, name)

    def snapshot(self, note: Note) -> list[Any]:
        """Return the state beside rows, for `restore`: it is empty."""
        return []

    def restore(self, state: Fields, flows: Flows) -> None:
        """Go on from a state.

        Raises:
            ValueError: it is damaged.
        """
        state.end()


def count_fault(event: Event | Fault, sink: PacketSink) -> None:
    """Have a sink count a gap or a fault of the file."""
    if isinstance(event, Fault):
        sink.fault(event)
    elif isinstance(event, Gap):
        where = event.packet, event.time_ns, event.offset, event.length
        sink.fault(Fault("gap", "octets are missing", event.connection, event.direction, *where))
