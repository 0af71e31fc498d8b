# Blocks of memory that columns lie in.
cdef enum:
    _MOST_SPARES = 128


cdef struct Block:
    void *place
    size_t size


cdef class Spares:
    cdef Block _blocks[_MOST_SPARES]  # the oldest first
    cdef int _count
    cdef size_t _octets
    cdef size_t _most_octets
    cdef size_t _handed_over  # octets of the batch in the making
    cdef volatile char _taken

    cdef void end_batch(self) noexcept
    cdef size_t fetch(self, void **place, size_t size) noexcept
    cdef void keep(self, void *place, size_t size) noexcept
    cdef void _drop(self, int index) noexcept


cdef class Memory:
    cdef void *_place
    cdef Py_ssize_t _size
    cdef size_t _room
    cdef Spares _spares


cdef Memory handed_over(void **place, size_t size, size_t room, Spares spares)


cdef struct Octets:  # that grow
    unsigned char *start
    size_t used
    size_t room


cdef bint add(Octets *octets, const unsigned char *p, size_t size) noexcept nogil
cdef void free_octets(Octets *octets) noexcept nogil
