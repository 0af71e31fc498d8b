"""tshark as a second reader of the same files. It is run, or the test says why not."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from support import make_capture as make
from support import tunnels

from amqpcodec.capture import CapturedFrame, read_frames

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = {1: "method", 2: "content-header", 3: "content-body", 8: "heartbeat"}
# It takes the control word before an address of zeros for a part of that, and Ethernet in IP for others.
TSHARK_READS_OTHERWISE = {"ethernet_in_ip", "ethernet_in_ip6", "pseudowire_controlled"}

pytestmark = [
    pytest.mark.slow("runs tshark"),
    pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed"),
]


def _by_tshark(path: Path) -> Counter[tuple[str, ...]]:
    """(tcp stream, source port, frame type, channel, size) of every frame."""
    fields = ["tcp.stream", "tcp.srcport", "amqp.type", "amqp.channel", "amqp.length"]
    command = [
        "tshark",
        "-r",
        str(path),
        "-d",
        "tcp.port==5672,amqp",
        "-o",
        "tcp.reassemble_out_of_order:TRUE",
    ]
    command += ["-Y", "amqp.type", "-T", "fields", *(word for name in fields for word in ("-e", name))]
    output = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=60).stdout
    frames: Counter[tuple[str, ...]] = Counter()
    for line in output.splitlines():
        stream, port, *lists = line.split("\t")
        for kind, channel, size in zip(*(each.split(",") for each in lists), strict=True):
            frames[stream, port, kind, channel, size] += 1
    return frames


def _by_us(path: Path) -> Counter[tuple[str, ...]]:
    frames: Counter[tuple[str, ...]] = Counter()
    for item in read_frames(path):
        assert isinstance(item, CapturedFrame)
        if item.frame.type in NAMES:
            end = item.connection.server if item.direction else item.connection.client
            assert end is not None
            row = (item.connection.number, end.port, item.frame.type, item.frame.channel, item.size)
            frames[tuple(map(str, row))] += 1
    return frames


@pytest.mark.parametrize("name", ["real-bunny", "real-txamqp-0-8"])
def test_tshark_sees_the_same_frames_in_the_examples(name: str) -> None:
    path = EXAMPLES / f"{name}.pcap"
    assert _by_us(path) == _by_tshark(path)


def test_tshark_sees_the_same_frames_in_a_disturbed_capture(tmp_path: Path) -> None:
    truth = make.conversations(6, count=3, bursts=20)
    packets, _ = make.disturb(truth.packets, 6, reorder=0.05, duplicate=0.05)
    path = tmp_path / "made.pcapng"
    path.write_bytes(make.pcapng(packets))
    frames = _by_us(path)
    assert frames == _by_tshark(path)
    assert sum(frames.values()) == sum(frame[3][:4] != b"AMQP" for frame in truth.frames)


@pytest.mark.parametrize("name", sorted(set(tunnels.LAYERS) - TSHARK_READS_OTHERWISE))
def test_tshark_sees_the_same_frames_in_tunnels(tmp_path: Path, name: str) -> None:
    path = tmp_path / "made.pcap"
    truth = make.conversations(6, count=2, bursts=8)
    path.write_bytes(make.pcap(tunnels.packets(truth.packets, [tunnels.LAYERS[name]])))
    frames = _by_us(path)
    assert frames == _by_tshark(path)
    assert sum(frames.values()) == sum(frame[3][:4] != b"AMQP" for frame in truth.frames)


def test_payloads_that_tshark_exports_have_the_frames_of_their_capture(tmp_path: Path) -> None:
    path, exported = tmp_path / "made.pcap", tmp_path / "exported.pcapng"
    path.write_bytes(make.pcap(make.conversations(6, count=2, bursts=8).packets))
    command = [
        "tshark",
        "-r",
        str(path),
        "-d",
        "tcp.port==5672,amqp",
        "-U",
        "OSI layer 4",
        "-w",
        str(exported),
    ]
    subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert _by_us(exported) == _by_us(path)
