"""Captures made from a seed in which everything happens that the reader has a rule for.

They have no known contents: tests require that both builds read the same from them. `make_capture` makes
those with a truth.
"""

from __future__ import annotations

import gzip
import random
import struct
from dataclasses import dataclass, field

from amqpcodec import rabbitmq as amqp
from support import make_capture as make
from support.make_capture import ACK, FIN, PSH, RST, SYN

_LINKTYPES = (1, 1, 1, 113, 276, 0, 108, 101)
_TAGS: tuple[tuple[int, ...], ...] = ((), (), (), (0x8100,), (0x88A8, 0x8100))


@dataclass
class Side:
    """One end of a connection: what it has sent, and where it stands."""

    isn: int
    sent: bytearray = field(default_factory=bytearray)

    def seq(self, position: int) -> int:
        return (self.isn + 1 + position) % 2**32


class Peers:
    """Two ends that send frames to each other, with everything that may happen to segments."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self.rng = rng
        self.ports = (40000 + number, 5672 if number % 4 else 80)
        self.version = 6 if number % 3 == 2 else 4
        self.tags = rng.choice(_TAGS)
        self.open()

    def open(self) -> None:
        near_the_end = 2**32 - self.rng.randrange(1, 2000)
        self.sides = [Side(self.rng.choice((near_the_end, self.rng.getrandbits(32)))) for _ in range(2)]

    def _segment(
        self, side: int, position: int, octets: bytes = b"", flags: int = ACK, ack: int = 0
    ) -> bytes:
        own, peer = self.sides[side], self.sides[1 - side]
        ports = (self.ports[side], self.ports[1 - side])
        ack = peer.seq(len(peer.sent) + ack)
        options = b"\1" * self.rng.choice((0, 0, 12))
        return make.tcp(ports, own.seq(position), ack, flags, octets, options)

    def next(self) -> list[bytes]:
        """The TCP segments of the next thing that happens."""
        rng, side = self.rng, self.rng.randrange(2)
        own = self.sides[side]
        end = len(own.sent)
        what = rng.choices(
            ("data", "ack", "swapped", "copy", "overlap", "hole", "keep-alive", "syn", "again", "fin", "rst",
             "far", "damaged ack"),
            (60, 40, 8, 8, 5, 3, 3, 2, 1, 2, 1, 2, 2),
        )[0]  # fmt: skip
        if what in ("data", "swapped", "hole"):
            return self._data(side, what)
        if what in ("copy", "overlap"):
            start = rng.randrange(max(end - 800, 0), end + 1)
            stop = min(end, start + rng.randrange(1, 600)) if what == "copy" else end
            if what == "overlap":
                own.sent += rng.randbytes(rng.randrange(1, 50))
                stop = len(own.sent)
            return [self._segment(side, start, bytes(own.sent[start:stop]))]
        if what == "syn":
            self.open()
            return [self._segment(0, -1, flags=SYN), self._segment(1, -1, flags=SYN | ACK, ack=0)]
        return [
            {
                "ack": lambda: self._segment(side, end, ack=rng.choice((0, 0, 0, -100, 300))),
                "keep-alive": lambda: self._segment(side, end - 1, b"\0" * rng.randrange(2)),
                "again": lambda: self._segment(side, -1, b"x" * rng.randrange(2), flags=SYN),
                "fin": lambda: self._segment(side, end, b"", FIN | ACK),
                "rst": lambda: self._segment(side, end, b"", RST | ACK * rng.randrange(2)),
                "far": lambda: self._segment(side, end + rng.choice((10**5, 2**30 + 5, 2**31)), b"far away"),
                "damaged ack": lambda: self._segment(side, end, ack=rng.getrandbits(32)),
            }[what]()
        ]

    def _data(self, side: int, what: str) -> list[bytes]:
        rng, own = self.rng, self.sides[side]
        body = rng.randbytes(rng.choice((0, 20, 300, 1500)))
        frames = b"".join(make.publish(rng, 1, body)) if rng.random() < 0.8 else amqp.encode_heartbeat()
        segments = []
        for start in range(0, len(frames), 536):
            chunk = frames[start : start + 536]
            segments.append(self._segment(side, len(own.sent), chunk, ACK | PSH))
            own.sent += chunk
        if what == "hole":
            del segments[rng.randrange(len(segments))]
        if what == "swapped":
            rng.shuffle(segments)
        return segments

    def packet(self, segment: bytes, linktype: int) -> bytes:
        """A segment in its network and link layer, sometimes an unusual one."""
        rng = self.rng
        chance = rng.random()
        addresses = ("fd00::1", "fd00::2") if self.version == 6 else ("10.0.0.1", "10.0.0.2")
        if struct.unpack_from("!H", segment)[0] != self.ports[0]:
            addresses = addresses[::-1]
        if self.version == 6:
            extended = chance < 0.03
            extensions = struct.pack("!BB6x", 6, 0) if extended else b""
            first = 0 if extended else 17 if chance < 0.04 else 6
            datagram = make.ipv6(*addresses, segment, extensions=extensions, first=first)
        else:
            protocol, fragment = (17 if chance < 0.01 else 6), (0x2000 if chance > 0.99 else 0x4000)
            datagram = make.ipv4(*addresses, segment, protocol=protocol, fragment=fragment)
        if 0.1 < chance < 0.12:
            datagram = datagram[: rng.randrange(len(datagram))]
        return self._link(datagram or b"\x45", linktype) + bytes(6 * (chance > 0.8))

    def _link(self, datagram: bytes, linktype: int) -> bytes:
        kind = struct.pack("!H", 0x86DD if self.version == 6 else 0x0800)
        if linktype == 1:
            return make.ethernet(datagram, self.tags)
        if linktype == 113:
            return bytes(14) + kind + datagram
        if linktype == 276:
            return kind + bytes(18) + datagram
        if linktype in (0, 108):
            return struct.pack("<I" if linktype == 0 else ">I", 30 if self.version == 6 else 2) + datagram
        return datagram


def packets(seed: int, count: int = 400) -> tuple[int, list[make.Recorded]]:
    """Link type and packets of a capture."""
    rng = random.Random(seed)
    linktype = rng.choice(_LINKTYPES)
    peers = [Peers(rng, number) for number in range(rng.randrange(1, 6))]
    found: list[make.Recorded] = []
    time_ns = make.START_NS
    while len(found) < count:
        each = rng.choice(peers)
        for segment in each.next():
            step = rng.choices(
                (10_000, 400_000_000, 2_500_000_000, 4_000_000_000_000, -50_000), (300, 3, 2, 1, 5)
            )
            time_ns += step[0] + rng.randrange(1000)
            found.append(make.Recorded(time_ns, each.packet(segment, linktype)))
        if rng.random() < 0.03:
            found.append(make.Recorded(time_ns, rng.randbytes(rng.randrange(90))))
    return linktype, found


def capture(seed: int, count: int = 400) -> bytes:
    """A whole file: any container, sometimes snapped, cut off or compressed."""
    linktype, found = packets(seed, count)
    rng = random.Random(seed + 1)
    snap = rng.choice((0, 0, 0, 90, 400))
    if rng.random() < 0.5:
        octets = make.pcap(
            found, order=rng.choice("<>"), nanos=rng.random() < 0.5, linktype=linktype, snap=snap
        )
    else:
        octets = _pcapng(rng, found, linktype, snap)
    if rng.random() < 0.2:
        octets = octets[: rng.randrange(len(octets))]
    return gzip.compress(octets, 1, mtime=0) if rng.random() < 0.2 else octets


def _pcapng(rng: random.Random, found: list[make.Recorded], linktype: int, snap: int) -> bytes:
    chunks: list[bytes] = []
    order = "<"
    for index, packet in enumerate(found):
        if index % 150 == 0:
            order = rng.choice("<>")
            units = rng.choices((6, 9, 3, 0, 10, 0x80 | 20), k=2)
            options = [
                struct.pack(order + "HHBxxx", 9, 1, unit)
                + struct.pack(order + "HHq", 14, 8, rng.randrange(-9, 9))
                for unit in units
            ]
            chunks.append(make.section(order))
            chunks += [make.interface(order, linktype, snap, each) for each in options]
        octets = packet.octets[: snap or None]
        which = rng.randrange(2)
        unit = units[which]
        ticks = packet.time_ns * (2**20 if unit & 0x80 else 10**unit) // 10**9
        original = len(packet.octets)
        chance = rng.random()
        if chance < 0.02:
            chunks.append(make.block(3, struct.pack(order + "I", original) + octets, order))
        elif chance < 0.04:
            head = struct.pack(
                order + "HHIIII", which, 0, ticks >> 32, ticks & 0xFFFFFFFF, len(octets), original
            )
            chunks.append(make.block(2, head + octets, order))
        elif chance < 0.05:
            chunks.append(make.block(5, rng.randbytes(12), order))
        elif chance < 0.06:
            chunks.append(make.enhanced(octets, ticks, order, 7))
        elif chance < 0.065:
            chunks.append(make.enhanced(octets, ticks, order, which)[:-4] + rng.randbytes(4))
        else:
            chunks.append(make.enhanced(octets, ticks, order, which, original))
    return b"".join(chunks)
