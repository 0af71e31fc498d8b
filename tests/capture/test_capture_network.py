"""Link layers and IP: where the TCP segment is found, and which packets are skipped and reported."""

from __future__ import annotations

import ipaddress
import struct
import warnings

import pytest
from support import make_capture as make
from support.captures import events
from support.implementation import Implementation
from support.memory import traced

from amqpcodec.capture import Data, Fault, Packet, Segment, network, read_segments

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from scapy.layers.inet import IP, TCP
    from scapy.layers.inet6 import (
        IPv6,
        IPv6ExtHdrDestOpt,
        IPv6ExtHdrFragment,
        IPv6ExtHdrHopByHop,
        IPv6ExtHdrRouting,
    )
    from scapy.layers.l2 import CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Ether, Loopback

SEGMENT = make.tcp((40000, 5672), 11, 22, make.ACK, b"payload", options=bytes(12))
V4 = make.ipv4("10.0.0.1", "10.0.0.2", SEGMENT)
V6 = make.ipv6("fd00::1", "fd00::2", SEGMENT)


def segments(data: bytes, linktype: int = 1, original: int | None = None) -> list[Segment | Fault]:
    return list(read_segments([Packet(1, 5, linktype, data, len(data) if original is None else original)]))


def payload(data: bytes, linktype: int = 1) -> bytes:
    [segment] = segments(data, linktype)
    assert isinstance(segment, Segment), segment
    assert (segment.seq, segment.ack, segment.flags) == (11, 22, make.ACK)
    assert (segment.source.port, segment.destination.port) == (40000, 5672)
    assert segment.length == len(segment.data)
    return segment.data


