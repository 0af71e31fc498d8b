"""The `amqpcodec convert` command: the same rows as the library gives, and never a part of a file."""

from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from support import make_capture as make
from support.command import Terminal
from support.implementation import wanted
from support.rotations import write_rotated
from support.subprocesses import python

from amqpcodec import arrow
from amqpcodec import rabbitmq as amqp
from amqpcodec.cli import main, tablefile
from amqpcodec.cli.progress import LARGE

BUNNY = Path(__file__).parents[2] / "examples" / "real-bunny.pcap"
TXAMQP = BUNNY.with_name("real-txamqp-0-8.pcap")
TABLES = ("frames", "methods", "messages", "connections", "errors", "deliveries", "packets")
CLOSE_ONLY = b"\x01\0\1\0\0\0\4\0\x14\x03\xe7\xce"  # a method that is not known
Convert = Callable[..., str]


@pytest.fixture
def convert(capsys: pytest.CaptureFixture[str]) -> Convert:
    """Calls the command in this process; gives what it said."""

    def call(*arguments: object, code: int = 0) -> str:
        assert main(["convert", *map(str, arguments)]) == code
        out, err = capsys.readouterr()
        assert out == ""
        return err

    return call


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "table.parquet"


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture in which packets are out of order, twice there, or missing."""
    packets, _ = make.disturb(make.conversations(5).packets, 5, reorder=0.05, duplicate=0.05, loss=0.02)
    path = tmp_path_factory.mktemp("captures") / "disturbed.pcap"
    path.write_bytes(make.pcap(packets))
    return path


def _expected(files: Iterable[Path], table: str, **options: Any) -> pa.Table:
    reader = arrow.read_capture([str(file) for file in files], table, **options)
    return pa.Table.from_batches(list(reader), reader.schema)


def _same(path: Path, expected: pa.Table) -> None:
    found = parquet.read_table(path)
    assert found.schema == expected.schema
    assert found.equals(expected)


@pytest.mark.parametrize("table", TABLES)
def test_parquet_has_the_rows_of_the_library(table: str, convert: Convert, out: Path) -> None:
    convert(BUNNY, TXAMQP, out, "--table", table)
    _same(out, _expected([BUNNY, TXAMQP], table))
    assert os.listdir(out.parent) == [out.name]


@pytest.mark.parametrize("table", TABLES)
def test_faults_give_code_1_and_the_rows_nevertheless(
    table: str, convert: Convert, out: Path, disturbed: Path
) -> None:
    expected = _expected([disturbed], table)
    convert(disturbed, out, "--table", table, code=1)
    _same(out, expected)


@pytest.mark.parametrize("build", wanted())
def test_each_build_writes_the_same(build: str, out: Path, disturbed: Path) -> None:
    done = python("-m", "amqpcodec", "convert", str(BUNNY), str(disturbed), str(out), impl=build)
    assert (done.stderr.count(b"\n"), done.returncode) == (1, 1)
    _same(out, _expected([BUNNY, disturbed], "messages"))


@pytest.mark.parametrize("ending", [".arrow", ".ipc", ".feather", ".ARROW"])
def test_arrow_files_by_their_ending(ending: str, convert: Convert, out: Path) -> None:
    out = out.with_suffix(ending)
    convert(BUNNY, out)
    assert pa.ipc.open_file(out).read_all().equals(_expected([BUNNY], "messages"))


def test_chosen_columns_in_their_order(convert: Convert, out: Path) -> None:
    columns = ["offset", "properties.content_type", "headers", "body_size", "file"]
    convert(BUNNY, out, "--columns", ",".join(columns))
    _same(out, _expected([BUNNY], "messages", columns=columns))


def test_columns_may_be_chosen_by_an_option_for_each(convert: Convert, out: Path) -> None:
    convert(BUNNY, out, "--columns", "offset,headers", "--columns", "body_size", "--columns", "file")
    _same(out, _expected([BUNNY], "messages", columns=["offset", "headers", "body_size", "file"]))


def test_the_code_does_not_depend_on_the_columns(convert: Convert, out: Path, disturbed: Path) -> None:
    convert(disturbed, out, "--columns", "offset", code=1)
    _same(out, _expected([disturbed], "messages", columns=["offset"]))
    convert(disturbed, out, "--columns", "client,gaps", "--table", "connections", code=1)
    _same(out, _expected([disturbed], "connections", columns=["client", "gaps"]))


def test_patterns_that_no_shell_expanded(convert: Convert, out: Path, tmp_path: Path) -> None:
    for name in ("b.pcap", "a.pcap", "[x].pcap"):
        (tmp_path / name).write_bytes(BUNNY.read_bytes())
    convert(tmp_path / "?.pcap", out)
    _same(out, _expected([tmp_path / "a.pcap", tmp_path / "b.pcap"], "messages"))
    convert(tmp_path / "[x].pcap", out)  # a name, since there is such a file
    _same(out, _expected([tmp_path / "[x].pcap"], "messages"))
    assert "no such file" in convert(tmp_path / "*.cap", out, code=2).lower()


def test_gzip_and_standard_input(convert: Convert, out: Path, tmp_path: Path) -> None:
    packed = tmp_path / "bunny.pcap.gz"
    packed.write_bytes(gzip.compress(BUNNY.read_bytes()))
    convert(packed, out)
    _same(out, _expected([packed], "messages"))
    with BUNNY.open("rb") as file:
        _run("-", out, stdin=file)
    expected = pa.Table.from_batches(list(arrow.read_capture(io.BytesIO(BUNNY.read_bytes()))))
    _same(out, expected)


def test_ports_and_dialects(convert: Convert, out: Path) -> None:
    assert "no messages found on port 5673; port 5672 has AMQP: try --port 5672" in convert(
        BUNNY, out, "--port", "5673"
    )
    assert parquet.read_table(out).num_rows == 0
    convert(BUNNY, out, "--port", "any", "--dialect", "amqp-0-9-1")
    _same(out, _expected([BUNNY], "messages", port=None, dialect="amqp-0-9-1"))


def test_raw_streams(convert: Convert, out: Path, tmp_path: Path) -> None:
    path = tmp_path / "stream.amqp"
    path.write_bytes(amqp.encode_message(1, amqp.Basic.Publish(exchange="x"), amqp.BasicProperties(), b"yes"))
    convert("--input", "stream", path, out, "--dialect", "rabbitmq-0-9-1")
    [row] = parquet.read_table(out).to_pylist()
    assert (row["file"], row["exchange"], row["body"], row["ts"]) == (str(path), "x", b"yes", None)


def test_credentials_are_left_out_unless_asked_for(convert: Convert, out: Path) -> None:
    options = (BUNNY, out, "--table", "methods", "--columns", "args.response")
    convert(*options)
    assert {row["args"]["response"] for row in parquet.read_table(out).to_pylist()} == {None}
    convert(*options, "--include-credentials")
    assert b"\0guest\0guest" in {row["args"]["response"] for row in parquet.read_table(out).to_pylist()}


@pytest.mark.skipif(sys.platform != "linux", reason="names of files need not be text here")
def test_a_file_name_that_is_no_text(convert: Convert, out: Path, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff.pcap"))
    path.write_bytes(BUNNY.read_bytes())
    convert(path, out)
    _same(out, _expected([path], "messages"))


@pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "none"])
def test_compression_and_row_groups(compression: str, convert: Convert, out: Path) -> None:
    convert(BUNNY, TXAMQP, out, "--table", "frames", "--compression", compression, "--row-group-rows", 100)
    _same(out, _expected([BUNNY, TXAMQP], "frames"))
    metadata = parquet.ParquetFile(out).metadata
    groups = [metadata.row_group(position) for position in range(metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [100, 100, 42]
    used = {group.column(0).compression for group in groups}
    assert used == {"UNCOMPRESSED" if compression == "none" else compression.upper()}


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "damaged.amqp"
    good = amqp.encode_method(1, amqp.Channel.Open())
    path.write_bytes(good + CLOSE_ONLY + good)
    return path


def test_modes(convert: Convert, out: Path, damaged: Path) -> None:
    arguments = ("--input", "stream", damaged, out, "--table", "methods", "--columns", "offset,_error")
    convert(*arguments, code=1)
    assert [row["_error"] for row in parquet.read_table(out).to_pylist()] == [
        None, "COMMAND_INVALID at 20", None,
    ]  # fmt: skip
    convert(*arguments, "--mode", "drop", code=1)
    _same(out, _stream(damaged, "drop"))
    before = out.read_bytes()
    said = convert(*arguments, "--mode", "fail", code=1)
    assert f"{str(out)!r} was not written" in said
    assert "offset 20" in said
    assert out.read_bytes() == before
    assert os.listdir(out.parent) == [out.name]


def _stream(path: Path, mode: str) -> pa.Table:
    columns = ["offset", "_error"]
    reader = arrow.read_stream(str(path), "methods", columns=columns, dialect="auto", mode=mode)
    return pa.Table.from_batches(list(reader), reader.schema)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x.csv"], "its ending should be one of .parquet, .arrow, .ipc, .feather"),
        (["x.arrow", "--compression", "snappy"], "no compression snappy"),
        (["x.parquet", "--columns", "nonsense"], "no column 'nonsense'"),
        (["x.parquet", "--columns", "flow,exchnage"], "; the nearest name is 'exchange'\n"),
        (["x.parquet", "--columns", "properties.content_typ"], "name is 'properties.content_type'\n"),
        (["x.parquet", "--columns", ""], "no column ''"),
        (["x.parquet", "--table", "packets", "--columns", "payload"], "include_credentials shows it"),
        (["x.parquet", "--table", "packets", "--input", "stream"], "no table 'packets' of a stream"),
        (["absent/x.parquet"], "'absent/x.parquet': No such file or directory"),
    ],
)
def test_what_cannot_be_written_is_reported_in_one_line(
    arguments: list[str], said: str, convert: Convert, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    message = convert(BUNNY, *arguments, code=2)
    assert said in message
    assert message.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_an_input_that_cannot_be_read_leaves_nothing_and_keeps_what_was_there(
    convert: Convert, out: Path, tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text("this is no capture, but it is long enough to be looked at", encoding="utf-8")
    assert "neither pcap nor pcapng" in convert(BUNNY, text, out, code=2)
    assert os.listdir(out.parent) == []
    out.write_bytes(b"precious")
    assert "No such file" in convert(BUNNY, "absent.pcap", out, code=2)
    assert out.read_bytes() == b"precious"
    assert os.listdir(out.parent) == [out.name]


def test_an_input_is_never_replaced(convert: Convert, tmp_path: Path) -> None:
    capture = tmp_path / "named.parquet"
    capture.write_bytes(BUNNY.read_bytes())
    link = tmp_path / "link.parquet"
    link.symlink_to(capture)
    for out in (capture, link):
        assert "is read, so it cannot be written" in convert(capture, out, code=2)
    assert capture.read_bytes() == BUNNY.read_bytes()


def test_a_link_keeps_pointing_to_the_file_that_is_written(convert: Convert, out: Path) -> None:
    link = out.with_name("link.parquet")
    link.symlink_to(out)
    convert(BUNNY, link)
    assert link.is_symlink()
    _same(out, _expected([BUNNY], "messages"))


def test_a_disk_that_is_full_is_blamed_on_the_output(
    convert: Convert, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tablefile.TableFile, "_write_group", full)
    message = convert(BUNNY, BUNNY, BUNNY, out, "--row-group-rows", 7, code=2)
    assert message == f"amqpcodec: {str(out)!r}: No space left on device\n"
    assert os.listdir(out.parent) == []


def test_groups_do_not_pile_up_before_a_slow_disk(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0
    wrote = tablefile.TableFile._write_group

    def slow(self: Any, group: pa.Table) -> None:
        time.sleep(0.01)
        wrote(self, group)

    def batch() -> pa.RecordBatch:
        return pa.record_batch({"number": pa.array(range(1000), pa.int64())})

    monkeypatch.setattr(tablefile.TableFile, "_write_group", slow)
    size = batch().nbytes
    before = pa.total_allocated_bytes()
    with tablefile.TableFile(str(out), "parquet", batch().schema, "none", 10**9, 4 * size) as file:
        for _ in range(400):
            file.write(batch())
            most = max(most, pa.total_allocated_bytes() - before)
    assert parquet.ParquetFile(out).metadata.num_row_groups == 100
    assert most < 400 * size / 4


def test_a_bar_with_rate_and_remaining_time(
    convert: Convert, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    large = tmp_path / "large.pcap"
    large.write_bytes(make.pcap(make.conversations(1).packets) + bytes(LARGE))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["convert", str(large), str(out)]) in (0, 1)
    shown = terminal.getvalue()
    assert "table.parquet" in shown
    assert "B/s" in shown


def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "amqpcodec", "convert", *map(str, arguments)]


def _run(*arguments: object, **options: Any) -> None:
    subprocess.run(_command(*arguments), check=True, timeout=60, **options)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX are needed")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_an_interrupted_conversion_leaves_nothing_and_keeps_what_was_there(
    number: signal.Signals, code: int, out: Path
) -> None:
    out.write_bytes(b"precious")
    command = _command("-", out, "--row-group-rows", 5)
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell has its background jobs ignore the first, and they hand that on.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(BUNNY.read_bytes()[:100_000])
        process.stdin.flush()
        deadline = time.monotonic() + 30
        while len(os.listdir(out.parent)) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(os.listdir(out.parent)) == 2  # it has begun, and waits for more
        process.send_signal(number)
        assert process.wait(30) == code
        errors = process.stderr.read().decode()
    assert ("interrupted; " in errors) if number == signal.SIGINT else not errors
    assert out.read_bytes() == b"precious"
    assert os.listdir(out.parent) == [out.name]


def test_without_pyarrow_it_says_what_to_install(
    convert: Convert, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("amqpcodec.arrow")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("amqpcodec.arrow")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert 'pip install "amqpcodec[arrow]"' in convert(BUNNY, out, code=2)
    assert os.listdir(out.parent) == []


@pytest.mark.parametrize("table", TABLES)
def test_parquet_has_dictionaries_of_text_and_ranges_of_what_is_looked_for(
    table: str, disturbed: Path, out: Path
) -> None:
    main(["convert", str(disturbed), str(out), "--table", table])
    file = parquet.ParquetFile(out)
    group = file.metadata.row_group(0)
    for at in range(group.num_columns):
        column, kind = group.column(at), file.schema.column(at)
        text = kind.logical_type.type == "STRING"
        narrow = kind.physical_type == "INT32"
        inside_map = ".key_value." in column.path_in_schema
        assert column.has_dictionary_page == (text or narrow), column.path_in_schema
        assert column.is_stats_set == ((text and not inside_map) or kind.physical_type != "BYTE_ARRAY")


@pytest.mark.parametrize(
    ("name", "table", "said", "code"),
    [
        ("real-bunny.pcap", "messages", "20 rows of messages, and all was read", 0),
        ("trouble.pcap", "messages", "58 rows of messages; 1 FRAME_ERROR, 1 lost stretch, 1 gap; {}", 1),
        ("trouble.pcap", "errors", "3 rows of errors; 1 FRAME_ERROR, 1 lost stretch, 1 gap; {}", 1),
    ],
)
def test_a_line_says_what_was_written_and_what_was_wrong(
    name: str, table: str, said: str, code: int, convert: Convert, out: Path
) -> None:
    capture = BUNNY.with_name(name)
    line = f"amqpcodec: {str(out)!r}: {said.format('decode --errors shows where')}\n"
    assert convert(capture, out, "--table", table, code=code) == line
    assert convert(capture, out, "--table", table, "--quiet", code=code) == ""


def test_a_message_that_is_cut_is_called_so(convert: Convert, out: Path, tmp_path: Path) -> None:
    stream = tmp_path / "a.amqp"
    stream.write_bytes(amqp.encode_method(1, amqp.Basic.Publish()))
    said = convert("--input", "stream", stream, stream, out, code=1)
    assert said == f"amqpcodec: {str(out)!r}: 2 rows of messages; 2 messages not complete\n"


@pytest.mark.parametrize(("options", "is_one"), [([], True), (["--rotated", "false"], False)])
def test_the_files_of_a_series_are_one_recording(
    options: list[str], is_one: bool, convert: Convert, out: Path, tmp_path: Path
) -> None:
    packets = sorted(make.conversations(5).packets, key=lambda packet: packet.time_ns)
    paths = write_rotated(tmp_path / "set", make.pcap(packets), seed=3, files=4)
    said = convert(*reversed(paths), out, *options, code=0 if is_one else 1)
    session = arrow.CaptureSession()
    wanted = [batch for path in paths for batch in session.read(str(path))]
    rows = pa.Table.from_batches([*wanted, *session.finish()], session.schema)
    assert parquet.read_table(out).equals(rows) == is_one
    assert (f"{rows.num_rows} rows of messages, and all was read" in said) == is_one


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress)], ids=["plain", "gzip"])
def test_captures_made_side_by_side_are_no_recording_whatever_their_names(
    ending: str, pack: Callable[[bytes], bytes], convert: Convert, out: Path, tmp_path: Path
) -> None:
    """Read as one, the second copy would be nothing but packets that are sent again."""
    copies = [tmp_path / f"a_1.pcap{ending}", tmp_path / f"a_2.pcap{ending}"]
    for copy in copies:
        copy.write_bytes(pack(BUNNY.read_bytes()))
    said = convert(*copies, out)
    assert f"{str(copies[0])!r} and others of its series overlap in time, so each is read alone" in said
    _same(out, _expected(copies, "messages"))
    assert "overlap" not in convert(*copies, out, "--rotated", "true")


@pytest.mark.parametrize(("numbers", "is_said"), [((1, 2, 3), False), ((2, 3, 1), False), ((1, 3, 2), True)])
def test_an_order_of_times_that_is_not_that_of_names_is_said(
    numbers: tuple[int, ...], is_said: bool, convert: Convert, out: Path, tmp_path: Path
) -> None:
    """A ring begins with its oldest file, which any number may have."""
    packets = sorted(make.conversations(5).packets, key=lambda packet: packet.time_ns)
    parts = write_rotated(tmp_path / "set", make.pcap(packets), seed=3, files=3)
    paths = [part.rename(tmp_path / f"trace_{at:05d}.pcap") for at, part in zip(numbers, parts, strict=True)]
    said = convert(*paths, out)
    assert ("read in the order of their times, which is not that of their names" in said) == is_said
