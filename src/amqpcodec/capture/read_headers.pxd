# From a packet's octets to its TCP segment: the fast path beside layers_py.py and network.py, which define the
# result. It declines a packet that is not as nearly all are.
from .._kernel.octets cimport u16, u32
from .headers cimport Headers

cdef enum:
    LINK_ETHERNET = 1
    ETHERTYPE_IPV4 = 0x0800
    ETHERTYPE_IPV6 = 0x86DD
    PROTOCOL_TCP = 6


cdef inline bint tcp_header(
    const unsigned char *data, Py_ssize_t size, Py_ssize_t start, long long end, Headers *headers
) noexcept nogil:
    """Read the TCP header at `start` of a datagram that ends at `end` on the wire; False if it cannot be one."""
    cdef const unsigned char *tcp
    cdef Py_ssize_t payload
    if end - start < 20 or size - start < 20:
        return False
    tcp = data + start
    payload = start + (tcp[12] >> 4) * 4
    if payload < start + 20 or payload > end:
        return False
    headers.ports = tcp
    headers.seq = u32(tcp + 4)
    headers.ack = u32(tcp + 8)
    headers.flags = tcp[13]
    headers.payload = data + payload
    headers.length = end - payload
    headers.recorded = <Py_ssize_t>max(min(end, <long long>size) - payload, 0)
    return True


cdef inline bint ipv4(
    const unsigned char *data, Py_ssize_t size, long long original, Headers *headers
) noexcept nogil:
    cdef const unsigned char *ip = data + 14
    cdef Py_ssize_t header, total
    if size < 34:
        return False
    header = (ip[0] & 15) * 4
    total = u16(ip + 2)
    if ip[0] >> 4 != 4 or header < 20 or total < header or ip[9] != PROTOCOL_TCP or ip[6] & 0x3F or ip[7]:
        return False
    headers.addresses = ip + 12
    headers.address_size = 4
    return tcp_header(data, size, 14 + header, min(<long long>(14 + total), original), headers)


cdef inline bint ipv6(
    const unsigned char *data, Py_ssize_t size, long long original, Headers *headers
) noexcept nogil:
    cdef const unsigned char *ip = data + 14
    cdef Py_ssize_t length
    if size < 54 or ip[0] >> 4 != 6 or ip[6] != PROTOCOL_TCP:
        return False
    length = u16(ip + 4)
    headers.addresses = ip + 8
    headers.address_size = 16
    return tcp_header(data, size, 54, min(<long long>(54 + length), original) if length else original, headers)


cdef inline bint common_headers(
    int linktype, const unsigned char *data, Py_ssize_t size, long long original, Headers *headers
) noexcept nogil:
    """Read the headers of TCP in IP in Ethernet and nothing else; False if there are others.

    Args:
        linktype: of the packet.
        data: its octets.
        size: how many there are.
        original: how many there were on the wire.
        headers: is filled in.
    """
    cdef int protocol
    if linktype != LINK_ETHERNET or size < 14:
        return False
    headers.depth = 0
    protocol = u16(data + 12)
    if protocol == ETHERTYPE_IPV4:
        return ipv4(data, size, original, headers)
    return protocol == ETHERTYPE_IPV6 and ipv6(data, size, original, headers)
