"""From a capture file to the events of its connections, by the scanner."""

from .scanner_c cimport PAUSE, TAKEN, OctetConsumer, Scanner

from .container import MAX_RECORD
from .model import Close, Data
from .position import FilePosition
from .source import ByteSource

__all__ = ["read_events"]

cdef enum:
    RUNS = 1024  # of octets that `EventConsumer` collects before it makes objects of them


cdef struct Run:
    void *state
    const unsigned char *octets
    Py_ssize_t size
    long long offset
    long long packet
    long long time_ns


cdef class _Side:
    """A direction of a connection."""

    cdef object connection
    cdef int direction


cdef class EventConsumer(OctetConsumer):
    """Makes events of everything; `take` returns the events since its last call."""

    cdef Run _runs[RUNS]
    cdef Py_ssize_t _count
    cdef list _events
    cdef dict _sides

    def __init__(self):
        self._events = []
        self._sides = {}

    cdef void *state_of(self, object connection, int direction) except? NULL:
        cdef _Side side = self._sides.get((connection.number, direction))
        if side is None:
            side = _Side()
            side.connection = connection
            side.direction = direction
            self._sides[connection.number, direction] = side
        return <void *>side

    cdef int octets(
        self,
        void *state,
        const unsigned char *octets,
        Py_ssize_t size,
        long long offset,
        long long packet,
        long long time_ns,
    ) except -1 nogil:
        self._runs[self._count] = Run(state, octets, size, offset, packet, time_ns)
        self._count += 1
        return PAUSE if self._count == RUNS else TAKEN

    cdef int event(self, object event) except -1:
        self.settle()
        self._events.append(event)
        if isinstance(event, Close):
            self._sides.pop((event.connection.number, event.direction), None)
        return 0

    cdef int settle(self) except -1:
        cdef Py_ssize_t index
        cdef Run *run
        cdef _Side side
        for index in range(self._count):
            run = self._runs + index
            side = <_Side>run.state
            octets = run.octets[:run.size]
            self._events.append(
                Data(side.connection, side.direction, run.offset, octets, run.packet, run.time_ns)
            )
        self._count = 0
        return 0

    cdef list take(self):
        events, self._events = self._events, []
        return events


def read_events(sources, tracker, *, max_record_bytes=MAX_RECORD):
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
    cdef EventConsumer consumer = EventConsumer()
    cdef Scanner scanner
    cdef long long before = 0
    cdef bint more
    for source in (sources,) if isinstance(sources, ByteSource) else sources:
        position = FilePosition.start(source)
        scanner = Scanner(source, tracker, consumer, max_record_bytes, position, before)
        more = True
        while more:
            more = scanner.step()
            yield from consumer.take()
        scanner.save_position()
        yield from position.segments.faults()
        before += position.number
    yield from tracker.finish()
