cimport cython

cdef int FOREIGN, TCP, FRAGMENT, EXPORTED, UNREAD
cdef int IPV4, IPV6, BY_VERSION, ETHERNET, TAGGED, LLC, MPLS, PPP, PPPOE, UDP
cdef int GRE, ERSPAN, EXTENSION, AUTHENTICATION, VXLAN, GENEVE, NSH, GTP, WLAN
cdef int UNKNOWN_LINK, UNKNOWN_ETHERTYPE, UNKNOWN_PROTOCOL, UNKNOWN_PPP, UNKNOWN_TUNNEL, ENCRYPTED
cdef int IPV4_CUT, IPV4_DAMAGED, IPV6_CUT, IPV6_DAMAGED, EXTENSION_CUT, EXTENSION_DAMAGED
cdef int HEADER_CUT, TOO_DEEP
cdef int ESP, ESP_IN_UDP, IPCOMP, WIREGUARD, MACSEC, MPPE, WPA
cdef int OF_VXLAN, OF_GENEVE, OF_GRE, OF_ERSPAN, OF_MPLS, OF_PPPOE, OF_GTP, OF_SERVICE
cdef int MOST_NUMBERS, MOST_HEADERS, _ENTROPY


@cython.final
@cython.no_gc
cdef class Walk:
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

    cdef int run(self, int linktype, const unsigned char *data, Py_ssize_t size, long long end) noexcept nogil
    cdef int resume(self, const unsigned char *data, Py_ssize_t size, long long end) noexcept nogil
    cdef int _walk(self, int layer) noexcept nogil
    cdef int _other(self, int layer) noexcept nogil
    cdef int _ethertype(self, int protocol) noexcept nogil
    cdef int _protocol(self, int protocol) noexcept nogil
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
    @cython.locals(version=cython.int)
    cdef int _by_version(self) noexcept nogil
    @cython.locals(
        data=cython.p_const_uchar, at=Py_ssize_t, first=cython.int, header=cython.int, total=cython.int,
        layer=cython.int,
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
        data=cython.p_const_uchar, at=Py_ssize_t, port=cython.int, length=cython.int, known=cython.bint
    )
    cdef int _udp(self) noexcept nogil
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
        layer=cython.int,
    )
    cdef int _gre(self) noexcept nogil
    @cython.locals(data=cython.p_const_uchar, at=Py_ssize_t, layer=cython.int)
    cdef int _erspan(self) noexcept nogil
    @cython.locals(
        data=cython.p_const_uchar, at=Py_ssize_t, label=cython.int, spreads=cython.bint, last=cython.bint,
        version=cython.int, layer=cython.int,
    )
    cdef int _mpls(self) noexcept nogil
    @cython.locals(total=cython.int)
    cdef bint _is_ip(self, Py_ssize_t at) noexcept nogil
    @cython.locals(protocol=cython.int)
    cdef bint _is_ethernet(self, Py_ssize_t at) noexcept nogil
    cdef int _enter(self, unsigned long long kind, unsigned int number, int layer) noexcept nogil
    cdef int _unread(self, int reason, int detail) noexcept nogil
    cdef unsigned int _u16(self, Py_ssize_t at) noexcept nogil
    cdef unsigned int _u32(self, Py_ssize_t at) noexcept nogil


cdef bint _is_without_ip(int protocol) noexcept nogil
