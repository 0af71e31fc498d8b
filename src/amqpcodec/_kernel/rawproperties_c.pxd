cimport cython

from .dispatch_c cimport Dispatch
from .lookup_c cimport headers_in, look_up
from .reader_c cimport Reader, ReaderRules
from .records_c cimport Properties, Record
from .writer_c cimport Writer


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
