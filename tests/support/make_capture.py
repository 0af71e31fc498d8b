"""Small captures made from a seed, with the truth about their contents.

Layers as in a network, each a function from octets to octets, so that tests can bend any of them.
"""

from __future__ import annotations

import ipaddress
import random
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from amqpcodec import rabbitmq as amqp

CLIENT, SERVER = 0, 1
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
START_NS = 1_700_000_000_123_456_000
FRAME_OVERHEAD = 8


def tcp(
    ports: tuple[int, int], seq: int, ack: int, flags: int, payload: bytes = b"", options: bytes = b""
) -> bytes:
    offset = (20 + len(options)) // 4 << 4
    seq, ack = seq % 2**32, ack % 2**32
    return struct.pack("!HHIIBBHHH", *ports, seq, ack, offset, flags, 501, 0, 0) + options + payload


def ipv4(
    source: str, destination: str, segment: bytes, *, protocol: int = 6, fragment: int = 0x4000
) -> bytes:
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 7, fragment, 64, protocol, 0)
    return header + ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed + segment


def ipv6(source: str, destination: str, segment: bytes, *, extensions: bytes = b"", first: int = 6) -> bytes:
    header = struct.pack("!IHBB", 6 << 28, len(extensions) + len(segment), first, 64)
    addresses = ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
    return header + addresses + extensions + segment


def ethernet(datagram: bytes, tags: Sequence[int] = ()) -> bytes:
    kind = 0x86DD if datagram[0] >> 4 == 6 else 0x0800
    tagging = b"".join(struct.pack("!HH", tag, 42) for tag in tags)
    return bytes(12) + tagging + struct.pack("!H", kind) + datagram


@dataclass
class Recorded:
    """A packet of the capture, and the stretch of which stream it carries."""

    time_ns: int
    octets: bytes
    stream: tuple[int, int] = (-1, -1)  # connection, direction
    begin: int = 0
    end: int = 0


@dataclass
class Truth:
    """Every frame that was sent: (connection, direction, offset, octets)."""

    packets: list[Recorded] = field(default_factory=list)
    frames: set[tuple[int, int, int, bytes]] = field(default_factory=set)

    def untouched(self, lost: Iterable[Recorded]) -> set[tuple[int, int, int, bytes]]:
        """The frames of which no octet was in a lost packet."""
        holes = [(packet.stream, packet.begin, packet.end) for packet in lost]
        return {
            frame
            for frame in self.frames
            if not any(
                stream == frame[:2] and begin < frame[2] + len(frame[3]) and frame[2] < end
                for stream, begin, end in holes
            )
        }


class Talk:
    """One TCP connection being recorded into a `Truth`."""

    def __init__(self, truth: Truth, number: int, isns: tuple[int, int], mss: int = 536) -> None:
        self.truth, self.number, self.mss = truth, number, mss
        self.next = [isns[0], isns[1]]
        self.sent = [0, 0]
        self.addresses = (f"10.0.0.{number % 200 + 1}", "10.0.9.9")
        self.ports = (40000 + number, 5672)
        self.time_ns = START_NS + number * 1_000

    def packet(self, side: int, flags: int, payload: bytes = b"") -> None:
        self.time_ns += 100_000
        ports = (self.ports[side], self.ports[1 - side])
        ack = self.next[1 - side] if flags & ACK else 0
        segment = tcp(ports, self.next[side], ack, flags, payload)
        octets = ethernet(ipv4(self.addresses[side], self.addresses[1 - side], segment))
        begin = self.sent[side]
        stream = (self.number, side) if payload else (-1, -1)
        self.truth.packets.append(Recorded(self.time_ns, octets, stream, begin, begin + len(payload)))
        self.next[side] += len(payload) + bool(flags & (SYN | FIN))
        self.sent[side] += len(payload)

    def open(self) -> None:
        self.packet(CLIENT, SYN)
        self.packet(SERVER, SYN | ACK)
        self.packet(CLIENT, ACK)

    def send(self, side: int, *frames: bytes) -> None:
        """Frames in one write, cut into segments; the other side acknowledges at the end."""
        offset = self.sent[side]
        for octets in frames:
            self.truth.frames.add((self.number, side, offset, octets))
            offset += len(octets)
        burst = b"".join(frames)
        for start in range(0, len(burst), self.mss):
            self.packet(side, ACK | PSH, burst[start : start + self.mss])
        self.packet(1 - side, ACK)

    def close(self) -> None:
        for side in (CLIENT, SERVER):
            self.packet(side, FIN | ACK)
        self.packet(CLIENT, ACK)


def one_side(packets: Iterable[Recorded], side: int) -> list[Recorded]:
    """The packets that a client, or a server, has sent, as a filter or mirror of one direction records."""
    at = 14 + 20 + 2 * (side == CLIENT)  # of the server's port
    return [packet for packet in packets if packet.octets[at : at + 2] == (5672).to_bytes(2, "big")]


