"""From captures and the events of connections to column sinks. The pure build."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import amqpcodec
from amqpcodec._state import Fields, Note
from amqpcodec.capture import (
    ByteSource,
    CapturedFrame,
    Close,
    Connection,
    Event,
    Fault,
    Item,
    Segment,
    read_packets,
    read_segments,
)
from amqpcodec.capture.frames import ConnectionDecoder
from amqpcodec.capture.position import FilePosition, read_part
from amqpcodec.capture.streams_py import StreamTracker

from .origins import FrameOrigin
from .packet_feeder_py import PacketFeeder
from .sinks import Flows, Sink, flow_of


class Feeder:
    """Finds the frames in the events of connections and passes them to a sink.

    Args:
        sink: where they go.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._reading = sink.decoding.reading(sink.payloads)
        self._decoders: dict[Connection, ConnectionDecoder] = {}

    def feed(self, event: Event | Fault) -> None:
        """Take what comes next in a direction of a connection, or a fault of the file.

        Raises:
            DecodeError: what the sink raises.
        """
        if isinstance(event, Fault):
            self._sink.fault(event)
            return
        decoder = self._decoders.get(event.connection) or self._open(event.connection)
        for item in decoder.feed(event):
            dispatch(item, decoder, self._sink)
        if isinstance(event, Close):
            self._sink.close(event)
            if decoder.ended:
                del self._decoders[event.connection]

    def segment(self, segment: Segment, tracker: StreamTracker) -> None:
        """Feed a tracker with a segment, and take what comes of that; raises what `feed` does."""
        for event in tracker.feed(segment):
            self.feed(event)

    def begin_file(self, before: int, name: str | None) -> None:
        """Packets behind the first `before` ones of the recording are of the file of this name."""
        self._sink.make.files.begin(before, name)

    def snapshot(self, note: Note) -> list[Any]:
        """Return the state beside rows, for `restore`; `note` is called with each packet in it."""
        decoders = [[each.number, decoder.snapshot(note)] for each, decoder in self._decoders.items()]
        return [decoders, self._sink.snapshot(note)]

    def restore(self, state: Fields, flows: Flows) -> None:
        """Go on from a state, with nothing fed so far.

        Args:
            state: what `snapshot` returned.
            flows: the connections still known, by their numbers.

        Raises:
            ValueError: it is damaged.
        """
        for fields in state.items():
            flow = flow_of(flows, fields)
            self._open(flow.connection).restore(fields.fields(), flow.positions)
            fields.end()
        self._sink.restore(state.items(), flows)
        state.end()

    def _open(self, connection: Connection) -> ConnectionDecoder:
        decoder = self._decoders[connection] = ConnectionDecoder(connection, self._reading)
        return decoder


def dispatch(item: Item, decoder: ConnectionDecoder, sink: Sink) -> None:
    """Pass a sink what a connection's decoder has found."""
    if item.octets:
        reader = decoder.reader.of(item.octets)
        if (
            isinstance(item, CapturedFrame) and item.dialect != reader.dialect
        ):  # its method has just changed that
            dialect = amqpcodec.dialect(item.dialect)
        else:
            dialect = reader.module
        assert item.connection is not None  # both are there for all that has octets
        assert item.direction is not None
        origin = FrameOrigin(item.connection, item.direction, item.packet, item.time_ns, item.offset)
        sink.frame(origin, item.octets, dialect)
    if isinstance(item, Fault):
        sink.fault(item)


# -- captures


def feed_capture(source: ByteSource, feeder: Feeder | PacketFeeder, **options: object) -> Iterator[None]:
    """Read a capture and feed all that is in it; stops now and then, for full batches to be taken.

    Args:
        source: a pcap or pcapng file, placed at its start.
        feeder: of the same build.
        options: arguments of `StreamTracker`.

    Raises:
        CaptureError: the file is not a capture, or is damaged before its first packet.
        DecodeError: what the feeder's sink raises.
        OSError: the file cannot be read.
    """
    tracker = StreamTracker(**options)  # type: ignore[arg-type]
    for found in read_segments(read_packets(source)):
        _take(found, feeder, tracker)
        yield
    for event in tracker.finish():
        feeder.feed(event)
        yield


def feed_part(
    source: ByteSource,
    feeder: Feeder | PacketFeeder,
    tracker: StreamTracker,
    position: FilePosition,
    before: int,
    end: int | None,
) -> Iterator[None]:
    """Read a part of a recording and feed all that is in it; stops now and then, as `feed_capture` does.

    Args:
        source: a capture file, at that position.
        feeder: of the same build.
        tracker: of the same build.
        position: where the part begins; it moves to where the next one does.
        before: packets of the recording before this file.
        end: the part has the records that end by this octet of the file; None for all, and for the
            faults at the end of a file.

    Raises:
        CaptureError, DecodeError, OSError: as for `feed_capture`.
    """
    for found in read_part(source, position, end):
        if isinstance(found, Segment):
            found = found._replace(packet=before + found.packet)
        _take(found, feeder, tracker)
        yield
    if end is None:
        for fault in position.segments.faults():
            feeder.feed(fault)
        yield


def _take(found: Segment | Fault, feeder: Feeder | PacketFeeder, tracker: StreamTracker) -> None:
    if isinstance(found, Segment):
        feeder.segment(found, tracker)
    else:
        feeder.feed(found)
