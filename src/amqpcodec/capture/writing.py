"""TCP connections to a pcap file: what each end sends, in segments, from the handshake to the close.

The packets are Ethernet frames with IPv4 or IPv6, times are nanoseconds. Checksums are those of RFC 1071, and
0 in packets that are cut off.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, Protocol
from zlib import crc32

from .model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Endpoint

SEGMENT = 1448  # octets that fit in a packet of Ethernet
LARGE_SEGMENT = 65483  # the same of a loopback interface: the fewest packets that IP allows
_NS = 1_000_000_000
_FIN, _SYN, _RST, _PSH, _ACK = 1, 2, 4, 8, 16
FILE_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
_RECORD = struct.Struct("<IIII")
_ETHERNET = {4: bytes(12) + b"\x08\x00", 16: bytes(12) + b"\x86\xdd"}
_TCP = struct.Struct("!HHIIBBHHH")
_CHECKSUM = struct.Struct("!H").pack
_TCP_NUMBER = 6
_TCP_SIZE = 0x50
_WINDOW = 65535
_LAST_NS = 2**32 * _NS - 1


def record(time_ns: int, octets: bytes, length: int | None = None) -> bytes:
    """Return a packet as a record of a file.

    Args:
        time_ns: its time; one that a file cannot hold is the nearest it can.
        octets: of the packet, as far as they are recorded.
        length: how many it has; None where all are recorded.
    """
    seconds, rest = divmod(min(max(time_ns, 0), _LAST_NS), _NS)
    size = len(octets)
    return _RECORD.pack(seconds, rest, size, size if length is None else length) + octets


class Packets(Protocol):
    """Where packets go."""

    def record(self, time_ns: int, octets: bytes) -> None:
        """Append a packet of which all is recorded."""

    def records(self, records: Iterator[bytes]) -> None:
        """Append very many records, which are made when they are asked for, in any thread."""


class PacketWriter:
    """Writes packets to a file.

    Args:
        file: binary, written from its start; it is left open.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.write(FILE_HEADER)

    def record(self, time_ns: int, octets: bytes) -> None:
        """Append a packet of which all is recorded."""
        self._file.write(record(time_ns, octets))

    def records(self, records: Iterator[bytes]) -> None:
        """Append records."""
        self._file.writelines(records)


def _mixed(*ends: Endpoint) -> int:
    """Return a number of some ends, so that merged recordings have no copies of each other's connections."""
    return crc32(b"".join(end.address + end.port.to_bytes(2, "big") for end in ends))


class Conversation:
    """One TCP connection, open from the making of this object on.

    Args:
        packets: where its packets go.
        client: one end, which opens it.
        server: the other, of the same IP version.
        time_ns: when; nanoseconds since 1970.
        number: tells it from others between the same ends: sequence numbers begin elsewhere.
        segment: the most octets of a packet.

    Raises:
        ValueError: the ends are of two IP versions.
    """

    def __init__(
        self,
        packets: Packets,
        client: Endpoint,
        server: Endpoint,
        time_ns: int,
        number: int,
        segment: int = SEGMENT,
    ) -> None:
        if len(client.address) != len(server.address):
            raise ValueError(f"{client} and {server} are of two IP versions")
        self._packets = packets
        self._ends = client, server
        self._segment = segment
        self._open = [CLIENT_TO_SERVER, SERVER_TO_CLIENT]
        start = number * 0x3779B97F + _mixed(client, server)
        self._next = [start % 2**32, (start ^ 0x55555555) % 2**32]
        for direction, flags in (
            (CLIENT_TO_SERVER, _SYN),
            (SERVER_TO_CLIENT, _SYN | _ACK),
            (CLIENT_TO_SERVER, _ACK),
        ):
            self._send(direction, flags, b"", time_ns)

    def send(self, direction: int, octets: bytes, time_ns: int) -> None:
        """One end sends octets, which the other acknowledges at once."""
        for start in range(0, len(octets), self._segment):
            self._send(direction, _ACK | _PSH, octets[start : start + self._segment], time_ns)
        self._send(1 - direction, _ACK, b"", time_ns)

    def skip(self, direction: int, length: int, time_ns: int) -> None:
        """One end sends octets that are not recorded: of each packet, the file has the headers alone."""
        ends, segment = self._ends_from(direction), self._segment
        position, answered = self._next[direction], self._next[1 - direction]
        self._next[direction] = (position + length) % 2**32

        def packet(start: int) -> bytes:
            missing = min(segment, length - start)
            octets = _packet(*ends, (position + start) % 2**32, answered, _ACK | _PSH, b"", missing)
            return record(time_ns, octets, len(octets) + missing)

        self._packets.records(map(packet, range(0, length, segment)))

    def finish(self, direction: int, time_ns: int) -> None:
        """One end sends no more, which the other acknowledges."""
        if direction in self._open:
            self._open.remove(direction)
            self._send(direction, _FIN | _ACK, b"", time_ns)
            self._send(1 - direction, _ACK, b"", time_ns)

    def close(self, time_ns: int) -> None:
        """Both ends are done."""
        for direction in self._open:
            self._send(direction, _FIN | _ACK, b"", time_ns)
        if self._open:
            self._send(CLIENT_TO_SERVER, _ACK, b"", time_ns)
        self._open.clear()

    def reset(self, direction: int, time_ns: int) -> None:
        """One end breaks the connection off."""
        if self._open:
            self._send(direction, _RST | _ACK, b"", time_ns)
        self._open.clear()

    def _send(self, direction: int, flags: int, octets: bytes, time_ns: int) -> None:
        """One segment; what it sends moves the sequence number on."""
        position = self._next[direction]
        answered = self._next[1 - direction] if flags & _ACK else 0
        self._next[direction] = (position + len(octets) + bool(flags & (_SYN | _FIN))) % 2**32
        self._packets.record(time_ns, _packet(*self._ends_from(direction), position, answered, flags, octets))

    def _ends_from(self, direction: int) -> tuple[Endpoint, Endpoint]:
        return self._ends[direction], self._ends[1 - direction]


def _packet(
    source: Endpoint,
    target: Endpoint,
    position: int,
    answered: int,
    flags: int,
    octets: bytes,
    missing: int = 0,
) -> bytes:
    """Return a packet with a segment, of which so many octets behind its own are cut off."""
    ends = source.address + target.address
    size = _TCP.size + len(octets) + missing
    checksum = 0
    fields = source.port, target.port, position, answered, _TCP_SIZE, flags, _WINDOW
    if not missing:
        pseudo = ends + struct.pack("!II", size, _TCP_NUMBER)
        checksum = _checksum(b"".join((pseudo, _TCP.pack(*fields, 0, 0), octets)))
    if len(source.address) == 4:
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + size, 0, 0x4000, 64, _TCP_NUMBER, 0)
        head = head[:-2] + _CHECKSUM(_checksum(head + ends))
    else:
        head = struct.pack("!IHBB", 6 << 28, size, _TCP_NUMBER, 64)
    link = _ETHERNET[len(source.address)]
    return b"".join((link, head, ends, _TCP.pack(*fields, checksum, 0), octets))


def _checksum(octets: bytes) -> int:
    """Return the checksum of octets: what is missing of their sum in 16 bits, with the carry added again.

    The sum is the remainder of division by 65535. Python divides one large number faster than it adds many.
    """
    return -(int.from_bytes(octets, "big") << 8 * (len(octets) % 2)) % 0xFFFF
