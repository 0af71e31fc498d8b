cimport cython


# Under the global interpreter lock C code is not interrupted between a test and a store, and both are
# free. Without it, acquiring must be one atomic step, and the next holder must see what the last one did.
cdef extern from *:
    """
    #if !defined(Py_GIL_DISABLED)
    static CYTHON_INLINE int amqp_lock_acquire(volatile char *locked) {
        if (*locked) return 0;
        *locked = 1;
        return 1;
    }
    static CYTHON_INLINE void amqp_lock_release(volatile char *locked) { *locked = 0; }
    #elif defined(_MSC_VER)
    #include <intrin.h>
    static __inline int amqp_lock_acquire(volatile char *locked) { return !_InterlockedExchange8(locked, 1); }
    static __inline void amqp_lock_release(volatile char *locked) { _InterlockedExchange8(locked, 0); }
    #else
    static inline int amqp_lock_acquire(volatile char *locked) {
        return !__atomic_exchange_n(locked, 1, __ATOMIC_ACQUIRE);
    }
    static inline void amqp_lock_release(volatile char *locked) { __atomic_store_n(locked, 0, __ATOMIC_RELEASE); }
    #endif
    """
    bint amqp_lock_acquire(volatile char *locked) noexcept nogil
    void amqp_lock_release(volatile char *locked) noexcept nogil


@cython.final
cdef class Lock:
    cdef volatile char _locked

    cdef inline bint acquire(self) noexcept:
        return amqp_lock_acquire(&self._locked)

    cdef inline bint reclaim(self) noexcept:
        """C code always releases what it has acquired."""
        return False

    cdef inline void release(self) noexcept:
        amqp_lock_release(&self._locked)
