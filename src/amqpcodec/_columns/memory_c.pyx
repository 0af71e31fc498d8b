# cython: boundscheck=False, wraparound=False
"""Blocks of memory that columns lie in, handed over to whoever looks at a batch, and taken back for the next one.

A batch takes megabytes. Allocators give blocks of that size back to the system, which has to clear every page of
them before they can be had again; that takes a good part of the time in which a batch is filled.
"""

cimport cython

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove

from .._kernel.lock_c cimport amqp_lock_acquire, amqp_lock_release

cdef enum:
    _LEAST_SPARE = 4096  # octets of a block that is worth keeping

cdef char _NOTHING = 0


@cython.final
cdef class Spares:
    """The blocks that batches gave back, as long as they are no more than two batches have.

    Whoever finds another thread here goes without: a block is allocated or freed instead.
    """

    def __dealloc__(self):
        while self._count:
            free(self._blocks[0].place)
            self._drop(0)

    cdef void end_batch(self) noexcept:
        """Learn from a batch that was handed over how many octets to keep."""
        if amqp_lock_acquire(&self._taken):
            self._most_octets = 2 * self._handed_over
            amqp_lock_release(&self._taken)
        self._handed_over = 0

    cdef size_t fetch(self, void **place, size_t size) noexcept:
        """Put a block of at least `size` octets at a place; how many it has, 0 if there is none that fits."""
        cdef Block found = Block(NULL, 0)
        cdef int index
        if size < _LEAST_SPARE or not amqp_lock_acquire(&self._taken):
            return 0
        for index in range(self._count - 1, -1, -1):
            if size <= self._blocks[index].size <= 2 * size:
                found = self._blocks[index]
                place[0] = found.place
                self._drop(index)
                break
        amqp_lock_release(&self._taken)
        return found.size

    cdef void keep(self, void *place, size_t size) noexcept:
        """Take a block that nobody looks at any more, in place of the oldest ones if there are too many."""
        if size < _LEAST_SPARE or size > self._most_octets or not amqp_lock_acquire(&self._taken):
            free(place)
            return
        while self._count == _MOST_SPARES or self._octets + size > self._most_octets:
            free(self._blocks[0].place)
            self._drop(0)
        self._blocks[self._count] = Block(place, size)
        self._count += 1
        self._octets += size
        amqp_lock_release(&self._taken)

    cdef void _drop(self, int index) noexcept:
        """Forget a block."""
        self._count -= 1
        self._octets -= self._blocks[index].size
        memmove(&self._blocks[index], &self._blocks[index + 1], <size_t>(self._count - index) * sizeof(Block))


@cython.final
cdef class Memory:
    """A block of memory that was a column's, given back once nobody looks at it any more."""

    def __dealloc__(self):
        if self._spares is None:
            free(self._place)
        else:
            self._spares.keep(self._place, self._room)

    def __getbuffer__(self, Py_buffer *view, int flags):
        # A buffer without octets has a place as well: not everybody takes NULL for one.
        PyBuffer_FillInfo(view, self, self._place or <void *>&_NOTHING, self._size, 1, flags)

    def __len__(self):
        return self._size


cdef Memory handed_over(void **place, size_t size, size_t room, Spares spares):
    """What lies at `place`, its owner's no more: `size` octets of a block of `room`."""
    cdef Memory memory = Memory.__new__(Memory)
    memory._place, memory._size, memory._room, memory._spares = place[0], <Py_ssize_t>size, room, spares
    place[0] = NULL
    spares._handed_over += room
    return memory


# -- octets that grow


cdef bint add(Octets *octets, const unsigned char *p, size_t size) noexcept nogil:
    """Put octets behind those that are there; False if there is no memory for them."""
    cdef size_t room = octets.room
    cdef void *moved
    if size > room - octets.used:
        room = max(octets.used + size, 2 * room)
        moved = realloc(octets.start, room)
        if moved is NULL:
            return False
        octets.start = <unsigned char *>moved
        octets.room = room
    memcpy(octets.start + octets.used, p, size)
    octets.used += size
    return True


cdef void free_octets(Octets *octets) noexcept nogil:
    free(octets.start)
    octets.start = NULL
    octets.used = octets.room = 0
