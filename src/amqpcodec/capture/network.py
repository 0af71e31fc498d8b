"""From a packet to its TCP segment: the layers before TCP, and TCP.

Between packets, counts of those that cannot be read are kept, fragments, and positions of exported payloads.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from .._state import Fields
from . import constants as layers
from .exported import Exported, ExportError
from .fragments import Datagram, Fragment, Fragments
from .layers_py import Walk
from .model import Endpoint, Fault, Packet, Segment

SYN, FIN, RST, ACK = 0x02, 0x01, 0x04, 0x10
_HEADER = struct.Struct("!HHIIBB")
# Ethernet, IPv4 and TCP headers without options before those of TCP.
_COMMON = struct.Struct("!12xHBxH2xHxB2x4s4sHHIIBB")
_ETHERNET = 1
_ETHERTYPE_IPV4 = 0x0800
_IPV4_OF_20_OCTETS = 0x45
_TCP = 6
_FRAGMENT = 0x3FFF  # more fragments, or an offset
_IPV4_AT, _TCP_AT, _LEAST = 14, 34, 54  # octets before IP, before TCP, and before the least payload
_RAW_IP = 101
_NO_LENGTH = b"\0\0"
_new = tuple.__new__  # which costs half of what a call of the class does

_REASONS = {
    layers.UNKNOWN_LINK: "link type {} is not supported",
    layers.UNKNOWN_ETHERTYPE: "Ethernet protocol 0x{:04x} is not known here",
    layers.UNKNOWN_PROTOCOL: "IP protocol {} is not known here",
    layers.UNKNOWN_PPP: "PPP protocol 0x{:04x} is not known here",
    layers.UNKNOWN_TUNNEL: "a tunnel of a form that is not known here ({})",
    layers.IPV4_CUT: "IPv4 header cut off",
    layers.IPV4_DAMAGED: "damaged IPv4 header",
    layers.IPV6_CUT: "IPv6 header cut off",
    layers.IPV6_DAMAGED: "damaged IPv6 header",
    layers.EXTENSION_CUT: "IPv{} extension header cut off",
    layers.EXTENSION_DAMAGED: "damaged IPv{} extension header",
    layers.HEADER_CUT: "header of a tunnel cut off",
    layers.TOO_DEEP: "too many tunnels, one inside the other",
}
_ENCRYPTED = {
    layers.ESP: "ESP, which is encrypted",
    layers.ESP_IN_UDP: "ESP in UDP, which is encrypted",
    layers.IPCOMP: "IPComp, which is compressed",
    layers.WIREGUARD: "WireGuard, which is encrypted",
    layers.MACSEC: "MACsec, which is encrypted",
    layers.MPPE: "PPP that is compressed or encrypted",
    layers.WPA: "IEEE 802.11 that is encrypted",
}
_TUNNELS = {
    layers.OF_VXLAN: "vxlan",
    layers.OF_GENEVE: "geneve",
    layers.OF_GRE: "gre",
    layers.OF_ERSPAN: "erspan",
    layers.OF_MPLS: "mpls",
    layers.OF_PPPOE: "pppoe",
    layers.OF_GTP: "gtp",
    layers.OF_SERVICE: "i-sid",
}
_FRAGMENTED = "fragments of IPv{} datagrams that are not whole"


class PacketError(Exception):
    """A packet that may carry TCP but cannot be read; the text is the reason, the same for all alike."""


def tcp_segment(packet: Packet) -> Segment | None:
    """The TCP segment in a packet, in whatever tunnels; None for a packet of another protocol.

    Raises:
        PacketError: TCP may be in it, but is fragmented, encrypted, cut off before its header ends, or
            damaged; or a layer is not known here.
    """
    segment = _common_segment(packet)
    if segment is not None:
        return segment
    walk = Walk()
    outcome = walk.run(packet.linktype, packet.data, len(packet.data), packet.original_length)
    if outcome == layers.FRAGMENT:
        raise PacketError(_FRAGMENTED.format(_version(walk)))
    return _segment(packet, walk) if _carries_tcp(outcome, walk) else None


@lru_cache(4096)
def tunnel_name(numbers: tuple[int, ...]) -> str:
    """Return the name of the tunnels whose numbers a walk has found."""
    return ", ".join(f"{_TUNNELS[number >> 32]} {number & 0xFFFFFFFF}" for number in numbers)


def _common_segment(packet: Packet) -> Segment | None:
    """Return the segment in a packet as nearly all are, in one go; None where the layers have to look."""
    number, time_ns, linktype, data, original_length = packet
    if linktype != _ETHERNET or len(data) < _LEAST:
        return None
    protocol, version, total, fragment, carried, *ends, seq, ack, offset, flags = _COMMON.unpack_from(data)
    if (
        protocol != _ETHERTYPE_IPV4
        or version != _IPV4_OF_20_OCTETS
        or carried != _TCP
        or fragment & _FRAGMENT
    ):
        return None
    end, payload = _IPV4_AT + total, _TCP_AT + (offset >> 4) * 4
    if not _LEAST <= payload <= end <= original_length:
        return None
    source, destination, source_port, destination_port = ends
    sender = _new(Endpoint, (source, source_port, ""))
    receiver = _new(Endpoint, (destination, destination_port, ""))
    row = number, time_ns, sender, receiver, seq, ack, flags, data[payload:end], end - payload
    return _new(Segment, row)


def _carries_tcp(outcome: int, walk: Walk) -> bool:
    """Return whether a walk has ended at TCP.

    Raises:
        PacketError: it ended where there may be some.
    """
    if outcome != layers.UNREAD:
        return outcome == layers.TCP
    if walk.reason == layers.ENCRYPTED:
        raise PacketError(_ENCRYPTED[walk.detail])
    raise PacketError(_REASONS[walk.reason].format(walk.detail))


def _segment(packet: Packet, walk: Walk) -> Segment:
    data, start, end = walk.data, walk.at, walk.end
    if min(end, len(data)) - start < 20:
        raise PacketError("TCP header cut off")
    source_port, destination_port, seq, ack, offset, flags = _HEADER.unpack_from(data, start)
    size = (offset >> 4) * 4
    payload = start + size
    if size < 20 or payload > end:
        raise PacketError("TCP header of an impossible length")
    tunnel = _tunnel_of(walk)
    middle = walk.addresses + walk.address_size
    sender = _new(Endpoint, (data[walk.addresses : middle], source_port, tunnel))
    receiver = _new(Endpoint, (data[middle : middle + walk.address_size], destination_port, tunnel))
    row = packet[0], packet[1], sender, receiver, seq, ack, flags, data[payload:end], end - payload
    return _new(Segment, row)


def _tunnel_of(walk: Walk) -> str:
    return tunnel_name(tuple(walk.numbers[: walk.depth])) if walk.depth else ""


def _version(walk: Walk) -> int:
    return 4 if walk.address_size == 4 else 6


def _fragment(walk: Walk) -> Fragment:
    """Return the fragment at which a walk has ended."""
    data, ip = walk.data, walk.ip
    both = data[walk.addresses : walk.addresses + 2 * walk.address_size]
    if walk.address_size == 4:
        start = ip + (data[ip] & 15) * 4
        place, protocol = int.from_bytes(data[ip + 6 : ip + 8], "big"), data[ip + 9]
        identification = int.from_bytes(data[ip + 4 : ip + 6], "big")
        # Without a length, which then is that of the datagram, and without its place.
        head = data[ip : ip + 2] + _NO_LENGTH + data[ip + 4 : ip + 6] + _NO_LENGTH + data[ip + 8 : start]
        offset, more = (place & 0x1FFF) * 8, place & 0x2000
    else:
        at = walk.fragment
        start = at + 8
        place, protocol = int.from_bytes(data[at + 2 : at + 4], "big"), data[at]
        identification = int.from_bytes(data[at + 4 : start], "big")
        head = data[ip : ip + 4] + _NO_LENGTH + data[ip + 6 : at + 2] + _NO_LENGTH + data[at + 4 : start]
        offset, more = place & 0xFFF8, place & 1
    key = _tunnel_of(walk), both, protocol, identification
    return Fragment(key, head, offset, max(walk.end - start, 0), data[start : walk.end], not more)


class SegmentReader:
    """The TCP segments of packets. Packets that may hold TCP but cannot be read are counted by reason."""

    def __init__(self) -> None:
        self._unread: dict[str, tuple[Packet, int]] = {}
        self._walk = Walk()
        self._fragments = Fragments()
        self._exported = Exported()

    def segment(self, packet: Packet) -> Segment | None:
        """The TCP segment in a packet; None if there is none, or none that can be read.

        It is that of a whole datagram where the packet brings its last fragment.
        """
        try:
            return _common_segment(packet) or self._segment(packet)
        except (PacketError, ExportError) as reason:
            self._count(str(reason), packet, 1)
            return None

    def _segment(self, packet: Packet) -> Segment | None:
        walk = self._walk
        outcome = walk.run(packet[2], packet[3], len(packet[3]), packet[4])
        while outcome == layers.FRAGMENT:
            datagram = self._joined(packet)
            if datagram is None:
                return None
            data = datagram.head + datagram.joined()
            outcome = walk.resume(data, len(data), len(datagram.head) + datagram.total)
        if outcome == layers.EXPORTED:
            return self._exported.segment(packet)
        return _segment(packet, walk) if _carries_tcp(outcome, walk) else None

    def _joined(self, packet: Packet) -> Datagram | None:
        """Add a fragment; returns its datagram if that is now whole."""
        fragment = _fragment(self._walk)
        datagram = self._fragments.add(fragment, packet.number, packet.time_ns)
        for lost in self._fragments.take_given_up():
            self._count_lost(lost)
        if datagram is None or datagram.octets == datagram.total:
            return datagram
        first, probe = fragment.head + fragment.octets, Walk()
        if probe.run(_RAW_IP, first, len(first), len(first)) == layers.FOREIGN:
            self._fragments.pass_over(fragment.key)
        return None

    def _count_lost(self, datagram: Datagram) -> None:
        first = Packet(datagram.number, datagram.time_ns, 0, b"", 0)
        self._count(_FRAGMENTED.format(datagram.version), first, datagram.count)

    def _count(self, message: str, packet: Packet, count: int) -> None:
        first, before = self._unread.get(message, (packet._replace(data=b""), 0))
        self._unread[message] = first, before + count

    def state(self) -> list[Any]:
        """The state that `restore` takes."""
        return [
            [message, first.number, first.time_ns, count] for message, (first, count) in self._unread.items()
        ]

    def restore(self, state: Iterable[Fields]) -> None:
        """Continue from a state."""
        for fields in state:
            message = fields.text()
            first = Packet(fields.number(1), fields.time(), 0, b"", 0)
            self._unread[message] = first, fields.number(1)
            fields.end()

    def kept(self) -> list[Any]:
        """The state of what is not whole, that `restore_kept` takes."""
        fragments, exported = self._fragments.state(), self._exported.state()
        return [fragments, exported] if fragments or exported else []

    def restore_kept(self, state: Fields) -> None:
        """Continue from a state of what is not whole."""
        self._fragments.restore(state.items())
        self._exported.restore(state.items())
        state.end()

    def faults(self) -> Iterator[Fault]:
        """One `Fault` of kind ``"file"`` for each reason, with the number of the first packet."""
        for datagram in self._fragments.take_unfinished():
            self._count_lost(datagram)
        for message, (first, count) in self._unread.items():
            what = f"{count} packet{'s' if count > 1 else ''} passed over, the first is {first.number}"
            yield Fault("file", f"{what}: {message}", packet=first.number, time_ns=first.time_ns)


def read_segments(packets: Iterable[Packet | Fault]) -> Iterator[Segment | Fault]:
    """The TCP segments of packets, in their order.

    Faults from the layer below are passed on. Packets that may hold TCP but cannot be read are counted. At
    the end, each reason is one `Fault` of kind ``"file"`` with the number of the first such packet.
    """
    reader = SegmentReader()
    for packet in packets:
        if isinstance(packet, Fault):
            yield packet
            continue
        segment = reader.segment(packet)
        if segment is not None:
            yield segment
    yield from reader.faults()
