"""What comes before the first frame: proxies, other protocols, late segments; and what ends without one."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from support import make_capture as make
from support.implementation import Implementation

from amqpcodec import capture
from amqpcodec.capture import (
    CapturedFrame,
    Data,
    Endpoint,
    Fault,
    Packet,
    StreamTracker,
    read_segments,
)

REPLY = b"AMQP\0\0\x09\x01"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
OTHERS = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "HTTP": b"GET /api/overview HTTP/1.1\r\nHost: broker\r\n\r\n",
    "MQTT": b"\x10\x10\0\x04MQTT\x04\x02\0\x3c\0\x04abcd",
    "STOMP": b"CONNECT\naccept-version:1.2\nhost:/\n\n\0",
    "AMQP 1.0": b"AMQP\x03\x01\0\0" + bytes(40),
    "stream protocol": b"\0\0\0\x30\0\x11\0\x01\0\0\0\x01" + bytes(40),
}
CLIENT, SERVER = Endpoint(b"\xcb\0\x71\x07", 51234), Endpoint(b"\x0a\0\0\x05", 5672)


def items(packets: list[make.Recorded], snap: int = 0, **options: Any) -> list[Any]:
    return list(capture.read_frames(io.BytesIO(make.pcap(packets, snap=snap)), **options))


def faults(found: list[Any]) -> list[tuple[str, str, int, int]]:
    return [(each.kind, each.message, each.offset, each.length) for each in found if isinstance(each, Fault)]


def frames(found: list[Any]) -> list[bytes]:
    return [each.octets for each in found if isinstance(each, CapturedFrame)]


def talk_of(*said: tuple[int, bytes], opening: bool = True) -> list[make.Recorded]:
    truth = make.Truth()
    talk = make.Talk(truth, 0, (100, 200))
    if opening:
        talk.open()
    for side, octets in said:
        talk.send(side, octets)
    talk.close()
    return truth.packets


# -- another protocol


@pytest.mark.parametrize("name", OTHERS)
def test_another_protocol_is_named_though_the_broker_answers_in_amqp(name: str) -> None:
    found = items(talk_of((make.CLIENT, OTHERS[name]), (make.SERVER, REPLY)))
    assert REPLY in frames(found)
    [fault] = faults(found)
    assert fault[0] == "lost"
    assert name in fault[1]
    octets = sum(map(len, frames(found))) + fault[3]
    assert octets == len(OTHERS[name]) + len(REPLY)


@pytest.mark.parametrize("name", [*OTHERS])
def test_another_protocol_is_named_without_an_answer(name: str) -> None:
    [fault] = faults(items(talk_of((make.CLIENT, OTHERS[name]))))
    assert name in fault[1]


def test_an_answer_tells_as_well_what_a_connection_is() -> None:
    for name, answer in (
        ("TLS", b"\x15\x03\x03\0\x02\x02\x28"),
        ("HTTP", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        ("MQTT", b"\x20\x02\0\0"),
        ("STOMP", b"CONNECTED\nversion:1.2\n\n\0"),
        ("AMQP 1.0", b"AMQP\x03\x01\0\0" + bytes(20)),
    ):
        found = items(talk_of((make.SERVER, answer)))
        assert name in faults(found)[-1][1]


@pytest.mark.parametrize("opening", [True, False])
def test_a_recording_begins_inside_a_frame_only_where_no_opening_was_recorded(opening: bool) -> None:
    found = items(talk_of((make.CLIENT, bytes(range(100, 140))), (make.SERVER, REPLY), opening=opening))
    [fault] = faults(found)
    expected = "no protocol header and no frame in it" if opening else "the recording begins inside a frame"
    assert fault == ("lost", expected, 0, 40)


def test_a_broker_that_speaks_amqp_1_0_is_named_once_for_each_direction() -> None:
    header = b"AMQP\x03\x01\0\0"
    sasl = b"\0\0\0\x1a\x02\x01\0\0\0\x53\x40\xc0\x0d\x01\xe0\x0a\x01\xa3\x05PLAIN"
    found = items(talk_of((make.CLIENT, header), (make.SERVER, header + sasl), (make.CLIENT, sasl)))
    assert frames(found) == [header, header]
    assert {fault[1] for fault in faults(found)} == {"it is AMQP 1.0, another protocol"}


# -- PROXY protocol


def second(command: int, family: int, addresses: bytes, more: bytes = b"") -> bytes:
    return SIGNATURE + struct.pack("!BBH", command, family, len(addresses + more)) + addresses + more


FOUR = struct.pack("!4s4sHH", CLIENT.address, SERVER.address, CLIENT.port, SERVER.port)
SIX = struct.pack("!16s16sHH", b"\xfd" + bytes(15), b"\xfe" + bytes(15), 1, 2)
PROXIES = {
    "1": (b"PROXY TCP4 203.0.113.7 10.0.0.5 51234 5672\r\n", (CLIENT, SERVER)),
    "1, IPv6": (
        b"PROXY TCP6 fd00:: fe00:: 1 2\r\n",
        (Endpoint(b"\xfd" + bytes(15), 1), Endpoint(b"\xfe" + bytes(15), 2)),
    ),
    "1, unknown": (b"PROXY UNKNOWN\r\n", None),
    "2": (second(0x21, 0x11, FOUR), (CLIENT, SERVER)),
    "2, with TLVs": (second(0x21, 0x11, FOUR, b"\x04\0\x02ab\xea\0\x01c"), (CLIENT, SERVER)),
    "2, IPv6": (
        second(0x21, 0x21, SIX),
        (Endpoint(b"\xfd" + bytes(15), 1), Endpoint(b"\xfe" + bytes(15), 2)),
    ),
    "2, local": (second(0x20, 0, b""), None),
    "2, a path": (second(0x21, 0x31, bytes(216)), None),
}


@pytest.mark.parametrize("name", PROXIES)
@pytest.mark.parametrize("joined", [True, False])
def test_what_a_proxy_says_first_is_passed_over_and_its_ends_are_known(name: str, joined: bool) -> None:
    octets, ends = PROXIES[name]
    truth = make.Truth()
    talk = make.Talk(truth, 0, (100, 200), mss=7 if not joined else 536)
    talk.open()
    talk.send(make.CLIENT, octets + make.amqp.protocol_header())
    start = make.amqp.Connection.Start(0, 9, {"product": "test"}, b"PLAIN", b"en_US")
    talk.send(make.SERVER, make.amqp.encode_method(0, start))
    talk.close()
    found = items(truth.packets)
    assert not faults(found)
    first, other = found
    assert (first.octets, first.offset) == (make.amqp.protocol_header(), len(octets))
    assert first.connection.proxied == ends
    assert other.frame.payload.version_minor == 9


def test_health_checks_of_a_proxy_are_no_fault() -> None:
    assert not items(talk_of((make.CLIENT, PROXIES["2, local"][0])))


def test_what_begins_like_a_proxy_and_is_none_is_lost() -> None:
    for octets in (
        b"PROXY TCP4 1.2.3.4 nonsense\r\n",
        b"PROXY " + bytes(200),
        SIGNATURE + b"\x31" + bytes(40),
    ):
        [fault] = faults(items(talk_of((make.CLIENT, octets))))
        assert fault[3] == len(octets)


def test_another_protocol_behind_a_proxy_is_named() -> None:
    [fault] = faults(items(talk_of((make.CLIENT, PROXIES["1"][0] + OTHERS["TLS"]))))
    assert "TLS" in fault[1]
    assert fault[3] == len(OTHERS["TLS"])


def test_the_real_ends_are_columns_of_connections(build: Implementation) -> None:
    pytest.importorskip("pyarrow")
    from amqpcodec import arrow

    said = (make.CLIENT, PROXIES["1"][0] + make.amqp.protocol_header())
    octets = make.pcap(talk_of(said, (make.SERVER, REPLY)))
    [row] = (
        arrow.read_capture(io.BytesIO(octets), "connections", _impl=build.name)
        .reader()
        .read_all()
        .to_pylist()
    )
    assert (row["proxied_client"], row["proxied_server"]) == ("203.0.113.7:51234", "10.0.0.5:5672")
    assert row["client"] == "10.0.0.1:40000"
    # And where reading was suspended amid of what the proxy says, and behind it.
    for cut in range(200, len(octets), 97):
        one = arrow.CaptureSession("connections", _impl=build.name)
        rows = [*one.read(io.BytesIO(octets), "x", cut)]
        other = arrow.CaptureSession("connections", state=one.suspend(), _impl=build.name)
        rows += [*other.read(io.BytesIO(octets), "x"), *other.finish()]
        found = [row for batch in rows for row in batch.to_pylist()]
        assert [each["proxied_client"] for each in found] == [row["proxied_client"]]


# -- late, reset, cut


@pytest.mark.parametrize("stream", [(0, 0), (0, 1)])
def test_the_first_two_segments_of_a_connection_joined_midway_may_be_swapped(stream: tuple[int, int]) -> None:
    truth = make.conversations(3, count=1, bursts=4, opening=False, ends=False)
    one, two, *others = [packet for packet in truth.packets if packet.stream == stream]
    in_order = items([one, two, *others])
    swapped = items([two, one, *others])
    assert [each[0] for each in faults(swapped)] == [each[0] for each in faults(in_order)]
    assert "lost" not in {each[0] for each in faults(swapped)}
    assert frames(swapped) == frames(in_order)
    assert sum(map(len, frames(swapped))) == sum(each.end - each.begin for each in (one, two, *others))


def test_the_first_segment_of_a_connection_joined_midway_waits_for_one_packet_or_a_while() -> None:
    truth = make.conversations(3, count=2, bursts=4, opening=False, ends=False)
    first = next(packet for packet in truth.packets if packet.stream == (0, 0))
    other = next(packet for packet in truth.packets if packet.stream == (1, 0))
    packets = [
        Packet(number, each.time_ns, 1, each.octets, len(each.octets))
        for number, each in enumerate((first, other), 1)
    ]
    segments: list[Any] = list(read_segments(packets))
    tracker = StreamTracker()
    assert not tracker.feed(segments[0])
    assert [event.packet for event in tracker.feed(segments[0]._replace(data=b"", length=0))] == [1]
    tracker = StreamTracker()
    assert not tracker.feed(segments[0])
    late = segments[1]._replace(time_ns=segments[0].time_ns + 300_000_000)
    assert [event.packet for event in tracker.feed(late)] == [1]
    assert [event.packet for event in tracker.finish() if isinstance(event, Data)] == [2]


def test_octets_before_the_first_of_a_recording_that_come_late_are_told_once() -> None:
    truth = make.conversations(3, count=1, bursts=4, opening=False, ends=False)
    sent = [packet for packet in truth.packets if packet.stream == (0, 0)]
    one, two, three, *others = sent
    found = items([two, three, one, one, *others])
    [fault] = [each for each in faults(found) if each[2] < 0]
    length = one.end - one.begin
    assert fault == ("lost", "octets before the first of the recording, which came too late", -length, length)
    assert faults(found)[-1][1] == "63 octets were acknowledged, and nothing of this direction was recorded"
    all_octets = sum(map(len, frames(found))) + sum(length for *_, length in faults(found)[:-1])
    assert all_octets == sum(packet.end - packet.begin for packet in sent)


def test_the_payload_of_a_reset_is_its_cause_and_no_frame() -> None:
    truth = make.conversations(3, count=1, bursts=2, ends=False)
    plain = items(truth.packets)
    talk = make.Talk(truth, 0, (0, 0))
    last = truth.packets[-1]
    sender = last.octets[34:36] == b"\x16\x28"
    seq = int.from_bytes(last.octets[38:42], "big")
    segment = make.tcp((5672, 40000) if sender else (40000, 5672), seq, 0, make.RST, b"too many connections")
    addresses = talk.addresses[::-1] if sender else talk.addresses
    reset = make.Recorded(last.time_ns + 1, make.ethernet(make.ipv4(*addresses, segment)))
    found = items([*truth.packets, reset])
    assert frames(found) == frames(plain)
    [fault] = faults(found)
    assert fault[1] == "the connection was reset, with the reason 'too many connections'"


def test_octets_that_the_snap_length_cut_off_are_a_gap_with_advice() -> None:
    truth = make.conversations(3, count=1, bursts=4)
    found = items(truth.packets, snap=100)
    assert {fault[0] for fault in faults(found)} == {"gap", "lost"}
    gaps = [fault for fault in faults(found) if fault[0] == "gap"]
    assert all("cut off by the snap length: record with -s 0" in message for _, message, *_ in gaps)
    sent = sum(packet.end - packet.begin for packet in truth.packets)
    assert sum(map(len, frames(found))) + sum(length for *_, length in faults(found)) == sent


def test_a_connection_of_which_nothing_is_left_by_the_snap_length_says_so() -> None:
    truth = make.conversations(3, count=1, bursts=4)
    [fault] = faults(items(truth.packets, snap=56))
    assert fault[0] == "gap"
    assert "cut off by the snap length: record with -s 0" in fault[1]
