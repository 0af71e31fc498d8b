"""Containers: pcap and pcapng, good and damaged; dpkt and scapy as second opinions."""

from __future__ import annotations

import gzip
import io
import random
import struct
import sys
import warnings

import dpkt
import pytest
from support import make_capture as make
from support.campaign import share
from support.memory import traced

from amqpcodec import capture
from amqpcodec.capture import ByteSource, CaptureError, Fault, Packet, pcapng, read_frames, read_packets

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from scapy.utils import RawPcapNgReader, RawPcapReader

PACKETS = [
    make.Recorded(make.START_NS + index * 1_001_000, bytes([index]) * (60 + index)) for index in range(5)
]


def read(octets: bytes, **options: int) -> list[Packet | Fault]:
    return list(read_packets(ByteSource(io.BytesIO(octets)), **options))


def contents(octets: bytes) -> list[tuple[int | None, bytes]]:
    packets = [item for item in read(octets) if isinstance(item, Packet)]
    return [(packet.time_ns, packet.data) for packet in packets]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanos", [False, True])
def test_pcap_is_read_in_both_byte_orders_and_both_units_of_time(order: str, nanos: bool) -> None:
    octets = make.pcap(PACKETS, order=order, nanos=nanos)
    assert contents(octets) == [(packet.time_ns, packet.octets) for packet in PACKETS]
    raw = list(RawPcapReader(io.BytesIO(octets)))
    assert [data for data, _ in raw] == [packet.octets for packet in PACKETS]


