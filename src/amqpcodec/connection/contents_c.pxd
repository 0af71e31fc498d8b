from .._kernel.messages_c cimport Content, MessageDecoder
from .._kernel.records_c cimport Method


cdef class ContentReader(MessageDecoder):
    cdef object _spoken
    cdef object _judge
    cdef long long _greatest

    cdef int _begin(self, int channel, Method method) except -1
