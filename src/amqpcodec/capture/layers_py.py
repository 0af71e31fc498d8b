"""From the first octet of a packet to its TCP header, through link layers, tags, labels and tunnels.

One text for both builds: layers_c is this file, compiled. Each layer is a method: it moves `at` behind its
own header, and returns the layer that follows or how the walk ends. A walk visits each octet a bounded number
of times.

Numbers and layouts: RFC 791, 8200, 4302 (IP), 2784, 2890, 2637 (GRE), 3032, 4448 (MPLS), 7348 (VXLAN), 8926
(Geneve), 8300 (NSH), draft-foschiano-erspan, 3GPP TS 29.281 (GTP-U).
"""

from __future__ import annotations

from .constants import (
    AUTHENTICATION,
    BY_VERSION,
    ENCRYPTED,
    ERSPAN,
    ESP,
    ESP_IN_UDP,
    ETHERNET,
    EXTENSION,
    EXTENSION_CUT,
    EXTENSION_DAMAGED,
    FOREIGN,
    FRAGMENT,
    GENEVE,
    GRE,
    GTP,
    HEADER_CUT,
    IPCOMP,
    IPV4,
    IPV4_CUT,
    IPV4_DAMAGED,
    IPV6,
    IPV6_CUT,
    IPV6_DAMAGED,
    LLC,
    MOST_HEADERS,
    MPLS,
    NSH,
    OF_ERSPAN,
    OF_GENEVE,
    OF_GRE,
    OF_GTP,
    OF_MPLS,
    OF_VXLAN,
    PPP,
    PPPOE,
    TAGGED,
    TCP,
    TOO_DEEP,
    UDP,
    UNKNOWN_PROTOCOL,
    UNKNOWN_TUNNEL,
    UNREAD,
    VXLAN,
    WIREGUARD,
    WLAN,
)  # fmt: skip
from .links_py import Links

__all__ = ["Walk"]

# A datagram from or to a lower port is between a service and a client, whose port is whatever was free.
_LEAST_OF_TUNNELS = 1024
_ENTROPY = 7  # the MPLS label that says of the next one that it only spreads load


