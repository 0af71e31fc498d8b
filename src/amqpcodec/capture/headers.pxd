# What is known of a packet's TCP segment.
from libc.stdint cimport uint32_t


cdef struct Headers:
    const unsigned char *addresses  # of the sender, then of the receiver
    Py_ssize_t address_size  # of one of them
    const unsigned long long *numbers  # of the tunnels that the segment is in
    int depth  # how many there are
    const unsigned char *ports  # of the sender, then of the receiver
    uint32_t seq
    uint32_t ack
    int flags
    const unsigned char *payload
    Py_ssize_t recorded
    long long length  # of the payload on the wire
