"""Paths mean files as they do for Spark's own readers, and files say themselves what they are."""

from __future__ import annotations

import gzip
import io
import os
import struct
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from support import make_capture as make
from support.rotations import busy

from amqpcodec import arrow, rabbitmq
from amqpcodec.capture import ByteSource, read_packets
from amqpcodec.capture.tails import last_time
from amqpcodec.spark.files import Location, listed, recognised


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a1.pcap", "a2.pcap", "b.pcapng", "_hidden.pcap", ".dot.pcap", "s.amqp.index.arrow"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "c.pcap").write_bytes(b"x")
    (tmp_path / "deep" / "er" / "d.pcap").write_bytes(b"x")
    return tmp_path


def names(folder: Path, *paths: str, recursive: bool = False, pattern: str | None = None) -> list[str]:
    found = listed([f"{folder}/{path}" for path in paths], recursive=recursive, name_pattern=pattern)
    return [path.removeprefix(f"{folder}/") for path, _ in found]


def test_a_folder_means_its_files(folder: Path) -> None:
    assert names(folder, "") == ["a1.pcap", "a2.pcap", "b.pcapng"]


def test_folders_inside_are_read_when_asked_for(folder: Path) -> None:
    assert names(folder, "", recursive=True) == [
        "a1.pcap", "a2.pcap", "b.pcapng", "deep/c.pcap", "deep/er/d.pcap",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a?.pcap", ["a1.pcap", "a2.pcap"]),
        ("a[!1].pcap", ["a2.pcap"]),
        ("{a1,b}.pcap*", ["a1.pcap", "b.pcapng"]),
        ("*/c.pcap", ["deep/c.pcap"]),
        ("{a1.pcap,deep/{c,er/d}.pcap}", ["a1.pcap", "deep/c.pcap", "deep/er/d.pcap"]),
        ("[^&&b]?.pcap", ["a1.pcap", "a2.pcap"]),
        ("de*", ["deep/c.pcap"]),
        ("_hid*", ["_hidden.pcap"]),
        ("_hidden.pcap", ["_hidden.pcap"]),
    ],
)
def test_patterns_are_those_of_hadoop(folder: Path, path: str, found: list[str]) -> None:
    assert names(folder, path) == found


def test_files_named_twice_are_read_once(folder: Path) -> None:
    assert names(folder, "a1.pcap", "a*.pcap") == ["a1.pcap", "a2.pcap"]


def test_names_are_filtered_in_addition(folder: Path) -> None:
    assert names(folder, "", recursive=True, pattern="*.pcapng") == ["b.pcapng"]


@pytest.mark.parametrize("scheme", ["file://", "file:", "FILE://", "file://localhost"])
def test_paths_may_be_uris(folder: Path, scheme: str) -> None:
    found = listed([f"{scheme}{folder}/b.pcapng"], recursive=False, name_pattern=None)
    assert found == [(f"{folder}/b.pcapng", 1)]


def test_a_colon_in_a_name_is_no_scheme(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "eth0:1.pcap").write_bytes(b"x")
    (folder / "10:30").mkdir()
    (folder / "10:30" / "a.pcap").write_bytes(b"x")
    found = listed(["eth0:1.pcap", "10:30/a.pcap"], recursive=False, name_pattern=None)
    assert found == [(f"{folder}/10:30/a.pcap", 1), (f"{folder}/eth0:1.pcap", 1)]


@pytest.mark.parametrize("path", ["hdfs:/captures", "s3:/bucket/captures", "HDFS:/captures/*.pcap"])
def test_one_slash_after_a_scheme_is_reported(path: str) -> None:
    with pytest.raises(ValueError, match=r"is no path: two slashes stand after a scheme"):
        listed([path], recursive=False, name_pattern=None)


def test_a_pattern_that_cannot_be_is_an_error(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"\[z-a\] is no pattern: bad character range"):
        names(folder, "[z-a].pcap")


@pytest.mark.parametrize("path", ["", "file:", "file://captures", "file://captures/a1.pcap"])
def test_a_path_that_names_nothing_is_not_the_folder_at_hand(path: str) -> None:
    with pytest.raises(ValueError, match="is no path"):
        listed([path], recursive=False, name_pattern=None)


