"""Packets in tunnels: each encapsulation as a function from the octets of a layer to those of one around it.

What is wrapped is ``"ethernet"`` (a whole packet) or ``"ip"`` (a datagram).
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import NamedTuple

from . import make_capture as make

ETHERTYPES = {"ethernet": 0x6558, 4: 0x0800, 6: 0x86DD}


class Wrapped(NamedTuple):
    """Octets, what they are, and the link type if they are a whole packet of one."""

    octets: bytes
    kind: str  # "ethernet" or "ip"


def version(octets: bytes) -> int:
    return octets[0] >> 4


def ethertype(what: Wrapped) -> int:
    return 0x6558 if what.kind == "ethernet" else ETHERTYPES[version(what.octets)]


def udp(port: int, payload: bytes) -> bytes:
    return struct.pack("!HHHH", 49200, port, 8 + len(payload), 0) + payload


def in_ip(protocol: int, payload: bytes, six: bool = False) -> Wrapped:
    """A datagram of a protocol."""
    if six:
        return Wrapped(make.ipv6("fd00:9::1", "fd00:9::2", payload, first=protocol), "ip")
    return Wrapped(make.ipv4("192.0.2.1", "192.0.2.2", payload, protocol=protocol), "ip")


def in_ethernet(ethertype: int, payload: bytes, tags: tuple[int, ...] = ()) -> Wrapped:
    tagging = b"".join(struct.pack("!HH", tag, 42) for tag in tags)
    octets = b"\x02" + bytes(11) + tagging + struct.pack("!H", ethertype) + payload
    return Wrapped(octets, "ethernet")


def as_ethernet(what: Wrapped) -> Wrapped:
    """The same as a packet of Ethernet."""
    return what if what.kind == "ethernet" else in_ethernet(ethertype(what), what.octets)


def as_ip(what: Wrapped) -> Wrapped:
    """The datagram in a plain packet of Ethernet, or a datagram."""
    return Wrapped(what.octets[14:], "ip") if what.kind == "ethernet" else what


def vxlan(what: Wrapped, number: int, port: int = 4789) -> Wrapped:
    head = struct.pack("!II", 0x08000000, number << 8)
    return in_ip(17, udp(port, head + as_ethernet(what).octets))


def vxlan_gpe(what: Wrapped, number: int) -> Wrapped:
    following = 3 if what.kind == "ethernet" else {4: 1, 6: 2}[version(what.octets)]
    return in_ip(17, udp(4790, struct.pack("!II", 0x0C000000 | following, number << 8) + what.octets))


def geneve(what: Wrapped, number: int) -> Wrapped:
    options = b"\x01\x02\x80\x01\0\0\0\x09"
    head = struct.pack("!BBHI", len(options) // 4, 0, ethertype(what), number << 8)
    return in_ip(17, udp(6081, head + options + what.octets), six=True)


def gre(what: Wrapped, number: int) -> Wrapped:
    return in_ip(47, struct.pack("!HHHHI", 0xA000, ethertype(what), 0, 0, number) + what.octets)


def gre_without_key(what: Wrapped, number: int) -> Wrapped:
    return in_ip(47, struct.pack("!HHI", 0x1000, ethertype(what), number) + what.octets)


def erspan_1(what: Wrapped, number: int) -> Wrapped:
    return in_ip(47, struct.pack("!HH", 0, 0x88BE) + as_ethernet(what).octets)


def erspan_2(what: Wrapped, number: int) -> Wrapped:
    head = struct.pack("!HHIHHI", 0x1000, 0x88BE, 5, 0x1000, 0x0800 | number & 0x3FF, 0)
    return in_ip(47, head + as_ethernet(what).octets)


def erspan_3(what: Wrapped, number: int) -> Wrapped:
    head = struct.pack("!HHI", 0x1000, 0x22EB, 5)
    head += struct.pack("!HHIHH", 0x2000, number & 0x3FF, 7, 0, 1) + bytes(8)
    return in_ip(47, head + as_ethernet(what).octets)


def ip_in_ip(what: Wrapped, number: int) -> Wrapped:
    inner = as_ip(what)
    return in_ip(4 if version(inner.octets) == 4 else 41, inner.octets)


def ip_in_ip6(what: Wrapped, number: int) -> Wrapped:
    inner = as_ip(what)
    return in_ip(4 if version(inner.octets) == 4 else 41, inner.octets, six=True)


def ethernet_in_ip(what: Wrapped, number: int) -> Wrapped:
    return in_ip(97, b"\x30\0" + as_ethernet(what).octets)


def ethernet_in_ip6(what: Wrapped, number: int) -> Wrapped:
    return in_ip(143, as_ethernet(what).octets, six=True)


def authentication(what: Wrapped, number: int) -> Wrapped:
    inner = as_ip(what)
    head = struct.pack("!BBHII", 4 if version(inner.octets) == 4 else 41, 4, 0, number, 1) + bytes(12)
    return in_ip(51, head + inner.octets)


def labels(*numbers: int) -> bytes:
    last = len(numbers) - 1
    return b"".join(struct.pack("!I", n << 12 | (at == last) << 8 | 64) for at, n in enumerate(numbers))


def mpls(what: Wrapped, number: int) -> Wrapped:
    return in_ethernet(0x8847, labels(16 + number % 1000) + as_ip(what).octets)


def mpls_2(what: Wrapped, number: int) -> Wrapped:
    return in_ethernet(0x8847, labels(299_776, 16 + number % 1000) + as_ip(what).octets, (0x8100,))


def mpls_entropy(what: Wrapped, number: int) -> Wrapped:
    return in_ethernet(0x8847, labels(16 + number % 1000, 7, 77_777) + as_ip(what).octets)


def pseudowire(what: Wrapped, number: int) -> Wrapped:
    return in_ethernet(0x8847, labels(16 + number % 1000) + as_ethernet(what).octets)


def pseudowire_controlled(what: Wrapped, number: int) -> Wrapped:
    return in_ethernet(0x8847, labels(17, 16 + number % 1000) + bytes(4) + as_ethernet(what).octets)


def mpls_in_udp(what: Wrapped, number: int) -> Wrapped:
    return in_ip(17, udp(6635, labels(16 + number % 1000) + as_ip(what).octets))


def pppoe(what: Wrapped, number: int) -> Wrapped:
    inner = as_ip(what).octets
    protocol = 0x21 if version(inner) == 4 else 0x57
    head = struct.pack("!BBHHH", 0x11, 0, number & 0xFFFF, len(inner) + 2, protocol)
    return in_ethernet(0x8864, head + inner)


def snap(what: Wrapped, number: int) -> Wrapped:
    inner = as_ip(what)
    payload = b"\xaa\xaa\x03\0\0\0" + struct.pack("!H", ethertype(inner)) + inner.octets
    return in_ethernet(len(payload), payload)


def tags(what: Wrapped, number: int) -> Wrapped:
    octets = as_ethernet(what).octets
    return Wrapped(octets[:12] + b"\x88\xa8\0\x07\x81\0\0\x08" + octets[12:], "ethernet")


def backbone(what: Wrapped, number: int) -> Wrapped:
    return in_ethernet(0x88E7, struct.pack("!I", number & 0xFFFFFF) + as_ethernet(what).octets, (0x88A8,))


def gtp(what: Wrapped, number: int) -> Wrapped:
    inner = as_ip(what).octets
    optional = b"\0\0\0\x85" + b"\x01\0\x09\0"
    head = struct.pack("!BBHI", 0x34, 0xFF, len(inner) + len(optional), number)
    return in_ip(17, udp(2152, head + optional + inner))


def nsh(what: Wrapped, number: int) -> Wrapped:
    following = 3 if what.kind == "ethernet" else {4: 1, 6: 2}[version(what.octets)]
    return in_ethernet(0x894F, struct.pack("!BBBBI", 0x0F, 0xC6, 1, following, 9) + bytes(16) + what.octets)


def extended(what: Wrapped, number: int) -> Wrapped:
    inner = as_ip(what)
    options = bytes((60, 0)) + bytes(6) + bytes((4 if version(inner.octets) == 4 else 41, 1)) + bytes(14)
    return Wrapped(make.ipv6("fd00:9::1", "fd00:9::2", inner.octets, extensions=options, first=0), "ip")


Layer = Callable[[Wrapped, int], Wrapped]
# Those whose number tells connections apart, and the others.
NUMBERED: dict[str, Layer] = {
    each.__name__: each
    for each in (
        vxlan, vxlan_gpe, geneve, gre, erspan_2, erspan_3, mpls, mpls_2, mpls_entropy, pseudowire,
        pseudowire_controlled, mpls_in_udp, pppoe, backbone, gtp,
    )
}  # fmt: skip
LAYERS: dict[str, Layer] = NUMBERED | {
    each.__name__: each
    for each in (
        gre_without_key, erspan_1, ip_in_ip, ip_in_ip6, ethernet_in_ip, ethernet_in_ip6, authentication, snap,
        tags, nsh, extended,
    )
}  # fmt: skip


def packets(what: list[make.Recorded], layers: list[Layer], number: int = 42) -> list[make.Recorded]:
    """Packets of Ethernet in layers, the innermost first."""
    return [packet(each, layers, number) for each in what]


def packet(what: make.Recorded, layers: list[Layer], number: int = 42) -> make.Recorded:
    """A packet of Ethernet in layers."""
    inner = Wrapped(what.octets, "ethernet")
    for layer in layers:
        inner = layer(as_plain(inner, layer), number)
    return make.Recorded(what.time_ns, as_ethernet(inner).octets, what.stream, what.begin, what.end)


def as_plain(what: Wrapped, layer: Layer) -> Wrapped:
    """What a layer can carry: those for IP alone put an Ethernet that is not plain into IP first."""
    if what.kind == "ethernet" and what.octets[12:14] not in (b"\x08\0", b"\x86\xdd") and layer in _OF_IP:
        return ethernet_in_ip(what, 0)
    return what


_OF_IP = (
    ip_in_ip, ip_in_ip6, authentication, mpls, mpls_2, mpls_entropy, mpls_in_udp, pppoe, snap, gtp, extended,
)  # fmt: skip


def nesting(rng: random.Random, most: int = 5) -> list[Layer]:
    """Some layers, one inside the other."""
    return [rng.choice(list(LAYERS.values())) for _ in range(rng.randrange(1, most + 1))]


def fragments(datagram: bytes, size: int, identification: int = 9) -> list[bytes]:
    """A datagram of IPv4 or IPv6 in fragments of so many octets, a multiple of 8."""
    if version(datagram) == 4:
        head, payload = datagram[:20], datagram[20:]
    else:
        head, payload = datagram[:40], datagram[40:]
    found = []
    for start in range(0, len(payload), size):
        piece, more = payload[start : start + size], start + size < len(payload)
        if version(datagram) == 4:
            place = struct.pack("!HHH", 20 + len(piece), identification, more << 13 | start // 8)
            found.append(head[:2] + place + head[8:] + piece)
        else:
            extension = struct.pack("!BBHI", head[6], 0, start | more, identification)
            found.append(head[:4] + struct.pack("!HB", 8 + len(piece), 44) + head[7:] + extension + piece)
    return found
