"""Link layers, and what Ethernet and the like carry: the first part of a walk through a packet.

One text for both builds: links_c is this file, compiled.

Numbers and layouts: the LINKTYPE registry (draft-ietf-opsawg-pcaplinktype), IEEE 802.1Q, 802.1ah, 802.2,
802.11, RFC 2516, 1661 (PPP).
"""

from __future__ import annotations

from .._typing import PURE
from .constants import (
    BY_VERSION,
    ENCRYPTED,
    ERSPAN,
    ETHERNET,
    EXPORTED,
    FOREIGN,
    HEADER_CUT,
    IPV4,
    IPV6,
    LLC,
    MACSEC,
    MOST_HEADERS,
    MOST_NUMBERS,
    MPLS,
    MPPE,
    NSH,
    OF_PPPOE,
    OF_SERVICE,
    PPP,
    PPPOE,
    TAGGED,
    TOO_DEEP,
    UNKNOWN_ETHERTYPE,
    UNKNOWN_LINK,
    UNKNOWN_PPP,
    UNREAD,
    WLAN,
    WPA,
)  # fmt: skip

__all__ = ["Links"]


class Links:
    """A walk through the headers of a packet, as far as link layers know. It keeps nothing of earlier ones.

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
        "_sequenced", "address_size", "addresses", "at", "data", "depth", "detail", "end", "fragment",
        "headers", "ip", "numbers", "reason", "size",
    )  # fmt: skip

    if PURE:

        def __init__(self) -> None:
            self.data = b""
            self.numbers = [0] * MOST_NUMBERS
            self.size = self.end = self.at = self.depth = self.headers = self.reason = self.detail = 0
            self.ip = self.addresses = self.address_size = self.fragment = self._sequenced = 0

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
        """The layer behind an Ethernet protocol number at an offset."""
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
        if protocol < 0x0600:  # numbers of Linux alone: LLC, and others that carry no IP
            return LLC if protocol == 4 else FOREIGN
        return self._ethertype(protocol)

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
        """Radiotap, PPI and PKTAP: a header of the recorder with its length, and perhaps its content."""
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
                length = data[at] << 8 | data[at + 1]
                kind = data[at + 3]
            else:
                length = data[at] | data[at + 1] << 8
                kind = data[at + 2]
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
        return self._enter(OF_PPPOE, self.data[at + 2] << 8 | self.data[at + 3], PPP)

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
        # OSI, XNS, DECnet, AppleTalk, IPX, VINES, NetBIOS, hellos, CDP; above are those that only negotiate.
        if protocol in (0x23, 0x25, 0x27, 0x29, 0x2B, 0x35, 0x3F, 0x0201, 0x0203, 0x0205, 0x0207):
            return FOREIGN
        return FOREIGN if protocol >= 0x8000 else self._unread(UNKNOWN_PPP, protocol)

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

    def _is_ethernet(self, at: int) -> bool:
        """Return whether Ethernet may begin here, as its protocol number says, with IP where that says IP."""
        at += 12
        while at + 2 < self.size:
            protocol = self._u16(at)
            at += 2
            if protocol == 0x0800:
                return self.data[at] >> 4 == 4 and self._is_ip(at)
            if protocol == 0x86DD:
                return self.data[at] >> 4 == 6 and self._is_ip(at)
            if protocol < 0x0600:
                return self.data[at] in (0x42, 0xAA, 0xE0, 0xF0, 0xFE)
            if protocol not in (0x8100, 0x88A8, 0x9100, 0x9200):
                return protocol in (0x8847, 0x8848, 0x8864, 0x88E7) or _is_without_ip(protocol)
            at += 2
        return False

    def _is_ip(self, at: int) -> bool:
        """Return whether the length in a header of IP is one that there can be here."""
        if self.size < at + 6:
            return True
        if self.data[at] >> 4 == 6:
            return self.end >= at + 40 + self._u16(at + 4)
        total = self._u16(at + 2)
        return self.data[at] & 15 >= 5 and (not total or at + 20 <= at + total <= self.end)

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
        number = self.data[at]
        for place in range(at + 1, at + 4):
            number = number << 8 | self.data[place]
        return number


def _is_without_ip(protocol: int) -> bool:
    """Return whether an Ethernet protocol number is known, and carries no IP.

    OSI, XNS, X.25, ARP, wake-on-LAN, AVB, TRILL's routing, DECnet, RARP, AppleTalk, SNA, VINES, IPX, QNX,
    NetBIOS, flow control, slow protocols, CobraNet, PPPoE discovery, HomePlug, EAPOL, PROFINET, HyperSCSI,
    ATA, EtherCAT, Powerlink, WAPI, GOOSE, GSE, SV, TIPC, LLDP, SERCOS, E-LMI, MRP, PTP, NC-SI, PRP, CFM,
    FCoE, MIH, TDLS, RoCE, TTE, MIRP, loops, those of power lines, and those of single vendors.
    """
    return protocol in (
        0x00FE, 0x0600, 0x0805, 0x0806, 0x0808, 0x0842, 0x0BAD, 0x2000, 0x2001, 0x2003, 0x2004, 0x22EA,
        0x22F0, 0x22F4, 0x6000, 0x6001, 0x6002, 0x6003, 0x6004, 0x6005, 0x6006, 0x6007, 0x6008, 0x6009,
        0x8035, 0x8038, 0x8039, 0x803A, 0x803B, 0x803C, 0x803D, 0x803E, 0x803F, 0x8040, 0x8041, 0x8042,
        0x809B, 0x80C4, 0x80C5, 0x80D5, 0x80F3, 0x8137, 0x8138, 0x8191, 0x8204, 0x8808, 0x8809, 0x8819,
        0x8863, 0x886D, 0x886F, 0x887B, 0x888E, 0x8892, 0x8899, 0x889A, 0x88A2, 0x88A4, 0x88AB, 0x88B4,
        0x88B5, 0x88B6, 0x88B7, 0x88B8, 0x88B9, 0x88BA, 0x88BF, 0x88C7, 0x88CA, 0x88CC, 0x88CD, 0x88D9,
        0x88DC, 0x88E1, 0x88E3, 0x88EE, 0x88F5, 0x88F6, 0x88F7, 0x88F8, 0x88FB, 0x8902, 0x8906, 0x890D,
        0x890F, 0x8912, 0x8914, 0x8915, 0x8917, 0x891D, 0x8929, 0x893A, 0x8940, 0x9000, 0x9001, 0x9002,
        0x9003, 0xCAFE, 0xFEFE, 0xFFFF,
    )  # fmt: skip
