"""From a packet to its TCP segment: link layer, IP, TCP. Only counts are kept between packets."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from .._state import Fields
from .ip import Datagram, PacketError, ip_datagram
from .links import ETHERNET_IPV4, LinkTypeError, network_layer
from .model import Endpoint, Fault, Packet, Segment

SYN, FIN, RST, ACK = 0x02, 0x01, 0x04, 0x10
_HEADER = struct.Struct("!HHIIBB")
# Ethernet, IPv4 and TCP headers without options before those of TCP.
_COMMON = struct.Struct("!12xHBxH2xHxB2x4s4sHHIIBB")
_ETHERNET = 1
_IPV4_OF_20_OCTETS = 0x45
_TCP = 6
_FRAGMENT = 0x3FFF  # more fragments, or an offset
_IPV4_AT, _TCP_AT, _LEAST = 14, 34, 54  # octets before IP, before TCP, and before the least payload
_new = tuple.__new__  # which costs half of what a call of the class does


def tcp_segment(packet: Packet) -> Segment | None:
    """The TCP segment in a packet; None for a packet of another protocol.

    Raises:
        PacketError: TCP may be in it, but is fragmented, cut off before its header ends, or damaged.
        LinkTypeError: a link layer this reader does not know.
    """
    segment = _common_segment(packet)
    if segment is not None:
        return segment
    layer = network_layer(packet.linktype, packet.data)
    if layer is None:
        return None
    datagram = ip_datagram(packet.data, layer, packet.original_length)
    if datagram is None:
        return None
    return _segment(packet, datagram)


def _common_segment(packet: Packet) -> Segment | None:
    """Return the segment in a packet as nearly all are, in one go; None where the layers have to look."""
    number, time_ns, linktype, data, original_length = packet
    if linktype != _ETHERNET or len(data) < _LEAST:
        return None
    protocol, version, total, fragment, carried, *ends, seq, ack, offset, flags = _COMMON.unpack_from(data)
    if protocol != ETHERNET_IPV4 or version != _IPV4_OF_20_OCTETS or carried != _TCP or fragment & _FRAGMENT:
        return None
    end, payload = _IPV4_AT + total, _TCP_AT + (offset >> 4) * 4
    if not _LEAST <= payload <= end <= original_length:
        return None
    source, destination, source_port, destination_port = ends
    sender, receiver = _new(Endpoint, (source, source_port)), _new(Endpoint, (destination, destination_port))
    row = number, time_ns, sender, receiver, seq, ack, flags, data[payload:end], end - payload
    return _new(Segment, row)


def _segment(packet: Packet, datagram: Datagram) -> Segment:
    data, start, end = packet.data, datagram.start, datagram.end
    if min(end, len(data)) - start < 20:
        raise PacketError("TCP header cut off")
    source, destination, seq, ack, offset, flags = _HEADER.unpack_from(data, start)
    size = (offset >> 4) * 4
    payload = start + size
    if size < 20 or payload > end:
        raise PacketError("TCP header of an impossible length")
    return Segment(
        packet.number,
        packet.time_ns,
        Endpoint(datagram.source, source),
        Endpoint(datagram.destination, destination),
        seq,
        ack,
        flags,
        data[payload:end],
        end - payload,
    )


class SegmentReader:
    """The TCP segments of packets. Packets that may hold TCP but cannot be read are counted by reason."""

    def __init__(self) -> None:
        self._unread: dict[str, tuple[Packet, int]] = {}

    def segment(self, packet: Packet) -> Segment | None:
        """The TCP segment in a packet; None if there is none, or none that can be read."""
        try:
            return tcp_segment(packet)
        except (PacketError, LinkTypeError) as reason:
            first, count = self._unread.get(str(reason), (packet._replace(data=b""), 0))
            self._unread[str(reason)] = first, count + 1
            return None

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

    def faults(self) -> Iterator[Fault]:
        """One `Fault` of kind ``"file"`` for each reason, with the number of the first packet."""
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
