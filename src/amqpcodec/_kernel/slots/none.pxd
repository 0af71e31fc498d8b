cdef extern from *:
    """
    /* Many references to None at once, or fewer; since 3.12 None is immortal and they are not counted. */
    static inline void amqpcodec_refer_to_none(Py_ssize_t times) {
    #if defined(Py_REF_DEBUG)
        for (; times > 0; times--) Py_INCREF(Py_None);
        for (; times < 0; times++) Py_DECREF(Py_None);
    #elif PY_VERSION_HEX < 0x030C0000
        Py_SET_REFCNT(Py_None, Py_REFCNT(Py_None) + times);
    #else
        (void)times;
    #endif
    }
    """
    void refer_to_none "amqpcodec_refer_to_none"(Py_ssize_t times) noexcept
