"""Tunnels: packets in any of them say what they say outside, connections in different ones do not mix."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from support import make_capture as make
from support import tunnels
from support.campaign import share
from support.captures import events
from support.implementation import Implementation
from support.tiers import few

from amqpcodec.capture import Data, Endpoint, Fault, Gap, Packet, constants, layers_py, read_segments
from amqpcodec.capture.network import SegmentReader

TRUTH = make.conversations(5, count=2, bursts=6)
LINK = {"ppp": 9, "nflog": 239, "pktap": 258, "hdlc": 104, "radiotap": 127, "wlan": 105, "ppi": 192}


def outside(found: list[Any]) -> list[Any]:
    """Events without the tunnels of their connections."""
    return [
        (event[0], tuple(end[:2] if isinstance(end, Endpoint) else end for end in event[1]), *event[2:])
        if isinstance(event[1], tuple)
        else event
        for event in found
    ]


def read(build: Implementation, packets: list[make.Recorded], linktype: int = 1) -> list[Any]:
    return events(build, make.pcap(packets, linktype=linktype))


@pytest.fixture(scope="module")
def plain(build: Implementation) -> list[Any]:
    """What the packets say outside of any tunnel."""
    return outside(read(build, TRUTH.packets))


@pytest.mark.parametrize("layer", tunnels.LAYERS.values(), ids=tunnels.LAYERS)
def test_packets_in_a_tunnel_say_what_they_say_outside(
    build: Implementation, plain: list[Any], layer: tunnels.Layer
) -> None:
    assert outside(read(build, tunnels.packets(TRUTH.packets, [layer]))) == plain


@pytest.mark.parametrize("seed", few(range(share(8)), 8, "further seeds"))
def test_tunnels_in_tunnels_say_the_same(build: Implementation, plain: list[Any], seed: int) -> None:
    layers = tunnels.nesting(random.Random(seed))
    assert outside(read(build, tunnels.packets(TRUTH.packets, layers))) == plain


def test_a_tunnel_has_the_name_and_number_that_operators_know_it_by(build: Implementation) -> None:
    layers = [tunnels.vxlan, tunnels.gre_without_key, tunnels.mpls_2]
    [*found] = read(build, tunnels.packets(TRUTH.packets[:4], layers))
    assert {end.tunnel for event in found for end in event[1][1:]} == {"mpls 299776, mpls 58, vxlan 42"}


@pytest.mark.parametrize("layer", tunnels.NUMBERED.values(), ids=tunnels.NUMBERED)
def test_equal_ends_in_two_tunnels_are_two_connections(
    build: Implementation, plain: list[Any], layer: tunnels.Layer
) -> None:
    """Whatever numbers the tunnels have, and with packets of the two in turn."""
    both = [tunnels.packet(each, [layer], number) for each in TRUTH.packets for number in (7, 8)]
    found = read(build, both)
    by_number = sorted((event for event in found if event[0] is Data), key=lambda event: event[1][0])
    octets = [event[4] for event in plain if event[0] is Data]
    assert sum(len(event[4]) for event in by_number) == 2 * sum(map(len, octets))
    assert not [event for event in found if event[0] in (Gap, Fault)]
    assert len({event[1][0] for event in found}) == 2 * len({event[1][0] for event in plain})


@pytest.mark.parametrize("opening", [True, False])
def test_labels_of_a_connection_may_differ_by_direction(build: Implementation, opening: bool) -> None:
    """As those of MPLS do; the last router may even have taken them away."""
    truth = make.conversations(5, count=2, bursts=6, opening=opening)
    plain = outside(read(build, truth.packets))
    for answer in (tunnels.mpls_2, None):
        packets = []
        for each in truth.packets:
            from_client = each.octets[36:38] == b"\x16\x28"
            layers = [tunnels.mpls] if from_client else [] if answer is None else [answer]
            packets.append(tunnels.packet(each, layers, 1 if from_client else 2))
        assert outside(read(build, packets)) == plain


def test_link_layers_around_a_datagram(build: Implementation) -> None:
    datagram = make.ipv4("10.0.0.1", "10.0.0.2", make.tcp((40000, 5672), 11, 22, make.ACK, b"payload"))
    snap = b"\xaa\xaa\x03\0\0\0\x08\0" + datagram
    data = b"\x08\x01" + bytes(22) + snap
    quality = b"\x88\x02" + bytes(24) + snap
    pktap = struct.pack("<III", 108, 1, 1) + bytes(96) + make.ethernet(datagram)
    attributes = struct.pack("<HHI", 8, 1, 0) + struct.pack("<HH", 4 + len(datagram), 9) + datagram
    frames = {
        "ppp": [b"\xff\x03\0\x21" + datagram, b"\x21" + datagram, b"\0\x21" + datagram],
        "nflog": [b"\x02\0\0\0" + attributes],
        "pktap": [pktap],
        "hdlc": [b"\x0f\0\x08\0" + datagram],
        "wlan": [data, quality, b"\x08\x03" + bytes(28) + snap],
        "radiotap": [b"\0\0\x0c\0" + bytes(8) + data],
        "ppi": [b"\0\0\x08\0\x69\0\0\0" + quality],
    }
    for name, packets in frames.items():
        for packet in packets:
            found = read(build, [make.Recorded(make.START_NS, packet)], LINK[name])
            assert [event[4] for event in found if event[0] is Data] == [b"payload"], name


ESP = struct.pack("!II", 0x1234, 1) + bytes(40)
L2TP = b"\0\x02\0\x01\0\x02\xff\x03\0\x21"


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (tunnels.in_ip(50, ESP).octets, "ESP, which is encrypted"),
        (tunnels.in_ip(17, tunnels.udp(4500, ESP)).octets, "ESP in UDP, which is encrypted"),
        (tunnels.in_ip(17, tunnels.udp(51820, b"\x04\0\0\0" + ESP)).octets, "WireGuard, which is encrypted"),
        (tunnels.in_ip(108, ESP).octets, "IPComp, which is compressed"),
        (tunnels.in_ip(200, ESP).octets, "IP protocol 200 is not known here"),
        (tunnels.in_ip(47, b"\0\x05\x08\0" + ESP).octets, "a tunnel of a form that is not known here"),
        (tunnels.in_ip(47, b"\0\0\x12\x34" + ESP).octets, "Ethernet protocol 0x1234 is not known here"),
        (tunnels.in_ip(47, b"\0").octets, "header of a tunnel cut off"),
        (
            tunnels.in_ip(17, tunnels.udp(1701, L2TP + ESP)).octets,
            "a tunnel of a form that is not known here",
        ),
    ],
)
def test_what_a_tunnel_hides_is_counted_by_kind(build: Implementation, octets: bytes, reason: str) -> None:
    packets = [make.Recorded(make.START_NS, make.ethernet(octets))] * 2
    [fault] = read(build, packets)
    assert fault[2].startswith(f"2 packets passed over, the first is 1: {reason}")


NEIGHBOURS = {
    "arp": 0x0806, "rarp": 0x8035, "lldp": 0x88CC, "lacp": 0x8809, "eapol": 0x888E, "pppoe discovery": 0x8863,
    "ptp": 0x88F7, "ipx": 0x8137, "loopback": 0x9000, "homeplug": 0x887B, "homeplug av": 0x88E1,
    "fcoe": 0x8906, "fip": 0x8914, "roce": 0x8915, "tipc": 0x88CA, "pause": 0x8808, "profinet": 0x8892,
    "ethercat": 0x88A4, "goose": 0x88B8, "cfm": 0x8902,
    "appletalk": 0x809B, "dtp": 0x2004, "1905.1": 0x893A, "is-is": 0xFEFE,
}  # fmt: skip
LLC_NEIGHBOURS = {
    "stp": b"\x42\x42\x03",
    "novell": b"\xff\xff\0",
    "netbios": b"\xf0\xf0\x03",
    "is-is": b"\xfe\xfe\x03",
    "cdp": b"\xaa\xaa\x03\0\0\x0c\x20\0",
    "pvst": b"\xaa\xaa\x03\0\0\x0c\x01\x0b",
}
IP_NEIGHBOURS = {
    "icmp": 1, "igmp": 2, "rsvp": 46, "icmpv6": 58, "nothing": 59, "eigrp": 88, "ospf": 89, "pim": 103,
    "vrrp": 112, "pgm": 113, "is-is": 124, "sctp": 132, "dccp": 33, "udp-lite": 136, "manet": 138,
    "pfsync": 240,
}  # fmt: skip


def test_ordinary_neighbours_of_tcp_are_no_fault(build: Implementation) -> None:
    octets = [tunnels.in_ethernet(protocol, bytes(46)).octets for protocol in NEIGHBOURS.values()]
    octets += [tunnels.in_ethernet(46, each + bytes(43)).octets for each in LLC_NEIGHBOURS.values()]
    for six in (False, True):
        datagrams = [tunnels.in_ip(protocol, bytes(40), six) for protocol in IP_NEIGHBOURS.values()]
        octets += [tunnels.as_ethernet(each).octets for each in datagrams]
    assert not read(build, [make.Recorded(1, each) for each in octets])
    cooked = [
        bytes(14) + protocol.to_bytes(2, "big") + bytes(40) for protocol in (1, 12, 0xF5, 0x0806, 0x88CC)
    ]
    assert not read(build, [make.Recorded(1, each) for each in cooked], 113)
    ppp = [
        b"\xff\x03" + protocol.to_bytes(2, "big") + bytes(40) for protocol in (0x2B, 0x0207, 0xC021, 0x8021)
    ]
    assert not read(build, [make.Recorded(1, each) for each in ppp], 9)


@pytest.mark.parametrize("protocol", [0x7777, 0x22F3, 0x892F], ids=["unknown", "trill", "hsr"])
def test_ethernet_of_a_protocol_that_may_carry_tcp_is_a_fault(build: Implementation, protocol: int) -> None:
    [fault] = read(build, [make.Recorded(1, tunnels.in_ethernet(protocol, bytes(46)).octets)])
    what = f"Ethernet protocol 0x{protocol:04x} is not known here"
    assert fault[2] == f"1 packet passed over, the first is 1: {what}"


def test_datagrams_to_ports_of_tunnels_and_with_octets_like_theirs_by_chance_are_none(
    build: Implementation,
) -> None:
    """Answers to clients whose port is that of a tunnel, and values of 8 in the order of small computers."""
    rng = random.Random(11)
    datagrams = []
    for port in (4789, 8472, 4790, 6081, 6635, 2152, 4500, 51820):
        for ends in ((53, port), (port, 53)):
            datagrams += [(ends, rng.randbytes(60)) for _ in range(20)]
    datagrams += [((50000, port), rng.randbytes(60)) for port in (4789, 8472, 4790, 6081) for _ in range(20)]
    inside = bytes(12) + b"\x08\0\x45\0\x45\0" + bytes(60)  # a datagram that would be longer than all
    datagrams += [((50000, 9999), b"\x08\0\0\0\x05\0\0\0" + inside), ((50000, 4791), b"\x64\x40" + bytes(60))]
    packets = []
    for (source, port), payload in datagrams:
        header = struct.pack("!HHHH", source, port, 8 + len(payload), 0)
        packets.append(make.Recorded(1, tunnels.as_ethernet(tunnels.in_ip(17, header + payload)).octets))
    assert not read(build, packets)


def test_tunnels_are_opened_up_to_a_depth(build: Implementation) -> None:
    first = TRUTH.packets[0]
    for depth, is_read in ((14, True), (30, False)):
        packet = tunnels.packet(first, [tunnels.ip_in_ip] * depth)
        found = read(build, [packet])
        assert any(event[0] is Fault for event in found) is not is_read
    [fault] = found
    assert fault[2] == "1 packet passed over, the first is 1: too many tunnels, one inside the other"


# -- fragments


def fragmented(
    packets: list[make.Recorded], size: int, rng: random.Random | None = None
) -> list[make.Recorded]:
    """Packets of Ethernet with the datagrams in fragments; in any order if `rng` is there."""
    found = []
    for number, each in enumerate(packets):
        pieces = tunnels.fragments(each.octets[14:], size, number)
        if rng is not None:
            rng.shuffle(pieces)
        found += [make.Recorded(each.time_ns, make.ethernet(piece)) for piece in pieces]
    return found


def octets_of(found: list[Any]) -> list[tuple[int, int, bytes]]:
    return [(event[1][0], event[2], event[4]) for event in found if event[0] is Data]


@pytest.mark.parametrize("layers", [[], [tunnels.ip_in_ip6], [tunnels.vxlan], [tunnels.geneve]])
def test_fragments_are_joined_in_any_order(
    build: Implementation, plain: list[Any], layers: list[tunnels.Layer]
) -> None:
    packets = tunnels.packets(TRUTH.packets, layers)
    for rng in (None, random.Random(4)):
        found = read(build, fragmented(packets, 64, rng))
        assert octets_of(found) == octets_of(plain)
        assert not [event for event in found if event[0] is Fault]


def test_fragments_in_a_tunnel_and_of_the_tunnel(build: Implementation, plain: list[Any]) -> None:
    inner = tunnels.packets(fragmented(TRUTH.packets, 128), [tunnels.gre])
    assert octets_of(read(build, fragmented(inner, 64, random.Random(3)))) == octets_of(plain)


def test_octets_of_a_fragment_that_came_first_count(build: Implementation) -> None:
    segment = make.tcp((40000, 5672), 11, 22, make.ACK, bytes(range(60)))
    datagram = make.ipv4("10.0.0.1", "10.0.0.2", segment, fragment=0)
    one, two, three, *_ = (make.ethernet(each) for each in tunnels.fragments(datagram, 32))
    other = bytearray(two)
    other[34:] = b"\xff" * 32
    for pieces, expected in (
        ([one, two, bytes(other), three], bytes(range(60))),
        ([one, bytes(other), two, three], bytes(range(12)) + b"\xff" * 32 + bytes(range(44, 60))),
    ):
        found = read(build, [make.Recorded(make.START_NS, each) for each in pieces])
        assert [event[4] for event in found if event[0] is Data] == [expected]


def test_fragments_whose_others_do_not_come_are_counted(build: Implementation) -> None:
    whole = fragmented(TRUTH.packets[:1], 8)
    late = make.Recorded(make.START_NS + 10**11, TRUTH.packets[0].octets)
    for packets in (whole[:1], [whole[0], late]):
        faults = [event for event in read(build, packets) if event[0] is Fault]
        assert [fault[2] for fault in faults] == [
            "1 packet passed over, the first is 1: fragments of IPv4 datagrams that are not whole"
        ]


def test_fragments_of_datagrams_that_carry_no_tcp_are_no_fault(build: Implementation) -> None:
    questions = tunnels.in_ip(17, tunnels.udp(53, bytes(400))).octets
    pieces = tunnels.fragments(questions, 128)
    assert not read(build, [make.Recorded(make.START_NS, make.ethernet(each)) for each in pieces[:-1]])


def test_fragments_take_a_bounded_memory() -> None:
    reader = SegmentReader()
    piece = tunnels.fragments(make.ipv4("10.0.0.1", "10.0.0.2", bytes(40_000), fragment=0), 32_768)[0]
    for number in range(1500):
        octets = piece[:4] + struct.pack("!H", number) + piece[6:]
        reader.segment(Packet(number + 1, 5, 101, octets, len(octets)))
    kept = sum(len(octets) for each in reader.kept()[0] for *_, octets in each[-1])
    assert kept <= 16 * 1024 * 1024
    assert [fault.message.split(":")[0] for fault in reader.faults()] == [
        "1500 packets passed over, the first is 1"
    ]


# -- damage


def test_packets_in_tunnels_cut_or_damaged_anywhere_never_raise(build: Implementation) -> None:
    rng = random.Random(2)
    packets = [tunnels.packet(TRUTH.packets[40], tunnels.nesting(rng)).octets for _ in range(12)]
    damaged = []
    for octets in packets:
        damaged += [octets[:size] for size in range(0, len(octets), 3)]
        for _ in range(40):
            changed = bytearray(octets)
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            damaged.append(bytes(changed))
    assert read(build, [make.Recorded(make.START_NS, each) for each in damaged])


@pytest.mark.parametrize("linktype", [1, 0, 9, 101, 104, 105, 113, 127, 192, 204, 239, 252, 258, 276])
def test_any_octets_are_walked_through(linktype: int) -> None:
    rng = random.Random(linktype)
    for _ in range(300):
        octets = rng.randbytes(rng.randrange(80))
        list(read_segments([Packet(1, 5, linktype, octets, len(octets))]))
        walk = layers_py.Walk()
        assert 0 <= walk.run(linktype, octets, len(octets), len(octets)) <= constants.UNREAD
