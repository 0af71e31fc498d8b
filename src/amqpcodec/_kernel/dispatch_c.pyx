"""From the ids on the wire to the generated class, in C. The twin of dispatch_py.py."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from .fast_reader_c cimport read_record
from .fast_writer_c cimport Forms
from .fields import layout_of
from .slots.layout_c cimport prepare
from .slots.makers_c cimport Maker, MakerTable, make
from .slots.sharing_c import share

cdef extern from "Python.h":
    void PyErr_Clear() noexcept


cdef class Dispatch:
    """Makes an empty instance of the class registered under a number, and has instances read and written."""

    def __cinit__(self, classes, dict routines):
        for cls in classes.values():
            prepare(cls)
        found = {cls: routines.get(layout_of(cls.spec)) for cls in classes.values()}
        self.forms = Forms(found)
        share([self.forms])
        self.makers = MakerTable(classes, found)

    cdef Record create(self, long long number):
        """A new, unfilled instance, or None where nothing is registered; the number has 32 bits."""
        cdef Maker *maker = self.makers.find(number)
        return None if maker is NULL else <Record>make(maker)

    cdef Record read_fast(self, long long number, Reader reader):
        """Return an instance read from the payload that the reader is aimed at, or None where `create` and `read`
        must do that: the fast path declines, or nothing is registered."""
        cdef Maker *maker = self.makers.find(number)
        cdef PyObject *made = NULL if maker is NULL else read_record(maker, reader, reader._pos, reader._end)
        if made is NULL:
            PyErr_Clear()
            return None
        reader._pos = reader._end
        record = <Record>made
        Py_DECREF(record)
        return record

    cdef bint has(self, long long number) noexcept:
        """Return whether something is registered."""
        return self.makers.find(number) is not NULL
