"""TCP connections to a pcap file: what each end sends, in segments, from the handshake to the close.

The packets are Ethernet frames with IPv4 or IPv6, times are nanoseconds. Checksums are 0, as in captures of
machines whose network card fills them in.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from .model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Endpoint

SEGMENT = 1448  # octets that fit in a packet of Ethernet
_NS = 1_000_000_000
_FIN, _SYN, _PSH, _ACK = 1, 2, 8, 16
_FILE_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
_RECORD = struct.Struct("<IIII")
_ETHERNET = {4: bytes(12) + b"\x08\x00", 16: bytes(12) + b"\x86\xdd"}
_TCP = struct.Struct("!HHIIBBHHH")
_TCP_SIZE = 0x50
_WINDOW = 65535
_LAST_NS = 2**32 * _NS - 1


class PacketWriter:
    """Writes connections packet by packet.

    Args:
        file: binary, written from its start; it is left open.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.write(_FILE_HEADER)

    def record(self, time_ns: int, octets: bytes) -> None:
        """Append a packet; a time that the file cannot hold is the nearest it can."""
        seconds, rest = divmod(min(max(time_ns, 0), _LAST_NS), _NS)
        self._file.write(_RECORD.pack(seconds, rest, len(octets), len(octets)))
        self._file.write(octets)


class Conversation:
    """One TCP connection, open from the making of this object on.

    Args:
        packets: where its packets go.
        client: one end, which opens it.
        server: the other, of the same IP version.
        time_ns: when; nanoseconds since 1970.
        number: tells it from others between the same ends: sequence numbers begin elsewhere.

    Raises:
        ValueError: the ends are of two IP versions.
    """

    def __init__(
        self, packets: PacketWriter, client: Endpoint, server: Endpoint, time_ns: int, number: int
    ) -> None:
        if len(client.address) != len(server.address):
            raise ValueError(f"{client} and {server} are of two IP versions")
        self._packets = packets
        self._ends = client, server
        start = number * 0x3779B97F
        self._next = [start % 2**32, (start ^ 0x55555555) % 2**32]
        for direction, flags in (
            (CLIENT_TO_SERVER, _SYN),
            (SERVER_TO_CLIENT, _SYN | _ACK),
            (CLIENT_TO_SERVER, _ACK),
        ):
            self._send(direction, flags, b"", time_ns)

    def send(self, direction: int, octets: bytes, time_ns: int) -> None:
        """One end sends octets, which the other acknowledges at once."""
        for start in range(0, len(octets), SEGMENT):
            self._send(direction, _ACK | _PSH, octets[start : start + SEGMENT], time_ns)
        self._send(1 - direction, _ACK, b"", time_ns)

    def close(self, time_ns: int) -> None:
        """Both ends are done."""
        for direction in (CLIENT_TO_SERVER, SERVER_TO_CLIENT):
            self._send(direction, _FIN | _ACK, b"", time_ns)
        self._send(CLIENT_TO_SERVER, _ACK, b"", time_ns)

    def _send(self, direction: int, flags: int, octets: bytes, time_ns: int) -> None:
        """One segment; what it sends moves the sequence number on."""
        source, target = self._ends[direction], self._ends[1 - direction]
        position = self._next[direction]
        answered = self._next[1 - direction] if flags & _ACK else 0
        self._next[direction] = (position + len(octets) + bool(flags & (_SYN | _FIN))) % 2**32
        tcp = _TCP.pack(source.port, target.port, position, answered, _TCP_SIZE, flags, _WINDOW, 0, 0)
        if len(source.address) == 4:
            size = 20 + _TCP.size + len(octets)
            head = struct.pack("!BBHHHBBH", 0x45, 0, size, 0, 0x4000, 64, 6, 0)
        else:
            head = struct.pack("!IHBB", 6 << 28, _TCP.size + len(octets), 6, 64)
        ends = source.address + target.address
        link = _ETHERNET[len(source.address)]
        self._packets.record(time_ns, b"".join((link, head, ends, tcp, octets)))
