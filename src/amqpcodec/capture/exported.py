"""Link type 252, what Wireshark exports: payloads, with tags for ends and position in place of headers.

Octets that were decrypted have no sequence numbers, and are counted here. Each payload begins with a frame.
If its last frame is not whole, that may come again at the beginning of the next payload, then with the rest.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import NamedTuple

from .._state import Fields
from .._typing import Any
from .model import Endpoint, Packet, Segment

_END, _IPV4, _IPV6, _PORT_KIND, _SOURCE_PORT, _DESTINATION_PORT, _TCP_INFO = 0, 20, 22, 24, 25, 26, 34
_OF_TCP = 2  # the kind of a port
_MASK = 0xFFFFFFFF
_TAG = struct.Struct("!HH")
_SEQUENCE = struct.Struct("!HI")
_FRAME_HEAD, _FRAME_OVERHEAD, _HEADER = 7, 8, b"AMQP"
_MOST_DIRECTIONS = 65536
_KEPT = 64  # octets of the last frame of a payload, to recognise it

Ends = tuple[Endpoint, Endpoint]


class _Sent(NamedTuple):
    """A direction: octets so far, and the beginning of a frame at their end that is not whole."""

    octets: int
    rest: int
    beginning: bytes


_NOTHING = _Sent(0, 0, b"")


class ExportError(Exception):
    """A record that is no payload of a TCP connection; the text is the reason."""


class Exported:
    """The payloads of connections as segments."""

    def __init__(self) -> None:
        self._sent: OrderedDict[Ends, _Sent] = OrderedDict()

    def segment(self, packet: Packet) -> Segment:
        """Return a payload as a segment.

        It acknowledges nothing, and is therefore compared with no other: numbers that are counted here, or
        relative as Wireshark shows them, are alike in all connections.

        Raises:
            ExportError: there are no ends of a TCP connection with it.
        """
        tags, at = _tags(packet.data)
        source, destination = _ends(tags)
        data, length = packet.data[at:], packet.original_length - at
        if _TCP_INFO in tags:
            _, seq = _SEQUENCE.unpack_from(tags[_TCP_INFO])
        else:
            seq = self._count((source, destination), data, length)
        return Segment(packet.number, packet.time_ns, source, destination, seq, 0, 0, data, length)

    def state(self) -> list[Any]:
        """The state that `restore` takes."""
        return [[*source[:2], *destination[:2], *sent] for (source, destination), sent in self._sent.items()]

    def restore(self, state: Any) -> None:
        """Continue from a state."""
        for fields in state:
            source, destination = _stored_end(fields), _stored_end(fields)
            self._sent[source, destination] = _Sent(fields.number(0), fields.number(0), fields.octets())
            fields.end()

    def _count(self, ends: Ends, data: bytes, length: int) -> int:
        """Return the sequence number of a payload that has none."""
        before = self._sent.pop(ends, _NOTHING)
        again = before.rest and length >= before.rest and data.startswith(before.beginning)
        start = before.octets - before.rest if again else before.octets
        whole = _whole_frames(data) if again or not before.rest else 0
        rest = length - whole
        self._sent[ends] = _Sent(start + length, rest, data[whole : whole + min(rest, _KEPT)])
        if len(self._sent) > _MOST_DIRECTIONS:
            self._sent.popitem(last=False)
        return start & _MASK


def _tags(data: bytes) -> tuple[dict[int, bytes], int]:
    """Return the first value of each tag, and where the payload begins."""
    tags: dict[int, bytes] = {}
    at = 0
    while at + _TAG.size <= len(data):
        tag, size = _TAG.unpack_from(data, at)
        at += _TAG.size
        if tag == _END:
            return tags, at + size
        tags.setdefault(tag, data[at : at + size])
        at += size
    raise ExportError("an exported payload whose tags are cut off")


def _ends(tags: dict[int, bytes]) -> Ends:
    kinds = {tag: len(tags.get(tag, b"")) for tag in (_PORT_KIND, _SOURCE_PORT, _DESTINATION_PORT)}
    if set(kinds.values()) != {4} or int.from_bytes(tags[_PORT_KIND], "big") != _OF_TCP:
        raise ExportError("an exported payload without ports of TCP")
    for tag, size in ((_IPV4, 4), (_IPV6, 16)):
        source, destination = tags.get(tag, b""), tags.get(tag + 1, b"")
        if len(source) == len(destination) == size and len(tags.get(_TCP_INFO, bytes(14))) >= _SEQUENCE.size:
            ports = (int.from_bytes(tags[tag], "big") & 0xFFFF for tag in (_SOURCE_PORT, _DESTINATION_PORT))
            return Endpoint(source, next(ports)), Endpoint(destination, next(ports))
    raise ExportError("an exported payload without addresses of IP")


def _whole_frames(data: bytes) -> int:
    """Return how many octets whole frames take at the beginning of a payload."""
    at = 8 if data.startswith(_HEADER) and len(data) >= 8 else 0
    while at + _FRAME_HEAD <= len(data):
        following = at + int.from_bytes(data[at + 3 : at + _FRAME_HEAD], "big") + _FRAME_OVERHEAD
        if following > len(data):
            break
        at = following
    return at


def _stored_end(state: Fields) -> Endpoint:
    return Endpoint(state.octets(), state.number(0, 0xFFFF))
