"""From a capture file to a column sink. The pure build."""

from __future__ import annotations

from collections.abc import Iterator

from amqpcodec.capture import ByteSource, Fault, Segment, read_packets, read_segments
from amqpcodec.capture.position import FilePosition, read_part
from amqpcodec.capture.streams_py import StreamTracker

from .feeder_py import Feeder
from .packets_py import PacketFeeder


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
    place: FilePosition,
    before: int,
    end: int | None,
) -> Iterator[None]:
    """Read a part of a recording and feed all that is in it; stops now and then, as `feed_capture` does.

    Args:
        source: a capture file, at that position.
        feeder: of the same build.
        tracker: of the same build.
        place: where the part begins; it moves to where the next one does.
        before: packets of the recording before this file.
        end: the part has the records that begin before this octet of the file; None for all, and what is
            told of a file at its end.

    Raises:
        CaptureError, DecodeError, OSError: as for `feed_capture`.
    """
    for found in read_part(source, place, end):
        if isinstance(found, Segment):
            found = found._replace(packet=before + found.packet)
        _take(found, feeder, tracker)
        yield
    if end is None:
        for fault in place.segments.faults():
            feeder.feed(fault)
        yield


def _take(found: Segment | Fault, feeder: Feeder | PacketFeeder, tracker: StreamTracker) -> None:
    if isinstance(found, Segment):
        feeder.segment(found, tracker)
    else:
        feeder.feed(found)
