cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from .dispatch_c cimport Dispatch
from .fast_writer_c cimport Kept
from .rawproperties_c cimport RawProperties, kept_in
from .records_c cimport (
    ContentHeader, Frame, Heartbeat, Message, Method, OpaquePayload, Properties, ProtocolHeader, Record
)
from .wire cimport BODY, FRAME_END, HEADER, HEARTBEAT, METHOD, OVERHEAD, PROTOCOL_HEADER, as_unsigned
from .writer_c cimport Writer, WriterRules


cdef class Encoder:
    cdef object _dialect
    cdef Dispatch _methods
    cdef Dispatch _properties
    cdef WriterRules _rules
    cdef object _given_frame_max  # as it was set
    cdef long long _limit  # of the payload of single frames
    cdef long long _message_limit  # of the payload of frames of messages

    @cython.locals(rules=WriterRules)
    cdef inline WriterRules _own_rules(self)
    cdef inline Writer _writer(self)
    cdef inline int64_t _payload_limit(self, object frame_max) except -1
    @cython.locals(fast=cython.bint, limit=cython.longlong)
    cdef object _one_message(
        self, object channel, object method, object properties, object body, object frame_max, bint validate
    )
    @cython.locals(writer=Writer, limit=cython.longlong)
    cdef object _slow_message(
        self, object channel, object method, object properties, object octets, object frame_max, bint validate,
        bint declined,
    )
    @cython.locals(methods=Dispatch, writer=Writer, limit=cython.longlong)
    cdef object _one_method(self, object channel, object method, object frame_max, bint validate)
    @cython.locals(
        contents=Dispatch, writer=Writer, limit=cython.longlong, record=Properties, number=cython.uint,
        size=cython.ulonglong, written=cython.bint,
    )
    cdef object _one_header(
        self, object channel, object properties, object body_size, object weight, object frame_max
    )
    cdef object _header_frame(self, object channel, ContentHeader header, object frame_max)
    cdef object _any_frame(self, Frame frame, object frame_max)
    cdef object _other_frame(self, Frame frame, object payload, object frame_max)
    @cython.locals(record=Method, at=cython.Py_ssize_t, written=cython.bint)
    cdef Method _put_method(
        self, Writer writer, object channel, object method, long long limit, bint validate
    )
    @cython.locals(record=Properties)
    cdef Properties _own_properties(self, object properties)
    @cython.locals(at=cython.Py_ssize_t, raw=RawProperties)
    cdef int _put_header(
        self, Writer writer, object channel, Properties record, unsigned long long body_size, unsigned int weight,
        long long limit,
    ) except -1
    @cython.locals(record=Method, header=Properties, written=cython.bint)
    cdef int _put_content_start(
        self, Writer writer, object channel, object method, object properties, Py_ssize_t size, long long limit,
        bint validate,
    ) except -1
    @cython.locals(writer=Writer, at=cython.Py_ssize_t, size=cython.Py_ssize_t)
    cdef object _raw_frame(self, int frame_type, object channel, object octets, object frame_max)
    cdef object _foreign(self, Record record, object what)
    cdef object _encode_raw(self, Frame frame, object payload, object frame_max)
    cdef object _encode_connection_frame(self, Frame frame, object payload)
    cdef object _encode_opaque(self, Frame frame, OpaquePayload payload, object frame_max)

    cdef inline object _fast_message(
        self, object channel, object method, object properties, object body, long long limit
    ):
        """Return all frames of a message in one go, or None where the slow path must write them."""
        cdef PyObject *contents = <PyObject *>self._properties
        cdef Kept kept
        return self._methods.message(
            channel, method, properties, body, limit, <PyObject *>self._rules, contents,
            kept_in(<PyObject *>properties, contents, &kept),
        )


cdef object _METHOD, _HEADER, _BODY

cdef int _name(Record record) except -1
cdef object _type_of(object payload, object given)
cdef object _view(object body)