def split(octets: bytes) -> list[bytes]:
    """The frames that `octets` is made of, by their heads alone."""
    frames = []
    while octets:
        size = struct.unpack_from("!I", octets, 3)[0] + FRAME_OVERHEAD
        frames.append(octets[:size])
        octets = octets[size:]
    return frames


def publish(rng: random.Random, channel: int, body: bytes) -> list[bytes]:
    method = amqp.Basic.Publish(exchange="orders", routing_key=f"eu.{rng.randrange(100)}")
    properties = amqp.BasicProperties(content_type="text/plain", headers={"attempt": rng.randrange(9)})
    return split(amqp.encode_message(channel, method, properties, body, frame_max=4096))


def open_channel(talk: Talk) -> None:
    talk.send(CLIENT, amqp.protocol_header())
    start = amqp.Connection.Start(0, 9, {"product": "test"}, b"PLAIN", b"en_US")
    talk.send(SERVER, amqp.encode_method(0, start))
    answer = amqp.Connection.StartOk({}, "PLAIN", b"\0guest\0secret", "en_US")
    talk.send(CLIENT, amqp.encode_method(0, answer))
    talk.send(SERVER, amqp.encode_method(0, amqp.Connection.Tune(10, 4096, 0)))
    talk.send(CLIENT, amqp.encode_method(0, amqp.Connection.TuneOk(10, 4096, 0)))
    talk.send(CLIENT, amqp.encode_method(1, amqp.Channel.Open()))
    talk.send(SERVER, amqp.encode_method(1, amqp.Channel.OpenOk()))


def conversations(
    seed: int, count: int = 4, bursts: int = 40, *, opening: bool = True, ends: bool = True
) -> Truth:
    """Connections that publish and acknowledge side by side; every other one wraps its sequence numbers."""
    rng = random.Random(seed)
    truth = Truth()
    talks = []
    for number in range(count):
        first = 2**32 - rng.randrange(1, 3000) if number % 2 else rng.getrandbits(32)
        talks.append(Talk(truth, number, (first, rng.getrandbits(32))))
    for talk in talks:
        if opening:
            talk.open()
            open_channel(talk)
    for burst in range(bursts):
        talk = talks[burst % count]
        frames = [frame for _ in range(rng.randrange(1, 6)) for frame in publish(rng, 1, _body(rng))]
        talk.send(CLIENT, *frames)
        talk.send(SERVER, amqp.encode_method(1, amqp.Basic.Ack(delivery_tag=burst + 1, multiple=True)))
    for talk in talks:
        if ends:
            talk.close()
    return truth


def _body(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice((0, 30, 200, 900, 9000)))


def disturb(
    packets: Sequence[Recorded], seed: int, *, reorder: float = 0, duplicate: float = 0, loss: float = 0
) -> tuple[list[Recorded], list[Recorded]]:
    """Packets as a bad recording has them, and those it does not have. Only packets with data are touched."""
    rng = random.Random(seed)
    placed: list[tuple[float, int, Recorded]] = []
    lost = []
    for index, packet in enumerate(packets):
        if packet.end > packet.begin and rng.random() < loss:
            lost.append(packet)
            continue
        late = packet.end > packet.begin and rng.random() < reorder
        placed.append((index + (rng.uniform(1, 12) if late else 0), index, packet))
        if packet.end > packet.begin and rng.random() < duplicate:
            placed.append((index + rng.uniform(1, 30), index, packet))
    return [packet for _, _, packet in sorted(placed, key=lambda each: each[:2])], lost


def pcap(
    packets: Iterable[Recorded], *, order: str = "<", nanos: bool = False, linktype: int = 1, snap: int = 0
) -> bytes:
    magic = 0xA1B23C4D if nanos else 0xA1B2C3D4
    chunks = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap or 262144, linktype)]
    for packet in packets:
        seconds, fraction = divmod(packet.time_ns, 10**9)
        octets = packet.octets[: snap or None]
        sizes = len(octets), len(packet.octets)
        chunks.append(
            struct.pack(order + "IIII", seconds, fraction // (1 if nanos else 1000), *sizes) + octets
        )
    return b"".join(chunks)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    total = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + total + body + total


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(order: str = "<", linktype: int = 1, snap: int = 0, options: bytes = b"") -> bytes:
    return block(1, struct.pack(order + "HHI", linktype, 0, snap) + options, order)


def enhanced(
    octets: bytes, ticks: int, order: str = "<", which: int = 0, original: int | None = None
) -> bytes:
    lengths = len(octets), len(octets) if original is None else original
    return block(
        6, struct.pack(order + "IIIII", which, ticks >> 32, ticks & 0xFFFFFFFF, *lengths) + octets, order
    )


def pcapng(packets: Iterable[Recorded], order: str = "<") -> bytes:
    blocks = (enhanced(packet.octets, packet.time_ns // 1000, order) for packet in packets)
    return section(order) + interface(order) + b"".join(blocks)
