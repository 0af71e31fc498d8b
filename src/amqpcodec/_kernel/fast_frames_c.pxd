from .dispatch_c cimport Dispatch
from .slots.makers_c cimport Maker
from .rawproperties_c cimport PropertiesReading
from .reader_c cimport Reader
from .records_c cimport Frame, Message


cdef Frame read_frame(
    Reader reader, Dispatch methods, Dispatch properties, PropertiesReading raw_reading, object channel
)
cdef Message read_message(
    Reader reader, Dispatch methods, Dispatch properties, PropertiesReading raw_reading, object chunk, Py_ssize_t end,
    long long size_limit, long long header_limit, unsigned long long body_limit
)
