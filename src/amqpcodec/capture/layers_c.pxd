cimport cython

from .constants cimport (
    AUTHENTICATION, BY_VERSION, ENCRYPTED, ERSPAN, ESP, ESP_IN_UDP, ETHERNET, EXTENSION, EXTENSION_CUT,
    EXTENSION_DAMAGED, FOREIGN, FRAGMENT, GENEVE, GRE, GTP, HEADER_CUT, IPCOMP, IPV4, IPV4_CUT,
    IPV4_DAMAGED, IPV6, IPV6_CUT, IPV6_DAMAGED, LLC, MOST_HEADERS, MPLS, NSH, OF_ERSPAN, OF_GENEVE, OF_GRE,
    OF_GTP, OF_MPLS, OF_VXLAN, PPP, PPPOE, TAGGED, TCP, TOO_DEEP, UDP, UNKNOWN_PROTOCOL, UNKNOWN_TUNNEL,
    UNREAD, VXLAN, WIREGUARD, WLAN,
)
from .links_c cimport Links

cdef unsigned int _ENTROPY
cdef int _LEAST_OF_TUNNELS


@cython.final
@cython.no_gc
cdef class Walk(Links):
    cdef int run(self, int linktype, const unsigned char *data, Py_ssize_t size, long long end) noexcept nogil
    cdef int resume(self, const unsigned char *data, Py_ssize_t size, long long end) noexcept nogil
    cdef int _walk(self, int layer) noexcept nogil
    cdef int _other(self, int layer) noexcept nogil
    cdef int _protocol(self, int protocol) noexcept nogil
    @cython.locals(version=cython.int)
    cdef int _by_version(self) noexcept nogil
    @cython.locals(
        data=cython.p_const_uchar, at=Py_ssize_t, first=cython.int, header=cython.int, total=cython.int,
        layer=cython.int, protocol=cython.int,
    )
    cdef int _ipv4(self) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t, length=cython.int, layer=cython.int)
    cdef int _ipv6(self) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t, layer=cython.int, following=cython.int)
    cdef int _extensions(self, int protocol) noexcept nogil
    cdef int _extended(self, int layer) noexcept nogil
    @cython.locals(at=Py_ssize_t, layer=cython.int)
    cdef int _authentication(self) noexcept nogil
    @cython.locals(
        data=cython.p_const_uchar, at=Py_ssize_t, source=cython.int, port=cython.int, length=cython.int,
        known=cython.bint,
    )
    cdef int _udp(self) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, flags=cython.int, second=cython.int, reserved=cython.int)
    cdef bint _is_vxlan(self, Py_ssize_t at) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t, layer=cython.int)
    cdef int _vxlan(self) noexcept nogil
    cdef int _of_service(self, int number) noexcept nogil
    @cython.locals(at=Py_ssize_t, length=cython.int)
    cdef int _nsh(self) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t, protocol=cython.int, layer=cython.int)
    cdef int _geneve(self) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t, number=cython.uint)
    cdef int _gtp(self) noexcept nogil
    @cython.locals(
        at=Py_ssize_t, flags=cython.int, protocol=cython.int, version=cython.int, key_at=Py_ssize_t,
        layer=cython.int, number=cython.uint,
    )
    cdef int _gre(self) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t, layer=cython.int)
    cdef int _erspan(self) noexcept nogil
    @cython.locals(
        data=cython.p_const_uchar, at=Py_ssize_t, label=cython.uint, spreads=cython.bint, last=cython.bint,
        version=cython.int, layer=cython.int,
    )
    cdef int _mpls(self) noexcept nogil


cdef bint _is_without_tcp(int protocol) noexcept nogil