class Walk(Links):
    """Walks through the headers of packets, one packet after the other."""

    __slots__ = ()

    def run(self, linktype: int, data: bytes, size: int, end: int) -> int:
        """Walk through a packet; returns how it ends.

        Args:
            linktype: LINKTYPE number of its interface.
            data: its octets.
            size: how many of them there are.
            end: how many there were on the wire.
        """
        self.data = data
        self.size = size
        self.end = end
        self.at = self.depth = self.headers = self._sequenced = 0
        return self._walk(ETHERNET if linktype == 1 else self._link(linktype))

    def resume(self, data: bytes, size: int, end: int) -> int:
        """Go on with a datagram of IP that was put together from fragments."""
        self.data = data
        self.size = size
        self.end = end
        self.at = 0
        self.headers -= 1
        return self._walk(BY_VERSION)

    def _walk(self, layer: int) -> int:
        while layer > UNREAD:
            if layer == IPV4:
                layer = self._ipv4()
            elif layer == UDP:
                layer = self._udp()
            elif layer == ETHERNET:
                layer = self._ethernet()
            elif layer == IPV6:
                layer = self._ipv6()
            else:
                layer = self._other(layer)
        return layer

    def _other(self, layer: int) -> int:
        if layer == VXLAN:
            return self._vxlan()
        if layer == GENEVE:
            return self._geneve()
        if layer == GRE:
            return self._gre()
        if layer == ERSPAN:
            return self._erspan()
        if layer == MPLS:
            return self._mpls()
        if layer == TAGGED:
            return self._tagged()
        if layer == AUTHENTICATION:
            return self._authentication()
        if layer == PPPOE:
            return self._pppoe()
        if layer == PPP:
            return self._ppp()
        if layer == LLC:
            return self._llc()
        if layer == NSH:
            return self._nsh()
        if layer == GTP:
            return self._gtp()
        return self._wlan() if layer == WLAN else self._by_version()

    # -- what follows a number

    def _protocol(self, protocol: int) -> int:
        """The layer that an IP protocol number means."""
        if protocol == 6:
            return TCP
        if protocol == 17:
            return UDP
        if protocol == 4:
            return IPV4
        if protocol == 41:
            return IPV6
        if protocol == 47:
            return GRE
        if protocol == 51:
            return AUTHENTICATION
        if self.address_size == 16 and protocol in (0, 43, 44, 60, 135, 139, 140):
            return EXTENSION
        if protocol == 137:
            return MPLS
        if protocol == 143:
            return ETHERNET
        if protocol in (50, 108):
            return self._unread(ENCRYPTED, ESP if protocol == 50 else IPCOMP)
        if protocol == 97:
            self.at += 2  # Ethernet in IP (RFC 3378)
            return ETHERNET
        return FOREIGN if _is_without_tcp(protocol) else self._unread(UNKNOWN_PROTOCOL, protocol)

    # -- IP

    def _by_version(self) -> int:
        """IP, as the first four bits say which."""
        if self.size <= self.at:
            return FOREIGN
        version = self.data[self.at] >> 4
        if version == 4:
            return IPV4
        return IPV6 if version == 6 else FOREIGN

    def _ipv4(self) -> int:
        data, at = self.data, self.at
        if self.size < at + 20:
            return self._unread(IPV4_CUT, 0)
        first = data[at]
        header = (first & 15) * 4
        total = data[at + 2] << 8 | data[at + 3]
        if first >> 4 != 4 or header < 20 or 0 < total < header:
            return self._unread(IPV4_DAMAGED, 0)
        self.headers += 1
        if self.headers > MOST_HEADERS:
            return self._unread(TOO_DEEP, 0)
        if (
            total and self.end > at + total
        ):  # 0 is what packets have that the network card was still to cut up
            self.end = at + total
        self.ip = at
        self.addresses = at + 12
        self.address_size = 4
        self.at = at + header
        protocol = data[at + 9]
        if (data[at + 6] & 0x3F) | data[at + 7]:  # more fragments, or an offset
            layer = self._protocol(protocol)
            return FRAGMENT if layer > UNREAD or layer == TCP else layer
        if protocol == 6:
            return TCP
        return UDP if protocol == 17 else self._protocol(protocol)

    def _ipv6(self) -> int:
        data, at = self.data, self.at
        if self.size < at + 40:
            return self._unread(IPV6_CUT, 0)
        if data[at] >> 4 != 6:
            return self._unread(IPV6_DAMAGED, 0)
        self.headers += 1
        if self.headers > MOST_HEADERS:
            return self._unread(TOO_DEEP, 0)
        length = data[at + 4] << 8 | data[at + 5]
        self.ip = at
        self.addresses = at + 8
        self.address_size = 16
        self.at = at + 40
        if length and self.end > self.at + length:
            self.end = self.at + length
        self.fragment = -1
        layer = self._protocol(data[at + 6])
        return self._extensions(data[at + 6]) if layer == EXTENSION else layer

    def _extensions(self, protocol: int) -> int:
        """The extension headers of IPv6, which give their own length, and what follows them."""
        data = self.data
        layer = EXTENSION
        while layer == EXTENSION:
            at = self.at
            if self.size < at + 8:
                return self._unread(EXTENSION_CUT, 6)
            following = data[at]
            if protocol != 44:
                self.at = at + (data[at + 1] + 1) * 8
            else:
                self.at = at + 8
                if (data[at + 2] << 8 | data[at + 3]) & 0xFFF9:
                    self.fragment = at
                    layer = self._protocol(following)
                    return FRAGMENT if layer > UNREAD or layer == TCP else layer
            protocol = following
            layer = self._protocol(protocol)
        return self._extended(layer)

    def _extended(self, layer: int) -> int:
        """A layer behind extension headers, which may lie behind the end of the datagram."""
        if self.at > self.end and layer != FOREIGN and layer != UNREAD:
            return self._unread(EXTENSION_DAMAGED, 4 if self.address_size == 4 else 6)
        return layer

    def _authentication(self) -> int:
        """The authentication header: what follows it is not encrypted."""
        at = self.at
        if self.size < at + 8:
            return self._unread(EXTENSION_CUT, 4 if self.address_size == 4 else 6)
        self.at = at + (self.data[at + 1] + 2) * 4
        layer = self._protocol(self.data[at])
        if layer == EXTENSION:
            return self._extensions(self.data[at])
        return self._extended(layer)

    # -- tunnels

    def _udp(self) -> int:
        """Tunnels in UDP, by their port; VXLAN on any port, by its header."""
        data, at = self.data, self.at
        if self.size < at + 16:  # none has less
            return FOREIGN
        source = data[at] << 8 | data[at + 1]
        port = data[at + 2] << 8 | data[at + 3]
        length = data[at + 4] << 8 | data[at + 5]
        if length >= 8 and self.end > at + length:
            self.end = at + length
        self.at = at + 8
        if port < _LEAST_OF_TUNNELS or source < _LEAST_OF_TUNNELS:
            return FOREIGN
        if port == 4789 or port == 8472 or port == 4790:
            return VXLAN if data[at + 8] & 12 and self._is_vxlan(at + 8) else FOREIGN
        if port == 6081:
            return GENEVE
        if port == 6635:
            return MPLS
        if port == 2152:
            return GTP
        if port == 4500 or source == 4500:
            return self._unread(ENCRYPTED, ESP_IN_UDP) if self._u32(at + 8) else FOREIGN
        if port == 51820 or source == 51820:
            known = 1 <= data[at + 8] <= 4 and not self._u32(at + 8) & 0xFFFFFF
            return self._unread(ENCRYPTED, WIREGUARD) if known else FOREIGN
        if port == 1701 or source == 1701:  # L2TP; the highest bit is that of its own messages
            known = data[at + 8] < 0x80 and data[at + 9] & 15 == 2
            return self._unread(UNKNOWN_TUNNEL, 1701) if known else FOREIGN
        if self._u32(at + 8) == 0x08000000 and not data[at + 15] and self._is_ethernet(at + 16):
            return VXLAN
        return FOREIGN

    def _is_vxlan(self, at: int) -> bool:
        """Return whether reserved bits are 0 where a header of VXLAN may begin, or Ethernet follows."""
        data = self.data
        flags, second = data[at], data[at + 1]
        if flags == 8:
            reserved = second | data[at + 2] | data[at + 3]
        elif flags & 4:  # the extension that says what is inside
            reserved = flags & 0xF0 | second | data[at + 2]
        else:  # that of policies
            reserved = flags & 0x77 | second & 0xB7
        return not reserved | data[at + 7] or self._is_ethernet(at + 8)

    def _vxlan(self) -> int:
        """VXLAN, and its extension that says what is inside."""
        data, at = self.data, self.at
        self.at = at + 8
        layer = ETHERNET
        if data[at] & 4 and data[at + 3]:
            layer = self._of_service(data[at + 3])
        return self._enter(OF_VXLAN, data[at + 4] << 16 | data[at + 5] << 8 | data[at + 6], layer)

    def _of_service(self, number: int) -> int:
        """The layer that follows, as VXLAN-GPE and NSH number it."""
        if number == 1:
            return IPV4
        if number == 2:
            return IPV6
        if number == 3:
            return ETHERNET
        if number == 4:
            return NSH
        return MPLS if number == 5 else self._unread(UNKNOWN_TUNNEL, number)

    def _nsh(self) -> int:
        at = self.at
        if self.size < at + 8:
            return self._unread(HEADER_CUT, 0)
        length = (self.data[at + 1] & 0x3F) * 4
        self.at = at + length
        return self._of_service(self.data[at + 3]) if length >= 8 else FOREIGN

    def _geneve(self) -> int:
        data, at = self.data, self.at
        if data[at] >> 6 or data[at + 1] & 0x3F or data[at + 7]:  # of a version that nobody has defined
            return FOREIGN
        self.at = at + 8 + (data[at] & 0x3F) * 4
        protocol = self._u16(at + 2)
        if not protocol:  # a message of those who run the tunnel
            return FOREIGN
        layer = self._ethertype(protocol)
        return self._enter(OF_GENEVE, data[at + 4] << 16 | data[at + 5] << 8 | data[at + 6], layer)

    def _gtp(self) -> int:
        """GTP-U, which carries what phones send; its extension headers give their own length."""
        data, at = self.data, self.at
        if data[at] >> 3 != 6 or data[at + 1] != 0xFF or self.end < at + 8 + self._u16(at + 2):
            return FOREIGN
        number = self._u32(at + 4)
        self.at = at + 8 + (4 if data[at] & 7 else 0)
        while data[at] & 4 and self.at < self.size and data[self.at - 1]:
            if not data[self.at]:
                return FOREIGN
            self.at += data[self.at] * 4
            if self.at > self.size:
                return self._unread(HEADER_CUT, 0)
        return self._enter(OF_GTP, number, BY_VERSION)

    def _gre(self) -> int:
        """GRE, and its variant for PPP."""
        at = self.at
        if self.size < at + 4:
            return self._unread(HEADER_CUT, 0)
        flags, protocol = self._u16(at), self._u16(at + 2)
        version = flags & 7
        self._sequenced = flags & 0x1000
        at += 8 if flags & 0xC000 else 4
        key_at = at
        at += (
            (4 if flags & 0x2000 else 0)
            + (4 if flags & 0x1000 else 0)
            + (4 if version and flags & 0x80 else 0)
        )
        if self.size < at:
            return self._unread(HEADER_CUT, 0)
        self.at = at
        if version > 1 or flags & 0x4000:  # source routing is gone from the standard
            return self._unread(UNKNOWN_TUNNEL, 256 + version)
        if not protocol or (version and not flags & 0x1000):  # keep-alives and acknowledgements
            return FOREIGN
        if protocol == 0x883E:  # WCCP; its second version has a header of its own
            if self.size > at and self.data[at] >> 4 != 4:
                self.at = at + 4
            layer = IPV4
        else:
            layer = self._ethertype(protocol)
        if flags & 0x2000:  # the lower half of the key is the call's, where the upper is a length
            number = self._u32(key_at)
            if version:
                number &= 0xFFFF
            layer = self._enter(OF_GRE, number, layer)
        return layer

    def _erspan(self) -> int:
        """A mirrored packet: without a header of its own where GRE has no sequence number."""
        data, at = self.data, self.at
        if not self._sequenced:
            return ETHERNET
        if self.size < at + 12:
            return self._unread(HEADER_CUT, 0)
        layer = ETHERNET
        if data[at] >> 4 == 1:
            self.at = at + 8
        else:
            self.at = at + (20 if data[at + 11] & 1 else 12)
            if data[at + 10] & 0x7C == 8:
                layer = BY_VERSION
        return self._enter(OF_ERSPAN, self._u16(at + 2) & 0x3FF, layer)

    def _mpls(self) -> int:
        """Labels, and what follows the last: IP, or Ethernet, perhaps with a control word before it."""
        data, label, spreads = self.data, 0, False
        last = False
        while not last:
            at = self.at
            if self.size < at + 5:
                return self._unread(HEADER_CUT, 0)
            label = data[at] << 12 | data[at + 1] << 4 | data[at + 2] >> 4
            last = data[at + 2] & 1 != 0
            self.at = at + 4
            if label >= 16 and not spreads and self._enter(OF_MPLS, label, MPLS) == UNREAD:
                return UNREAD
            spreads = label == _ENTROPY
        if label in (13, 14):  # of those who run the network
            return FOREIGN
        at = self.at
        version = data[at] >> 4
        if version == 4 or version == 6:
            layer = IPV4 if version == 4 else IPV6
            return layer if self._is_ip(at) or not self._is_ethernet(at) else ETHERNET
        if version == 1:  # of those who run the pseudowire
            return FOREIGN
        if not version and not self._is_ethernet(at):
            self.at = at + 4
        return ETHERNET


def _is_without_tcp(protocol: int) -> bool:
    """Return whether an IP protocol number is known, and carries no TCP.

    ICMP, IGMP, GGP, EGP, IGP, HMP, RDP, DCCP, IDRP, RSVP, ICMPv6, none, VMTP, EIGRP, OSPF, LARP, AX.25,
    PNNI, PIM, SCPS, QNX, Compaq's, IPX, VRRP and CARP, PGM, SRP, SMP, PTP, IS-IS, FIRE, Fibre Channel, SCTP,
    HIP, UDP-Lite, MANET, shim6, pfsync.
    """
    return protocol in (
        1, 2, 3, 8, 9, 20, 27, 33, 45, 46, 58, 59, 81, 88, 89, 91, 93, 102, 103, 105, 106, 110, 111, 112, 113,
        119, 121, 123, 124, 125, 132, 133, 134, 135, 136, 138, 139, 140, 240,
    )  # fmt: skip