def test_a_scheme_that_is_not_known_is_reported_with_the_path() -> None:
    with pytest.raises(ValueError, match=r"'wasbs://box@there/a.pcap' is no path: .*wasbs"):
        listed(["wasbs://box@there/a.pcap"], recursive=False, name_pattern=None)


@pytest.mark.parametrize(
    ("path", "inner", "shown"),
    [
        ("s3://bucket/a/b.pcap", "bucket/a/b.pcap", "s3://bucket/a/b.pcap"),
        ("s3a://bucket/a/b.pcap", "bucket/a/b.pcap", "s3://bucket/a/b.pcap"),
        ("S3N://bucket/a/", "bucket/a", "s3://bucket/a"),
        ("S3://Bucket/A%20b?.pcap", "Bucket/A%20b?.pcap", "s3://Bucket/A%20b?.pcap"),
        ("dbfs:/Volumes/a/b.pcap", "/Volumes/a/b.pcap", "/Volumes/a/b.pcap"),
        ("DBFS:/mnt/b.pcap", "/dbfs/mnt/b.pcap", "/dbfs/mnt/b.pcap"),
        ("dbfs:///mnt/b.pcap", "/dbfs/mnt/b.pcap", "/dbfs/mnt/b.pcap"),
        ("file:/a%20b/c.pcap", "/a b/c.pcap", "/a b/c.pcap"),
        ("file:///a%C3%A9/c.pcap", "/aé/c.pcap", "/aé/c.pcap"),
        ("/a%20b/c.pcap", "/a%20b/c.pcap", "/a%20b/c.pcap"),
    ],
)
def test_paths_mean_what_people_write(
    monkeypatch: pytest.MonkeyPatch, path: str, inner: str, shown: str
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    location = Location(path)
    assert (location.inner, location.shown(location.inner)) == (inner, shown)


@pytest.mark.parametrize(
    "path",
    [
        "s3://bucket/a.pcap?region=eu-west-1",
        "s3a://bucket/*.pcap?scheme=http&endpoint_override=127.0.0.1:9000",
    ],
)
def test_settings_of_a_store_in_a_path_are_no_wildcard(path: str) -> None:
    with pytest.raises(ValueError, match=r"has settings after a question mark: .*AWS_REGION"):
        Location(path)


def test_a_name_that_is_not_utf_8_is_reported(folder: Path) -> None:
    try:
        (folder / os.fsdecode(b"z\xff.pcap")).write_bytes(b"x")
    except OSError:
        pytest.skip("no such names on this file system")
    with pytest.raises(ValueError, match=r"the name b'.*/z\\xff.pcap' is not UTF-8"):
        names(folder, "")
    assert names(folder, "a1.pcap") == ["a1.pcap"]


def test_a_path_without_files_is_an_error(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing"):
        names(folder, "nothing")
    with pytest.raises(FileNotFoundError, match="none"):
        names(folder, "none*")


def kinds(folder: Path, **files: bytes) -> dict[str, str]:
    paths = []
    for name, octets in files.items():
        (folder / name).write_bytes(octets)
        paths.append((str(folder / name), len(octets)))
    return {file.name: file.kind for file in recognised(paths, "auto", times=True)}


def test_files_are_known_by_their_first_octets(tmp_path: Path) -> None:
    packets = make.conversations(1, bursts=2).packets
    frames = rabbitmq.encode_method(1, rabbitmq.Basic.Ack(1))
    assert kinds(
        tmp_path,
        pcap=make.pcap(packets),
        swapped=make.pcap(packets, order=">", nanos=True),
        pcapng=make.pcapng(packets),
        gz=gzip.compress(make.pcap(packets)),
        stream=rabbitmq.protocol_header(),
        frames=frames,
        frames_gz=gzip.compress(frames * 3),
        nothing=b"",
        nothing_gz=gzip.compress(b""),
    ) == {
        "pcap": "capture",
        "swapped": "capture",
        "pcapng": "capture",
        "gz": "capture",
        "stream": "stream",
        "frames": "stream",
        "frames_gz": "stream",
        "nothing": "empty",
        "nothing_gz": "empty",
    }


def test_a_file_that_is_nothing_known_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"readme.*neither a capture nor a stream.*pathGlobFilter"):
        kinds(tmp_path, readme=b"# Captures of last week\n")


@pytest.mark.parametrize("octets", [20_000, 3_000_000])
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_the_last_packet_is_found_from_the_end(tmp_path: Path, form: str, octets: int) -> None:
    path = tmp_path / "trace"
    busy(path, octets)
    last = max(
        batch.column(0).to_pylist()[-1] for batch in arrow.read_capture(path, "frames", columns=["ts_ns"])
    )
    if form == "pcapng":
        path.write_bytes(as_pcapng(path.read_bytes()))
    with path.open("rb") as file:
        found = last_time(file, path.stat().st_size)
    # A bare acknowledgement may be behind the last frame.
    assert found is not None
    assert last <= found < last + 1_000_000_000


def as_pcapng(octets: bytes) -> bytes:
    from support.rotations import records

    found = []
    for record in records(octets):
        seconds, fraction = int.from_bytes(record[:4], "little"), int.from_bytes(record[4:8], "little")
        found.append(make.enhanced(record[16:], seconds * 1_000_000 + fraction))
    return make.section() + make.interface() + b"".join(found)


def test_the_end_of_damaged_captures_is_unknown(tmp_path: Path) -> None:
    octets = busy(tmp_path / "trace", 20_000)
    (tmp_path / "trace").write_bytes(octets[:5000] + b"\xff" * (len(octets) - 5000))
    with (tmp_path / "trace").open("rb") as file:
        assert last_time(file, len(octets)) is None
    ng = as_pcapng(octets)[:-6]
    (tmp_path / "trace").write_bytes(ng)
    with (tmp_path / "trace").open("rb") as file:
        assert last_time(file, len(ng)) is None


def found_at_the_end(path: Path, octets: bytes) -> int | None:
    path.write_bytes(octets)
    with path.open("rb") as file:
        return last_time(file, len(octets))


def test_what_a_capture_is_refused_for_hides_its_last_time(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    ng = as_pcapng(busy(path, 20_000))
    whole = found_at_the_end(path, ng)
    assert whole is not None
    odd = struct.pack("<IIxI", 5, 13, 13)
    assert list(read_packets(ByteSource(io.BytesIO(ng + odd))))[-1].kind == "file"
    assert found_at_the_end(path, ng + odd) is None
    cut = bytearray(make.enhanced(bytes(8), 1))
    cut[20:24] = struct.pack("<I", 9)
    # It cannot be read, but all in front of it can.
    assert found_at_the_end(path, ng + cut) == whole


def test_packets_without_a_time_and_notes_are_passed_over_from_the_end(tmp_path: Path) -> None:
    ng = as_pcapng(busy(tmp_path / "trace", 20_000))
    note = struct.pack("<III", 5, 12, 12)
    simple = struct.pack("<III4sI", 3, 20, 4, b"abcd", 20)
    assert found_at_the_end(tmp_path / "b", ng + simple + note) == found_at_the_end(tmp_path / "a", ng)


@pytest.mark.parametrize("length", [0, 4, 8, 1 << 20])
def test_a_length_that_no_block_has_hides_the_last_time(tmp_path: Path, length: int) -> None:
    ng = as_pcapng(busy(tmp_path / "trace", 20_000))
    assert found_at_the_end(tmp_path / "trace", ng + struct.pack("<I", length)) is None


@pytest.mark.parametrize("size", [0, 1, 7, 5000])
def test_a_stream_may_begin_with_any_whole_frame(tmp_path: Path, size: int) -> None:
    frame = rabbitmq.encode_body(1, bytes(size), frame_max=0)
    path = tmp_path / "frames"
    path.write_bytes(frame)
    [found] = recognised([(str(path), len(frame))], "auto", times=False)
    assert found.kind == "stream"
    path.write_bytes(frame[:-1])
    with pytest.raises(ValueError, match="is neither a capture nor a stream of frames"):
        recognised([(str(path), len(frame) - 1)], "auto", times=False)