def test_dpkt_reads_the_same_packets() -> None:
    octets = make.pcap(PACKETS, nanos=True)
    assert [data for _, data in dpkt.pcap.Reader(io.BytesIO(octets))] == [
        data for _, data in contents(octets)
    ]
    octets = make.pcapng(PACKETS)
    theirs = [(round(time * 1e6), data) for time, data in dpkt.pcapng.Reader(io.BytesIO(octets))]
    assert theirs == [(time // 1000, data) for time, data in contents(octets)]


def test_a_time_that_nobody_can_have_recorded_is_none() -> None:
    seconds = struct.pack("<HHBxxx", 9, 1, 0)
    octets = make.section() + make.interface(options=seconds) + make.enhanced(b"x", 2**63)
    assert contents(octets) == [(None, b"x")]


def test_upper_bits_of_the_link_type_are_masked() -> None:
    [packet, *_] = read(make.pcap(PACKETS, linktype=0x14000001))
    assert packet.linktype == 1


def test_snapped_packets_keep_their_original_length() -> None:
    [packet, *_] = read(make.pcap(PACKETS, snap=40))
    assert (len(packet.data), packet.original_length) == (40, 60)


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_is_read_in_both_byte_orders(order: str) -> None:
    octets = make.pcapng(PACKETS, order)
    assert contents(octets) == [(packet.time_ns, packet.octets) for packet in PACKETS]
    assert [data for data, _ in RawPcapNgReader(io.BytesIO(octets))] == [packet.octets for packet in PACKETS]


def test_pcapng_sections_may_change_byte_order_and_forget_interfaces() -> None:
    octets = make.pcapng(PACKETS[:2], "<") + make.pcapng(PACKETS[2:], ">")
    assert contents(octets) == [(packet.time_ns, packet.octets) for packet in PACKETS]
    [_, fault] = read(make.pcapng(PACKETS[:1]) + make.section() + make.enhanced(b"x", 0))
    assert "interface 0 was not described" in fault.message


@pytest.mark.parametrize(
    ("resolution", "ticks", "time_ns"),
    [
        (9, 1_700_000_000_000_000_001, 1_700_000_000_000_000_001),
        (3, 1_700_000_000_500, 1_700_000_000_500_000_000),
        (0x80 | 10, 3 * 1024 + 512, 3_500_000_000),
        (0, 7, 7_000_000_000),
    ],
)
def test_pcapng_time_resolution(resolution: int, ticks: int, time_ns: int) -> None:
    options = struct.pack("<HHB3x", 9, 1, resolution)
    [packet] = read(make.section() + make.interface(options=options) + make.enhanced(b"x", ticks))
    assert packet.time_ns == time_ns


def test_pcapng_time_offset_is_in_seconds_and_may_be_negative() -> None:
    options = struct.pack("<HHq", 14, 8, -5) + bytes(4) + struct.pack("<HHB3x", 9, 1, 9)
    [packet] = read(make.section() + make.interface(options=options) + make.enhanced(b"x", 6_000_000))
    assert packet.time_ns == 1_000_000_000  # what stands behind the end of the options does not count


@pytest.mark.parametrize(
    ("ticks", "offset", "time_ns"),
    [(2**62 - 1, 0, 2**62 - 1), (2**62, 0, None), (0, -(2**62), None), (1, -(2**62), 1 - 2**62)],
)
def test_pcapng_times_end_in_2116_and_as_long_before_1970(
    ticks: int, offset: int, time_ns: int | None
) -> None:
    interface = pcapng.Interface(1, 0, units_per_second=10**9)
    found = interface.time_ns((ticks + offset) >> 32, (ticks + offset) & 0xFFFFFFFF)
    assert found == time_ns


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("ahead", [0, 4])
def test_what_is_skipped_has_to_be_there_to_the_last_octet(packed: bool, ahead: int) -> None:
    for size in (0, 1, 2, 9, 10, 11):
        source = ByteSource(io.BytesIO(gzip.compress(b"0123456789") if packed else b"0123456789"))
        source.peek(ahead)
        if size <= 10:
            source.skip(size)
            assert (source.offset, source.read(20)) == (size, b"0123456789"[size:])
        else:
            with pytest.raises(ValueError, match="the file has less than 11 octets here"):
                source.skip(size)


def test_pcapng_interfaces_of_a_section_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcapng, "MAX_INTERFACES", 3)
    described = make.section() + make.interface() * 3
    packets = make.enhanced(b"x", 1, which=2) + make.enhanced(b"y", 1, which=3)
    octets = described + make.interface() * 2 + packets + described + make.enhanced(b"z", 1, which=2)
    size = len(make.interface())
    beyond = "block of type 1 is unusable: more than 3 interfaces in a section"
    found = read(octets)
    assert [item.data for item in found if isinstance(item, Packet)] == [b"x", b"z"]
    faults = [item for item in found if not isinstance(item, Packet)]
    assert [(fault.message, fault.offset) for fault in faults[:2]] == [
        (beyond, len(described)), (beyond, len(described) + size),
    ]  # fmt: skip
    assert "interface 3 was not described" in faults[2].message
    found = list(capture.read_events(ByteSource(io.BytesIO(octets)), capture.StreamTracker()))
    assert found[:3] == faults


def test_pcapng_several_interfaces_and_every_kind_of_packet_block() -> None:
    old = make.block(2, struct.pack("<HHIIII", 1, 0, 0, 8_000_000, 3, 9) + b"old")
    simple = make.block(3, struct.pack("<I", 9) + b"simple")
    octets = make.section() + make.interface(snap=6) + make.interface(linktype=101)
    octets += make.block(0xBAD, b"unknown") + old + simple + make.enhanced(b"new", 9_000_000, which=1)
    assert read(octets) == [
        Packet(1, 8_000_000_000, 101, b"old", 9),
        Packet(2, None, 1, b"simple", 9),
        Packet(3, 9_000_000_000, 101, b"new", 3),
    ]


def test_a_simple_packet_has_at_most_the_octets_of_its_block() -> None:
    blocks = make.block(3, struct.pack("<I", 9) + b"12345678") + make.block(
        3, struct.pack("<I", 8) + b"12345678"
    )
    [fault, packet] = read(make.section() + make.interface() + blocks)
    assert fault.message == "block of type 3 is unusable: packet of 9 octets in a block that has 8"
    assert packet == Packet(2, None, 1, b"12345678", 8)


def test_a_block_with_a_wrong_second_length_is_reported_and_skipped() -> None:
    bad = bytearray(make.enhanced(b"bad!", 1))
    bad[-4:] = struct.pack("<I", 99)
    [fault, packet] = read(make.section() + make.interface() + bytes(bad) + make.enhanced(b"good", 2))
    assert fault.offset == len(make.section() + make.interface())
    assert packet.data == b"good"


def test_a_packet_longer_than_its_block_is_reported_and_skipped() -> None:
    bad = make.block(6, struct.pack("<IIIII", 0, 0, 0, 2**32 - 1, 5))
    [fault, packet] = read(make.section() + make.interface() + bad + make.enhanced(b"good", 2))
    assert fault.message == "block of type 6 is unusable: packet of 4294967295 octets in a block that has 0"
    assert packet.number == 2


@pytest.mark.parametrize("container", [make.pcap(PACKETS), make.pcapng(PACKETS)], ids=["pcap", "pcapng"])
def test_gzip_is_recognised_and_a_cut_is_reported(container: bytes) -> None:
    assert contents(gzip.compress(container)) == contents(container)
    *packets, fault = read(gzip.compress(container, mtime=0)[:-9])
    assert "gzip data is cut off" in fault.message
    assert len(packets) <= len(PACKETS)


NOISE = [make.Recorded(make.START_NS, random.Random(seed).randbytes(30_000)) for seed in range(20)]


@pytest.mark.parametrize("container", [make.pcap(NOISE), make.pcapng(NOISE)], ids=["pcap", "pcapng"])
def test_zstandard_is_recognised_and_a_cut_and_damage_are_reported(container: bytes) -> None:
    zstandard = pytest.importorskip("zstandard")
    octets = zstandard.ZstdCompressor(write_checksum=True).compress(container)
    assert contents(octets) == contents(container)
    assert contents(octets + zstandard.compress(container)[:9]) == contents(container)
    assert "zstd data is cut off" in read(octets[:-1])[-1].message
    assert "zstd data is damaged" in read(octets[:-1] + bytes([octets[-1] ^ 1]))[-1].message


def test_zstandard_that_swells_is_given_out_bit_by_bit() -> None:
    zstandard = pytest.importorskip("zstandard")
    octets = zstandard.ZstdCompressor(level=1).compress(make.pcap(PACKETS) + bytes(300_000_000))
    with traced() as memory:
        with ByteSource(io.BytesIO(octets)) as source:
            assert len(source.read(1_000_000)) == 1_000_000
        assert memory()[1] < 64_000_000


def test_without_a_library_zstandard_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    with pytest.raises(CaptureError, match="pip install zstandard"):
        read(b"\x28\xb5\x2f\xfd" + bytes(50))


def test_damaged_gzip_is_reported() -> None:
    octets = bytearray(gzip.compress(make.pcap(PACKETS), mtime=0))
    octets[-6] ^= 0xFF  # its checksum
    fault = read(bytes(octets))[-1]
    assert isinstance(fault, Fault)
    assert "damaged" in fault.message


@pytest.mark.parametrize(
    ("octets", "complaint"),
    [(b"", "empty"), (b"hello, world", "neither pcap nor pcapng"), (b"AMQP\0\0\x09\x01", "--input stream"),
     (gzip.compress(b"", mtime=0), "holds nothing"), (b"\x1f\x8b\x08 no gzip", "gzip")],
)  # fmt: skip
def test_what_is_no_capture_is_refused_in_one_line(octets: bytes, complaint: str) -> None:
    with pytest.raises(CaptureError, match=complaint) as caught:
        read(octets)
    assert "\n" not in str(caught.value)


def test_a_huge_record_length_is_refused_with_its_place_and_without_memory() -> None:
    head = make.pcap([])
    with pytest.raises(CaptureError, match="limit") as caught:
        read(head + struct.pack("<IIII", 0, 0, 2**32 - 1, 2**32 - 1))
    assert caught.value.offset == 24
    good = make.pcap(PACKETS[:2])
    *packets, fault = read(good + struct.pack("<IIII", 0, 0, 2**31, 2**31) + bytes(50))
    assert len(packets) == 2
    assert (fault.offset, fault.kind) == (len(good), "file")


@pytest.mark.parametrize(
    ("total", "faults"),
    [
        (100 + 4096, []),
        (100 + 4100, ["pcapng block of 4200 octets, more than the limit; nothing behind it can be read"]),
    ],
)
def test_a_block_has_room_for_the_largest_packet_and_for_what_is_beside_it(
    total: int, faults: list[str]
) -> None:
    block = struct.pack("<II", 0xBAD, total) + bytes(total - 12) + struct.pack("<I", total)
    _, *behind = read(make.pcapng(PACKETS[:1]) + block, max_record_bytes=100)
    assert [item.message for item in behind if isinstance(item, Fault)] == faults


@pytest.mark.parametrize("total", [0, 4, 11, 13, 2**32 - 4])
def test_impossible_block_lengths_end_the_reading(total: int) -> None:
    octets = make.pcapng(PACKETS[:1]) + struct.pack("<II", 6, total) + bytes(64)
    *_, fault = read(octets)
    assert isinstance(fault, Fault)
    assert str(total) in fault.message


@pytest.mark.parametrize("container", [make.pcap(PACKETS), make.pcapng(PACKETS)], ids=["pcap", "pcapng"])
def test_cut_at_every_octet(container: bytes) -> None:
    whole = contents(container)
    for size in range(len(container)):
        try:
            items = read(container[:size])
        except CaptureError:
            assert size < 24
            continue
        packets = [item for item in items if isinstance(item, Packet)]
        assert [(packet.time_ns, packet.data) for packet in packets] == whole[: len(packets)]
        assert len(items) - len(packets) <= 1


@pytest.mark.parametrize("form", [make.pcap, make.pcapng])
def test_flipped_octets_never_raise_anything_else(form) -> None:  # type: ignore[no-untyped-def]
    original = form(make.conversations(3, count=1, bursts=4).packets)
    rng = random.Random(11)
    for _ in range(share(60)):
        octets = bytearray(original)
        for _ in range(rng.randrange(1, 6)):
            octets[rng.randrange(len(octets))] ^= 1 << rng.randrange(8)
        try:
            for item in read_frames(io.BytesIO(bytes(octets)), port=None):
                assert item is not None
        except CaptureError:
            pass
