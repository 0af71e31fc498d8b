"""`amqpcodec spark convert` and `replay`: a capture becomes Parquet files, and those streams of frames."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyarrow import parquet
from support.rotations import busy, write_rotated
from support.spark_jobs import SETTINGS, run

from amqpcodec import arrow

pytestmark = pytest.mark.spark

# All commands in one process: each starts a session and ends it, and only the first has to start a JVM.
COMMANDS = """
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from amqpcodec.cli import main
found = []
settings = [part for name, value in given["settings"].items() for part in ("--conf", f"{name}={value}")]
for arguments in given["commands"]:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as errors:
        code = main(["spark", *arguments, "--master", "local[1]", *settings])
    last = errors.getvalue().splitlines()[-1:]  # before it Spark may warn
    names = sorted(os.listdir(arguments[2])) if os.path.isdir(arguments[2]) else None
    found.append((code, out.getvalue(), "".join(last), names))
report(found=found)
"""


class Ran(NamedTuple):
    """What a command came to: its exit code, what it said, and the names in the folder it was to write."""

    code: int
    out: str
    errors: str
    names: list[str] | None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording in four files, and a table with a message that is not complete."""
    folder = tmp_path_factory.mktemp("commands")
    write_rotated(folder / "set", busy(folder / "whole", 250_000), seed=1, files=4)
    first, second, *_ = sorted((folder / "set").iterdir())
    (folder / "doubtful").mkdir()
    for name, path in (("a_00001", first), ("a_10002", second), ("a_20002", second)):
        (folder / "doubtful" / f"{name}.pcap").write_bytes(path.read_bytes())
    rows = {"routing_key": ["a", "b"], "complete": [True, False]}
    parquet.write_table(pa.table(rows), folder / "incomplete.parquet")
    return folder


@pytest.fixture(scope="module")
def ran(java: None, folder: Path) -> dict[str, Ran]:
    """What each command came to, in this order."""
    commands: dict[str, list[str]] = {
        "convert": ["convert", "set", "table", "--max-group-bytes", "1"],
        "convert chosen columns": [
            "convert", "set", "chosen", "--table", "methods", "--columns", "name,channel",
        ],
        "convert another port": ["convert", "set", "nothing", "--port", "7"],
        "convert doubtful files": ["convert", "doubtful", "apart"],
        "convert again": ["convert", "set", "chosen"],
        "replay": ["replay", "table", "streams"],
        "replay again": ["replay", "table", "streams"],
        "replay appending": [
            "replay", "table", "streams", "--save", "append", "--frame-max", "256", "--dialect", "amqp-0-9-1",
        ],
        "replay incomplete": ["replay", "incomplete.parquet", "whole-ones"],
        "replay without incomplete": ["replay", "incomplete.parquet", "whole-ones", "--skip-incomplete"],
    }  # fmt: skip
    given = [
        [name, str(folder / source), str(folder / target), *options]
        for name, source, target, *options in commands.values()
    ]
    found = run(COMMANDS, SETTINGS, commands=given)["found"]
    return {name: Ran(*each) for name, each in zip(commands, found, strict=True)}


def messages(folder: Path) -> list[pa.Table]:
    """The messages in each Parquet file."""
    return [parquet.read_table(path) for path in sorted((folder / "table").glob("*.parquet"))]


def streams(folder: Path, names: list[str] | None = None) -> list[bytes]:
    """The octets of each stream in a folder, or of those among these names."""
    found = sorted(folder.glob("*.amqp"))
    return [path.read_bytes() for path in found if names is None or path.name in names]


def test_a_capture_is_converted(ran: dict[str, Ran], folder: Path) -> None:
    found = ran["convert"]
    rows = sum(table.num_rows for table in messages(folder))
    octets = sum(path.stat().st_size for path in (folder / "table").glob("*.parquet"))
    assert found.code == 0
    assert found.out == f"{folder}/table: {rows} rows, {octets} bytes in 4 files\n"
    assert rows == sum(batch.num_rows for batch in arrow.read_capture(folder / "whole", columns=()))


def test_columns_of_another_table_are_converted(ran: dict[str, Ran], folder: Path) -> None:
    assert ran["convert chosen columns"].code == 0
    assert parquet.read_table(folder / "chosen").schema.names == ["name", "channel"]


def test_a_port_without_amqp_is_named(ran: dict[str, Ran]) -> None:
    found = ran["convert another port"]
    assert (found.code, found.errors) == (0, "amqpcodec: no messages found on port 7; try --port any")


def test_captures_that_cannot_be_stitched_are_named(ran: dict[str, Ran], folder: Path) -> None:
    found = ran["convert doubtful files"]
    assert found.code == 0
    assert found.errors.startswith("amqpcodec: connections do not go on from one capture to the next ")
    assert f"'{folder}/doubtful/a_20002.pcap'; --rotated true takes" in found.errors
    assert found.errors.endswith("--series-pattern says which names belong together")


@pytest.mark.parametrize("command", ["convert", "replay"])
def test_a_folder_that_is_there_is_kept(ran: dict[str, Ran], folder: Path, command: str) -> None:
    before = ran["convert chosen columns" if command == "convert" else command]
    again = ran[f"{command} again"]
    target = folder / ("chosen" if command == "convert" else "streams")
    assert (again.code, again.out) == (2, "")
    assert again.errors.startswith(f"amqpcodec: '{target}' was not written: ")
    assert "is there already" in again.errors
    assert again.names == before.names


def test_messages_are_replayed_octet_by_octet(ran: dict[str, Ran], folder: Path) -> None:
    tables, written = messages(folder), streams(folder / "streams", ran["replay"].names)
    rows, octets = sum(table.num_rows for table in tables), sum(map(len, written))
    assert ran["replay"].code == 0
    assert ran["replay"].out == f"{folder}/streams: {rows} messages, {octets} bytes in 4 streams\n"
    assert written == [arrow.encode_messages(table) for table in tables]
    assert len([name for name in ran["replay"].names or () if name.endswith(".amqp.index.arrow")]) == 4
    said = ["exchange", "routing_key", "body", "body_size"]
    for octets_of, table in zip(written, tables, strict=True):
        assert arrow.decode_messages(octets_of, columns=said).to_pylist() == table.select(said).to_pylist()


def test_dialect_and_size_of_frames_are_chosen_and_streams_appended(
    ran: dict[str, Ran], folder: Path
) -> None:
    large = streams(folder / "streams", ran["replay"].names)
    small = [arrow.encode_messages(table, dialect="amqp-0-9-1", frame_max=256) for table in messages(folder)]
    assert ran["replay appending"].code == 0
    assert set(small).isdisjoint(large)
    assert sorted(streams(folder / "streams")) == sorted(large + small)


def test_a_message_that_is_not_complete_leaves_nothing(ran: dict[str, Ran]) -> None:
    found = ran["replay incomplete"]
    assert (found.code, found.names, found.out) == (2, None, "")
    assert "is not complete" in found.errors


def test_incomplete_messages_are_left_out_if_asked(ran: dict[str, Ran], folder: Path) -> None:
    assert ran["replay without incomplete"].code == 0
    (octets,) = streams(folder / "whole-ones")
    assert arrow.decode_messages(octets)["routing_key"].to_pylist() == ["a"]
