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

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from .. import _backend
from .container import MAX_RECORD, read_packets
from .frames import MAX_FRAME, read_items
from .model import (
    CLIENT_TO_SERVER,
    DIRECTION_NAMES,
    SERVER_TO_CLIENT,
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
    Packet,
    Placed,
    Segment,
)
from .network import read_segments, tcp_segment
from .source import ByteSource

if TYPE_CHECKING:
    from .events_py import read_events
    from .streams_py import (
        AMQP_PORT,
        FLOW_TIMEOUT,
        WINDOW_OCTETS,
        WINDOW_SEGMENTS,
        StreamTracker,
        read_streams,
    )
else:
    _backend.export("amqpcodec.capture.streams", globals())
    _backend.export("amqpcodec.capture.events", globals())

__all__ = [
    "AMQP_PORT",
    "CLIENT_TO_SERVER",
    "DIRECTION_NAMES",
    "FLOW_TIMEOUT",
    "MAX_FRAME",
    "MAX_RECORD",
    "SERVER_TO_CLIENT",
    "WINDOW_OCTETS",
    "WINDOW_SEGMENTS",
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
    "Packet",
    "Placed",
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

Source = str | os.PathLike[str] | BinaryIO | ByteSource


def read_frames(
    file: Source,
    *,
    port: int | Iterable[int] | None = AMQP_PORT,
    dialect: str = "auto",
    max_frame: int = MAX_FRAME,
    window_octets: int = WINDOW_OCTETS,
    window_segments: int = WINDOW_SEGMENTS,
    flow_timeout: float = FLOW_TIMEOUT,
) -> Iterator[Item]:
    """The AMQP frames of every TCP connection in a capture, in the order in which they were completed.

    Args:
        file: path or binary file object of a pcap or pcapng file, or either in gzip or Zstandard.
        port: server port or ports; None looks into every connection and passes over those without AMQP.
        dialect: name of a dialect, or ``"auto"``: the protocol header and connection.start tell.
        max_frame: octets of the largest frame accepted, whatever was negotiated.
        window_octets: how far out of order TCP segments of one direction may be.
        window_segments: how many of them may wait for an earlier one.
        flow_timeout: seconds of silence after which a segment that does not go on exactly where its
            direction stands is taken to be of a new connection.

    Yields:
        `CapturedFrame`, and `Fault` for what is missing, lost or in error; reading goes on behind it.

    Raises:
        CaptureError: the file is not a capture, or is damaged before its first packet.
        OSError: the file cannot be opened or read.
        ValueError: no such dialect.
    """
    ports = (port,) if isinstance(port, int) else port
    source = file if isinstance(file, ByteSource) else ByteSource(file)
    try:
        tracker = StreamTracker(
            ports,
            window_octets=window_octets,
            window_segments=window_segments,
            flow_timeout=flow_timeout,
        )
        events = read_events(source, tracker)
        yield from read_items(events, dialect, max_frame, report_foreign=ports is not None)
    finally:
        if source is not file:
            source.close()


def read_raw_frames(
    file: Source,
    *,
    dialect: str = "auto",
    direction: int = CLIENT_TO_SERVER,
    max_frame: int = MAX_FRAME,
) -> Iterator[Item]:
    """The frames in a file that holds the octets of one direction and nothing else.

    Arguments, results and errors are those of `read_frames`; `direction` is what the frames are said to
    have. Packets and times are None.
    """
    source = file if isinstance(file, ByteSource) else ByteSource(file)
    try:
        yield from read_items(raw_events(source, direction), dialect, max_frame)
    finally:
        if source is not file:
            source.close()


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
