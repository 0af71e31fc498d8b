"""Which flow a segment belongs to, by its tunnels, addresses and ports as they stand in the packet.

A cache of the tracker's decisions, for the fast path. The tracker looks up a flow that is not in it, or that it
has replaced since.
"""

from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy

from .headers cimport Headers
from .streams_c cimport Flow

cdef enum:
    FIRST_SIZE = 64
    PROBES = 16  # entries looked at; a table cannot be made slow by its keys


cdef inline uint64_t hash_of(const Headers *headers) noexcept nogil:
    cdef uint64_t mixed = 0, word
    cdef uint32_t ports
    cdef Py_ssize_t at
    memcpy(&ports, headers.ports, 4)
    mixed = ports
    for at in range(0, 2 * headers.address_size, 8):
        memcpy(&word, headers.addresses + at, 8)
        mixed = (mixed ^ word) * <uint64_t>0x9E3779B97F4A7C15
        mixed ^= mixed >> 29
    for at in range(headers.depth):
        mixed = (mixed ^ headers.numbers[at]) * <uint64_t>0x9E3779B97F4A7C15
        mixed ^= mixed >> 29
    return mixed


cdef class FlowTable:
    """Flows by the directed pair of endpoints of a segment."""

    def __init__(self):
        self._entries = <Entry *>calloc(FIRST_SIZE, sizeof(Entry))
        if self._entries == NULL:
            raise MemoryError
        self._mask = FIRST_SIZE - 1
        self._count = 0

    def __dealloc__(self):
        cdef uint64_t index
        if self._entries != NULL:
            for index in range(self._mask + 1):
                Py_XDECREF(self._entries[index].flow)
                free(self._entries[index].numbers)
            free(self._entries)

    cdef Entry *find(self, const Headers *headers) noexcept nogil:
        """The entry of a segment's flow; NULL if the tracker has to look it up."""
        cdef uint64_t hash = hash_of(headers)
        cdef Entry *entry
        cdef int probe
        for probe in range(PROBES):
            entry = self._entries + ((hash + <uint64_t>probe) & self._mask)
            if entry.flow == NULL:
                return NULL
            if (
                entry.hash == hash
                and entry.address_size == headers.address_size
                and memcmp(&entry.ports, headers.ports, 4) == 0
                and memcmp(entry.addresses, headers.addresses, <size_t>(2 * headers.address_size)) == 0
                and entry.depth == headers.depth
                and (
                    not headers.depth
                    or memcmp(entry.numbers, headers.numbers, <size_t>headers.depth * sizeof(uint64_t)) == 0
                )
            ):
                return entry if is_current(<Flow>entry.flow) else NULL
        return NULL

    cdef Entry *put(self, const Headers *headers, Flow flow, int direction) except NULL:
        """Store the flow of a segment, in place of an earlier flow of its endpoints."""
        cdef uint64_t hash = hash_of(headers)
        cdef Entry *entry
        if <uint64_t>self._count * 4 > self._mask * 3:
            self._resize()
        entry = self._slot(hash)
        self._release(entry)
        self._set_tunnels(entry, headers)
        entry.hash = hash
        entry.address_size = <uint32_t>headers.address_size
        memcpy(entry.addresses, headers.addresses, <size_t>(2 * headers.address_size))
        memcpy(&entry.ports, headers.ports, 4)
        entry.direction = direction
        Py_INCREF(flow)
        entry.flow = <PyObject *>flow
        entry.own = <PyObject *>flow.directions[direction]
        entry.peer = <PyObject *>flow.directions[1 - direction]
        self._count += 1
        return entry

    cdef Entry *_slot(self, uint64_t hash) noexcept:
        """The slot for an entry: the first that is free or out of date, else the first one."""
        cdef Entry *entry
        cdef int probe
        for probe in range(PROBES):
            entry = self._entries + ((hash + <uint64_t>probe) & self._mask)
            if entry.flow == NULL or not is_current(<Flow>entry.flow):
                return entry
        return self._entries + (hash & self._mask)

    cdef int _set_tunnels(self, Entry *entry, const Headers *headers) except -1:
        cdef size_t size = <size_t>headers.depth * sizeof(uint64_t)
        if size:
            entry.numbers = <unsigned long long *>malloc(size)
            if entry.numbers == NULL:
                raise MemoryError
            memcpy(entry.numbers, headers.numbers, size)
        entry.depth = headers.depth
        return 0

    cdef int _release(self, Entry *entry) except -1:
        cdef PyObject *flow = entry.flow
        entry.flow = NULL
        free(entry.numbers)
        entry.numbers = NULL
        entry.consumer_state = NULL
        if flow != NULL:
            self._count -= 1
            Py_XDECREF(flow)
        return 0

    cdef int _resize(self) except -1:
        """Drop what is out of date; double the table while more than half of it is in use."""
        cdef Entry *former = self._entries
        cdef uint64_t former_size = self._mask + 1, index, size = former_size, current = 0
        for index in range(former_size):
            if former[index].flow != NULL and is_current(<Flow>former[index].flow):
                current += 1
        while current * 2 > size:
            size *= 2
        self._entries = <Entry *>calloc(size, sizeof(Entry))
        if self._entries == NULL:
            self._entries = former
            raise MemoryError
        self._mask = size - 1
        self._count = 0
        for index in range(former_size):
            self._keep(former + index)
        free(former)
        return 0

    cdef int _keep(self, Entry *former) except -1:
        """Move an entry of the former table."""
        cdef Entry *entry
        if former.flow == NULL:
            return 0
        if is_current(<Flow>former.flow):
            entry = self._slot(former.hash)
            self._release(entry)
            entry[0] = former[0]
            self._count += 1
        else:
            free(former.numbers)
            Py_XDECREF(former.flow)
        return 0


cdef inline bint is_current(Flow flow) noexcept nogil:
    return flow.current
