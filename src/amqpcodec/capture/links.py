"""Link layers: where in a packet the network layer begins, and which one it is.

Numbers and layouts: the LINKTYPE registry (draft-ietf-opsawg-pcaplinktype), IEEE 802.1Q for VLAN tags.
"""

from __future__ import annotations

from typing import NamedTuple

ETHERNET_IPV4 = 0x0800
ETHERNET_IPV6 = 0x86DD
_VLAN_TAGS = frozenset({0x8100, 0x88A8, 0x9100, 0x9200})
# BSD systems number the IPv6 family differently; the first octet of what follows decides anyway.
_FAMILIES = frozenset({2, 10, 23, 24, 28, 30})


class LinkTypeError(Exception):
    """A link layer this reader does not know."""


class Layer(NamedTuple):
    """Where the network layer begins, and its Ethernet protocol number."""

    start: int
    protocol: int


def network_layer(linktype: int, data: bytes) -> Layer | None:
    """Where IP begins in a packet; None if the packet carries something else or is too short to say.

    Raises:
        LinkTypeError: no such link layer is known here.
    """
    reader = _READERS.get(linktype)
    if reader is None:
        raise LinkTypeError(f"link type {linktype} is not supported")
    return reader(data)


def _tagged(data: bytes, position: int) -> Layer | None:
    """Read the protocol number at a position, through any VLAN tags."""
    while position + 2 <= len(data):
        protocol = data[position] << 8 | data[position + 1]
        if protocol in (ETHERNET_IPV4, ETHERNET_IPV6):
            return Layer(position + 2, protocol)
        if protocol not in _VLAN_TAGS:
            return None
        position += 4
    return None


def _ethernet(data: bytes) -> Layer | None:
    return _tagged(data, 12)


def _cooked(data: bytes) -> Layer | None:
    return _tagged(data, 14)


def _cooked_2(data: bytes) -> Layer | None:
    protocol = int.from_bytes(data[:2], "big")
    if protocol in _VLAN_TAGS:
        return _tagged(data, 22)  # the tag's two octets of control lead the payload
    return Layer(20, protocol) if protocol in (ETHERNET_IPV4, ETHERNET_IPV6) and len(data) > 20 else None


def _loopback(data: bytes) -> Layer | None:
    """BSD loopback: four octets of address family, in the byte order of whoever captured."""
    if int.from_bytes(data[:4], "big") in _FAMILIES or int.from_bytes(data[:4], "little") in _FAMILIES:
        return _by_version(data, 4)
    return None


def _raw_ip(data: bytes) -> Layer | None:
    return _by_version(data, 0)


def _by_version(data: bytes, start: int) -> Layer | None:
    if len(data) <= start:
        return None
    version = data[start] >> 4
    if version == 4:
        return Layer(start, ETHERNET_IPV4)
    return Layer(start, ETHERNET_IPV6) if version == 6 else None


_READERS = {
    0: _loopback,  # NULL
    1: _ethernet,
    12: _raw_ip,  # RAW, as some systems number it in the file
    14: _raw_ip,
    101: _raw_ip,
    108: _loopback,  # LOOP
    113: _cooked,
    228: _raw_ip,  # IPV4
    229: _raw_ip,  # IPV6
    276: _cooked_2,
}
