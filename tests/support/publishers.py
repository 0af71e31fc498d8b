"""Rotated captures of publishers with confirms; exchanges are missing, and operators close connections."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from amqpcodec import rabbitmq as amqp
from amqpcodec.capture import Endpoint
from amqpcodec.capture.writing import Conversation, PacketWriter

CLIENT, BROKER = 0, 1
EXCHANGES = ("orders", "payments", "telemetry")
MISSING = "no-such-exchange"
START_NS = 1_763_712_000 * 10**9
SECOND = 10**9


class RotatingWriter(PacketWriter):
    """Writes packets to one file after another, as a capture that is rotated does."""

    def __init__(self, folder: Path, octets: int) -> None:
        self._folder, self._octets, self._count = folder, octets, 0
        self._begin()

    def record(self, time_ns: int, octets: bytes) -> None:
        """Append a packet, to a new file if the last one is full."""
        if self._open.tell() >= self._octets:
            self._open.close()
            self._begin()
        super().record(time_ns, octets)

    def close(self) -> None:
        """Close the last file."""
        self._open.close()

    def _begin(self) -> None:
        self._open = (self._folder / f"trace_{self._count:05d}.pcap").open("wb")
        self._count += 1
        super().__init__(self._open)


class Publisher:
    """A client that publishes with confirms, as its broker and it are seen on the wire.

    Args:
        packets: where they are seen.
        number: of the connection.
        rng: decides what is published, and what becomes of it.

    Attributes:
        unconfirmed: messages published that the broker never confirms.
        time_ns: when the next thing is said.
    """

    def __init__(self, packets: PacketWriter, number: int, rng: random.Random) -> None:
        self._packets, self._number, self._rng = packets, number, rng
        self._published = self._confirmed = 0
        self._fails = number % 5 == 0  # publishes to an exchange that is not there: its channel is closed
        self._ends = number % 7 == 3  # an operator closes its connection
        self.unconfirmed = 0
        self.time_ns = START_NS + rng.randrange(60 * SECOND)

    def life(self, bursts: int) -> Iterator[None]:
        """Say all, one thing at a time."""
        ends = Endpoint(struct.pack("!BBH", 10, 1, self._number), 40000), Endpoint(bytes((10, 0, 0, 1)), 5672)
        wire = Conversation(self._packets, *ends, self.time_ns, self._number)
        for end, octets in self._said(bursts):
            wire.send(end, octets, self.time_ns)
            self.time_ns += self._rng.randrange(1, SECOND // 2)
            yield
        wire.close(self.time_ns)
        self.unconfirmed = self._published - self._confirmed

    def _said(self, bursts: int) -> Iterator[tuple[int, bytes]]:
        yield CLIENT, amqp.protocol_header()
        for end, channel, method in _OPENING:
            yield end, amqp.encode_method(channel, method)
        for _ in range(bursts):
            for _ in range(self._rng.randrange(1, 6)):
                yield CLIENT, self._message(self._rng.choice(EXCHANGES))
            yield from self._confirms()
        if self._fails:
            yield CLIENT, self._message(MISSING)
            yield CLIENT, self._message(EXCHANGES[0])
            text = f"NOT_FOUND - no exchange '{MISSING}' in vhost '/'"
            yield BROKER, amqp.encode_method(1, amqp.Channel.Close(404, text, 60, 40))
            yield CLIENT, amqp.encode_method(1, amqp.Channel.CloseOk())
        forced = "CONNECTION_FORCED - Closed via management plugin"
        closer, code, text = (BROKER, 320, forced) if self._ends else (CLIENT, 200, "bye")
        yield closer, amqp.encode_method(0, amqp.Connection.Close(code, text, 0, 0))
        yield 1 - closer, amqp.encode_method(0, amqp.Connection.CloseOk())

    def _message(self, exchange: str) -> bytes:
        key, size = f"{exchange}.created.{self._rng.randrange(20)}", self._rng.randrange(20, 3000)
        properties = amqp.BasicProperties(content_type="application/json", headers={"try": self._published})
        self._published += 1
        return bytes(
            amqp.encode_message(1, amqp.Basic.Publish(exchange, key), properties, self._rng.randbytes(size))
        )

    def _confirms(self) -> Iterator[tuple[int, bytes]]:
        """Confirm what was published: each alone, or all at once."""
        together = self._rng.random() < 0.7
        for tag in [self._published] if together else range(self._confirmed + 1, self._published + 1):
            yield BROKER, amqp.encode_method(1, amqp.Basic.Ack(tag, together))
        self._confirmed = self._published


_OPENING: tuple[tuple[int, int, Any], ...] = (
    (BROKER, 0, amqp.Connection.Start(0, 9, {"product": "RabbitMQ"}, b"PLAIN", b"en_US")),
    (CLIENT, 0, amqp.Connection.StartOk({"product": "example"}, "PLAIN", b"\0guest\0guest", "en_US")),
    (BROKER, 0, amqp.Connection.Tune(2047, 131072, 60)),
    (CLIENT, 0, amqp.Connection.TuneOk(2047, 131072, 60)),
    (CLIENT, 0, amqp.Connection.Open("/")),
    (BROKER, 0, amqp.Connection.OpenOk()),
    (CLIENT, 1, amqp.Channel.Open()),
    (BROKER, 1, amqp.Channel.OpenOk()),
    (CLIENT, 1, amqp.Confirm.Select()),
    (BROKER, 1, amqp.Confirm.SelectOk()),
)


def make_captures(folder: Path, connections: int, bursts: int, octets: int) -> int:
    """Write rotated captures of publishers side by side. Return how many messages are never confirmed."""
    folder.mkdir(parents=True)
    packets = RotatingWriter(folder, octets)
    publishers = [Publisher(packets, number, random.Random(7 + number)) for number in range(connections)]
    alive = [(publisher, publisher.life(bursts)) for publisher in publishers]
    while alive:
        now = min(alive, key=lambda each: each[0].time_ns)
        if next(now[1], "ended") == "ended":
            alive.remove(now)
    packets.close()
    return sum(publisher.unconfirmed for publisher in publishers)
