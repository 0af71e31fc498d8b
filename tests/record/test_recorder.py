"""A recorder writes captures that others read, and never holds up who is recorded."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from amqpcodec import rabbitmq as amqp
from amqpcodec.capture import CapturedFrame, Endpoint, Fault, read_frames, read_packets, read_segments
from amqpcodec.capture.series import series
from amqpcodec.capture.source import ByteSource
from amqpcodec.capture.writing import LARGE_SEGMENT, Conversation, PacketWriter
from amqpcodec.record import Recorder

CLIENT, SERVER = ("10.0.0.1", 40001), ("10.0.0.9", 5671)
HEARTBEAT = amqp.encode_heartbeat()
BODY = amqp.encode_message(1, amqp.Basic.Publish("orders"), None, bytes(60_000))


def items(path: Path) -> list[Any]:
    return list(read_frames(str(path)))


def frames(path: Path) -> list[CapturedFrame]:
    return [each for each in items(path) if isinstance(each, CapturedFrame)]


def faults(path: Path) -> list[Fault]:
    return [each for each in items(path) if isinstance(each, Fault)]


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_a_capture_has_what_both_ends_have_said_and_the_port_of_amqp(tmp_path: Path) -> None:
    path = tmp_path / "trace.pcap"
    with Recorder(path) as recorder:
        connection = recorder.open(CLIENT, SERVER)
        connection.data(0, bytearray(amqp.protocol_header()))
        connection.data(1, memoryview(HEARTBEAT))
        connection.data(0, BODY)
        connection.finish(0)
        connection.close()
    assert [(each.direction, each.frame.type) for each in frames(path)] == [
        (0, 65), (1, 8), (0, 1), (0, 2), (0, 3),
    ]  # fmt: skip
    assert {(str(each.connection.client), str(each.connection.server)) for each in frames(path)} == {
        ("10.0.0.1:40001", "10.0.0.9:5672")
    }
    assert faults(path) == []
    done = recorder.stats()
    assert (done.connections, done.recorded, done.missing) == (1, 16 + len(BODY), 0)
    assert os.name == "nt" or path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("client", "server", "shown"),
    [
        (("::1", 5, 0, 0), ("::1", 5671, 0, 0), ("[::1]:5", "[::1]:5672")),
        (("fe80::1%eth0", 5, 0, 2), ("10.0.0.9", 5671), ("[fe80::1]:5", "[::ffff:a00:9]:5672")),
        ("", "/run/rabbitmq.sock", ("127.0.0.1:49153", "127.0.0.1:5672")),
        (None, None, ("127.0.0.1:49153", "127.0.0.1:5672")),
    ],
)
def test_ends_are_shown_as_addresses(client: Any, server: Any, shown: Any, tmp_path: Path) -> None:
    with Recorder(tmp_path / "trace.pcap") as recorder:
        connection = recorder.open(client, server)
        connection.data(0, amqp.protocol_header())
        connection.close()
    [frame] = frames(tmp_path / "trace.pcap")
    ends = frame.connection.client, frame.connection.server
    assert tuple(str(end).replace("::ffff:10.0.0.9", "::ffff:a00:9") for end in ends) == shown


def test_two_connections_between_the_same_ends_stay_two(tmp_path: Path) -> None:
    with Recorder(tmp_path / "trace.pcap", server_port=5672) as recorder:
        first, second = recorder.open(CLIENT, SERVER), recorder.open(CLIENT, ("10.0.0.9", 5679))
        for connection in (first, second, first, second):
            connection.data(0, HEARTBEAT)
        for connection in (first, second):
            connection.close()
        third = recorder.open(CLIENT, SERVER)
        third.data(0, HEARTBEAT)
        third.close()
    found = [
        (each.connection.number, str(each.connection.client)) for each in frames(tmp_path / "trace.pcap")
    ]
    one, two = "10.0.0.1:40001", "10.0.0.1:40002"
    assert found == [(0, one), (1, two), (0, one), (1, two), (2, one)]


@pytest.mark.parametrize("asked", [False, True])
def test_login_data_is_in_the_capture_only_if_asked_for(asked: bool, tmp_path: Path) -> None:
    start_ok = amqp.encode_method(0, amqp.Connection.StartOk({}, "PLAIN", b"\0guest\0secret", "en_US"))
    with Recorder(tmp_path / "trace.pcap", include_credentials=asked) as recorder:
        connection = recorder.open(CLIENT, SERVER)
        connection.data(0, amqp.protocol_header())
        for at in range(len(start_ok)):
            connection.data(0, start_ok[at : at + 1])
        connection.data(0, b"\0no AMQP, a password\0")
        connection.data(0, b"any more")
        connection.close()
    _, frame = frames(tmp_path / "trace.pcap")
    assert frame.frame.payload.response == (b"\0guest\0secret" if asked else b"*" * 13)
    octets = (tmp_path / "trace.pcap").read_bytes()
    assert (b"no AMQP" in octets) == (b"any more" in octets) == asked
    assert recorder.stats().left_out == (0 if asked else 29)


def test_a_reset_is_one_in_the_capture(tmp_path: Path) -> None:
    with Recorder(tmp_path / "trace.pcap") as recorder:
        connection = recorder.open(CLIENT, SERVER)
        connection.close(reset_by=1)
        connection.close()
    octets = BytesIO((tmp_path / "trace.pcap").read_bytes())
    segments = list(read_segments(read_packets(ByteSource(octets))))
    assert [each.flags for each in segments] == [2, 18, 16, 20]  # type: ignore[union-attr]
    assert segments[-1].source.port == 5672  # type: ignore[union-attr]


# -- sequence numbers and checksums


def wrapping(file: BytesIO, left: int) -> Conversation:
    """A conversation of which the client's sequence numbers begin again within so many octets."""
    ends = Endpoint(bytes((10, 0, 0, 1)), 40001), Endpoint(bytes((10, 0, 0, 9)), 5672)
    first = crc32(bytes((10, 0, 0, 1)) + b"\x9c\x41" + bytes((10, 0, 0, 9)) + b"\x16\x28")
    number = next(n for n in range(1, 1 << 22) if 2**32 - left < (n * 0x3779B97F + first) % 2**32)
    return Conversation(PacketWriter(file), *ends, 0, number, LARGE_SEGMENT)


