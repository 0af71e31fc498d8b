"""Memory of the process for each connection of a capture: what it grows by, without what is constant."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

import pytest
from support.implementation import Implementation
from support.subprocesses import output
from support.tiers import few

from amqpcodec import rabbitmq as amqp

STATUS = Path(
    "/proc/self/status"
)  # `getrusage` reports what the process had before it became another program, too
if not STATUS.exists():
    pytest.skip("this system does not report the memory of a process", allow_module_level=True)
if "AMQPCODEC_SANITIZED" in os.environ:
    pytest.skip("a sanitizer keeps freed memory for a while", allow_module_level=True)

SYN, FIN, PSH, ACK = 2, 1, 8, 16
CLIENT = amqp.protocol_header() + b"".join(
    amqp.encode_method(channel, method)
    for channel, method in (
        (0, amqp.Connection.StartOk({"product": "pika"}, "PLAIN", b"\0guest\0guest", "en_US")),
        (0, amqp.Connection.TuneOk(2047, 131072, 60)),
        (0, amqp.Connection.Open("/")),
        (1, amqp.Channel.Open()),
    )
)
SERVER = b"".join(
    amqp.encode_method(channel, method)
    for channel, method in (
        (0, amqp.Connection.Start(0, 9, {"product": "RabbitMQ", "version": "3.13.1"}, b"PLAIN", b"en_US")),
        (0, amqp.Connection.Tune(2047, 131072, 60)),
        (0, amqp.Connection.OpenOk()),
        (1, amqp.Channel.OpenOk()),
    )
)
# Octets of a connection that are allowed for, about a third above what was measured.
# Without a global lock the head of an object is twice as large.
WIDER = 1.0 if getattr(sys, "_is_gil_enabled", lambda: True)() else 1.25
BOUNDS = {
    "frames, left out": 2_500,
    "frames, closed": 2_500,
    "frames, open": 4_500,
    "stats, open": 19_000,
    "stats, closed": 3_500,
}
PROGRAM = """
import sys
what, path = sys.argv[1:]
if what == "stats":
    from amqpcodec import stats
    stats.Collector().add(path, path)
else:
    from amqpcodec.capture import read_frames
    for _ in read_frames(path):
        pass
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


def _capture(path: Path, connections: int, *, port: int = 5672, closed: bool = False) -> Path:
    """Connections with a handshake each, one behind the other; they stay open, or are closed at once."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for number in range(connections):
            file.writelines(_packets(number, port, closed))
    return path


def _packets(number: int, port: int, closed: bool) -> list[bytes]:
    sent, received = 101 + len(CLIENT), 500 + len(SERVER)
    said = [
        (0, 100, 0, SYN, b""),
        (1, 499, 101, SYN | ACK, b""),
        (0, 101, 500, PSH | ACK, CLIENT),
        (1, 500, sent, PSH | ACK, SERVER),
    ]
    if closed:
        said += [(0, sent, received, FIN | ACK, b""), (1, received, sent + 1, FIN | ACK, b"")]
    ends = bytes((10, 1, number // 40000, 1)), bytes((10, 0, 0, 9))
    ports = 10000 + number % 40000, port
    packets = []
    for index, (side, seq, ack, flags, octets) in enumerate(said):
        tcp = (
            struct.pack("!HHIIBBHHH", ports[side], ports[1 - side], seq, ack, 0x50, flags, 501, 0, 0) + octets
        )
        ip = (
            struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 7, 0x4000, 64, 6, 0)
            + ends[side]
            + ends[1 - side]
        )
        size = 14 + len(ip) + len(tcp)
        moment = struct.pack(
            "<IIII", 1_700_000_000 + number // 1000, number % 1000 * 1000 + index, size, size
        )
        packets.append(moment + bytes(12) + b"\x08\0" + ip + tcp)
    return packets


@pytest.mark.parametrize("work", few(BOUNDS, 2, "memory at scale"))
def test_a_connection_takes_little_memory(impl: Implementation, work: str, tmp_path: Path) -> None:
    what, kind = work.split(", ")
    counts = 500, 1500
    if work == "stats, closed":
        if impl.name == "py":
            pytest.skip("it takes long, and what is kept of them is the same")
        counts = 6000, 8000  # more than `stats` keeps until it takes their rows
    port = 9999 if kind == "left out" else 5672
    paths = [
        _capture(tmp_path / f"{count}.pcap", count, port=port, closed=kind == "closed") for count in counts
    ]
    # A process each: what the first capture leaves as garbage would be the room of the second, or not.
    few, many = (int(output("-c", PROGRAM, what, str(path), impl=impl.name)) for path in paths)
    assert 1024 * (many - few) / (counts[1] - counts[0]) < BOUNDS[work] * WIDER
