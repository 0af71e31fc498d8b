"""Reads recorded network traffic: pcap and pcapng files to AMQP frames, with their place and time.

    from amqpcodec import capture

    for item in capture.read_frames("trace.pcapng"):
        if isinstance(item, capture.CapturedFrame):
            print(item.time_ns, item.connection.client, item.offset, item.frame.payload)
        else:
            print("missing or damaged:", item.message)

The layers below `read_frames` can be used one by one: `ByteSource` and `read_packets` (files),
`read_segments` (link layer, IP, TCP headers), `StreamTracker` and `read_streams` (TCP connections in
order), `read_events` (all of these at once, compiled where that is possible), `read_items` (frames). What
each layer keeps is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Unpack

from .. import _backend
from .._options import select, takes
from ..options import DecodingOptions, FrameOptions, RawFrameOptions, TrackingOptions
from .container import MAX_RECORD, read_packets
from .frames import read_items
from .model import (
    CLIENT_TO_SERVER,
    DIRECTION_NAMES,
    SERVER_TO_CLIENT,
    Aside,
    CapturedFrame,
    CaptureError,
    Close,
    Connection,
    Data,
    Endpoint,
    Event,
    Fault,
    Gap,
    Item,
    LocatedSegment,
    Packet,
    Proxied,
    Segment,
)
from .network import read_segments, tcp_segment
from .source import ByteSource, Source, opened

if TYPE_CHECKING:
    from .events_py import read_events
    from .streams_py import StreamTracker, read_streams
else:
    _backend.export("amqpcodec.capture.streams", globals())
    _backend.export("amqpcodec.capture.events", globals())

__all__ = [
    "CLIENT_TO_SERVER",
    "DIRECTION_NAMES",
    "MAX_RECORD",
    "SERVER_TO_CLIENT",
    "Aside",
    "ByteSource",
    "CaptureError",
    "CapturedFrame",
    "Close",
    "Connection",
    "Data",
    "Endpoint",
    "Event",
    "Fault",
    "Gap",
    "Item",
    "LocatedSegment",
    "Packet",
    "Proxied",
    "Segment",
    "StreamTracker",
    "raw_events",
    "read_events",
    "read_frames",
    "read_items",
    "read_packets",
    "read_raw_frames",
    "read_segments",
    "read_streams",
    "tcp_segment",
]

_CHUNK = 1 << 16


@takes(FrameOptions)
def read_frames(files: Source | Iterable[Source], **options: Unpack[FrameOptions]) -> Iterator[Item]:
    """The AMQP frames of every TCP connection in a recording, in the order in which they were completed.

    Args:
        files: path or binary file object of a pcap or pcapng file, or either in gzip or Zstandard; or
            several, which one recorder has written one after the other. Connections go on from file to file,
            and packets are counted over all of them.
        options: those of `FrameOptions`.

    Yields:
        `CapturedFrame`, and `Fault` for what is missing, lost or in error; reading goes on behind it.

    Raises:
        CaptureError: a file is not a capture, or is damaged before its first packet.
        OSError: a file cannot be opened or read.
        TypeError, ValueError: an option that cannot be, such as a dialect that there is not.
    """
    with closing(opened(files)) as sources:
        events = read_events(sources, StreamTracker(**select(TrackingOptions, options)))
        report_foreign = options["port"] is not None
        yield from read_items(events, report_foreign=report_foreign, **select(DecodingOptions, options))


@takes(RawFrameOptions)
def read_raw_frames(files: Source | Iterable[Source], **options: Unpack[RawFrameOptions]) -> Iterator[Item]:
    """The frames in a file that holds the octets of one direction and nothing else.

    Args:
        files: a path or binary file object, as it is or in gzip or Zstandard; or several, each alone.
        options: those of `RawFrameOptions`.

    Results and errors are those of `read_frames`. Packets and times are None.
    """
    with closing(opened(files)) as sources:
        for source in sources:
            yield from read_items(
                raw_events(source, options["direction"]), **select(DecodingOptions, options)
            )


def raw_events(source: ByteSource, direction: int = CLIENT_TO_SERVER) -> Iterator[Event | Fault]:
    """The events of a connection with the octets of a file in one direction and none in the other.

    Args:
        source: a file that holds the octets of one direction and nothing else.
        direction: which one.
    """
    connection = Connection(0, None, None)
    while octets := source.read(_CHUNK):
        yield Data(connection, direction, source.offset - len(octets), octets, None, None)
    if source.fault:
        yield Fault("file", source.fault, offset=source.offset)
    yield Close(connection, direction, source.offset, None, None)
    yield Close(connection, 1 - direction, 0, None, None)
