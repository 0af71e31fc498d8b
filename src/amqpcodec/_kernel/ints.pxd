# Exact ints that are small, as most are.
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
    """
    Py_ssize_t small "amqpcodec_small"(object number) noexcept
