cimport cython

from .constants cimport (
    BY_VERSION, ENCRYPTED, ERSPAN, ETHERNET, EXPORTED, FOREIGN, HEADER_CUT, IPV4, IPV6, LLC, MACSEC,
    MOST_HEADERS, MOST_NUMBERS, MPLS, MPPE, NSH, OF_PPPOE, OF_SERVICE, PPP, PPPOE, TAGGED, TOO_DEEP,
    UNKNOWN_ETHERTYPE, UNKNOWN_LINK, UNKNOWN_PPP, UNREAD, WLAN, WPA,
)


@cython.no_gc
cdef class Links:
    cdef const unsigned char *data
    cdef Py_ssize_t size
    cdef Py_ssize_t at
    cdef long long end
    cdef Py_ssize_t ip
    cdef Py_ssize_t addresses
    cdef int address_size
    cdef Py_ssize_t fragment
    cdef unsigned long long numbers[12]
    cdef int depth
    cdef int headers
    cdef int reason
    cdef int detail
    cdef bint _sequenced

    cdef int _link(self, int linktype) noexcept nogil
    cdef int _by_number(self, int offset) noexcept nogil
    @cython.locals(at=Py_ssize_t, protocol=cython.int)
    cdef int _cooked(self, int linktype) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t, family=cython.int)
    cdef int _loopback(self) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, place=cython.int, length=cython.int, inside=cython.int)
    cdef int _wrapped(self, int linktype) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t, length=cython.int, kind=cython.int)
    cdef int _nflog(self) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t, flags=cython.int, of_quality=cython.int)
    cdef int _wlan(self) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t)
    cdef int _ethernet(self) noexcept nogil
    @cython.locals(protocol=cython.int, layer=cython.int)
    cdef int _tagged(self) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t, protocol=cython.int, bridged=cython.bint)
    cdef int _llc(self) noexcept nogil
    cdef int _service(self) noexcept nogil
    @cython.locals(at=Py_ssize_t)
    cdef int _pppoe(self) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t, protocol=cython.int)
    cdef int _ppp(self) noexcept nogil
    cdef int _ethertype(self, int protocol) noexcept nogil
    @cython.locals(protocol=cython.int)
    cdef bint _is_ethernet(self, Py_ssize_t at) noexcept nogil
    @cython.locals(total=cython.int)
    cdef bint _is_ip(self, Py_ssize_t at) noexcept nogil
    cdef int _enter(self, unsigned long long kind, unsigned int number, int layer) noexcept nogil
    cdef int _unread(self, int reason, int detail) noexcept nogil
    cdef int _u16(self, Py_ssize_t at) noexcept nogil
    @cython.locals(number=cython.uint, place=Py_ssize_t)
    cdef unsigned int _u32(self, Py_ssize_t at) noexcept nogil


cdef bint _is_without_ip(int protocol) noexcept nogil
