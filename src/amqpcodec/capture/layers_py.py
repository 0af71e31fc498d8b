"""From the first octet of a packet to its TCP header, through link layers, tags, labels and tunnels.

One text for both builds: layers_c is this file, compiled. Each layer is a method: it moves `at` behind its own
header, and returns the layer that follows or how the walk ends. A walk visits each octet a bounded number of
times.

Numbers and layouts: the LINKTYPE registry (draft-ietf-opsawg-pcaplinktype), IEEE 802.1Q and 802.1ah, RFC 791,
8200, 4302 (IP), 2784, 2890, 2637 (GRE), 3032, 4448 (MPLS), 7348 (VXLAN), 8926 (Geneve), 8300 (NSH), 2516, 1661
(PPP), draft-foschiano-erspan, 3GPP TS 29.281 (GTP-U).
"""

from __future__ import annotations

from .._typing import PURE

__all__ = ["Walk"]

# How a walk ends.
FOREIGN, TCP, FRAGMENT, EXPORTED, UNREAD = 0, 1, 2, 3, 4
# The layers. Those of one or two octets of numbers have a table each: `_ethertype`, `_protocol`.
IPV4, IPV6, BY_VERSION, ETHERNET, TAGGED, LLC, MPLS, PPP, PPPOE, UDP = 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
GRE, ERSPAN, EXTENSION, AUTHENTICATION, VXLAN, GENEVE, NSH, GTP, WLAN = 20, 21, 22, 23, 24, 25, 26, 27, 28
# Why a packet that may carry TCP is not read; `REASONS` of network.py has the texts.
UNKNOWN_LINK, UNKNOWN_ETHERTYPE, UNKNOWN_PROTOCOL, UNKNOWN_PPP, UNKNOWN_TUNNEL, ENCRYPTED = 1, 2, 3, 4, 5, 6
IPV4_CUT, IPV4_DAMAGED, IPV6_CUT, IPV6_DAMAGED, EXTENSION_CUT, EXTENSION_DAMAGED = 7, 8, 9, 10, 11, 12
HEADER_CUT, TOO_DEEP = 13, 14
# Which encryption, or compression, hides what is in a packet.
ESP, ESP_IN_UDP, IPCOMP, WIREGUARD, MACSEC, MPPE, WPA = 1, 2, 3, 4, 5, 6, 7
# Kinds of tunnels whose number tells connections with the same addresses apart.
OF_VXLAN, OF_GENEVE, OF_GRE, OF_ERSPAN, OF_MPLS, OF_PPPOE, OF_GTP, OF_SERVICE = 1, 2, 3, 4, 5, 6, 7, 8
MOST_NUMBERS = 12  # of tunnels and labels, one inside the other
MOST_HEADERS = 16  # of IP and Ethernet, one inside the other
_ENTROPY = 7  # the MPLS label that says of the next one that it only spreads load


