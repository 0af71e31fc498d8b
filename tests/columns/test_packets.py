"""The table `packets`: a row for each segment, as other readers of captures see them, and where it lies."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import dpkt
import pytest
from support import make_capture as make
from support import make_chaos as chaos
from support.implementation import wanted
from support.tiers import few

from amqpcodec import arrow
from amqpcodec._columns.sinks import PacketSink

ROOT = Path(__file__).parents[2]
Rows = list[dict[str, Any]]

EXAMPLES = sorted((ROOT / "examples").glob("*.pcap"))
EVERY = [*arrow.schema("packets").names, "payload"]
A, B = ("10.0.0.1", 40000), ("10.0.0.2", 5672)
SYN, ACK, FIN = make.SYN, make.ACK, make.FIN


def read(build: str, octets: bytes, **options: Any) -> Rows:
    options = {"columns": EVERY, "include_credentials": True, **options}
    reader = arrow.read_capture(io.BytesIO(octets), "packets", _impl=build, **options)
    return [row for batch in reader for row in batch.to_pylist()]


def disturbed(seed: int, loss: float = 0.02) -> list[make.Recorded]:
    packets, _ = make.disturb(make.conversations(seed).packets, seed, reorder=0.05, duplicate=0.05, loss=loss)
    return packets


def segments(*given: tuple[Any, ...]) -> bytes:
    """A capture of segments between A and B, each from a side, with sequence number, flags, payload, ack."""
    packets = []
    for at, (source, seq, flags, payload, ack) in enumerate(given):
        destination = B if source == A else A
        segment = make.tcp((source[1], destination[1]), seq % 2**32, ack, flags, payload)
        octets = make.ethernet(make.ipv4(source[0], destination[0], segment))
        packets.append(make.Recorded(make.START_NS + at * 1_000_000, octets))
    return make.pcap(packets)


def offsets(build: str, *given: tuple[Any, ...], **options: Any) -> list[int | None]:
    return [row["offset"] for row in read(build, segments(*given), **options)]


OPENED = ((A, 99, SYN, b"", 0), (B, 899, SYN | ACK, b"", 100), (A, 100, ACK, b"", 900))


class TestOtherReaders:
    @pytest.mark.parametrize("make_file", [make.pcap, make.pcapng])
    def test_dpkt_sees_the_same_segments(self, build: str, make_file: Any) -> None:
        for packets in (disturbed(1), disturbed(2)):
            rows = read(build, make_file(packets))
            assert len(rows) == len(packets)
            for row, packet in zip(rows, packets, strict=True):
                tcp = dpkt.ethernet.Ethernet(packet.octets).data.data
                ack = tcp.ack if tcp.flags & ACK else None
                found = row["seq"], row["ack"], row["flags"], row["length"], row["payload"]
                assert found == (tcp.seq, ack, tcp.flags, len(tcp.data), tcp.data)
                assert row["ts_ns"] == packet.time_ns // 1000 * 1000

    @pytest.mark.slow("runs tshark")
    @pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
    def test_tshark_sees_the_same_segments(self, build: str) -> None:
        files = [path.read_bytes() for path in EXAMPLES]
        files += [make.pcap(disturbed(3)), make.pcap(disturbed(4), snap=200), make.pcapng(disturbed(5))]
        for octets in files:
            columns = ("packet", "flow", "seq", "ack", "flags", "length")
            rows = read(build, octets, port=None)
            assert [tuple(row[column] or 0 for column in columns) for row in rows] == _by_tshark(octets)


@cache  # the builds read the same files
def _by_tshark(octets: bytes) -> list[tuple[int, ...]]:
    names = ("frame.number", "tcp.stream", "tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.len")
    command = ["tshark", "-r", "-", "-Y", "tcp", "-T", "fields"]
    command += [word for name in names for word in ("-e", name)]
    output = subprocess.run(command, input=octets, capture_output=True, check=True, timeout=60).stdout
    return [tuple(int(word, 0) for word in line.split("\t")) for line in output.decode().splitlines()]


class TestPlaces:
    def test_each_payload_has_the_place_it_was_sent_at(self, build: str) -> None:
        packets = disturbed(6, loss=0)
        rows = read(build, make.pcap(packets))
        sent = [(row, packet) for row, packet in zip(rows, packets, strict=True) if row["length"]]
        assert len(sent) > 100
        for row, packet in sent:
            assert (row["flow"], row["direction"], row["offset"]) == (*packet.stream, packet.begin)

    def test_frames_lie_in_the_payloads_at_their_offsets(self, build: str) -> None:
        octets = EXAMPLES[0].read_bytes()
        streams: dict[tuple[int, int], bytearray] = {}
        for row in read(build, octets):
            stream = streams.setdefault((row["flow"], row["direction"]), bytearray())
            stream[row["offset"] : row["offset"] + row["length"]] = row["payload"]
        columns = ["flow", "direction", "offset", "size", "frame_type", "payload"]
        frames = arrow.read_capture(io.BytesIO(octets), "frames", columns=columns, include_credentials=True)
        found = [row for batch in frames for row in batch.to_pylist() if row["frame_type"] < 9]
        assert found
        for row in found:
            begin = row["offset"] + 7
            stream = streams[row["flow"], row["direction"]]
            assert stream[begin : begin + row["size"]] == row["payload"]

    def test_acknowledgements_and_what_is_sent_again(self, build: str) -> None:
        given = (
            (A, 100, ACK, b"hello", 900),
            (B, 900, ACK, b"", 105),
            (A, 100, ACK, b"hello", 900),
            (A, 107, ACK, b"late", 900),
            (A, 102, ACK, b"lloab", 900),
            (A, 111, FIN | ACK, b"", 900),
            (A, 99, ACK, b"", 900),
        )
        assert offsets(build, *OPENED, *given) == [0, 0, 0, 0, 0, 0, 7, 2, 11, -1]

    def test_sequence_numbers_wrap(self, build: str) -> None:
        last = 2**32 - 1
        given = ((A, last - 4, SYN, b"", 0), (A, last - 3, ACK, b"abcdefgh", 1), (A, 4, ACK, b"i", 1))
        assert offsets(build, *given) == [0, 0, 8]

    def test_what_is_not_known_is_null(self, build: str) -> None:
        joined = ((B, 900, ACK, b"", 100), (A, 110, ACK, b"later", 900), (A, 100, ACK, b"0123456789", 900))
        assert offsets(build, *joined) == [None, None, 0]
        far = ((A, 100 + 2**30, ACK, b"x", 900), (A, 100 + 2**30, ACK, b"", 900), (A, 100, ACK, b"y", 900))
        assert offsets(build, *OPENED, *far)[3:] == [None, None, 0]

    def test_a_segment_larger_than_the_window_has_its_place(self, build: str) -> None:
        given = [(A, 100 + at * 900, ACK, bytes(900), 900) for at in range(4)]
        assert offsets(build, *OPENED, *given, out_of_order_bytes=500)[3:] == [0, 900, 1800, 2700]

    def test_a_new_connection_of_the_same_endpoints_begins_anew(self, build: str) -> None:
        again = ((A, 70_000_000, SYN, b"", 0), (A, 70_000_001, ACK, b"x", 0), (A, 70_000_002, ACK, b"y", 0))
        rows = read(build, segments(*OPENED, (A, 100, ACK, b"abc", 900), *again))
        assert [(row["flow"], row["offset"]) for row in rows[3:]] == [(0, 0), (1, 0), (1, 0), (1, 1)]


class TestRows:
    def test_the_acknowledgement_of_a_segment_without_one_is_null(self, build: str) -> None:
        assert [row["ack"] for row in read(build, segments(*OPENED))] == [None, 100, 900]

    def test_snapped_packets_have_their_length_on_the_wire(self, build: str) -> None:
        packets = disturbed(7, loss=0)
        whole, snapped = (read(build, make.pcap(packets, snap=snap)) for snap in (0, 300))
        assert [row["length"] for row in snapped] == [row["length"] for row in whole]
        room = 300 - 54
        assert [row["payload"] for row in snapped] == [row["payload"][:room] for row in whole]
        assert any(row["length"] > room for row in snapped)

    def test_only_connections_asked_for_have_rows(self, build: str) -> None:
        packets = list(disturbed(8))
        for at, port in ((3, 80), (9, 5671)):
            segment = make.tcp((50_000, port), 5, 0, SYN, b"")
            other = make.ethernet(make.ipv4("10.1.1.1", "10.1.1.2", segment))
            packets.insert(at, make.Recorded(packets[at].time_ns, other))
        octets = make.pcap(packets)
        servers = [row["server"] for row in read(build, octets)]
        assert len(servers) == len(packets) - 2
        assert all(server.endswith(":5672") for server in servers)
        assert [row["packet"] for row in read(build, octets, port=80)] == [4]
        assert len(read(build, octets, port=(80, 5671))) == 2
        assert len(read(build, octets, port=None)) == len(packets)

    def test_batches_are_cut_by_rows_and_by_octets_of_payload(self, build: str) -> None:
        octets = make.pcap(disturbed(9))

        def sizes(**options: Any) -> Iterable[tuple[int, int]]:
            columns = ["payload"]
            reader = arrow.read_capture(
                io.BytesIO(octets),
                "packets",
                columns=columns,
                include_credentials=True,
                _impl=build,
                **options,
            )
            for batch in reader:
                found = batch.column(0).to_pylist()
                yield len(found), sum(map(len, found)) - len(found[-1])

        assert {rows for rows, _ in list(sizes(batch_rows=7))[:-1]} == {7}
        by_octets = list(sizes(_batch_bytes=3000))
        assert len(by_octets) > 10
        assert all(before_last < 3000 for _, before_last in by_octets)

    def test_few_columns_and_none_change_nothing(self, build: str) -> None:
        octets = chaos.capture(1)
        whole = read(build, octets)
        assert whole
        for column in EVERY:
            assert read(build, octets, columns=[column]) == [{column: row[column]} for row in whole]
        reader = arrow.read_capture(io.BytesIO(octets), "packets", columns=(), _impl=build)
        assert sum(batch.num_rows for batch in reader) == len(whole)

    def test_faults_of_the_recording_are_counted(self, build: str) -> None:
        packets = disturbed(5)
        fragment = make.ethernet(make.ipv4("10.0.0.1", "10.0.0.2", bytes(40), fragment=0x2000))
        packets.insert(5, make.Recorded(packets[5].time_ns, fragment))
        octets = make.pcap(packets)[:-7]
        counted = []
        for table in ("errors", "packets"):
            reader = arrow.read_capture(io.BytesIO(octets), table, _impl=build)
            assert list(reader)
            counted.append((reader.faults["GAP"], reader.faults["FILE"]))
        assert counted[0] == counted[1]
        assert set(reader.faults) == {"GAP", "FILE"}


class TestBuilds:
    @pytest.mark.skipif(len(wanted()) < 2, reason="the compiled build is left out")
    @pytest.mark.parametrize(
        "seed", few([0, 1, *range(3, 12)], 4, "further seeds")
    )  # 2 is of a link layer that cannot be read
    def test_they_give_equal_rows(self, seed: int) -> None:
        octets = chaos.capture(seed)
        for options in (
            {},
            {"port": None},
            {"port": None, "out_of_order_bytes": 500, "out_of_order_segments": 4},
        ):
            one, other = (read(build, octets, **options) for build in ("c", "py"))
            assert one == other
            assert one

    @pytest.mark.skipif("c" not in wanted(), reason="the compiled build is left out")
    def test_ordinary_segments_become_no_objects(self, monkeypatch: pytest.MonkeyPatch) -> None:
        slow: list[Any] = []
        add = PacketSink.packet

        def watched(self: PacketSink, located: Any) -> None:
            slow.append(located)
            add(self, located)

        monkeypatch.setattr(PacketSink, "packet", watched)
        truth = make.conversations(1, count=2, bursts=60)
        rows = read("c", make.pcap(truth.packets))
        assert len(rows) == len(truth.packets) > 300
        assert len(slow) < 20


class TestRefusals:
    def test_payloads_need_credentials(self, build: str) -> None:
        octets = make.pcap(disturbed(1))
        assert "payload" not in arrow.schema("packets").names
        for open_it in (
            lambda: arrow.read_capture(io.BytesIO(octets), "packets", columns=["payload"], _impl=build),
            lambda: arrow.CaptureSession("packets", columns=["payload"], _impl=build),
        ):
            with pytest.raises(ValueError, match="login data"):
                open_it()

    def test_streams_have_no_packets(self) -> None:
        for make_it in (arrow.BatchDecoder, lambda table: arrow.read_stream(io.BytesIO(), table)):
            with pytest.raises(ValueError, match="no table 'packets' of a stream"):
                make_it("packets")
            with pytest.raises(ValueError, match="no table 'nonsense'"):
                make_it("nonsense")
