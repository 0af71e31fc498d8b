"""Captures read in parts: rows do not depend on where a recording was cut, nor on who read which part."""

from __future__ import annotations

import gzip
import io
import random
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import make_capture as make
from support import make_chaos as chaos
from support import stored_states
from support.campaign import in_full
from support.columns import BUILDS
from support.parts import Rows, disturbed, rows_of, size_of
from support.tiers import few

from amqpcodec import DecodeError, arrow, capture
from amqpcodec._columns.rows import Files

ROOT = Path(__file__).parents[2]

TABLES = ("frames", "methods", "messages", "connections", "errors", "packets")
TIGHT: tuple[dict[str, Any], ...] = (
    {},
    {"port": None, "out_of_order_bytes": 3000, "out_of_order_segments": 4, "flow_timeout": 10.0},
)
SEEDS = range(4)
CAPTURES = [
    *sorted((ROOT / "examples").glob("*.pcap")),
    *sorted((ROOT.parent / "shared/captures").glob("*.pcap")),
]
# Which build reads the first part, which the second, and so on in turns: each goes on from its own states
# and from those of the other.
TURNS = [(one, one, other, other) for one, other in zip(BUILDS, reversed(BUILDS), strict=True)]


@pytest.fixture(params=TURNS, ids="-".join)
def turns(request: pytest.FixtureRequest) -> tuple[str, ...]:
    builds: tuple[str, ...] = request.param
    return builds


@lru_cache(64)  # tests that differ in who reads which part come one after another
def _whole_table(octets: bytes, table: str, **options: Any) -> pa.Table:
    reader = arrow.read_capture(io.BytesIO(octets), table, _impl=BUILDS[-1], **options)
    return pa.Table.from_batches(reader, reader.schema)


def _whole(octets: bytes, table: str, **options: Any) -> Rows:
    return _whole_table(octets, table, **options).to_pylist()


def _parts_table(
    parts: Iterable[tuple[bytes, str | None, int | None]], table: str, turns: Sequence[str], **options: Any
) -> pa.Table:
    """The rows of parts, each a file, its name, and where to stop; a session for each, and one to finish."""
    state, found = None, []
    for index, (octets, name, end) in enumerate(parts):
        impl = turns[index % len(turns)]
        session = arrow.CaptureSession(table, state=state, _impl=impl, **options)
        found += session.read(io.BytesIO(octets), name, end)
        state = session.suspend()
    session = arrow.CaptureSession(table, state=state, _impl=turns[0], **options)
    return pa.Table.from_batches([*found, *session.finish()], session.schema)


def _parts(
    parts: Iterable[tuple[bytes, str | None, int | None]], table: str, turns: Sequence[str], **options: Any
) -> Rows:
    return _parts_table(parts, table, turns, **options).to_pylist()


def _check_cut(octets: bytes, table: str, turns: Sequence[str], cuts: Iterable[int], **options: Any) -> None:
    """One file gives the same rows whole and cut at some octets; objects are made of them if it does not."""
    parts = [(octets, None, end) for end in [*sorted(cuts), None]]
    found, expected = _parts_table(parts, table, turns, **options), _whole_table(octets, table, **options)
    if not found.equals(expected):
        assert found.to_pylist() == expected.to_pylist()
        raise AssertionError("rows are equal, and their types are not")


def _located(rows: Rows, starts: Sequence[int]) -> Rows:
    """Rows of one file as they are if it is rotated before these packets."""
    found = Rows()
    for row in rows:
        if row.get("packet") is not None:
            at = bisect_left(starts, row["packet"]) - 1
            row = {**row, "file": f"file {at}", "packet": row["packet"] - starts[at]}
        found.append(row)
    return found


def _rotated(
    packets: Sequence[make.Recorded], starts: Sequence[int], **options: Any
) -> list[tuple[bytes, str | None, int | None]]:
    edges = [*starts, len(packets)]
    parts = (packets[begin:end] for begin, end in pairwise(edges))
    return [(make.pcap(part, **options), f"file {at}", None) for at, part in enumerate(parts)]