class Walk:
    """Walks through the headers of packets, one packet after the other. It keeps nothing of them.

    Attributes:
        data: the octets of the packet.
        size: how many of them there are.
        at: where the next header begins; that of TCP, once it is found.
        end: octets of the packet on the wire that the innermost layer so far has.
        ip: where the last IP header begins.
        addresses: where its addresses begin.
        address_size: octets of one of them.
        fragment: where the fragment header of IPv6 begins; that of IPv4 is in its header.
        numbers: of the tunnels so far: the kind above the lower 32 bits.
        depth: how many there are.
        headers: how many of IP and Ethernet there were.
        reason: why the packet is not read.
        detail: more of that: the number of a protocol.
    """

    __slots__ = (
        "_sequenced", "address_size", "addresses", "at", "data", "depth", "detail", "end", "fragment", "headers",
        "ip", "numbers", "reason", "size",
    )  # fmt: skip

    if PURE:

        def __init__(self) -> None:
            self.data = b""
            self.numbers = [0] * MOST_NUMBERS
            self.size = self.end = self.at = self.depth = self.headers = self.reason = self.detail = 0
            self.ip = self.addresses = self.address_size = self.fragment = self._sequenced = 0

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
        return self._walk(self._link(linktype))

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

    def _ethertype(self, protocol: int) -> int:
        """The layer that an Ethernet protocol number means; `at` is behind the number."""
        if protocol == 0x0800:
            return IPV4
        if protocol == 0x86DD:
            return IPV6
        if protocol in (0x8100, 0x88A8, 0x9100, 0x9200):
            self.at += 2
            return TAGGED
        if protocol in (0x8847, 0x8848):
            return MPLS
        if protocol == 0x6558:
            return ETHERNET
        if protocol in (0x88BE, 0x22EB):
            return ERSPAN
        if protocol == 0x8864:
            return PPPOE
        if protocol == 0x880B:
            return PPP
        if protocol == 0x894F:
            return NSH
        if protocol == 0x88E7:
            return self._service()
        if protocol == 0x88E5:
            return self._unread(ENCRYPTED, MACSEC)
        if _is_without_ip(protocol):
            return FOREIGN
        return self._unread(UNKNOWN_ETHERTYPE, protocol)

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
        # ICMP, IGMP, routing, RSVP, ICMPv6, none, EIGRP, OSPF, PIM, VRRP, SCTP, UDP-Lite, DCCP, HIP, shim6
        if protocol in (1, 2, 3, 8, 9, 33, 46, 58, 59, 88, 89, 103, 112, 124, 132, 135, 136, 139, 140):
            return FOREIGN
        return self._unread(UNKNOWN_PROTOCOL, protocol)

    # -- link layers

    def _link(self, linktype: int) -> int:
        if linktype == 1:
            return ETHERNET
        if linktype in (12, 14, 101, 228, 229):  # RAW, as some systems number it in the file; IPV4, IPV6
            return BY_VERSION
        if linktype == 113 or linktype == 276:
            return self._cooked(linktype)
        if linktype in (0, 108):
            return self._loopback()
        if linktype in (9, 50):
            return PPP
        if linktype in (166, 204):  # PPP with the direction before it
            self.at += 1
            return PPP
        if linktype == 104:  # Cisco HDLC
            return self._by_number(2)
        if linktype == 105:
            return WLAN
        if linktype in (127, 192, 258, 149):
            return self._wrapped(linktype)
        if linktype == 239:
            return self._nflog()
        return EXPORTED if linktype == 252 else self._unread(UNKNOWN_LINK, linktype)

    def _by_number(self, offset: int) -> int:
        """What follows an Ethernet protocol number at an offset."""
        if self.size < self.at + offset + 2:
            return FOREIGN
        self.at += offset + 2
        return self._ethertype(self._u16(self.at - 2))

    def _cooked(self, linktype: int) -> int:
        """Linux cooked capture, version 1 and 2."""
        at = self.at
        self.at = at + (16 if linktype == 113 else 20)
        if self.size <= self.at:
            return FOREIGN
        protocol = self._u16(at + 14 if linktype == 113 else at)
        return LLC if protocol == 4 else self._ethertype(protocol)

    def _loopback(self) -> int:
        """BSD loopback: four octets of address family, in the byte order of whoever captured."""
        data, at = self.data, self.at
        if self.size <= at + 4:
            return FOREIGN
        family = data[at] + data[at + 3]
        if data[at + 1] or data[at + 2] or (data[at] and data[at + 3]):
            return FOREIGN
        # BSD systems number the IPv6 family differently; the first octet of what follows decides anyway.
        self.at = at + 4
        return BY_VERSION if family in (2, 10, 23, 24, 28, 30) else FOREIGN

    def _wrapped(self, linktype: int) -> int:
        """Radiotap, PPI and PKTAP: a header of the recorder that says how long it is, and perhaps what follows."""
        data, place = self.data, 0 if linktype == 258 or linktype == 149 else 2
        if self.size < 12:
            return FOREIGN
        length = data[place] | data[place + 1] << 8
        if linktype == 127:
            inside = 105
        else:
            place = 4 if linktype == 192 else 8
            inside = data[place] | data[place + 1] << 8
        if length < 8 or inside in (127, 192, 258, 149):
            return self._unread(UNKNOWN_LINK, linktype)
        self.at = length
        return self._link(inside)

    def _nflog(self) -> int:
        """Netfilter's log: attributes in the byte order of the recorder; the packet is one of them."""
        data, at = self.data, 4
        while at + 4 <= self.size:
            if data[at + 3]:  # kinds have small numbers
                length, kind = data[at] << 8 | data[at + 1], data[at + 3]
            else:
                length, kind = data[at] | data[at + 1] << 8, data[at + 2]
            if length < 4:
                break
            if kind == 9:
                self.at = at + 4
                self.end = min(self.end, at + length)
                return BY_VERSION
            at += (length + 3) // 4 * 4
        return self._unread(HEADER_CUT, 0)

    def _wlan(self) -> int:
        """IEEE 802.11: data frames, which are not encrypted, with LLC in them."""
        data, at = self.data, self.at
        if self.size < at + 24 or data[at] & 0x0C != 0x08 or data[at] & 0x40:
            return FOREIGN
        flags = data[at + 1]
        if flags & 0x40:
            return self._unread(ENCRYPTED, WPA)
        of_quality = data[at] & 0x80
        self.at = at + 24 + (6 if flags & 3 == 3 else 0) + (2 if of_quality else 0)
        if of_quality and flags & 0x80:
            self.at += 4
        return LLC

    def _ethernet(self) -> int:
        at = self.at
        if self.size < at + 14:
            return self._unread(HEADER_CUT, 0) if self.headers else FOREIGN
        self.headers += 1
        if self.headers > MOST_HEADERS:
            return self._unread(TOO_DEEP, 0)
        data = self.data
        if data[at + 12] == 8 and not data[at + 13]:
            self.at = at + 14
            return IPV4
        self.at = at + 12
        return self._tagged()

    def _tagged(self) -> int:
        """The protocol number at `at`, through any VLAN tags."""
        while self.at + 2 <= self.size:
            protocol = self._u16(self.at)
            self.at += 2
            if protocol < 0x0600:
                self.end = min(self.end, self.at + protocol)
                return LLC
            layer = self._ethertype(protocol)
            if layer != TAGGED:
                return layer
        return FOREIGN

    def _llc(self) -> int:
        """IEEE 802.2, perhaps with SNAP."""
        data, at = self.data, self.at
        if self.size < at + 8:
            return FOREIGN
        if data[at] == 0xAA and data[at + 1] == 0xAA and data[at + 2] == 3:
            self.at = at + 8
            protocol = self._u16(at + 6)
            bridged = data[at + 5] in (0, 0xF8) and not data[at + 3] | data[at + 4]
            return self._ethertype(protocol) if bridged and protocol >= 0x0600 else FOREIGN
        self.at = at + 3
        return IPV4 if data[at] == 6 and data[at + 1] == 6 and data[at + 2] == 3 else FOREIGN

    def _service(self) -> int:
        """The tag of a provider's backbone: a service number, and Ethernet."""
        if self.size < self.at + 4:
            return self._unread(HEADER_CUT, 0)
        self.at += 4
        return self._enter(OF_SERVICE, self._u32(self.at - 4) & 0xFFFFFF, ETHERNET)

    def _pppoe(self) -> int:
        at = self.at
        if self.size < at + 8:
            return self._unread(HEADER_CUT, 0)
        if self.data[at] != 0x11 or self.data[at + 1]:
            return FOREIGN
        self.at = at + 6
        self.end = min(self.end, self.at + self._u16(at + 4))
        return self._enter(OF_PPPOE, self._u16(at + 2), PPP)

    def _ppp(self) -> int:
        data, at = self.data, self.at
        if self.size < at + 4:
            return FOREIGN
        if data[at + 1] == 3 and data[at] in (0xFF, 0x0F, 0x8F):
            at += 2
        if data[at] & 1:  # a number of one octet
            protocol = data[at]
            self.at = at + 1
        else:
            protocol = self._u16(at)
            self.at = at + 2
        if protocol == 0x21:
            return IPV4
        if protocol == 0x57:
            return IPV6
        if protocol in (0x0281, 0x0283):
            return MPLS
        if protocol == 0xFD:
            return self._unread(ENCRYPTED, MPPE)
        # Above are those that only negotiate.
        return FOREIGN if protocol >= 0x8000 else self._unread(UNKNOWN_PPP, protocol)

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
        if total and self.end > at + total:  # 0 is what packets have that the network card was still to cut up
            self.end = at + total
        self.ip = at
        self.addresses = at + 12
        self.address_size = 4
        self.at = at + header
        layer = self._protocol(data[at + 9])
        if (data[at + 6] & 0x3F) | data[at + 7]:  # more fragments, or an offset
            return layer if layer == FOREIGN or layer == UNREAD else FRAGMENT
        return layer

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
                    return layer if layer == FOREIGN or layer == UNREAD else FRAGMENT
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
        port = data[at + 2] << 8 | data[at + 3]
        length = data[at + 4] << 8 | data[at + 5]
        if length >= 8 and self.end > at + length:
            self.end = at + length
        self.at = at + 8
        if data[at + 8] & 8 and (port == 4789 or port == 8472):
            return VXLAN
        if port == 6081:
            return GENEVE
        if port == 4790:
            return VXLAN
        if port == 6635:
            return MPLS
        if port == 2152:
            return GTP
        if port == 4500 or self._u16(at) == 4500:
            return self._unread(ENCRYPTED, ESP_IN_UDP) if self._u32(at + 8) else FOREIGN
        if port == 51820 or self._u16(at) == 51820:
            known = 1 <= data[at + 8] <= 4 and not self._u32(at + 8) & 0xFFFFFF
            return self._unread(ENCRYPTED, WIREGUARD) if known else FOREIGN
        if self._u32(at + 8) == 0x08000000 and not data[at + 15] and self._is_ethernet(at + 16):
            return VXLAN
        return FOREIGN

    def _vxlan(self) -> int:
        """VXLAN, and its extension that says what is inside."""
        data, at = self.data, self.at
        self.at = at + 8
        layer = ETHERNET
        if data[at] & 4 and data[at + 3]:
            layer = self._of_service(data[at + 3])
        return self._enter(OF_VXLAN, self._u32(at + 4) >> 8, layer)

    def _of_service(self, number: int) -> int:
        """What follows, as VXLAN-GPE and NSH number it."""
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
        if data[at] >> 6:  # of a version that nobody has defined
            return FOREIGN
        self.at = at + 8 + (data[at] & 0x3F) * 4
        protocol = self._u16(at + 2)
        if not protocol:  # a message of those who run the tunnel
            return FOREIGN
        layer = self._ethertype(protocol)
        return self._enter(OF_GENEVE, self._u32(at + 4) >> 8, layer)

    def _gtp(self) -> int:
        """GTP-U, which carries what phones send; its extension headers give their own length."""
        data, at = self.data, self.at
        if data[at] >> 4 != 3 or data[at + 1] != 0xFF:
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
        at += (4 if flags & 0x2000 else 0) + (4 if flags & 0x1000 else 0) + (4 if version and flags & 0x80 else 0)
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
            layer = self._enter(OF_GRE, self._u16(key_at + 2) if version else self._u32(key_at), layer)
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
            label = self._u32(at) >> 12
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
            return layer if not self._is_ethernet(at) or self._is_ip(at) else ETHERNET
        if version == 1:  # of those who run the pseudowire
            return FOREIGN
        if not version and not self._is_ethernet(at):
            self.at = at + 4
        return ETHERNET

    def _is_ip(self, at: int) -> bool:
        """Return whether the length in a header of IP is one that there can be here."""
        if self.size < at + 6:
            return True
        if self.data[at] >> 4 == 6:
            return self.end >= at + 40 + self._u16(at + 4)
        total = self._u16(at + 2)
        return self.data[at] & 15 >= 5 and (not total or at + 20 <= at + total <= self.end)

    def _is_ethernet(self, at: int) -> bool:
        """Return whether Ethernet may begin here, as its protocol number says, with IP where that says IP."""
        at += 12
        while at + 2 < self.size:
            protocol = self._u16(at)
            at += 2
            if protocol == 0x0800:
                return self.data[at] >> 4 == 4
            if protocol == 0x86DD:
                return self.data[at] >> 4 == 6
            if protocol < 0x0600:
                return self.data[at] in (0x42, 0xAA, 0xE0, 0xF0, 0xFE)
            if protocol not in (0x8100, 0x88A8, 0x9100, 0x9200):
                return protocol in (0x8847, 0x8848, 0x8864, 0x88E7) or _is_without_ip(protocol)
            at += 2
        return False

    # -- helpers

    def _enter(self, kind: int, number: int, layer: int) -> int:
        """Note the number of a tunnel, before the layer in it; an end of the walk stays one."""
        if layer <= UNREAD:
            return layer
        if self.depth == MOST_NUMBERS:
            return self._unread(TOO_DEEP, 0)
        self.numbers[self.depth] = (kind << 32) + number
        self.depth += 1
        return layer

    def _unread(self, reason: int, detail: int) -> int:
        self.reason = reason
        self.detail = detail
        return UNREAD

    def _u16(self, at: int) -> int:
        return self.data[at] << 8 | self.data[at + 1]

    def _u32(self, at: int) -> int:
        return self._u16(at) * 65536 + self._u16(at + 2)


