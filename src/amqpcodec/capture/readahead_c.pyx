"""The bytes of a file in a buffer that C code scans and the readers of containers read from."""

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.string cimport memmove

cdef enum:
    CAPACITY = 1 << 18  # what the second cache of a core holds with room to spare


cdef class ReadAhead:
    """Bytes `at` to `end` of a buffer are the next of the file; their user advances `at`.

    The readers of containers use it like a `ByteSource`.
    """

    def __cinit__(self, source):
        self._source = source
        self._offset = source.offset
        self._memory = bytearray(CAPACITY)
        self.octets = <unsigned char *>PyByteArray_AS_STRING(self._memory)
        self._capacity = CAPACITY

    @property
    def offset(self):
        """Octets of the file before the next one."""
        return self._offset - (self.end - self.at)

    @property
    def fault(self):
        """Why the file ended before its time, if it did."""
        return self._source.fault

    def peek(self, Py_ssize_t size):
        """The next octets without taking them; fewer than `size` only at the end."""
        self.fill(size)
        return self.octets[self.at:self.at + min(size, self.end - self.at)]

    def read(self, Py_ssize_t size):
        """The next `size` octets; fewer only at the end."""
        octets = self.peek(size)
        self.at += len(octets)
        return octets

    cdef Py_ssize_t index_of(self, long long offset) noexcept:
        """The index in the buffer of a byte of the file, as if the buffer had no end."""
        cdef long long begin = self._offset - self.end
        return <Py_ssize_t>max(offset - begin, 0)

    cdef int fill(self, Py_ssize_t size) except -1:
        """Read until the buffer has `size` bytes, or the file ends. Unused bytes may move."""
        cdef Py_ssize_t came = 0
        while self.end - self.at < size and not self.ended:
            if self.at:
                memmove(self.octets, self.octets + self.at, <size_t>(self.end - self.at))
                self.end -= self.at
                self.at = 0
            if self.end == self._capacity:
                self._grow()
            with memoryview(self._memory) as view:
                came = self._source.readinto(view[self.end:])
            self.ended = came == 0
            self.end += came
            self._offset += came
        return 0

    cdef int _grow(self) except -1:
        """Double the buffer, once it is full: what a length says reserves nothing."""
        self._memory = self._memory + bytearray(self._capacity)
        self.octets = <unsigned char *>PyByteArray_AS_STRING(self._memory)
        self._capacity *= 2
        return 0
