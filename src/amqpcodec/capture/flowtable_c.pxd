from cpython.ref cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from .headers cimport Headers
from .streams_c cimport Flow


cdef struct Entry:
    uint64_t hash
    unsigned char addresses[32]
    uint32_t address_size
    uint32_t ports
    int depth
    unsigned long long *numbers  # of the tunnels, owned; NULL where there are none
    int direction
    PyObject *flow  # owned; NULL where the entry is free
    PyObject *own  # these belong to the flow
    PyObject *peer
    void *consumer_state


cdef class FlowTable:
    cdef Entry *_entries
    cdef uint64_t _mask
    cdef Py_ssize_t _count

    cdef Entry *find(self, const Headers *headers) noexcept nogil
    cdef Entry *put(self, const Headers *headers, Flow flow, int direction) except NULL
    cdef Entry *_slot(self, uint64_t hash) noexcept
    cdef int _set_tunnels(self, Entry *entry, const Headers *headers) except -1
    cdef int _release(self, Entry *entry) except -1
    cdef int _resize(self) except -1
    cdef int _keep(self, Entry *former) except -1
