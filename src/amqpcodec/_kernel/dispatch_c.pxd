cimport cython
from cpython.object cimport PyObject

from .fast_writer_c cimport Forms, Kept
from .slots.makers_c cimport Maker, MakerTable, maker_at
from .reader_c cimport Reader
from .records_c cimport Record
from .slow_c cimport read_slowly, write_slowly
from .writer_c cimport Writer, WriterRules


@cython.final
cdef class Dispatch:
    cdef Forms forms
    cdef MakerTable makers

    cdef bint has(self, long long number) noexcept
    cdef Record create(self, long long number)
    cdef Record read_fast(self, long long number, Reader reader)

    cdef inline int read(self, Record record, Reader reader) except -1:
        """Fill an instance from the payload that the reader is aimed at."""
        return read_slowly(record, reader)

    cdef inline int write(self, Record record, Writer writer) except -1:
        """Write the attributes of an instance."""
        return write_slowly(record, writer)

    cdef inline object frame(self, object channel, object method, long long limit, WriterRules rules):
        """Return a whole method frame in one go, or None where `write` must make its payload."""
        return self.forms.frame(channel, method, limit, rules)

    cdef inline object header(
        self, object channel, object properties, object body_size, object weight, long long limit, WriterRules rules
    ):
        """Return a whole header frame in one go, or None likewise."""
        return self.forms.header(channel, properties, body_size, weight, limit, rules)

    cdef inline object message(
        self, object channel, object method, object properties, object body, long long limit, PyObject *rules,
        PyObject *contents, const Kept *kept
    ):
        """Return all frames of a message in one go, or None likewise.

        Args:
            rules, contents: those of the encoder, and the `Dispatch` of its properties, lent: threads share them.
            kept: properties that are written as they came; NULL for others.
        """
        return self.forms.message(
            <PyObject *>channel, <PyObject *>method, <PyObject *>properties, <PyObject *>body, limit, rules,
            <PyObject *>(<Dispatch>contents).forms, kept
        )

    cdef inline int decline(self, object record, Writer writer) except -1:
        """Have the slow path write what `frame` or `header` declined; the fast path shares nothing with it here."""
        return 0

    cdef inline int content_class(self, object method) noexcept:
        """Return the class of the content that follows a method of this dialect; -1 where none does."""
        cdef Maker *maker = maker_at((<PyObject *>method).ob_type)
        return -1 if maker is NULL else maker.content