def _is_without_ip(protocol: int) -> bool:
    """Return whether an Ethernet protocol number is known, and carries no IP.

    ARP, wake-on-LAN, DECnet, RARP, AppleTalk, IPX, flow control, slow protocols (LACP), PPPoE discovery, EAPOL,
    PROFINET, HyperSCSI, ATA, EtherCAT, Powerlink, GOOSE, GSE, SV, LLDP, SERCOS, MRP, PTP, PRP, CFM, FCoE, TTE,
    HSR, loops, TDLS, RoCE, and those of single vendors.
    """
    return protocol in (
        0x0806, 0x0842, 0x22EA, 0x22F0, 0x22F3, 0x22F4, 0x2000, 0x2001, 0x2004, 0x6000, 0x6001, 0x6002, 0x6003,
        0x6004, 0x6005, 0x6006, 0x6007, 0x8035, 0x809B, 0x80F3, 0x8137, 0x8138, 0x8204, 0x8808, 0x8809, 0x8863,
        0x886D, 0x886F, 0x887B, 0x888E, 0x8892, 0x8899, 0x889A, 0x88A2, 0x88A4, 0x88AB, 0x88B5, 0x88B6, 0x88B7,
        0x88B8, 0x88B9, 0x88BA, 0x88C7, 0x88CC, 0x88CD, 0x88D9, 0x88DC, 0x88E1, 0x88E3, 0x88F5, 0x88F6, 0x88F7,
        0x88FB, 0x8902, 0x8906, 0x8914, 0x890D, 0x8915, 0x891D, 0x892F, 0x8940, 0x893A, 0x9000, 0xCAFE, 0xFFFF,
    )  # fmt: skip
