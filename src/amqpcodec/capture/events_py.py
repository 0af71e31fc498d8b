"""From a capture file to the events of its connections: all layers up to there in one.

The compiled build has its own, events_c.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .container import MAX_RECORD
from .model import Event, Fault
from .position import FilePosition, read_part
from .source import ByteSource
from .streams_py import StreamTracker

__all__ = ["read_events"]


def read_events(
    sources: ByteSource | Iterable[ByteSource],
    tracker: StreamTracker,
    *,
    max_record_bytes: int = MAX_RECORD,
) -> Iterator[Event | Fault]:
    """The ordered octets of every connection in a recording that a tracker selects.

    Args:
        sources: a pcap or pcapng file, at its start; or the files of one recording, one after the other.
            Connections go on from file to file. Each file is taken once the one before it is read.
        tracker: new, and of the build in use.
        max_record_bytes: octets of one packet beyond which the file is taken to be damaged.

    Yields:
        `Data`, `Gap` and `Close` of the directions, and `Fault` of kind ``"file"``, in the order of the file.
        Packets of connections are counted over all files, those of faults in their own.

    Raises:
        CaptureError: a file is not a capture, or is damaged before its first packet.
        OSError: a file cannot be read.
    """
    before = 0
    for source in (sources,) if isinstance(sources, ByteSource) else sources:
        position = FilePosition.start(source)
        for found in read_part(source, position, None, max_record_bytes):
            if isinstance(found, Fault):
                yield found
            else:
                yield from tracker.feed(found._replace(packet=before + found.packet) if before else found)
        yield from position.segments.faults()
        before += position.number
    yield from tracker.finish()
