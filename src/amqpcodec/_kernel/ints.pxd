# Ints as numbers of C, by the interpreter's own functions where they are not small.
from libc.stdint cimport uint64_t

cdef extern from *:
    """
    /* The value of an exact int that is small, as most are; -1, or another negative number, if it is not. */
    static inline Py_ssize_t amqpcodec_small(PyObject *number) {
    #if PY_VERSION_HEX >= 0x030C0000
        return PyUnstable_Long_IsCompact((PyLongObject *)number)
            ? PyUnstable_Long_CompactValue((PyLongObject *)number) : -1;
    #else
        Py_ssize_t digits = Py_SIZE(number);
        return digits == 1 ? (Py_ssize_t)((PyLongObject *)number)->ob_digit[0] : digits == 0 ? 0 : -1;
    #endif
    }

    /* Whether an exact int is from 0 to 2**64 - 1; its value then is in `value`. */
    static inline int amqpcodec_unsigned(PyObject *number, uint64_t *value) {
        Py_ssize_t few = amqpcodec_small(number);
        if (few >= 0) {
            *value = (uint64_t)few;
            return 1;
        }
    #if ULONG_MAX == 0xFFFFFFFFFFFFFFFF
        *value = PyLong_AsUnsignedLong(number);  /* 3.11 does the other by way of octets */
    #else
        *value = PyLong_AsUnsignedLongLong(number);
    #endif
        if (*value == UINT64_MAX && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        return 1;
    }
    """
    bint unsigned_value "amqpcodec_unsigned"(object number, uint64_t *value) noexcept
    Py_ssize_t small "amqpcodec_small"(object number) noexcept
