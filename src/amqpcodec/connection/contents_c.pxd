from .._kernel.messages_c cimport Content, MessageDecoder
from .._kernel.records_c cimport Method
from .constants cimport *
from .state_c cimport State


cdef class ContentReader(MessageDecoder):
    cdef State _state

    cdef int _begin(self, int channel, Method method) except -1
