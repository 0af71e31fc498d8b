"""Writes a capture of busy RabbitMQ connections, the same for the same arguments, and counts its contents.

    python tools/synthetic_capture.py OUT.pcap --mb 1000 --connections 200 --seed 7

Publishers with confirms and consumers with acknowledgements, side by side, message after message in segments
of 1448 octets; every segment is acknowledged. OUT.pcap.json has the number of packets, frames and messages.
For benchmarks and examples: nothing is lost or out of order in it.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import struct
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from amqpcodec import rabbitmq as amqp
from amqpcodec.types import EPOCH

CLIENT, BROKER = 0, 1
FIN, SYN, PSH, ACK = 1, 2, 8, 16
SEGMENT = 1448
CHANNEL = 1
FRAME_MAX = 131072
START_US = 1_700_000_000_000_000
EXCHANGES = ("orders", "events", "telemetry", "amq.topic", "amq.direct")
KEYS = tuple(
    f"{what}.{event}.{number}"
    for what in ("order", "user", "device")
    for event in ("created", "updated", "deleted")
    for number in range(12)
)
QUEUES = ("orders", "audit", "billing", "metrics", "mail")
_BROKER = (10, 0, 255, 1)
_PORT = 5672


class Said(NamedTuple):
    """The octets that one end sends at one time; `moment` in microseconds."""

    moment: int
    end: int
    octets: bytes
    frames: int
    messages: int = 0


class Connection:
    """The packets of one TCP connection, headers and all."""

    def __init__(self, number: int, rng: random.Random) -> None:
        self._addresses = (bytes((10, 0, number // 250 % 250, number % 250 + 1)), bytes(_BROKER))
        self._ports = (32768 + number % 28000, _PORT)
        self._next = [rng.getrandbits(32), rng.getrandbits(32)]
        self.is_open = False

    def packets(self, end: int, octets: bytes) -> Iterator[bytes]:
        """The segments that carry octets, and the bare acknowledgement of the last one."""
        for begin in range(0, len(octets), SEGMENT):
            yield self.packet(end, ACK | PSH, octets[begin : begin + SEGMENT])
        yield self.packet(1 - end, ACK)

    def packet(self, end: int, flags: int, octets: bytes = b"") -> bytes:
        """One Ethernet frame; what it sends moves the sequence number on."""
        seq, ack = self._next[end], self._next[1 - end] if flags & ACK else 0
        self._next[end] = (seq + len(octets) + bool(flags & (SYN | FIN))) % 2**32
        ports = (self._ports[end], self._ports[1 - end])
        tcp = struct.pack("!HHIIBBHHH", *ports, seq, ack, 0x50, flags, 501, 0, 0)
        size = 20 + len(tcp) + len(octets)
        head = struct.pack("!BBHHHBBH", 0x45, 0, size, 0, 0x4000, 64, 6, 0)
        addresses = self._addresses[end] + self._addresses[1 - end]
        return bytes(12) + b"\x08\x00" + head + addresses + tcp + octets


def conversation(rng: random.Random, moment: int, number: int, bursts: int) -> Iterator[Said]:
    """Return the conversation of the two ends of a connection, from the protocol header to the close."""
    publishing = number % 2 == 0
    speaker, listener = (CLIENT, BROKER) if publishing else (BROKER, CLIENT)
    yield Said(moment, CLIENT, amqp.protocol_header(), 0)
    for end, channel, method in (*_handshake(number), *_opening(rng, publishing)):
        moment += rng.randrange(100, 1500)
        yield Said(moment, end, amqp.encode_method(channel, method), 1)
    tag = 0
    for _ in range(bursts):
        count = rng.randrange(1, 9)
        contents = [_content(rng, tag + k, publishing, moment) for k in range(1, count + 1)]
        tag += count
        moment += rng.randrange(200, 2500)
        yield Said(moment, speaker, b"".join(contents), 3 * count, count)
        moment += rng.randrange(100, 900)
        yield Said(moment, listener, amqp.encode_method(CHANNEL, amqp.Basic.Ack(tag, True)), 1)
    for end, method in (
        (CLIENT, amqp.Connection.Close(200, "bye", 0, 0)),
        (BROKER, amqp.Connection.CloseOk()),
    ):
        moment += rng.randrange(100, 1500)
        yield Said(moment, end, amqp.encode_method(0, method), 1)


def _handshake(number: int) -> Iterator[tuple[int, int, Any]]:
    broker = {"product": "RabbitMQ", "version": "4.0.5", "platform": "Erlang/OTP 27"}
    client = {"product": "made up", "version": "1.0", "connection_name": f"service-{number % 8}"}
    yield BROKER, 0, amqp.Connection.Start(0, 9, broker, b"PLAIN AMQPLAIN", b"en_US")
    yield CLIENT, 0, amqp.Connection.StartOk(client, "PLAIN", b"\0guest\0guest", "en_US")
    yield BROKER, 0, amqp.Connection.Tune(2047, FRAME_MAX, 60)
    yield CLIENT, 0, amqp.Connection.TuneOk(2047, FRAME_MAX, 60)
    yield CLIENT, 0, amqp.Connection.Open("/")
    yield BROKER, 0, amqp.Connection.OpenOk()


def _opening(rng: random.Random, publishing: bool) -> Iterator[tuple[int, int, Any]]:
    yield CLIENT, CHANNEL, amqp.Channel.Open()
    yield BROKER, CHANNEL, amqp.Channel.OpenOk()
    if publishing:
        yield CLIENT, CHANNEL, amqp.Confirm.Select()
        yield BROKER, CHANNEL, amqp.Confirm.SelectOk()
        return
    queue = rng.choice(QUEUES)
    yield CLIENT, CHANNEL, amqp.Queue.Declare(queue, durable=True)
    yield BROKER, CHANNEL, amqp.Queue.DeclareOk(queue, 12, 1)
    yield CLIENT, CHANNEL, amqp.Basic.Consume(queue, "consumer-1")
    yield BROKER, CHANNEL, amqp.Basic.ConsumeOk("consumer-1")


def _content(rng: random.Random, tag: int, publishing: bool, moment: int) -> bytes:
    """One message: a method, a content header and one body frame."""
    exchange, key = rng.choice(EXCHANGES), rng.choice(KEYS)
    method: Any = amqp.Basic.Deliver("consumer-1", tag, rng.random() < 0.02, exchange, key)
    if publishing:
        method = amqp.Basic.Publish(exchange, key)
    headers = {"x-trace-id": f"{rng.getrandbits(128):032x}", "attempt": rng.randrange(5), "ok": True}
    properties = amqp.BasicProperties(
        content_type="application/json",
        delivery_mode=rng.choice((1, 2)),
        headers=headers if rng.random() < 0.6 else None,
        message_id=f"{rng.getrandbits(128):032x}" if rng.random() < 0.3 else None,
        timestamp=EPOCH + timedelta(seconds=moment // 1_000_000),
    )
    body = rng.randbytes(1 + int(rng.lognormvariate(0, 0.9) * 134))
    return bytes(amqp.encode_message(CHANNEL, method, properties, body, frame_max=FRAME_MAX))


class Recorder:
    """Writes packets to a pcap file with microseconds, and counts."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.octets = file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        self.counts = {"packets": 0, "frames": 0, "messages": 0, "connections": 0}

    def packet(self, moment: int, octets: bytes) -> None:
        """Append one."""
        seconds, rest = divmod(moment, 1_000_000)
        self.octets += self._file.write(struct.pack("<IIII", seconds, rest, len(octets), len(octets)))
        self.octets += self._file.write(octets)
        self.counts["packets"] += 1

    def said(self, connection: Connection, said: Said) -> None:
        """Append the packets of what was said; the first time, those that open the connection."""
        if not connection.is_open:
            connection.is_open = True
            self.counts["connections"] += 1
            for end, flags in ((CLIENT, SYN), (BROKER, SYN | ACK), (CLIENT, ACK)):
                self.packet(said.moment, connection.packet(end, flags))
        for packet in connection.packets(said.end, said.octets):
            self.packet(said.moment, packet)
        self.counts["frames"] += said.frames
        self.counts["messages"] += said.messages


