from .._kernel.reader_c cimport Reader
from .._kernel.readers_c cimport ReaderPool
from .._kernel.wire cimport BODY, HEADER, HEARTBEAT, METHOD
from .._kernel.writer_c cimport Writer, WriterRules
from ._fast_c cimport Counts
from ._fields_c cimport RecordLayout
from ._guards_c cimport Guards

cdef enum:
    FRAME_TYPES = 1 << METHOD | 1 << HEADER | 1 << BODY | 1 << HEARTBEAT  # for `frame_at`


cdef class ClassLayout(RecordLayout):
    cdef int class_id
    cdef int method_id
    cdef bint readable


cdef class Codec:
    cdef ReaderPool readers
    cdef ReaderPool tolerant
    cdef WriterRules _writer_rules
    cdef dict _by_index
    cdef dict _by_class
    cdef ClassLayout _properties
    cdef RecordLayout _method
    cdef RecordLayout _header
    cdef RecordLayout _body
    cdef RecordLayout _heartbeat
    cdef Guards _guards
    cdef object _decode_frame
    cdef readonly object refusal
    cdef readonly Counts counts

    cdef bint finds_its_own(self) except -1
    cdef int need(self, RecordLayout frame, RecordLayout inner) except -1
    cdef object decode(self, object data, Py_ssize_t at, ReaderPool readers)
    cdef object decode_by_pika(self, object data)
    cdef object _tolerated(self, object data)
    cdef object marshal(self, RecordLayout layout, int kind, object frame)
    cdef object _frame(self, object data, Py_ssize_t at, Py_ssize_t size, ReaderPool readers)
    cdef object _begin(self, RecordLayout layout, int kind, int channel)
    cdef object _method_frame(self, Reader reader, int channel)
    cdef object _header_frame(self, Reader reader, int channel)
    cdef int _put_method(self, Writer writer, object method) except -1
    cdef int _put_header(self, Writer writer, object size, object properties) except -1