def _of_streams(rows: Rows, table: str) -> Rows:
    """Rows without those that describe a file."""
    return [row for row in rows if table != "errors" or row["kind"] != "file"]


class TestCuts:
    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("path", few(CAPTURES, 2, "further captures"), ids=lambda path: path.stem)
    def test_recorded_captures(self, path: Path, table: str, turns: tuple[str, ...]) -> None:
        octets = path.read_bytes()
        cuts = random.Random(5).sample(range(len(octets) + 1), 6)
        _check_cut(octets, table, turns, cuts, port=None)

    @pytest.mark.parametrize("seed", few(SEEDS, 1, "further seeds"))
    def test_captures_in_which_everything_happens(self, seed: int, turns: tuple[str, ...]) -> None:
        octets, options = chaos.capture(seed), TIGHT[seed % 2]
        rng = random.Random(seed)
        for table in TABLES:
            cuts = rng.sample(range(size_of(octets) + 1), 5)
            _check_cut(octets, table, turns, cuts, **options)

    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("seed", few(range(2), 1, "further seeds"))
    def test_every_packet(self, seed: int, table: str, turns: tuple[str, ...]) -> None:
        packets = disturbed(seed)[: in_full(70, 40)]
        octets = make.pcap(packets)
        ends = [24]
        for packet in packets:
            ends.append(ends[-1] + 16 + len(packet.octets))
        _check_cut(octets, table, turns, ends)

    @pytest.mark.parametrize("table", TABLES)
    def test_one_session_may_go_on_after_it_was_suspended(self, table: str, turns: tuple[str, ...]) -> None:
        octets = make.pcap(disturbed(2))
        session = arrow.CaptureSession(table, _impl=turns[0])
        found = Rows()
        for end in (*range(0, len(octets), 5000), None):
            found += rows_of(session.read(io.BytesIO(octets), end=end))
            session.suspend()
        assert found + rows_of(session.finish()) == _whole(octets, table)

    def test_a_large_body_and_a_dialect_learnt_late(self, turns: tuple[str, ...]) -> None:
        truth = make.Truth()
        talk = make.Talk(truth, 0, (5, 6))
        talk.open()
        make.open_channel(talk)
        talk.send(make.CLIENT, *make.publish(random.Random(1), 1, bytes(300_000)))
        octets = make.pcap(truth.packets)
        for limits in ({}, {"max_body_bytes": 1000}):
            cuts = range(0, len(octets), 9_000)
            _check_cut(octets, "messages", turns, cuts, **limits)
            assert _whole(octets, "messages", **limits)

    @pytest.mark.parametrize("limits", [{}, {"max_body_bytes": 1000}])
    def test_a_content_that_lacks_its_method_stays_in_error(
        self, limits: dict[str, Any], turns: tuple[str, ...]
    ) -> None:
        truth = make.Truth()
        talk = make.Talk(truth, 0, (5, 6))
        talk.open()
        make.open_channel(talk)
        talk.send(make.CLIENT, *make.publish(random.Random(1), 1, bytes(5_000))[1:])
        octets = make.pcap(truth.packets)
        cuts = range(0, len(octets), 600)
        _check_cut(octets, "messages", turns, cuts, **limits)
        assert _whole(octets, "messages", **limits)[0]["_error"]

    def test_compressed_files_and_pipes(self, turns: tuple[str, ...]) -> None:
        octets = make.pcap(disturbed(1))
        expected = _whole(octets, "messages")
        cuts = [1000, 20_000, len(octets) - 5]
        _check_cut(gzip.compress(octets), "messages", turns, cuts)
        assert _whole(gzip.compress(octets), "messages") == expected

        class Pipe(io.RawIOBase):
            def __init__(self) -> None:
                self._file = io.BytesIO(octets)

            def readable(self) -> bool:
                return True

            def readinto(self, buffer: Any) -> int:
                return self._file.readinto(buffer)

        state, found = None, Rows()
        for end in (*cuts, None):
            session = arrow.CaptureSession(state=state, _impl=turns[0])
            found += rows_of(session.read(Pipe(), end=end))  # type: ignore[arg-type]
            state = session.suspend()
        assert found + rows_of(session.finish()) == expected

    def test_what_was_read_is_not_read_again(self, turns: tuple[str, ...], tmp_path: Path) -> None:
        path = tmp_path / "trace.pcap"
        octets = make.pcap(disturbed(1))
        path.write_bytes(octets)
        session = arrow.CaptureSession(_impl=turns[0])
        before = rows_of(session.read(path, end=len(octets) // 2))
        with path.open("r+b") as file:
            file.seek(24)
            file.write(bytes(len(octets) // 2 - 1600))  # a record that goes on after the end was not read
        session = arrow.CaptureSession(state=session.suspend(), _impl=turns[-1])
        rows = before + rows_of(session.read(path)) + rows_of(session.finish())
        assert [{**row, "file": None} for row in rows] == _whole(octets, "messages")
        assert {row["file"] for row in rows} == {str(path)}

    def test_faults_of_a_file_are_reported_once(self, turns: tuple[str, ...]) -> None:
        packets = disturbed(2)
        fragment = make.ethernet(make.ipv4("10.0.0.1", "10.0.0.2", bytes(40), fragment=0x2000))
        for position in (10, 40):
            packets.insert(position, make.Recorded(packets[position].time_ns, fragment))
        whole = make.pcap(packets)
        for octets in (whole[:-7], gzip.compress(whole)[:-4000], make.pcapng(packets)[:-9]):
            expected = _whole(octets, "errors")
            assert [row["kind"] for row in expected].count("file") == 2
            cuts = [3000, size_of(octets) // 2, size_of(octets) - 3, size_of(octets), size_of(octets) + 100]
            _check_cut(octets, "errors", turns, cuts)

    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("form", few([make.pcapng, make.pcap], 1, "a further form"))
    def test_a_file_that_grows_is_read_on_after_its_last_whole_record(
        self, form: Any, table: str, turns: tuple[str, ...]
    ) -> None:
        octets = form(disturbed(2))
        ends = [200, *sorted(random.Random(4).sample(range(200, len(octets)), 12))]
        parts = [(octets[:end], None, end) for end in ends]
        assert _parts([*parts, (octets, None, None)], table, turns) == _whole(octets, table)

    @pytest.mark.parametrize("table", ["errors", "messages"])
    def test_a_file_that_is_gone_ends_where_reading_stands(self, table: str, turns: tuple[str, ...]) -> None:
        packets = disturbed(2)
        fragment = make.ethernet(make.ipv4("10.0.0.1", "10.0.0.2", bytes(40), fragment=0x2000))
        first = [*packets[:40], make.Recorded(packets[39].time_ns, fragment)]
        octets, rest = make.pcap(first), make.pcap(packets[40:])
        session = arrow.CaptureSession(table, _impl=turns[0])
        found = rows_of(session.read(io.BytesIO(octets + rest[24:]), "a", len(octets)))
        session = arrow.CaptureSession(table, state=session.suspend(), _impl=turns[-1])
        for _ in range(2):  # between two files there is nothing to end
            found += rows_of(session.read(None))
        found += rows_of(session.read(io.BytesIO(rest), "b")) + rows_of(session.finish())
        assert found == _parts([(octets, "a", None), (rest, "b", None)], table, turns)
        assert found

    def test_sections_and_interfaces_of_pcapng(self, turns: tuple[str, ...]) -> None:
        first, second = disturbed(0), disturbed(2)
        octets = make.pcapng(first) + make.pcapng(second, ">")
        cuts = range(0, len(octets), 4999)
        for table in ("frames", "errors"):
            _check_cut(octets, table, turns, cuts)


class TestFiles:
    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("seed", few(range(2), 1, "further seeds"))
    def test_rotated_files_are_one_recording(self, seed: int, table: str, turns: tuple[str, ...]) -> None:
        linktype, packets = chaos.packets(seed)
        starts = [0, *sorted(random.Random(seed).sample(range(len(packets)), 4))]
        files = _rotated(packets, starts, nanos=True, linktype=linktype)
        one = _whole(make.pcap(packets, nanos=True, linktype=linktype), table)
        expected = _located(_of_streams(one, table), starts)
        found = _of_streams(_parts(files, table, turns), table)
        if table == "connections":
            found = [{**row, "file": None} for row in found]
        assert found == expected

    def test_a_row_names_the_file_of_its_packet(self, turns: tuple[str, ...]) -> None:
        packets = make.conversations(1, count=1, bursts=3).packets
        for start in range(1, len(packets)):
            files = _rotated(packets, [0, start])
            found = _parts(files, "messages", turns, columns=("file", "packet", "complete"))
            whole = _whole(make.pcap(packets), "messages", columns=("file", "packet", "complete"))
            assert found == _located(whole, [0, start])
            ended = "file 1" if start < len(packets) - 1 else "file 0"  # before the last acknowledgement
            assert [row["file"] for row in _parts(files, "connections", turns)] == [ended]

    @pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
    @pytest.mark.parametrize("impl", BUILDS)
    def test_an_interrupt_while_a_former_file_is_looked_up_is_raised(
        self, error: type[BaseException], impl: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(files: Files, packet: int | None) -> Any:
            raise error

        truth = make.Truth()
        talk = make.Talk(truth, 0, (5, 6))
        talk.open()
        make.open_channel(talk)
        talk.send(make.CLIENT, *make.publish(random.Random(1), 1, bytes(3_000)))
        before, behind = _rotated(truth.packets, [0, len(truth.packets) - 4])
        session = arrow.CaptureSession(_impl=impl)
        assert not rows_of(session.read(io.BytesIO(before[0]), before[1]))
        monkeypatch.setattr(Files, "locate", interrupted)
        with pytest.raises(error):
            rows_of(session.read(io.BytesIO(behind[0]), behind[1]))

    def test_files_cut_and_rotated(self, turns: tuple[str, ...]) -> None:
        packets = disturbed(3)
        starts = [0, 31, 32, 90]
        files = _rotated(packets, starts)
        parts = [
            (octets, name if end == 24 else None, end)
            for octets, name, _ in files
            for end in (24, len(octets) // 2, len(octets), None)
        ]
        expected = _located(_whole(make.pcap(packets), "frames"), starts)
        assert _parts(parts, "frames", turns) == expected

    def test_files_of_other_forms_may_follow_each_other(self, turns: tuple[str, ...]) -> None:
        packets = disturbed(0)
        files = [make.pcap(packets[:50], order=">"), make.pcapng(packets[50:90]), make.pcap(packets[90:])]
        parts = [(octets, f"file {at}", None) for at, octets in enumerate(files)]
        expected = _located(_whole(make.pcap(packets), "frames"), [0, 50, 90])
        assert _parts(parts, "frames", turns) == expected

    def test_a_file_that_is_no_capture_is_passed_over(self, turns: tuple[str, ...]) -> None:
        packets = disturbed(1)
        session = arrow.CaptureSession("frames", _impl=turns[0])
        found = rows_of(session.read(io.BytesIO(make.pcap(packets[:40])), "file 0"))
        for octets in (b"", b"no capture", make.pcap([])[:20]):
            with pytest.raises(capture.CaptureError):
                list(session.read(io.BytesIO(octets)))
        found += rows_of(session.read(io.BytesIO(make.pcap([])), "empty"))
        found += rows_of(session.read(io.BytesIO(make.pcap(packets[40:])), "file 1"))
        expected = _located(_whole(make.pcap(packets), "frames"), [0, 40])
        assert found + rows_of(session.finish()) == expected


class TestScan:
    def test_states_of_a_scan_divide_a_recording(self, turns: tuple[str, ...], tmp_path: Path) -> None:
        parts: list[tuple[Any, int | None]] = []
        for at, (octets, _, _) in enumerate(_rotated(disturbed(2), [0, 77])):
            path = tmp_path / f"{at}.pcap"
            path.write_bytes(octets)
            parts += [(path, len(octets) // 3), (path, len(octets)), (path, None)]
        for table in TABLES:
            divided = [[(path, None, end)] for path, end in parts]
            *states, last = arrow.scan_capture(divided, table, _impl=turns[0])
            found = Rows()
            for state, (path, end) in zip(states, parts, strict=True):
                session = arrow.CaptureSession(table, state=state, _impl=turns[-1])
                found += rows_of(session.read(path, end=end))
            found += rows_of(arrow.CaptureSession(table, state=last, _impl=turns[-1]).finish())
            session = arrow.CaptureSession(table, _impl=turns[0])
            files = (tmp_path / "0.pcap", tmp_path / "1.pcap")
            expected = [row for path in files for row in rows_of(session.read(path))]
            assert found == expected + rows_of(session.finish())

    def test_files_are_opened_when_their_turn_comes_and_closed_behind_them(
        self, turns: tuple[str, ...], tmp_path: Path
    ) -> None:
        opened: list[Any] = []

        def opener(path: Path) -> Any:
            def open_it() -> Any:
                assert all(file.closed for file in opened)
                opened.append(path.open("rb"))
                return opened[-1]

            return open_it

        files: list[tuple[Any, str]] = []
        for at, (octets, _, _) in enumerate(_rotated(disturbed(2), [0, 77])):
            (tmp_path / str(at)).write_bytes(octets)
            files.append((opener(tmp_path / str(at)), f"file {at}"))
        scanned = arrow.scan_capture([files[:1], files[1:]], "frames", _impl=turns[0])
        next(scanned)
        assert not opened
        next(scanned)
        assert [file.closed for file in opened] == [True]
        (last,) = scanned
        session = arrow.CaptureSession("frames", _impl=turns[-1])
        found = [row for file in files for row in rows_of(session.read(*file))]
        assert {row["file"] for row in found} == {"file 0", "file 1"}
        assert session.suspend() == last
        assert [file.closed for file in opened] == [True] * 4

    def test_an_error_names_the_file(self, turns: tuple[str, ...], tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"no capture")
        for parts in ([[(tmp_path / "a",)]], [[(io.BytesIO(b"no capture"), f"{tmp_path}/a")]]):
            with pytest.raises(capture.CaptureError) as raised:
                list(arrow.scan_capture(parts, _impl=turns[0]))
            assert raised.value.__notes__ == [f"in '{tmp_path}/a'"]

    @pytest.mark.parametrize("table", TABLES)
    def test_without_columns_rows_are_counted(self, table: str, turns: tuple[str, ...]) -> None:
        octets = make.pcap(disturbed(2))
        session = arrow.CaptureSession(table, columns=(), _impl=turns[0])
        batches = [*session.read(io.BytesIO(octets)), *session.finish()]
        assert sum(batch.num_rows for batch in batches) == len(_whole(octets, table)) > 0


class TestStates:
    def test_a_state_does_not_grow_with_what_was_read(self, turns: tuple[str, ...]) -> None:
        session = arrow.CaptureSession(_impl=turns[0])
        sizes = []
        for number in range(60):
            packets = make.conversations(7, count=2, bursts=6).packets
            list(session.read(io.BytesIO(make.pcap(packets)), f"{number:06}"))
            sizes.append(len(session.suspend()))
        assert max(sizes) < sizes[0] + 200

    def test_other_arguments_are_refused(self) -> None:
        session = arrow.CaptureSession("frames")
        list(session.read(io.BytesIO(make.pcap(disturbed(2))), end=9000))
        state = session.suspend()
        arrow.CaptureSession("frames", state=state, columns=["ts"], mode="drop", batch_rows=7)
        for options in (
            {"table": "methods"},
            {"port": None},
            {"port": 5671},
            {"dialect": "amqp-0-9-1"},
            {"frame_max": 5000},
            {"max_body_bytes": 5},
            {"out_of_order_bytes": 5},
            {"flow_timeout": 5},
        ):
            with pytest.raises(ValueError, match="the state was made with another"):
                arrow.CaptureSession(**{"table": "frames", **options}, state=state)

    def test_another_form_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        state = arrow.CaptureSession().suspend()
        monkeypatch.setattr("amqpcodec._state.FORM", 77)
        with pytest.raises(ValueError, match=r"the state has form 4, .* reads form 77"):
            arrow.CaptureSession(state=state)

    @pytest.mark.parametrize("table", TABLES)
    def test_a_state_of_an_earlier_version_of_the_library_is_gone_on_from(
        self, table: str, turns: tuple[str, ...]
    ) -> None:
        """If states have changed, count `amqpcodec._state.FORM` up and say so in the changelog."""
        _, before = stored_states.begun(table)
        session = arrow.CaptureSession(table, state=stored_states.stored(table), _impl=turns[0])
        path = str(stored_states.CAPTURE)
        found = before + rows_of(session.read(path)) + rows_of(session.finish())
        session = arrow.CaptureSession(table, _impl=turns[0])
        assert found == rows_of(session.read(path, "traffic")) + rows_of(session.finish())

    @pytest.mark.parametrize("table", TABLES)
    def test_states_of_a_form_are_laid_out_as_they_always_were(self, table: str) -> None:
        """If this fails, count `amqpcodec._state.FORM` up and say so in the changelog."""
        session, _ = stored_states.begun(table)
        assert session.suspend() == stored_states.stored(table)

    def test_another_file_is_refused(self, turns: tuple[str, ...]) -> None:
        octets = make.pcap(disturbed(2))
        session = arrow.CaptureSession(_impl=turns[0])
        found = rows_of(session.read(io.BytesIO(octets), end=9000))
        with pytest.raises(ValueError, match="begins otherwise"):
            list(session.read(io.BytesIO(make.pcap([], nanos=True))))
        with pytest.raises(ValueError, match="less than"):
            list(session.read(io.BytesIO(octets[:500])))
        found += rows_of(session.read(io.BytesIO(octets)))
        assert found + rows_of(session.finish()) == _whole(octets, "messages")

    def test_names_need_not_be_text(self, turns: tuple[str, ...]) -> None:
        octets = make.pcap(disturbed(2))
        for name, shown in (("half a pair \ud800", "half a pair \\ud800"), ("octet \udcff", "octet \\xff")):
            found = _parts([(octets, name, 9000), (octets, name, None)], "frames", turns, columns=["file"])
            assert found
            assert {row["file"] for row in found} == {shown}

    @pytest.mark.parametrize("path", ["no\0path", "no\ud800path"])
    def test_a_path_that_cannot_be_leaves_a_session_as_it_was(self, path: str) -> None:
        octets = make.pcap(disturbed(2))
        session = arrow.CaptureSession()
        with pytest.raises(ValueError, match=r"embedded null|surrogates not allowed"):
            list(session.read(path))
        found = rows_of(session.read(io.BytesIO(octets)))
        assert found + rows_of(session.finish()) == _whole(octets, "messages")

    def test_steps_out_of_order_are_refused(self, turns: tuple[str, ...]) -> None:
        octets = make.pcap(disturbed(2))
        session = arrow.CaptureSession("frames", batch_rows=1, _impl=turns[0])
        batches = session.read(io.BytesIO(octets))
        next(batches)
        for step in (session.suspend, session.finish, lambda: session.read(io.BytesIO(octets))):
            with pytest.raises(ValueError, match="a read was left before its end"):
                step()
        list(batches)
        list(session.finish())
        for step in (session.suspend, session.finish, lambda: session.read(io.BytesIO(octets))):
            with pytest.raises(ValueError, match="the session is finished"):
                step()

    def test_an_error_that_ends_the_rows_ends_the_session(self, turns: tuple[str, ...]) -> None:
        truth = make.Truth()
        talk = make.Talk(truth, 0, (5, 6))
        talk.open()
        make.open_channel(talk)
        talk.send(make.CLIENT, b"\1\0\1\0\0\0\4" + bytes(4) + b"no end of a frame")
        session = arrow.CaptureSession("frames", mode="fail", _impl=turns[0])
        with pytest.raises(DecodeError):
            list(session.read(io.BytesIO(make.pcap(truth.packets))))
        with pytest.raises(ValueError, match="a read was left before its end"):
            session.suspend()
