"""IPv4 (RFC 791) and IPv6 (RFC 8200) as far as needed to find TCP inside."""

from __future__ import annotations

from typing import NamedTuple

from .links import ETHERNET_IPV4, Layer

_TCP, _FRAGMENT, _AUTHENTICATION = 6, 44, 51
# Extension headers that give their own length: hop-by-hop, routing, destination, mobility, HIP, shim6.
_SKIPPED = frozenset({0, 43, 60, 135, 139, 140})


class PacketError(Exception):
    """A packet that may carry TCP but cannot be read; the text is the reason, the same for all alike."""


class Datagram(NamedTuple):
    """Addresses, and where the TCP segment in it begins and ends.

    `end` counts octets on the wire, so it may lie behind the octets recorded; padding of the link layer
    lies behind `end`.
    """

    source: bytes
    destination: bytes
    start: int
    end: int


def ip_datagram(data: bytes, layer: Layer, original_length: int) -> Datagram | None:
    """The IP datagram at a layer's start; None if it does not carry TCP.

    Raises:
        PacketError: a fragment, or a header cut off or damaged.
    """
    if layer.protocol == ETHERNET_IPV4:
        return _version_4(data, layer.start, original_length)
    return _version_6(data, layer.start, original_length)


def _version_4(data: bytes, start: int, original_length: int) -> Datagram | None:
    if len(data) < start + 20:
        raise PacketError("IPv4 header cut off")
    header = (data[start] & 15) * 4
    total = data[start + 2] << 8 | data[start + 3]
    if data[start] >> 4 != 4 or header < 20 or 0 < total < header:
        raise PacketError("damaged IPv4 header")
    if data[start + 9] != _TCP:
        return None
    if (data[start + 6] & 0x3F) | data[start + 7]:  # more fragments, or an offset
        raise PacketError("fragmented IPv4 datagram")
    # A total length of 0 is what packets look like that the network card was still to cut up.
    end = start + total if total else original_length
    return Datagram(
        data[start + 12 : start + 16],
        data[start + 16 : start + 20],
        start + header,
        min(end, max(original_length, start + header)),
    )


def _version_6(data: bytes, start: int, original_length: int) -> Datagram | None:
    position = start + 40
    if len(data) < position:
        raise PacketError("IPv6 header cut off")
    if data[start] >> 4 != 6:
        raise PacketError("damaged IPv6 header")
    length = data[start + 4] << 8 | data[start + 5]
    end = min(position + length, original_length) if length else original_length
    protocol = data[start + 6]
    while protocol in _SKIPPED or protocol in (_FRAGMENT, _AUTHENTICATION):
        if len(data) < position + 8:
            raise PacketError("IPv6 extension header cut off")
        if protocol == _FRAGMENT and (data[position + 2] << 8 | data[position + 3]) & 0xFFF9:
            if data[position] != _TCP:
                return None
            raise PacketError("fragmented IPv6 datagram")
        size = _extension_size(protocol, data[position + 1])
        protocol = data[position]
        position += size
    if protocol != _TCP:
        return None
    if position > end:
        raise PacketError("damaged IPv6 extension header")
    return Datagram(data[start + 8 : start + 24], data[start + 24 : start + 40], position, end)


def _extension_size(protocol: int, length: int) -> int:
    if protocol == _FRAGMENT:
        return 8
    return (length + 2) * 4 if protocol == _AUTHENTICATION else (length + 1) * 8
