cimport cython


# Under the global interpreter lock C code is not interrupted between a test and a store, and both are
# free. Without it, taking must be one atomic step, and what was done in a turn be seen in the next.
cdef extern from *:
    """
    #if !defined(Py_GIL_DISABLED)
    static CYTHON_INLINE int amqp_turn_take(volatile char *taken) {
        if (*taken) return 0;
        *taken = 1;
        return 1;
    }
    static CYTHON_INLINE void amqp_turn_end(volatile char *taken) { *taken = 0; }
    #elif defined(_MSC_VER)
    #include <intrin.h>
    static __inline int amqp_turn_take(volatile char *taken) { return !_InterlockedExchange8(taken, 1); }
    static __inline void amqp_turn_end(volatile char *taken) { _InterlockedExchange8(taken, 0); }
    #else
    static inline int amqp_turn_take(volatile char *taken) {
        return !__atomic_exchange_n(taken, 1, __ATOMIC_ACQUIRE);
    }
    static inline void amqp_turn_end(volatile char *taken) { __atomic_store_n(taken, 0, __ATOMIC_RELEASE); }
    #endif
    """
    bint amqp_turn_take(volatile char *taken) noexcept nogil
    void amqp_turn_end(volatile char *taken) noexcept nogil


@cython.final
cdef class Turn:
    cdef volatile char _taken

    cdef inline bint take(self) noexcept:
        return amqp_turn_take(&self._taken)

    cdef inline bint take_over(self) noexcept:
        """C code always ends its turns."""
        return False

    cdef inline void end(self) noexcept:
        amqp_turn_end(&self._taken)
