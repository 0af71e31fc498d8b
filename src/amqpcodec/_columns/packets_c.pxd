from ..capture.consumer_c cimport OctetConsumer
from .rows_c cimport Targets


cdef class PacketFeeder(OctetConsumer):
    cdef object _sink
    cdef Py_ssize_t _most_rows
    cdef size_t _most_octets
    cdef Targets _targets
    cdef bytes _file
    cdef dict _flows
