# From a packet's octets to its TCP segment: the fast path beside links.py, ip.py and network.py, which define
# the result. It declines a packet that may hold TCP and is not ordinary.
from libc.stdint cimport uint32_t

from .._kernel.octets cimport u16, u32
from .headers cimport DECLINED, FOREIGN, IPV4, IPV6, TCP, Headers, Layer

cdef enum:
    ETHERTYPE_IPV4 = 0x0800
    ETHERTYPE_IPV6 = 0x86DD
    PROTOCOL_TCP = 6


cdef inline bint is_tag(int protocol) noexcept nogil:
    return protocol == 0x8100 or protocol == 0x88A8 or protocol == 0x9100 or protocol == 0x9200


cdef inline bint is_extension(int protocol) noexcept nogil:
    return (
        protocol == 0 or protocol == 43 or protocol == 44 or protocol == 51 or protocol == 60
        or protocol == 135 or protocol == 139 or protocol == 140
    )


cdef inline uint32_t swapped(uint32_t number) noexcept nogil:
    return number >> 24 | (number >> 8 & 0xFF00) | (number & 0xFF00) << 8 | number << 24


cdef inline Layer tagged(const unsigned char *data, Py_ssize_t size, Py_ssize_t *at) noexcept nogil:
    cdef int protocol
    while at[0] + 2 <= size:
        protocol = u16(data + at[0])
        if protocol == ETHERTYPE_IPV4 or protocol == ETHERTYPE_IPV6:
            at[0] += 2
            return IPV4 if protocol == ETHERTYPE_IPV4 else IPV6
        if not is_tag(protocol):
            return FOREIGN
        at[0] += 4
    return FOREIGN


cdef inline Layer by_version(const unsigned char *data, Py_ssize_t size, Py_ssize_t at) noexcept nogil:
    if size <= at:
        return FOREIGN
    if data[at] >> 4 == 4:
        return IPV4
    return IPV6 if data[at] >> 4 == 6 else FOREIGN


cdef inline bint is_family(uint32_t number) noexcept nogil:
    return number == 2 or number == 10 or number == 23 or number == 24 or number == 28 or number == 30


cdef inline Layer network_layer(
    int linktype, const unsigned char *data, Py_ssize_t size, Py_ssize_t *at
) noexcept nogil:
    cdef uint32_t family
    if linktype == 1:
        at[0] = 12
        return tagged(data, size, at)
    if linktype == 113:
        at[0] = 14
        return tagged(data, size, at)
    if linktype == 12 or linktype == 14 or linktype == 101 or linktype == 228 or linktype == 229:
        at[0] = 0
        return by_version(data, size, 0)
    if linktype == 0 or linktype == 108:
        if size <= 4:
            return FOREIGN
        at[0] = 4
        family = u32(data)
        return by_version(data, size, 4) if is_family(family) or is_family(swapped(family)) else FOREIGN
    if linktype == 276 and size > 20:
        at[0] = 22 if is_tag(u16(data)) else 20
        if at[0] == 22:
            return tagged(data, size, at)
        if u16(data) == ETHERTYPE_IPV4:
            return IPV4
        return IPV6 if u16(data) == ETHERTYPE_IPV6 else FOREIGN
    return DECLINED


cdef inline Layer tcp_header(
    const unsigned char *data, Py_ssize_t size, Py_ssize_t start, long long end, Headers *headers
) noexcept nogil:
    """The TCP header at `start` of a datagram that ends at `end` on the wire."""
    cdef const unsigned char *tcp
    cdef Py_ssize_t payload
    if end - start < 20 or size - start < 20:
        return DECLINED
    tcp = data + start
    payload = start + (tcp[12] >> 4) * 4
    if payload < start + 20 or payload > end:
        return DECLINED
    headers.ports = tcp
    headers.seq = u32(tcp + 4)
    headers.ack = u32(tcp + 8)
    headers.flags = tcp[13]
    headers.payload = data + payload
    headers.length = end - payload
    headers.recorded = <Py_ssize_t>max(min(end, <long long>size) - payload, 0)
    return TCP


cdef inline Layer ipv4(
    const unsigned char *data, Py_ssize_t size, Py_ssize_t at, long long original, Headers *headers
) noexcept nogil:
    cdef const unsigned char *ip = data + at
    cdef Py_ssize_t header, total
    if size < at + 20:
        return DECLINED
    header = (ip[0] & 15) * 4
    total = u16(ip + 2)
    if ip[0] >> 4 != 4 or header < 20 or 0 < total < header:
        return DECLINED
    if ip[9] != PROTOCOL_TCP:
        return FOREIGN
    if ip[6] & 0x3F or ip[7]:
        return DECLINED
    headers.addresses = ip + 12
    headers.address_size = 4
    # The total length is 0 in packets that the network card was still to split.
    return tcp_header(
        data, size, at + header, min(<long long>(at + total), original) if total else original, headers
    )


cdef inline Layer ipv6(
    const unsigned char *data, Py_ssize_t size, Py_ssize_t at, long long original, Headers *headers
) noexcept nogil:
    cdef const unsigned char *ip = data + at
    cdef Py_ssize_t length
    if size < at + 40 or ip[0] >> 4 != 6:
        return DECLINED
    length = u16(ip + 4)
    if ip[6] != PROTOCOL_TCP:
        return DECLINED if is_extension(ip[6]) else FOREIGN
    headers.addresses = ip + 8
    headers.address_size = 16
    return tcp_header(
        data, size, at + 40, min(<long long>(at + 40 + length), original) if length else original, headers
    )


cdef inline Layer read_headers(
    int linktype, const unsigned char *data, Py_ssize_t size, long long original, Headers *headers
) noexcept nogil:
    """The TCP segment in a packet of `size` octets, of which there were `original` on the wire.

    TCP with `headers` filled in; FOREIGN for a packet for which the slow path returns no segment and reports
    nothing; DECLINED where the slow path has to decide.
    """
    cdef Py_ssize_t at = 0
    cdef Layer layer = network_layer(linktype, data, size, &at)
    if layer == IPV4:
        return ipv4(data, size, at, original, headers)
    return ipv6(data, size, at, original, headers) if layer == IPV6 else layer
