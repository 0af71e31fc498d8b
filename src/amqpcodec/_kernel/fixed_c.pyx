# cython: boundscheck=False, wraparound=False, cdivision=True
"""Methods whose arguments are all numbers and bits, such as basic.ack; of the compiled build only.

Their frames have one size, so they are written right into the bytes object, by the places of the arguments in an
instance and in the frame.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport uint32_t

from .ints cimport small, unsigned_value
from .layout_c cimport octets_before_slots
from .octets cimport copy_short, put16, put32, put64
from .wire cimport ENVELOPE_SIZE, FRAME_END, METHOD, OVERHEAD

cdef dict _SIZES = {"octet": 1, "short": 2, "long": 4, "longlong": 8}


cdef class FixedMethods:
    """Select the classes that are such methods."""

    def __cinit__(self, classes):
        cdef size_t size = 8
        self._classes = [cls for cls in classes if _is_fixed(cls.spec)]
        while size < 2 * <size_t>len(self._classes):
            size *= 2
        self._mask = size - 1
        self._entries = <Fixed **>PyMem_Calloc(size, sizeof(Fixed *))
        if self._entries is NULL:
            raise MemoryError
        for cls in self._classes:
            self._enter(cls)

    def __dealloc__(self):
        if self._entries is not NULL:
            for at in range(self._mask + 1):
                PyMem_Free(self._entries[at])
            PyMem_Free(self._entries)

    cdef int _enter(self, type cls) except -1:
        cdef Fixed *fixed = <Fixed *>PyMem_Calloc(1, sizeof(Fixed))
        cdef size_t at = hash_of(<PyObject *>cls) & self._mask
        if fixed is NULL:
            raise MemoryError
        while self._entries[at] is not NULL:
            at = (at + 1) & self._mask
        self._entries[at] = fixed
        fixed.cls = <PyObject *>cls
        return _lay_out(fixed, cls.spec, octets_before_slots(cls, len(cls.spec.fields)))

    cdef object frame(self, Fixed *fixed, object channel, object method, long long size_limit):
        """The frame of a method; None if a value is not an ordinary one that fits. `fixed` is what `find` gives."""
        cdef Py_ssize_t number
        cdef unsigned char *p
        if fixed.size - OVERHEAD > size_limit or type(channel) is not int:
            return None
        number = small(channel)
        if not 0 <= number <= 0xFFFF:
            return None
        octets = PyBytes_FromStringAndSize(NULL, fixed.size)
        p = <unsigned char *>PyBytes_AS_STRING(octets)
        copy_short(p, fixed.octets, <size_t>fixed.size)
        put16(p + 1, <uint32_t>number)
        return octets if _put_arguments(fixed, <PyObject *>method, p) else None


cdef inline bint _put_arguments(Fixed *fixed, PyObject *method, unsigned char *p) noexcept:
    """Write the arguments of an instance into its frame; False for a value that is left to `Writer`."""
    cdef Argument *argument
    cdef PyObject *value
    cdef uint64_t number = 0
    cdef int at
    for at in range(fixed.count):
        argument = &fixed.arguments[at]
        value = (<PyObject **>(<char *>method + argument.slot))[0]
        if argument.size == 0:
            if <object>value is True:
                p[argument.at] |= argument.mask
            elif <object>value is not False:
                return False
            continue
        if type(<object>value) is not int:
            return False
        if not unsigned_value(<object>value, &number) or number > argument.most:
            return False
        _put_number(p + argument.at, argument.size, number)
    return True


cdef inline void _put_number(unsigned char *p, int size, uint64_t number) noexcept:
    if size == 8:
        put64(p, number)
    elif size == 4:
        put32(p, <uint32_t>number)
    elif size == 2:
        put16(p, <uint32_t>number)
    else:
        p[0] = <unsigned char>number


cdef bint _is_fixed(object spec) except -1:
    return (
        hasattr(spec, "method_id")
        and len(spec.fields) <= MOST_ARGUMENTS
        and all([field.type == "bit" or field.type in _SIZES for field in spec.fields])
    )


cdef int _lay_out(Fixed *fixed, object spec, Py_ssize_t slots) except -1:
    """Where everything is: bits that follow one another share octets (0-9-1 section 4.2.5.2)."""
    cdef Argument *argument = fixed.arguments
    cdef Py_ssize_t at = ENVELOPE_SIZE + 4
    cdef int bit = 0
    fixed.octets[0] = METHOD
    put16(fixed.octets + ENVELOPE_SIZE, spec.class_id)
    put16(fixed.octets + ENVELOPE_SIZE + 2, spec.method_id)
    for field in spec.fields:
        argument.slot = <unsigned short>slots
        if field.type != "bit":
            bit = 0
            argument.size = _SIZES[field.type]
            argument.most = ~<uint64_t>0 >> (64 - 8 * argument.size)
            argument.at = <unsigned char>at
            at += argument.size
        else:
            at += bit == 0
            argument.at = <unsigned char>(at - 1)
            argument.mask = <unsigned char>(1 << bit)
            bit = (bit + 1) % 8
        slots += <Py_ssize_t>sizeof(PyObject *)
        argument += 1
        fixed.count += 1
    fixed.octets[at] = FRAME_END
    fixed.size = at + 1
    put32(fixed.octets + 3, <uint32_t>(fixed.size - OVERHEAD))
    return 0
