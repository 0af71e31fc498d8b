from .._kernel.messages_c cimport MessageDecoder
from .._kernel.records_c cimport Method
from .constants cimport *
from .state_c cimport State


cdef class ContentReader(MessageDecoder):
    cdef State _state

    cdef bint _judge(self, int channel, Method method) except -1
