# What is known of a packet's TCP segment, and which layer a function has come to.
from libc.stdint cimport uint32_t

cdef enum Layer:
    FOREIGN  # certainly without TCP
    DECLINED  # the slow path decides
    IPV4
    IPV6
    TCP


cdef struct Headers:
    const unsigned char *addresses  # of the sender, then of the receiver
    Py_ssize_t address_size  # of one of them
    const unsigned char *ports  # of the sender, then of the receiver
    uint32_t seq
    uint32_t ack
    int flags
    const unsigned char *payload
    Py_ssize_t recorded
    long long length  # of the payload on the wire