def record(path: Path, octets: int, connections: int, seed: int, bursts: int = 500) -> dict[str, int]:
    """Write a capture of about so many bytes; returns the counts.

    Args:
        path: the file.
        octets: its size. It ends between two things said, so connections may be open at its end.
        connections: how many are open at a time; one that closes is followed by another.
        seed: the same seed, the same file.
        bursts: how often a connection sends messages, one to eight at a time.
    """
    rng = random.Random(seed)
    waiting: list[tuple[Said, int]] = []
    open_now: dict[int, tuple[Connection, Iterator[Said]]] = {}

    def begin(number: int, moment: int) -> None:
        own = random.Random(seed << 32 | number)
        open_now[number] = Connection(number, own), conversation(own, moment, number, bursts)
        heapq.heappush(waiting, (next(open_now[number][1]), number))

    for number in range(connections):
        begin(number, START_US + rng.randrange(2_000_000))
    with path.open("wb", 1 << 20) as file:
        recorder = Recorder(file)
        begun = connections
        while recorder.octets < octets:
            said, number = heapq.heappop(waiting)
            connection, sayings = open_now[number]
            recorder.said(connection, said)
            following = next(sayings, None)
            if following is not None:
                heapq.heappush(waiting, (following, number))
                continue
            for end, flags in ((CLIENT, FIN | ACK), (BROKER, FIN | ACK), (CLIENT, ACK)):
                recorder.packet(said.moment, connection.packet(end, flags))
            del open_now[number]
            begin(begun, said.moment + rng.randrange(1000, 50_000))
            begun += 1
    return recorder.counts


def main() -> None:
    """Write a capture and its counts."""
    parser = argparse.ArgumentParser(description="Write a seeded capture of busy connections.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=float, default=100, help="size in millions of octets")
    parser.add_argument("--connections", type=int, default=64, help="open at a time")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    counts = record(given.out, int(given.mb * 1e6), given.connections, given.seed)
    given.out.with_name(given.out.name + ".json").write_text(
        json.dumps(counts, indent=1) + "\n", encoding="utf-8"
    )
    print(", ".join(f"{count:,} {what}" for what, count in counts.items()))


if __name__ == "__main__":
    main()
