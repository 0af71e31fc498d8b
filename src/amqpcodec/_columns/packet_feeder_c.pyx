# cython: boundscheck=False, wraparound=False, cdivision=True
"""From captures to the table `packets`. The twin of packet_feeder_py.py."""

cimport cython

from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MAX

from ..capture.direction_state_c cimport NO_NUMBER
from ..capture.headers cimport Headers
from ..capture.scanner_c cimport NOWHERE, TAKEN, OctetConsumer
from ..capture.streams_c cimport StreamTracker
from .buffers_c cimport Columns
from .cells_c cimport Origin, Position, Targets, add_packet, aim, name_file, name_origin

from ..capture.model import Close
from .packet_feeder_py import count_fault


@cython.final
cdef class _Side:
    """A direction of a connection."""

    cdef Origin origin
    cdef tuple names


@cython.final
cdef class PacketFeeder(OctetConsumer):
    """Passes the segments of connections to a sink; see `packet_feeder_py.PacketFeeder`. A scanner calls it itself."""

    cdef object _sink
    cdef Py_ssize_t _most_rows
    cdef size_t _most_octets
    cdef Targets _targets
    cdef bytes _file
    cdef dict _sides

    def __cinit__(self, sink):
        cdef Columns columns = sink.store
        self.every_segment = True
        self._sink = sink
        self._most_rows = min(sink.decoding.batch_rows, 2**31 - 1)
        self._most_octets = min(sink.decoding.batch_bytes, INT64_MAX)
        aim(&self._targets, columns)
        self._targets.files = <PyObject *>sink.make.files
        self._file = name_file(&self._targets)
        self._sides = {}

    def feed(self, event):
        """Take what a tracker has found, or a fault of the file; see `packet_feeder_py`."""
        self.event(event)

    def begin_file(self, before, name):
        """Packets behind the first `before` ones of the recording are of the file of this name."""
        self._sink.make.files.begin(before, name)
        self._file = name_file(&self._targets)

    def snapshot(self, note):
        """Return the state beside rows, for `restore`: it is empty."""
        return []

    def restore(self, state, flows):
        """Go on from a state; see `packet_feeder_py`."""
        state.end()
        self._file = name_file(&self._targets)

    cdef void *state_of(self, object connection, int direction) except? NULL:
        cdef _Side side = self._sides.get((connection, direction))
        if side is None:
            side = self._sides[connection, direction] = _Side()
            side.origin.direction = direction
            side.names = name_origin(&self._targets, &side.origin, self._sink.make.origin(connection))
        return <void *>&side.origin

    cdef int segment(
        self, void *state, const Headers *headers, long long offset, long long packet, long long time_ns
    ) except -1 nogil:
        cdef Position position = Position(NO_NUMBER if offset == NOWHERE else offset, packet, time_ns)
        add_packet(&self._targets, <Origin *>state, headers, &position)
        if self._targets.table.trouble:
            with gil:
                (<Columns>self._sink.store).check()
        if self._targets.table.rows >= self._most_rows or self._targets.table.octets >= self._most_octets:
            with gil:
                self._sink.cut()
        return TAKEN

    cdef int feed_segment(self, object segment, StreamTracker tracker) except -1:
        for event in tracker.feed(segment):
            self.event(event)
        located = tracker.locate(segment)
        if located is not None:
            self._sink.packet(located)
        return 0

    cdef int event(self, object event) except -1:
        count_fault(event, self._sink)
        if isinstance(event, Close):
            self._sides.pop((event.connection, event.direction), None)
        return 0
