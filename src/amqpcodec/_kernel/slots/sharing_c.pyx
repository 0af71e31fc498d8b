"""Objects that every thread uses at every call, in C. The twin of sharing_py.py."""

from . import ON

cdef extern from *:
    """
    /* A count this high makes an object immortal: its references are not counted from now on. The thread that
       made an object may count without atomic steps, so no other thread may do this to it. */
    static inline void amqpcodec_never_free(PyObject *thing) {
    #ifdef Py_GIL_DISABLED
        if (_Py_IsOwnedByCurrentThread(thing)) Py_SET_REFCNT(thing, (Py_ssize_t)UINT32_MAX + 1);
    #else
        (void)thing;
    #endif
    }
    """
    void never_free "amqpcodec_never_free"(object thing) noexcept


def share(things):
    """Have references to objects, and to what is in classes, not counted where there is no global lock."""
    if not ON:
        return
    for thing in things:
        never_free(thing)
        if isinstance(thing, type):
            for part in vars(thing).values():
                never_free(part)