def test_common_packets_read_in_one_go_are_what_the_layers_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is damaged in them, cut off, or recorded in part."""
    segment = make.tcp((40000, 5672), 11, 22, make.ACK, b"payload")
    common = make.ethernet(make.ipv4("10.0.0.1", "10.0.0.2", segment))
    packets = [(common[:size], len(common)) for size in range(len(common))]
    packets += [(common, original) for original in range(len(common) + 1)]
    packets += [(common + bytes(6), len(common) + 6), (V4, len(V4))]
    for place in range(len(common)):
        for bit in range(8):
            damaged = bytearray(common)
            damaged[place] ^= 1 << bit
            packets += [(bytes(damaged), len(damaged)), (bytes(damaged[:-9]), len(damaged))]
    found = [segments(data, original=original) for data, original in packets]
    monkeypatch.setattr(network, "_common_segment", lambda packet: None)
    assert [segments(data, original=original) for data, original in packets] == found
    assert sum(type(each[0]) is Segment for each in found if each) > len(found) // 3


@pytest.mark.parametrize("datagram", [V4, V6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize(
    ("linktype", "front"),
    [
        (101, b""),
        (12, b""),
        (14, b""),
        (0, struct.pack("<I", 2)),
        (0, struct.pack(">I", 30)),
        (108, struct.pack(">I", 2)),
    ],
)
def test_raw_ip_and_loopback(datagram: bytes, linktype: int, front: bytes) -> None:
    assert payload(front + datagram, linktype) == b"payload"


@pytest.mark.parametrize("tags", [(), (0x8100,), (0x88A8, 0x8100), (0x9100, 0x8100)])
def test_ethernet_with_vlan_tags(tags: tuple[int, ...]) -> None:
    assert payload(make.ethernet(V4, tags)) == b"payload"
    assert payload(make.ethernet(V6, tags)) == b"payload"


def test_padding_of_short_ethernet_packets_is_no_payload() -> None:
    assert payload(make.ethernet(V4) + bytes(10)) == b"payload"


@pytest.mark.parametrize("total", [19, 20])
def test_a_datagram_has_at_least_the_octets_of_its_header(total: int) -> None:
    header = V4[:2] + total.to_bytes(2, "big") + V4[4:9] + b"\x11" + V4[10:20]  # of UDP, which is passed over
    [*found] = segments(make.ethernet(header))
    assert [fault.message for fault in found] == (
        ["1 packet passed over, the first is 1: damaged IPv4 header"] if total < 20 else []
    )


def test_length_zero_stands_for_all_there_is() -> None:
    unset = V4[:2] + b"\0\0" + V4[4:]
    assert payload(make.ethernet(unset)) == b"payload"


def _scapy_packets() -> list[tuple[int, bytes]]:
    tcp = TCP(sport=40000, dport=5672, seq=11, ack=22, flags="A") / b"payload"
    v4, v6 = IP(src="10.0.0.1", dst="10.0.0.2") / tcp, IPv6(src="fd00::1", dst="fd00::2")
    options = IPv6ExtHdrHopByHop() / IPv6ExtHdrRouting(addresses=["fd00::9"]) / IPv6ExtHdrDestOpt()
    return [
        (
            1,
            bytes(
                Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / Dot1AD(vlan=3) / Dot1Q(vlan=4) / v4
            ),
        ),
        (1, bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / v6 / options / tcp)),
        (1, bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / v6 / IPv6ExtHdrFragment() / tcp)),
        (113, bytes(CookedLinux() / v4)),
        (113, bytes(CookedLinux() / Dot1Q(vlan=7) / v4)),
        (276, bytes(CookedLinuxV2(proto=0x0800) / v4)),
        (276, bytes(CookedLinuxV2(proto=0x86DD) / v6 / tcp)),
        (276, bytes(CookedLinuxV2(proto=0x8100) / Dot1Q(vlan=7) / v4)),
        (0, bytes(Loopback() / v4)),
        (228, bytes(v4)),
        (229, bytes(v6 / tcp)),
    ]


@pytest.mark.parametrize(("linktype", "data"), _scapy_packets())
def test_packets_built_by_scapy(linktype: int, data: bytes) -> None:
    assert payload(data, linktype) == b"payload"


def test_addresses_are_shown_as_usual() -> None:
    [segment] = segments(make.ethernet(V6))
    assert str(segment.source) == "[fd00::1]:40000"
    [segment] = segments(make.ethernet(V4))
    assert str(segment.destination) == "10.0.0.2:5672"
    assert segment.source.address == ipaddress.ip_address("10.0.0.1").packed


def test_a_snapped_packet_knows_how_much_is_missing() -> None:
    data = make.ethernet(V4)
    [segment] = segments(data[:-3], original=len(data))
    assert (segment.data, segment.length) == (b"payl", 7)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            make.ethernet(make.ipv4("1.1.1.1", "2.2.2.2", SEGMENT, fragment=0x2000)),
            "fragments of IPv4 datagrams that are not whole",
        ),
        (
            make.ethernet(make.ipv4("1.1.1.1", "2.2.2.2", SEGMENT, fragment=0x0010)),
            "fragments of IPv4 datagrams that are not whole",
        ),
        (
            make.ethernet(make.ipv6("::1", "::2", SEGMENT, extensions=b"\x06\0\0\x01\0\0\0\x05", first=44)),
            "fragments of IPv6 datagrams that are not whole",
        ),
        (make.ethernet(V4)[:30], "IPv4 header cut off"),
        (make.ethernet(b"\x60" + V4[1:39]), "IPv6 header cut off"),
        (make.ethernet(make.ipv6("::1", "::2", b"\x06", first=0)), "IPv6 extension header cut off"),
        (make.ethernet(V6)[:40], "IPv6 header cut off"),
        (make.ethernet(V4)[:50], "TCP header cut off"),
        (make.ethernet(V4[:32] + b"\xf0" + V4[33:]), "TCP header of an impossible length"),
        (make.ethernet(V4[:32] + b"\x10" + V4[33:]), "TCP header of an impossible length"),
        (make.ethernet(b"\x42" + V4[1:]), "damaged IPv4 header"),
        (
            make.ethernet(make.ipv6("::1", "::2", SEGMENT, extensions=b"\x06\xff" + bytes(6), first=0)),
            "damaged IPv6 extension header",
        ),
    ],
)
def test_what_cannot_be_read_is_counted_with_its_reason(data: bytes, reason: str) -> None:
    packets = [Packet(number, 5, 1, data, len(data)) for number in (7, 8)]
    [fault] = read_segments(packets)
    assert isinstance(fault, Fault)
    assert fault.message == f"2 packets passed over, the first is 7: {reason}"


@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (make.ethernet(V4), {34: "IPv4 header cut off", 54: "TCP header cut off"}),
        (make.ethernet(V6), {54: "IPv6 header cut off", 74: "TCP header cut off"}),
        (
            make.ethernet(make.ipv6("::1", "::2", SEGMENT, extensions=b"\x06\0" + bytes(6), first=0)),
            {54: "IPv6 header cut off", 62: "IPv6 extension header cut off", 82: "TCP header cut off"},
        ),
    ],
    ids=["IPv4", "IPv6", "IPv6 with an extension header"],
)
def test_a_header_is_cut_off_up_to_its_last_octet(data: bytes, ends: dict[int, str]) -> None:
    for size in range(14, max(ends) + 1):
        reason = next((reason for end, reason in ends.items() if size < end), None)
        [found] = read_segments([Packet(1, 5, 1, data[:size], len(data))])
        if reason is None:
            assert isinstance(found, Segment)
            assert (found.data, found.length) == (b"", 7)
        else:
            assert isinstance(found, Fault)
            assert found.message == f"1 packet passed over, the first is 1: {reason}"


def test_an_unknown_link_layer_is_reported_once() -> None:
    [fault] = read_segments([Packet(number, None, 147, b"?", 1) for number in range(1, 4)])
    assert isinstance(fault, Fault)
    assert "link type 147" in fault.message


def test_other_protocols_are_no_fault() -> None:
    udp = make.ipv4("1.1.1.1", "2.2.2.2", bytes(20), protocol=17)
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    fragment = make.ipv4("1.1.1.1", "2.2.2.2", bytes(20), protocol=17, fragment=0x2000)
    for data in (make.ethernet(udp), arp, make.ethernet(fragment), b"", b"\0" * 13):
        assert segments(data) == []


def test_packets_cut_at_every_octet_never_raise() -> None:
    for linktype, data in _scapy_packets():
        for size in range(len(data)):
            segments(data[:size], linktype, original=len(data))


def test_packets_that_cannot_be_read_are_not_kept() -> None:
    packets = (Packet(number, 5, 1000 + number, bytes(10_000), 10_000) for number in range(1, 101))
    found = read_segments(packets)
    with traced() as memory:
        faults = [next(found)]
        size, _ = memory()
    assert len([*faults, *found]) == 100
    assert size < 200_000


# The extension headers of RFC 8200 and those like them: number, what the length field has, octets.
EXTENSIONS = {
    **{f"{what} of {8 * (length + 1)}": (number, length, 8 * (length + 1))
       for what, number in (("hop-by-hop", 0), ("routing", 43), ("destination", 60), ("mobility", 135),
                            ("HIP", 139), ("shim6", 140))
       for length in (0, 1, 5)},
    **{f"authentication of {4 * (length + 2)}": (51, length, 4 * (length + 2)) for length in (1, 4, 6)},
    "fragment header of a whole datagram": (44, 0, 8),
}  # fmt: skip


def _extension(following: int, length: int, size: int) -> bytes:
    # Octets that would be read as a port, if the header were not passed over by its length.
    return bytes((following, length, 0, 0)) + b"\xee" * (size - 4)


@pytest.mark.parametrize("extension", EXTENSIONS.values(), ids=EXTENSIONS)
def test_each_ipv6_extension_header_is_passed_over_by_its_length(
    build: Implementation, extension: tuple[int, int, int]
) -> None:
    number, length, size = extension
    one = make.ipv6("fd00::1", "fd00::2", SEGMENT, extensions=_extension(6, length, size), first=number)
    two = _extension(number, length, size) + _extension(6, length, size)
    twice = make.ipv6("fd00::1", "fd00::2", SEGMENT, extensions=two, first=number)
    for datagram in (one, twice):
        assert payload(make.ethernet(datagram)) == b"payload"
        assert _octets(build, 1, make.ethernet(datagram)) == [b"payload"]


def test_all_ipv6_extension_headers_one_behind_the_other(build: Implementation) -> None:
    kinds = list(EXTENSIONS.values())
    following = [number for number, _, _ in kinds[1:]] + [6]
    extensions = b"".join(
        _extension(then, length, size) for then, (_, length, size) in zip(following, kinds, strict=True)
    )
    datagram = make.ipv6("fd00::1", "fd00::2", SEGMENT, extensions=extensions, first=kinds[0][0])
    assert payload(make.ethernet(datagram)) == b"payload"
    assert _octets(build, 1, make.ethernet(datagram)) == [b"payload"]


@pytest.mark.parametrize(("linktype", "order"), [(0, "<"), (0, ">"), (108, ">")])
def test_each_number_of_the_ip_families_and_no_other(
    build: Implementation, linktype: int, order: str
) -> None:
    # AF_INET, and AF_INET6 of Linux, Windows, NetBSD and OpenBSD, FreeBSD, macOS.
    families = {2, 10, 23, 24, 28, 30}
    octets = {family: struct.pack(order + "I", family) + V6 for family in range(256)}
    read = {family: _octets(build, linktype, data) for family, data in octets.items()}
    assert read == {family: [b"payload"] if family in families else [] for family in octets}
    found = {family: [*map(type, segments(data, linktype))] for family, data in octets.items()}
    assert found == {family: [Segment] if family in families else [] for family in octets}


def _octets(build: Implementation, linktype: int, data: bytes) -> list[bytes]:
    """The octets of all connections in a capture of one packet."""
    capture = make.pcap([make.Recorded(make.START_NS, data)], linktype=linktype)
    found = events(build, capture)
    return [event[4] for event in found if event[0] is Data]
