from cpython.object cimport PyObject

from .._kernel.reader_c cimport Reader
from .._kernel.readers_c cimport ReaderPool
from .._kernel.writer_c cimport Writer, WriterRules
from ._fast_c cimport Counts, FastFunction
from ._fields_c cimport RecordLayout
from ._guards_c cimport Guards, TypeGuard

cdef enum:
    MOST_LETTERS = 32
    MOST_FORMATS = 256  # that are kept compiled
    PROPERTY_COUNT = 14

# The slots of a message that are set and read, in the order of `_SLOTS`.
cdef enum:
    FRAME_METHOD, FRAME_ARGS, PROPERTIES, CHUNKS, RECEIVED, SIZE, READY, CONTENT, DELIVERY, CHANNEL


cdef class Format:
    cdef Py_ssize_t size
    cdef unsigned char kinds[MOST_LETTERS]

    cdef list read(self, Reader reader)
    cdef int write(self, Writer writer, tuple values) except -1


cdef class Codec:
    cdef readonly Counts counts
    cdef readonly FastFunction loads
    cdef readonly FastFunction dumps
    cdef readonly FastFunction decode_properties
    cdef readonly FastFunction serialize_properties
    cdef ReaderPool pool
    cdef ReaderPool tolerant
    cdef WriterRules rules
    cdef object syntax_error  # of py-amqp, where it is to be raised in place of a RecursionError
    cdef dict _formats
    cdef Guards _reading
    cdef Guards _writing
    cdef readonly list replaced  # of what these count on, before they were made, by dotted name
    cdef dict _there  # the names of `amqp.serialization`
    cdef tuple _listed  # what `Message.PROPERTIES` lists
    cdef tuple _names
    cdef unsigned char _kinds[PROPERTY_COUNT]

    cdef Format _format(self, object letters)
    cdef object _loaded(self, PyObject *const *arguments, size_t nargsf, PyObject *names, ReaderPool pool)
    cdef object _decoded(self, PyObject *const *arguments, size_t nargsf, PyObject *names, ReaderPool pool)
    cdef object _taken(self, bytes octets, object offset, Format form, ReaderPool pool)
    cdef object _write(self, object letters, tuple values)
    cdef object _serialized(self, object message)
    cdef object _put(self, Format form, object values)
    cdef object left_to_stock(
        self, bint loads, PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names
    )
    cdef bint reads_properties(self) except -1
    cdef bint writes_properties(self, object listed) except -1
    cdef dict read_properties(self, Reader reader)
    cdef int write_properties(self, Writer writer, dict properties) except -1


cdef class Messages:
    cdef readonly type cls
    cdef RecordLayout _record
    cdef Guards _called
    cdef TypeGuard _base
    cdef TypeGuard _outbound
    cdef TypeGuard _encoding
    cdef FastFunction _serialize
    cdef Counts _counts

    cdef bint makes_its_own(self) except -1
    cdef object make(self, dict properties)
    cdef object get(self, object message, int field)
    cdef int set(self, object message, int field, object value) except -1
    cdef bint may_come_in(self, object message) except -1
    cdef bint tells_its_encoding(self) except -1
    cdef int decode_body(self, object message) except -1
    cdef bint may_go_out(self, object message) except -1


cdef Py_ssize_t index_of(object number) noexcept
cdef object unwrapped(object function)
cdef bint stands_for(object function, FastFunction ours) except -1
