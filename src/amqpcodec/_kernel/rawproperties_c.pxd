cimport cython

from cpython.object cimport PyObject

from .dispatch_c cimport Dispatch
from .fast_writer_c cimport Kept
from .lookup_c cimport headers_in, look_up
from .octets cimport octet_count, octets_in
from .reader_c cimport Reader, ReaderRules
from .records_c cimport Properties, Record


cdef class RawProperties(Properties)


cdef class PropertiesReading:
    cdef object dialect
    cdef Dispatch dispatch
    cdef tuple options
    cdef ReaderRules rules
    cdef object limits
    cdef dict plans

    cdef bytes plan(self, int class_id)

    @cython.locals(properties=RawProperties)
    cdef RawProperties keep(self, bytes octets, int class_id, long long offset, int channel)


# No cycle can run through it: what is decoded refers to values of the wire alone.
@cython.no_gc
cdef class RawProperties(Properties):
    cdef bytes _octets
    cdef PropertiesReading _reading
    cdef object _decoded
    cdef int _class
    cdef int _channel
    cdef long long _offset

    cdef PropertiesReading _known(self)
    @cython.locals(reading=PropertiesReading)
    cdef object _dialect(self)
    cdef object _values_of(self)
    cdef bint _equals(self, RawProperties other) except -1
    @cython.locals(reading=PropertiesReading, octets=bytes, reader=Reader, decoded=Record)
    cdef object _decode(self)

    # Several threads may read the same properties, and one of them decode them.

    cdef inline object _values(self):
        with cython.critical_section(self):
            return self._decoded

    cdef inline object _remember(self, object decoded):
        with cython.critical_section(self):
            if self._decoded is None:
                self._decoded = decoded
            return self._decoded


cdef inline const Kept *kept_in(PyObject *properties, PyObject *contents, Kept *kept) noexcept:
    """Return raw properties as they are to be written; NULL of other properties, and of those of another dialect.

    Args:
        properties: what may be such.
        contents: the `Dispatch` of the dialect's properties.
        kept: filled in.
    """
    cdef PyObject *octets
    if type(<object>properties) is not RawProperties or (<RawProperties>properties)._reading is None:
        return NULL
    if <PyObject *>(<RawProperties>properties)._reading.dispatch is not contents:
        return NULL
    octets = <PyObject *>(<RawProperties>properties)._octets
    kept.octets = octets_in(octets)
    kept.size = octet_count(octets)
    kept.class_id = (<RawProperties>properties)._class
    return kept