def wrapped(path: Path, missing: int) -> Path:
    """Write a capture whose sequence numbers wrap, in which so many octets are missing."""
    file = BytesIO()
    conversation = wrapping(file, 100_000)
    for number in range(5):
        conversation.send(0, BODY, number)
        if number == 0:
            conversation.skip(0, missing, number)
    conversation.close(9)
    path.write_bytes(file.getvalue())
    return path


@pytest.mark.parametrize("missing", [0, 200_000])
def test_sequence_numbers_wrap_as_in_streams_of_more_than_4_gigabytes(missing: int, tmp_path: Path) -> None:
    path = wrapped(tmp_path / "trace.pcap", missing)
    found = frames(path)
    assert len(found) == 15
    assert found[-3].offset == 4 * len(BODY) + missing
    assert len({each.connection.number for each in found}) == 1
    assert sum(each.length for each in faults(path)) == missing


@pytest.mark.slow("runs tshark")
@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
@pytest.mark.parametrize("missing", [0, 200_000])
def test_tshark_finds_nothing_odd_where_sequence_numbers_wrap(missing: int, tmp_path: Path) -> None:
    path = wrapped(tmp_path / "trace.pcap", missing)
    command = ["tshark", "-r", str(path), "-T", "fields", "-e", "tcp.analysis.flags"]
    assert subprocess.run(command, capture_output=True, timeout=60, check=True).stdout.strip() == b""


