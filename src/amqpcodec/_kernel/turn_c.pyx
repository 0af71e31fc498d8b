"""Whose turn it is at a decoder, in C. The twin of turn_py.py; turn_c.pxd has the code, to be inlined."""

cimport cython


@cython.final
cdef class Turn:
    """Taken by one caller at a time: `take` tells whether it was free, `end` frees it."""
