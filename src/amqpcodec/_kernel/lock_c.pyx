"""The re-entrancy lock of a decoder, in C. The twin of lock_py.py; lock_c.pxd has the code, to be inlined."""

cimport cython


@cython.final
cdef class Lock:
    """Held by one caller at a time: `acquire` returns whether it was free, `release` frees it."""
