"""Files as people have them: exports of Wireshark, old and compressed ones, several in one."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from support import make_capture as make
from support.captures import events
from support.implementation import Implementation

from amqpcodec import capture
from amqpcodec.capture import CapturedFrame, CaptureError, Data, Fault

TRUTH = make.conversations(5, count=2, bursts=6)


def tag(number: int, value: bytes) -> bytes:
    return struct.pack("!HH", number, len(value)) + value


def exported(source: tuple[bytes, int], destination: tuple[bytes, int], *more: bytes) -> bytes:
    """The tags of a payload."""
    kind = 20 if len(source[0]) == 4 else 22
    ends = tag(kind, source[0]) + tag(kind + 1, destination[0]) + tag(24, struct.pack("!I", 2))
    ports = tag(25, struct.pack("!I", source[1])) + tag(26, struct.pack("!I", destination[1]))
    return tag(12, b"amqp") + ends + ports + b"".join(more) + tag(0, b"")


def frames_of(octets: bytes) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Frames by connection and direction, and the messages of faults."""
    found = list(capture.read_frames(io.BytesIO(octets)))
    frames = [
        (each.connection.number, each.direction, each.octets) for each in found if type(each) is CapturedFrame
    ]
    return frames, [each.message for each in found if isinstance(each, Fault)]


@pytest.fixture(scope="module")
def plain(build: Implementation) -> list[tuple[Any, ...]]:
    return frames_of(make.pcap(TRUTH.packets))[0]


def ends_of(octets: bytes) -> tuple[tuple[bytes, int], tuple[bytes, int]]:
    ports = struct.unpack_from("!HH", octets, 34)
    return (octets[26:30], ports[0]), (octets[30:34], ports[1])


@pytest.mark.parametrize("positions", [True, False])
def test_payloads_that_wireshark_exported(plain: list[tuple[Any, ...]], positions: bool) -> None:
    """With sequence numbers, as those of TCP have, and without, as those that were decrypted."""
    packets = []
    for each in TRUTH.packets:
        if each.end > each.begin:
            info = struct.pack("!HIIIB", 1, *struct.unpack_from("!I", each.octets, 38), 0, 0, 0) + bytes(4)
            head = exported(*ends_of(each.octets), *([tag(34, info)] if positions else []))
            packets.append(make.Recorded(each.time_ns, head + each.octets[54:]))
    frames, faults = frames_of(make.pcap(packets, linktype=252))
    assert sorted(frames) == sorted(plain)
    assert not faults


def test_an_exported_payload_may_come_again_with_the_rest_of_its_last_frame() -> None:
    truth = make.conversations(8, count=1, bursts=12)
    rest: dict[int, bytes] = {0: b"", 1: b""}
    packets = []
    for each in truth.packets:
        if each.end == each.begin:
            continue
        octets = rest[each.stream[1]] + each.octets[54:]
        packets.append(make.Recorded(each.time_ns, exported(*ends_of(each.octets)) + octets))
        at = 8 if octets.startswith(b"AMQP") else 0
        while at + 7 <= len(octets) and at + struct.unpack_from("!I", octets, at + 3)[0] + 8 <= len(octets):
            at += struct.unpack_from("!I", octets, at + 3)[0] + 8
        rest[each.stream[1]] = octets[at:]
    frames, faults = frames_of(make.pcap(packets, linktype=252))
    assert sorted(frames) == sorted(frames_of(make.pcap(truth.packets))[0])
    assert not faults


def test_exports_that_are_no_payloads_of_tcp_are_counted(build: Implementation) -> None:
    whole = exported((b"\x0a\0\0\1", 40000), (b"\x0a\0\0\2", 5672)) + b"AMQP\0\0\x09\x01"
    assert [event[4] for event in _events(build, [whole], 252) if event[0] is Data] == [b"AMQP\0\0\x09\x01"]
    for octets, reason in (
        (whole[:20], "an exported payload whose tags are cut off"),
        (whole.replace(struct.pack("!HHI", 24, 4, 2), struct.pack("!HHI", 24, 4, 3)), "without ports of TCP"),
        (whole.replace(struct.pack("!HH", 20, 4), struct.pack("!HH", 99, 4)), "without addresses of IP"),
    ):
        [fault] = _events(build, [octets], 252)
        assert reason in fault[2]
    six = exported((bytes(16), 40000), (bytes(15) + b"\1", 5672)) + b"x"
    assert [event[4] for event in _events(build, [six], 252) if event[0] is Data] == [b"x"]


def _events(build: Implementation, packets: list[bytes], linktype: int) -> list[Any]:
    return events(build, make.pcap([make.Recorded(1, each) for each in packets], linktype=linktype))


@pytest.mark.parametrize("order", ["<", ">"])
def test_captures_of_a_patched_libpcap_of_old(plain: list[tuple[Any, ...]], order: str) -> None:
    octets = make.pcap(TRUTH.packets, order=order)
    patched, at = struct.pack(order + "I", 0xA1B2CD34) + octets[4:24], 24
    while at < len(octets):
        size = struct.unpack_from(order + "I", octets, at + 8)[0]
        patched += octets[at : at + 16] + b"\0\0\0\2\x08\0\0\0" + octets[at + 16 : at + 16 + size]
        at += 16 + size
    assert frames_of(patched) == (plain, [])
    assert frames_of(patched[:-1])[1]


@pytest.mark.parametrize(
    ("begin", "program"),
    [(b"BZh91AY", "bzip2 -dc"), (b"\xfd7zXZ\0\0", "xz -dc"), (b"\x04\x22\x4d\x18d", "lz4 -dc"),
     (b"PK\3\4\x14", "unzip -p"), (b"7z\xbc\xaf\x27\x1c", "7z x -so")],
)  # fmt: skip
def test_what_is_packed_otherwise_is_named_with_the_program_that_unpacks_it(
    begin: bytes, program: str
) -> None:
    with pytest.raises(CaptureError, match=f"{program} FILE"):
        frames_of(begin + bytes(100))


@pytest.mark.parametrize("first", ["pcap", "pcapng"])
@pytest.mark.parametrize("second", ["pcap", "pcap the other way round", "pcapng"])
def test_two_captures_in_one_file_are_told(plain: list[tuple[Any, ...]], first: str, second: str) -> None:
    kinds = {
        "pcap": make.pcap(TRUTH.packets),
        "pcap the other way round": make.pcap(TRUTH.packets, order=">", nanos=True),
        "pcapng": make.pcapng(TRUTH.packets),
    }
    frames, faults = frames_of(kinds[first] + kinds[second])
    if first == second == "pcapng":  # which is how they may be joined
        assert not faults
    else:
        assert frames == plain
        [message] = faults
        assert message.startswith("another capture begins here")
        assert "mergecap" in message


def test_a_length_that_no_record_has_comes_with_its_reason() -> None:
    octets = make.pcap(TRUTH.packets)
    at = 24
    for _ in range(5):
        at += 16 + struct.unpack_from("<I", octets, at + 8)[0]
    damaged = octets[:at] + struct.pack("<IIII", 1, 1, 10**9, 10**9) + octets[at:]
    [message] = frames_of(damaged)[1]
    assert message == (
        "record of 1000000000 octets, more than the limit of 67108864: the file is damaged here; "
        "nothing behind it can be read"
    )
