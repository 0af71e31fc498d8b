"""From a capture file to the events of its connections: all layers up to there in one.

The compiled build has its own, events_c.
"""

from __future__ import annotations

from collections.abc import Iterator

from .container import MAX_RECORD, read_packets
from .model import Event, Fault
from .network import read_segments
from .source import ByteSource
from .streams_py import StreamTracker, read_streams

__all__ = ["read_events"]


def read_events(
    source: ByteSource, tracker: StreamTracker, *, max_record_bytes: int = MAX_RECORD
) -> Iterator[Event | Fault]:
    """The ordered octets of every connection in a capture that a tracker selects.

    Args:
        source: a pcap or pcapng file, at its start.
        tracker: new, and of the build in use.
        max_record_bytes: octets of one packet beyond which the file is taken to be damaged.

    Yields:
        `Data`, `Gap` and `Close` of the directions, and `Fault` of kind ``"file"``, in the order of the file.

    Raises:
        CaptureError: the file is not a capture, or is damaged before its first packet.
        OSError: the file cannot be read.
    """
    return read_streams(read_segments(read_packets(source, max_record_bytes=max_record_bytes)), tracker)
