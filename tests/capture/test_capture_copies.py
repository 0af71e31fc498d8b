"""Connections recorded twice: before and after a translation of addresses, in and outside of a tunnel."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pytest
from support import make_capture as make
from support import tunnels
from support.captures import events, packets
from support.implementation import Implementation
from support.make_capture import CLIENT, SERVER
from support.parts import rows_of
from support.troubled import calm

from amqpcodec import arrow, capture, stats
from amqpcodec.capture.writing import Conversation, PacketWriter
from amqpcodec.cli import main

SERVICE = bytes((10, 0, 9, 9))
INSIDE = bytes((172, 16, 0, 7))
LATER_NS = 7_000


def twice(recorded: list[make.Recorded], later_ns: int = LATER_NS) -> list[make.Recorded]:
    """Each packet and, a little later, the same with the address of the server translated."""
    both = []
    for packet in recorded:
        octets = packet.octets[:26] + packet.octets[26:34].replace(SERVICE, INSIDE) + packet.octets[34:]
        both += [packet, make.Recorded(packet.time_ns + later_ns, octets)]
    return sorted(both, key=lambda packet: packet.time_ns)


def counted(build: str, octets: bytes, table: str = "connections", **options: Any) -> list[dict[str, Any]]:
    return rows_of(arrow.read_capture(io.BytesIO(octets), table, _impl=build, **options))


def without_packets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: cell for name, cell in row.items() if not name.startswith("packet")} for row in rows]


@pytest.mark.parametrize("begin", [0, 3, 4, 9, 20])
def test_a_connection_that_repeats_another_one_says_so(impl: Implementation, begin: int) -> None:
    recorded = calm().packets[begin:]
    once, both = make.pcap(recorded, nanos=True), make.pcap(twice(recorded), nanos=True)
    first, second = counted(impl.name, both)
    assert (first["copy_of"], second["copy_of"]) == (None, 0)
    assert second["server"] == "172.16.0.7:5672"
    [row] = counted(impl.name, both, copies="drop")
    assert row == first
    for table in ("frames", "methods", "messages", "deliveries", "errors"):
        left = counted(impl.name, both, table, copies="drop")
        assert without_packets(left) == without_packets(counted(impl.name, once, table))


def test_a_recording_that_begins_with_a_copy_counts_its_messages_once(impl: Implementation) -> None:
    recorded = twice(calm().packets)[13:]
    octets = make.pcap(recorded, nanos=True)
    kinds = [row["kind"] for row in counted(impl.name, octets, "messages", copies="drop")]
    assert kinds == ["publish", "deliver"]
    assert [row["copy_of"] for row in counted(impl.name, octets)].count(None) == 1


@pytest.mark.parametrize(("later_ns", "changed"), [(2_000_000_000, False), (LATER_NS, True)])
def test_what_comes_later_or_is_not_the_same_is_no_copy(
    impl: Implementation, later_ns: int, changed: bool
) -> None:
    recorded = [packet for packet in calm().packets if packet.stream != (-1, -1)]
    both = twice(recorded, later_ns)
    if changed:
        for packet in both:
            if INSIDE in packet.octets:
                packet.octets = packet.octets[:-1] + b"\xff"
    rows = counted(impl.name, make.pcap(both, nanos=True))
    assert [row["copy_of"] for row in rows] == [None] * len(rows)


def test_a_connection_outside_of_its_tunnel_and_in_two_is_one(impl: Implementation) -> None:
    """Recorded on all interfaces of a node: at the container, and in the tunnels around a router."""
    layers: list[list[tunnels.Layer]] = [[], [tunnels.vxlan], [tunnels.vxlan]]
    both = [
        tunnels.packet(make.Recorded(each.time_ns + number, each.octets), layer, number + 1)
        for each in calm().packets
        for number, layer in enumerate(layers)
    ]
    octets = make.pcap(both, nanos=True)
    assert [row["copy_of"] for row in counted(impl.name, octets)] == [None, 0, 0]
    once = counted(impl.name, make.pcap(calm().packets, nanos=True), "messages")
    left = counted(impl.name, octets, "messages", copies="drop")
    assert without_packets(left) == without_packets(once)


def test_equal_ends_in_two_tunnels_with_other_octets_are_no_copies(impl: Implementation) -> None:
    truths = [make.conversations(seed, count=1, bursts=4) for seed in (3, 4)]
    both = [
        tunnels.packet(each, [tunnels.vxlan], number)
        for number, truth in enumerate(truths, 7)
        for each in truth.packets
    ]
    rows = counted(impl.name, make.pcap(sorted(both, key=lambda packet: packet.time_ns)))
    assert [row["copy_of"] for row in rows] == [None, None]


def test_connections_of_two_recorders_that_say_the_same_at_once_are_no_copies(impl: Implementation) -> None:
    """Each recorder counts its own connections; mergecap puts their packets into one file."""
    file = io.BytesIO()
    writer = PacketWriter(file)
    ends = [capture.Endpoint(bytes((10, 0, 0, host)), 40000) for host in (1, 2, 3)]
    talks = [
        Conversation(writer, end, capture.Endpoint(SERVICE, 5672), make.START_NS + at, 1)
        for at, end in enumerate(ends)
    ]
    for at, talk in enumerate(talks):
        talk.send(CLIENT, b"AMQP\0\0\x09\x01", make.START_NS + 10 + at)
    rows = counted(impl.name, file.getvalue())
    assert [row["copy_of"] for row in rows] == [None] * len(ends)


def test_both_builds_leave_out_the_same(tmp_path: Path) -> None:
    octets = make.pcap(twice(calm().packets), nanos=True)
    found = [
        (events(impl, octets, copies="drop"), packets(impl, octets, copies="drop"))
        for impl in map(Implementation, ("c", "py"))
    ]
    assert found[0] == found[1]


def test_a_session_that_is_suspended_leaves_out_the_same(impl: Implementation) -> None:
    octets = make.pcap(twice(calm().packets), nanos=True)
    whole = counted(impl.name, octets, "messages", copies="drop")
    for cut in range(24, 2000, 97):
        session = arrow.CaptureSession("messages", copies="drop", _impl=impl.name)
        found = list(session.read(io.BytesIO(octets), end=cut))
        session = arrow.CaptureSession("messages", copies="drop", _impl=impl.name, state=session.suspend())
        found += [*session.read(io.BytesIO(octets)), *session.finish()]
        assert rows_of(found) == whole


def test_the_commands_say_how_many_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "both.pcap"
    path.write_bytes(make.pcap(twice(calm().packets), nanos=True))
    were = "1 connection was recorded twice, with other addresses or in another tunnel"
    kept = ", so that messages count twice: --copies drop leaves"
    for copies, said in (("keep", kept), ("drop", ": the copies are left out")):
        assert main(["decode", "--summary", str(path), "--copies", copies]) == 0
        assert were + said in capsys.readouterr().err
    for copies, code, count in (("keep", "recorded-twice", 2), ("drop", "left-out", 1)):
        collector = stats.Collector(copies=copies)  # type: ignore[arg-type]
        collector.add(path, path.name)
        summary = collector.summary()
        assert code in {finding.code for finding in summary.findings}
        assert summary.totals["connections"] == summary.carried("publish") == count


def test_the_recorder_says_how_many_packets_it_has_dropped(
    impl: Implementation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def statistics(*counts: int) -> bytes:
        known = zip((5, 7), counts, strict=False)  # dropped by an interface, and by the system
        options = b"".join(struct.pack("<HHQ", code, 8, count) for code, count in known)
        return make.block(5, bytes(12) + options + bytes(4))

    octets = make.pcapng(calm().packets) + statistics(3) + statistics(3) + statistics(4, 1)
    rows = counted(impl.name, octets, "errors")
    assert [(row["code"], row["dropped"], row["message"]) for row in rows] == [
        ("FILE", 3, "the recorder has dropped 3 packets of interface 0"),
        ("FILE", 2, "the recorder has dropped 2 packets of interface 0"),
    ]
    path = tmp_path / "dropped.pcapng"
    path.write_bytes(octets)
    session = arrow.CaptureSession("errors", _impl=impl.name)
    cut = len(octets) - len(statistics(4, 1))
    found = list(session.read(str(path), end=cut))
    session = arrow.CaptureSession("errors", _impl=impl.name, state=session.suspend())
    found += [*session.read(str(path)), *session.finish()]
    assert [row["dropped"] for row in rows_of(found)] == [3, 2]
    assert main(["decode", "--summary", str(path)]) == 1
    assert "dropped      5 packets, by the recorder" in capsys.readouterr().out
    collector = stats.Collector()
    collector.add(path, path.name)
    texts = {finding.code: finding.text for finding in collector.summary().findings}
    assert texts["dropped"].startswith("5 packets dropped by the recorder")
    assert texts["file"] == "2 faults of the file."


@pytest.mark.parametrize(
    ("octets", "port", "said"),
    [
        (b"\x16\x03\x01\0\x05hello", 5671, "port 5671 has TLS"),
        (b"\0\0\0\x08\0\x01", 5552, "port 5552 has streams of RabbitMQ"),
        (b"GET / HTTP/1.1", 15672, "port 15672 has the management of RabbitMQ"),
        (b"AMQP\0\x01\0\0", 5670, "port 5670 has AMQP 1.0"),
        (b"AMQP\0\0\x09\x01", 5670, "port 5670 has AMQP: try --port 5670"),
        (b"\x08\0\0\0\0\0\0\xce", 5670, "port 5670 has AMQP: try --port 5670"),
        (b"something else", 5670, "try --port any"),
    ],
)
def test_a_port_that_has_amqp_or_tls_is_named(
    octets: bytes, port: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = make.Truth()
    talk = make.Talk(truth, 1, (1, 1))
    talk.ports = (40000, port)
    talk.open()
    talk.send(CLIENT, octets)
    path = tmp_path / "other.pcap"
    path.write_bytes(make.pcap(truth.packets))
    for command in (["decode"], ["stats"], ["convert"]):
        out = [str(tmp_path / "out.parquet")] * (command == ["convert"])
        main([*command, str(path), *out])
        assert f"found on port 5672; {said}\n" in capsys.readouterr().err


def test_a_tracker_of_the_right_port_has_heard_something() -> None:
    tracker = capture.StreamTracker()
    assert not tracker.heard
    truth = make.Truth()
    make.Talk(truth, 1, (1, 1)).send(SERVER, b"hello")
    for _ in capture.read_events(capture.ByteSource(io.BytesIO(make.pcap(truth.packets))), tracker):
        pass
    assert tracker.heard
    assert not tracker.elsewhere.ports