@pytest.mark.slow("runs tshark")
@pytest.mark.parametrize("server", ["10.0.0.9", "::1"])
def test_tshark_finds_every_checksum_right_and_nothing_odd(server: str, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path = tmp_path / "trace.pcap"
    with Recorder(path) as recorder:
        connection = recorder.open(CLIENT, (server, 5671))
        connection.data(0, amqp.protocol_header())
        for size in (0, 1, 2, 255, 65483, 70001):
            message = amqp.encode_message(1, amqp.Basic.Publish("orders"), None, os.urandom(size))
            connection.data(0, message)
            connection.data(1, HEARTBEAT)
        connection.close()
    command = ["tshark", "-r", str(path), "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    fields = [
        "-T",
        "fields",
        "-e",
        "ip.checksum.status",
        "-e",
        "tcp.checksum.status",
        "-e",
        "tcp.analysis.flags",
    ]
    run = subprocess.run([*command, *fields], capture_output=True, encoding="utf-8", timeout=60, check=True)
    expected = ("1" if server == "10.0.0.9" else "") + "\t1"
    assert {line.rstrip() for line in run.stdout.splitlines()} == {expected.rstrip()}
    asked = [*command, "-Y", "amqp", "-T", "fields", "-e", "amqp.method.method"]
    run = subprocess.run(asked, capture_output=True, encoding="utf-8", timeout=60, check=True)
    assert sum(line.split(",").count("40") for line in run.stdout.split()) == 6


# -- files


def rotated(folder: Path) -> list[Path]:
    return sorted(folder.glob("trace_*.pcap"))


def test_files_go_on_at_a_size_and_older_ones_are_removed(tmp_path: Path) -> None:
    with Recorder(tmp_path / "trace.pcap", rotate_bytes=200_000, keep_files=3) as recorder:
        connection = recorder.open(CLIENT, SERVER)
        for _ in range(20):
            connection.data(0, BODY)
            wait_until(lambda: recorder._queued == 0)
        connection.close()
    names = rotated(tmp_path)
    assert recorder.stats().files == 7
    assert len(names) == 3
    assert all(path.stat().st_size <= 200_000 for path in names)
    assert [len(frames(path)) for path in names] == [9, 9, 6]
    assert {series(str(path), "auto") for path in names} == {str(tmp_path / "trace#.pcap")}


def test_files_go_on_after_a_time(tmp_path: Path) -> None:
    with Recorder(tmp_path / "trace.pcap", rotate_seconds=0.02) as recorder:
        connection = recorder.open(CLIENT, SERVER)
        for _ in range(3):
            connection.data(0, HEARTBEAT)
            time.sleep(0.03)
        connection.close()
    assert len(rotated(tmp_path)) >= 3
    assert sum(len(frames(path)) for path in rotated(tmp_path)) == 3


def test_no_file_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    open_file = os.open

    def noted(*arguments: Any, **options: Any) -> int:
        opened.append(open_file(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr("amqpcodec.record.files.os.open", noted)
    with Recorder(tmp_path / "trace.pcap", rotate_bytes=100_000) as recorder:
        connection = recorder.open(CLIENT, SERVER)
        for _ in range(4):
            connection.data(0, BODY)
        connection.close()
    assert len(opened) == recorder.stats().files > 1
    for file in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(file)


def test_a_file_that_cannot_be_opened_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Recorder(tmp_path / "none" / "trace.pcap")


# -- disks


class Disk:
    """Stands in for `os.write`: what the disk does."""

    def __init__(self) -> None:
        self.write = os.write
        self.error: int | None = None
        self.free: int | None = None
        self.hangs = threading.Event()
        self.hangs.set()
        self.turns: threading.Semaphore | None = None  # how often it writes

    def __call__(self, file: int, octets: Any) -> int:
        self.hangs.wait(20)
        if self.turns is not None:
            self.turns.acquire(timeout=20)
        if self.error is not None and not self.free:
            raise OSError(self.error, os.strerror(self.error))
        taken = len(octets) if self.free is None else min(self.free, len(octets))
        if self.free is not None:
            self.free -= taken
        return self.write(file, octets[:taken])


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    found = Disk()
    monkeypatch.setattr("amqpcodec.record.files.os.write", found)
    monkeypatch.setattr("amqpcodec.record.recorder._RETRY_SECONDS", 0.01)
    yield found
    found.hangs.set()


def record_until_missing(recorder: Recorder, connection: Any) -> int:
    """Send until something was not recorded; how many messages were sent."""
    for count in range(1, 1000):
        connection.data(0, BODY)
        if recorder.stats().missing:
            return count
    raise AssertionError("everything was taken")


@pytest.mark.parametrize("trouble", ["full", "full inside a record", "slow"])
def test_what_a_disk_does_not_take_is_a_gap_and_counted(
    trouble: str, disk: Disk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "trace.pcap"
    with Recorder(path, queue_bytes=200_000) as recorder:
        connection = recorder.open(CLIENT, SERVER)
        connection.data(0, amqp.protocol_header())
        wait_until(lambda: recorder._queued == 0)
        if trouble == "slow":
            disk.hangs.clear()
        else:
            disk.error, disk.free = errno.ENOSPC, 70_000 if "inside" in trouble else 0
        began = time.monotonic()
        sent = record_until_missing(recorder, connection)
        connection.data(1, HEARTBEAT * 5000)  # as well
        for _ in range(50):
            connection.data(0, BODY)
        assert time.monotonic() - began < 5
        disk.error, disk.free = None, None
        disk.hangs.set()
        wait_until(lambda: recorder._queued == 0)
        for _ in range(3):
            connection.data(0, BODY)
        connection.close()
    done = recorder.stats()
    assert done.missing > 0
    assert done.missing + done.recorded == 8 + (sent + 53) * len(BODY) + 5000 * len(HEARTBEAT)
    gaps = [each for each in faults(path) if each.kind == "gap"]
    assert sum(each.length for each in gaps) == done.missing
    assert {each.kind for each in faults(path)} == {
        "gap"
    }  # whole reads are missing, which are whole frames here
    published = [each for each in frames(path) if each.frame.type == 1]
    assert len(published) == (done.recorded - 8) // len(BODY)
    assert [each.offset for each in published][-1] == 8 + (sent + 52) * len(BODY)
    assert "not all is recorded" in caplog.text
    assert "recording goes on" in caplog.text


def test_a_disk_that_stays_full_ends_in_a_whole_record(disk: Disk, tmp_path: Path) -> None:
    path = tmp_path / "trace.pcap"
    recorder = Recorder(path)
    connection = recorder.open(CLIENT, SERVER)
    connection.data(0, BODY)
    wait_until(lambda: recorder._queued == 0)
    size = path.stat().st_size
    disk.error, disk.free = errno.ENOSPC, 1000
    connection.data(0, BODY)
    connection.close()
    recorder.close()
    assert path.stat().st_size == size
    assert len(frames(path)) == 3
    assert (recorder.stats().recorded, recorder.stats().missing) == (len(BODY), len(BODY))
    assert recorder.stats().error == os.strerror(errno.ENOSPC)


def test_a_disk_that_does_not_answer_does_not_hold_up_the_end(
    disk: Disk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder(tmp_path / "trace.pcap")
    disk.hangs.clear()
    recorder.open(CLIENT, SERVER).data(0, HEARTBEAT)
    began = time.monotonic()
    with caplog.at_level(logging.ERROR):
        recorder.close(0.05)
    assert time.monotonic() - began < 5
    assert "does not answer" in caplog.text


def test_a_connection_of_which_nothing_is_recorded_is_counted(disk: Disk, tmp_path: Path) -> None:
    with Recorder(tmp_path / "trace.pcap", queue_bytes=1 << 16) as recorder:
        disk.hangs.clear()
        connection = recorder.open(CLIENT, SERVER)
        while not recorder.stats().missing:
            connection.data(0, HEARTBEAT * 1000)
        for number in range(1000):
            other = recorder.open(("10.0.0.2", number + 1), SERVER)
            other.data(0, HEARTBEAT)
            other.close()
        assert recorder._queued <= 1 << 16
        disk.hangs.set()
    done = recorder.stats()
    assert 0 < done.missing_connections <= 1000
    recorded = {each.connection.number for each in frames(tmp_path / "trace.pcap")}
    assert len(recorded) <= done.connections - done.missing_connections


def test_behind_a_long_gap_nothing_more_is_missing(
    disk: Disk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "trace.pcap"
    with Recorder(path, queue_bytes=200_000) as recorder:
        connection = recorder.open(CLIENT, SERVER)
        disk.hangs.clear()
        record_until_missing(recorder, connection)
        large = BODY * 17
        for _ in range(20):
            connection.data(0, large)
        disk.hangs.set()
        wait_until(lambda: recorder._queued == 0)
        missing = recorder.stats().missing
        for _ in range(3):
            connection.data(0, BODY)
            wait_until(lambda: recorder._queued == 0)
        connection.close()
    assert recorder.stats().missing == missing > 16 << 20
    assert sum(each.length for each in faults(path) if each.kind == "gap") == missing
    assert len(frames(path)[-9:]) == 9
    assert frames(path)[-1].offset + len(frames(path)[-1].octets) == missing + recorder.stats().recorded
    assert [each.levelname for each in caplog.records] == ["WARNING"] * 2


def test_a_disk_that_is_slow_for_long_is_said_once(
    disk: Disk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    turns = disk.turns = threading.Semaphore(0)
    with Recorder(tmp_path / "trace.pcap", queue_bytes=1 << 18, rotate_bytes=1024) as recorder:
        connection = recorder.open(CLIENT, SERVER)
        turns.release()
        wait_until(lambda: recorder._queued == 0)
        record_until_missing(recorder, connection)
        for _ in range(5):
            waiting, missing = recorder._queued, recorder.stats().missing
            turns.release()
            wait_until(lambda before=waiting: recorder._queued < before)
            connection.data(0, BODY)
            connection.data(0, BODY)
            assert recorder.stats().missing == missing + len(BODY)
        turns.release(100)
        wait_until(lambda: recorder._queued == 0)
    said = [each.message.split(": ")[1].split(";")[0] for each in caplog.records]
    assert said == ["not all is recorded", "recording goes on"]
