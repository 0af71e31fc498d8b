"""The `amqpcodec decode` command as it is used: arguments in, lines and exit code out."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import amqpcodec
from amqpcodec import rabbitmq as amqp
from amqpcodec.capture import ByteSource, CapturedFrame, read_frames
from amqpcodec.capture.model import Endpoint
from amqpcodec.capture.writing import Conversation, PacketWriter
from amqpcodec.cli import main
from amqpcodec.cli.progress import LARGE, progress
from amqpcodec.cli.rendering import Stamps, json_text, json_value, method_fields, octets, text

BUNNY = Path(__file__).parents[2] / "examples" / "real-bunny.pcap"
TXAMQP = BUNNY.with_name("real-txamqp-0-8.pcap")
KEYS = [
    "time", "time_ns", "connection", "client", "server", "direction", "packet", "offset", "kind", "type",
    "channel", "size", "class_id", "method_id", "method", "fields", "properties", "body_size", "body",
    "length", "reply_code", "message", "dialect", "file",
]  # fmt: skip


class Run:
    """Calls the command in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object, code: int = 0) -> list[str]:
        assert main(["decode", *map(str, arguments)]) == code
        self.out, self.err = self._capsys.readouterr()
        return self.out.splitlines()

    def rows(self, *arguments: object, code: int = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self(*arguments, "--format", "jsonl", code=code)]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


def _raw(tmp_path: Path, *frames: bytes) -> Path:
    path = tmp_path / "stream.amqp"
    path.write_bytes(b"".join(frames))
    return path


def test_one_line_a_frame(run: Run) -> None:
    lines = run(BUNNY)
    assert len(lines) == 155
    ends = r"#0 127\.0\.0\.1:59752 [<>] 127\.0\.0\.1:5672"
    shape = re.compile(rf"2026-11-20 [\d:]{{8}}\.\d{{6}}  {ends}  ch \d+ +[a-z]+")
    assert all(shape.match(line) for line in lines)
    assert lines[0].endswith("> 127.0.0.1:5672  ch 0  protocol  AMQP 0.0.9.1")
    assert any(
        "< 127.0.0.1:5672  ch 0  method    connection.tune channel_max=2047 frame_max" in line
        for line in lines
    )
    assert any("> 127.0.0.1:5672  ch 1  body      3 octets 'one'" in line for line in lines)
    assert not any("reserved" in line or "ticket" in line for line in lines)


def test_jsonl_always_has_the_same_keys(run: Run) -> None:
    rows = run.rows(BUNNY)
    assert len(rows) == 155
    assert all(list(row) == KEYS for row in rows)
    start = rows[1]
    assert (start["method"], start["class_id"], start["method_id"]) == ("connection.start", 10, 10)
    assert start["direction"] == "s>c"
    assert start["time_ns"] % 1000 == 0
    assert start["time"].endswith("Z")
    assert datetime.fromisoformat(start["time"]).timestamp() == pytest.approx(start["time_ns"] / 1e9)
    header = next(row for row in rows if row["kind"] == "header")
    assert header["properties"]["headers"]["arr"] == [1, "a", {"z": [True]}]
    assert next(row for row in rows if row["kind"] == "body")["body"] == b"one".hex()


def test_credentials_are_hidden_unless_asked_for(run: Run) -> None:
    for form in ("text", "jsonl"):
        shown = "\n".join(run(BUNNY, TXAMQP, "--format", form))
        assert "guest" not in shown.replace("user_id='guest'", "").replace('"user_id": "guest"', "")
        assert "redacted" in shown
    shown = "\n".join(run(BUNNY, "--include-credentials", "--format", "jsonl"))
    assert b"\0guest\0guest".hex() in shown


def test_the_old_dialect_is_recognised_and_can_be_forced(run: Run, tmp_path: Path) -> None:
    assert {row["dialect"] for row in run.rows(TXAMQP)} == {"amqp-0-8"}
    assert {row["dialect"] for row in run.rows(BUNNY)} == {"rabbitmq-0-9-1"}
    path = _raw(tmp_path, amqp.encode_method(1, amqp.Channel.Open()))
    assert {row["dialect"] for row in run.rows("--input", "stream", path, "--dialect", "amqp-0-9-1")} == {
        "amqp-0-9-1"
    }


def test_filters_keep_the_content_of_a_chosen_method(run: Run) -> None:
    rows = run.rows(BUNNY, "--method", "basic.publish")
    assert {row["method"] for row in rows if row["kind"] == "method"} == {"basic.publish"}
    assert {row["kind"] for row in rows} == {"method", "header", "body"}
    assert {row["direction"] for row in rows} == {"c>s"}
    both = run.rows(BUNNY, "--method", "tx.*", "--method", "queue.declare*")
    assert {row["method"].split(".")[0] for row in both} == {"tx", "queue"}
    assert all(row["kind"] == "method" for row in both)
    assert {row["channel"] for row in run.rows(BUNNY, "--channel", "0")} == {0}
    assert run(BUNNY, "--channel", "77") == []


def test_gzip_and_several_files(run: Run, tmp_path: Path) -> None:
    packed = tmp_path / "bunny.pcap.gz"
    packed.write_bytes(gzip.compress(BUNNY.read_bytes()))
    assert len(run(packed, TXAMQP)) == 155 + 87


def test_a_port_without_amqp_is_empty_and_any_port_finds_it(run: Run) -> None:
    assert run(BUNNY, "--port", "5673") == []
    assert len(run(BUNNY, "--port", "any")) == 155
    assert len(run(BUNNY, "--port", "5673", "--port", "5672")) == 155


@pytest.mark.parametrize(
    "option",
    [
        ["--port", "0"],
        ["--port", "x"],
        ["--port", "any,5"],
        ["--port", "5", "--port", "any"],
        ["--por", "5672"],
        ["--channel", "65536"],
        ["--channel", "-1"],
        ["--dialect", "amqp-1-0"],
        ["--body-bytes", "1.5"],
    ],
)
def test_bad_arguments_end_with_code_2(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["decode", str(BUNNY), *option])
    assert caught.value.code == 2
    shown = capsys.readouterr().err
    assert "amqpcodec decode: error: " in shown or "amqpcodec: error: unrecognized arguments: --por" in shown


def test_what_is_no_capture_gets_one_line_and_code_2(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "text\x1b.txt"
    path.write_text("not a capture")
    run(path, code=2)
    assert run.err.count("\n") == 1
    assert "neither pcap nor pcapng" in run.err
    assert "\x1b" not in run.err
    run(tmp_path / "absent", code=2)
    assert run.err.endswith("No such file or directory\n")
    run(tmp_path, code=2)
    assert run.err.count("\n") == 1
    assert len(run(path, BUNNY, code=2)) == 155


def test_faults_are_lines_of_their_own_and_code_1(run: Run, tmp_path: Path) -> None:
    good = amqp.encode_method(1, amqp.Channel.Open())
    path = _raw(tmp_path, good, b"\x01\x00\x01\x00\x00\x00\x04\x00\x3c\x03\xe7\xce", good, b"\x01\x00")
    [_, error, _, lost] = run("--input", "stream", path, code=1)
    assert re.search(r"#0 >  -     error     503 .*\(offset 13, 12 octets\)", error)
    assert re.search(r"#0 >  -     lost      the stream ends inside this frame \(offset 38, 2 octets\)", lost)
    [_, error_row, _, lost_row] = run.rows("--input", "stream", path, code=1)
    assert (error_row["kind"], error_row["reply_code"], error_row["offset"], error_row["length"]) == (
        "error",
        503,
        13,
        12,
    )
    assert (error_row["class_id"], error_row["method_id"]) == (60, 999)
    assert (lost_row["kind"], lost_row["direction"], lost_row["message"]) == (
        "lost",
        "c>s",
        "the stream ends inside this frame",
    )
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(BUNNY.read_bytes()[:-5])
    assert "the last record is cut off" in run(cut, code=1)[-1]


def test_nothing_from_the_wire_reaches_the_terminal_unescaped(run: Run, tmp_path: Path) -> None:
    evil = "\x1b]0;title\x07\r\n\u202eabc\x9b"
    table = {evil: evil, "tagged": [evil], "octets": evil.encode()}
    properties = amqp.BasicProperties(headers=table, app_id=evil)
    path = _raw(
        tmp_path,
        amqp.encode_method(1, amqp.Basic.Publish(exchange=evil, routing_key=evil)),
        amqp.encode_header(1, properties, 9),
        amqp.encode_body(1, evil.encode()),
        amqp.encode_method(1, amqp.Queue.Declare(arguments=table)),
    )
    for form in ("text", "jsonl"):
        lines = run("--input", "stream", path, "--format", form)
        assert len(lines) == 4
        assert all(line.isprintable() for line in lines)


def test_octets_that_are_no_text_survive_in_json(run: Run, tmp_path: Path) -> None:
    publish = amqp.Basic.Publish(exchange="\udcff\udc80")
    [row] = run.rows("--input", "stream", _raw(tmp_path, amqp.encode_method(1, publish)))
    assert row["fields"]["exchange"] == "\udcff\udc80"
    assert run.out.isascii()
    [line] = run("--input", "stream", tmp_path / "stream.amqp")
    assert r"exchange='\udcff\udc80'" in line


def test_values_as_json_and_as_text() -> None:
    moment = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    values = {
        "a": b"\xff",
        "b": moment,
        "c": Decimal("1.50"),
        "d": float("nan"),
        "e": float("-inf"),
        "f": None,
    }
    assert json_value(values) == {"a": {"hex": "ff"}, "b": "2024-01-02T03:04:05Z", "c": "1.50", "d": "nan",
                                  "e": "-inf", "f": None}  # fmt: skip
    assert text(values) == "{a: 0xff, b: 2024-01-02T03:04:05Z, c: 1.50, d: nan, e: -inf, f: void}"
    assert json_value(amqpcodec.FieldValue("b", 3)) == {"type": "b", "value": 3}
    assert json_value(amqpcodec.InlineContent(b"x")) == {"type": "InlineContent", "value": {"hex": "78"}}
    assert text([True, 1.5, "it's", "x" * 1000]).endswith("'...(+760)]")
    assert octets(b"plain") == "'plain'"
    assert octets(b"\0\1") == "0x0001"
    assert octets("ü".encode() * 9, 5) == "'üü'...(+13)"
    assert octets(b"", 5) == "''"
    assert octets(b"abc", 0) == "''...(+3)"
    assert json.loads(json_text({**values, "d": 0.5, "e": [1, None, {"é": "ü\udcff"}]})) == {
        **json_value(values), "d": 0.5, "e": [1, None, {"é": "ü\udcff"}],
    }  # fmt: skip
    stamps = Stamps("T", 9, "Z", none="-")
    assert stamps.text(1) == "1970-01-01T00:00:00.000000001Z"
    assert stamps.text(-1) == "1969-12-31T23:59:59.999999999Z"
    assert stamps.text(None) == stamps.text(2**80) == "-"


@pytest.mark.parametrize("path", [BUNNY, TXAMQP], ids=lambda path: path.stem)
def test_fields_and_properties_are_shown_as_their_values_are(run: Run, path: Path) -> None:
    items = [item for item in read_frames(path) if isinstance(item, CapturedFrame)]
    lines, rows = run(path), run.rows(path)
    for item, line, row in zip(items, lines, rows, strict=True):
        payload = item.frame.payload
        if item.frame.type == 1:
            shown = dict(method_fields(payload, False))
            assert row["fields"] == json.loads(json.dumps({name: json_value(v) for name, v in shown.items()}))
        elif item.frame.type == 2:
            names = [field.attribute for field in payload.properties.spec.fields]
            found = {name: getattr(payload.properties, name) for name in names}
            shown = {name: value for name, value in found.items() if value is not None}
            assert row["properties"] == {name: json_value(value) for name, value in shown.items()}
        else:
            continue
        assert line.endswith("".join(f" {name}={text(value)}" for name, value in shown.items()))


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=300), st.binary(max_size=9),
    st.datetimes(timezones=st.just(UTC)), st.decimals(allow_nan=False),
    st.builds(amqpcodec.FieldValue, st.just("b"), st.integers(-9, 9)),
)  # fmt: skip


@settings(max_examples=80)
@given(
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_value_is_the_same_as_json_by_either_way(value: Any) -> None:
    assert json_text(value) == json.dumps(json_value(value), allow_nan=False)


def test_colour_only_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in "".join(run(BUNNY))
    assert "\x1b[" in "".join(run(BUNNY, "--color", "always"))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in "".join(run(BUNNY))
    assert "\x1b[" not in "".join(run(BUNNY, "--color", "never"))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in "".join(run(BUNNY))


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("size", "shown"), [(LARGE, True), (LARGE - 1, False)])
def test_a_progress_bar_for_large_files_on_a_terminal(
    size: int, shown: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    path = tmp_path / "large"
    path.write_bytes(bytes(size))
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with ByteSource(path) as source, progress(str(path), source) as output:
        source.read(100_000)
        for _ in range(5000):
            output.advance()
    assert ("large" in terminal.getvalue()) is shown


def test_lines_above_the_bar_are_not_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    path = tmp_path / "large"
    path.write_bytes(bytes(LARGE))
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    line = "\x1b[36m" + "[bold]word " * 100 + "\x1b[0m\n"
    with ByteSource(path) as source, progress(str(path), source) as output:
        output.write(line)
    assert line in terminal.getvalue()


def test_without_rich_there_is_no_bar_and_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    path = tmp_path / "large"
    path.write_bytes(BUNNY.read_bytes() + bytes(LARGE))
    monkeypatch.setattr(sys, "stderr", _Terminal())
    assert len(run(path)) == 155


def _command(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "amqpcodec", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def test_a_reader_that_stops_early_ends_it_quietly() -> None:
    process = _command("decode", *[BUNNY] * 40)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as errors:
        assert errors.read() == b""
    assert process.wait(20) == 0


def test_standard_input_is_read_as_a_stream() -> None:
    with BUNNY.open("rb") as file, _command("decode", "-", stdin=file) as process:
        out, err = process.communicate(timeout=20)
    assert (out.count(b"\n"), err, process.returncode) == (155, b"", 0)


def test_output_in_another_encoding_does_not_fail() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    with _command("decode", BUNNY, env=environment) as process:
        out, err = process.communicate(timeout=20)
    assert (out.count(b"\n"), err) == (155, b"")


INTERRUPTED = "amqpcodec: interrupted; lines printed are whole, and files to be written are as they were\n"


@pytest.mark.skipif(os.name == "nt", reason="signals are needed")
@pytest.mark.parametrize("build", ["c", "py"])
def test_lines_appear_while_the_pipe_is_open_and_an_interruption_ends_it(build: str) -> None:
    environment = {**os.environ, "AMQPCODEC_IMPL": build}
    with _command("decode", "--summary", "-", stdin=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        octets = BUNNY.read_bytes()
        for start, end, named in ((0, 600, "protocol"), (600, 1300, "connection.start ")):
            process.stdin.write(octets[start:end])
            process.stdin.flush()
            assert named in process.stdout.readline().decode()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert "frames       2, " in out.decode()
    assert (err.decode(), process.returncode) == (INTERRUPTED, 130)


def test_version_names_the_implementation(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"amqpcodec {amqpcodec.__version__} ({amqpcodec.IMPL})\n"


def test_the_codec_does_not_import_the_capture_reader() -> None:
    check = (
        "import sys, amqpcodec.rabbitmq; sys.exit(any('.capture' in m or '.cli' in m for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


CLOSED = 'exec "$0" -m amqpcodec "$@" '
COMMANDS = {
    "decode": (["decode", BUNNY], 2),
    "stats": (["stats", BUNNY], 2),
    "convert": (["convert", BUNNY, "packets.arrow", "--table", "packets"], 0),
    "an absent file": (["decode", "absent"], 2),
    "a version": (["--version"], 0),
}


@pytest.mark.skipif(os.name == "nt", reason="a shell that closes standard output is needed")
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "2>&-"])
def test_an_output_that_is_closed_is_reported_where_there_is_something_to_write(
    name: str, closed: str, tmp_path: Path
) -> None:
    arguments, code = COMMANDS[name]
    if closed == "2>&-":
        code = 2 if name == "an absent file" else 0
    done = subprocess.run(
        ["sh", "-c", CLOSED + closed, sys.executable, *map(str, arguments)],
        cwd=tmp_path, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == code
    errors = done.stderr.decode()
    assert "Traceback" not in errors
    if closed == ">&-" and code and name != "an absent file":
        assert errors == "amqpcodec: standard output: it is closed\n"


@pytest.mark.skipif(os.name == "nt", reason="a shell that closes standard input is needed")
def test_an_input_that_is_closed_is_reported() -> None:
    command = ["sh", "-c", '"$0" -m amqpcodec decode - <&-', sys.executable]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"amqpcodec: '-': it is closed\n"


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="a device that is always full is needed")
@pytest.mark.parametrize("files", [[BUNNY], [BUNNY] * 9, [BUNNY, "absent"], ["absent", BUNNY]])
def test_an_output_that_is_full_is_blamed_and_not_the_input(files: list[object]) -> None:
    command = [sys.executable, "-m", "amqpcodec", "decode", *map(str, files)]
    with FULL.open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=20)
    errors = done.stderr.decode().splitlines()
    if files[0] == "absent":
        assert "absent" in errors.pop(0)
    assert errors == ["amqpcodec: standard output: No space left on device"]
    assert done.returncode == 2


def test_an_error_while_reading_is_still_blamed_on_the_input(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(ByteSource, "peek", fail)
    run(BUNNY, code=2)
    assert run.err == f"amqpcodec: {str(BUNNY)!r}: Input/output error\n"


@pytest.mark.skipif(not FULL.exists(), reason="a device that is always full is needed")
def test_a_message_that_cannot_be_shown_does_not_change_the_code() -> None:
    command = [sys.executable, "-m", "amqpcodec", "decode", str(BUNNY), "--port", "5673"]
    with FULL.open("wb") as full:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, check=False, timeout=20)
    assert (done.stdout, done.returncode) == (b"", 0)


def _moved(tmp_path: Path, port: int) -> Path:
    path = tmp_path / "moved.pcap"
    path.write_bytes(BUNNY.read_bytes().replace((5672).to_bytes(2), port.to_bytes(2)))
    return path


def test_a_capture_without_amqp_on_the_port_says_so_and_what_to_try(run: Run, tmp_path: Path) -> None:
    path = _moved(tmp_path, 9999)
    for form in ("text", "jsonl"):
        assert run(path, "--format", form) == []
        assert run.err == f"amqpcodec: {str(path)!r}: no AMQP found on port 5672; try --port any\n"
    assert run(path, "--port", "7", "--port", "5", "--port", "7") == []
    assert run.err.endswith(": no AMQP found on ports 5, 7; try --port any\n")
    assert len(run(path, "--port", "any")) == 155
    assert run.err == ""


def test_a_capture_without_any_amqp_does_not_suggest_to_try_any_port_again(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(BUNNY.read_bytes()[:24])
    assert run(path, "--port", "any") == []
    assert run.err == f"amqpcodec: {str(path)!r}: no AMQP found on any port\n"


def test_amqp_that_filters_leave_out_counts_as_found(run: Run) -> None:
    assert run(BUNNY, "--channel", "77", "--method", "file.*") == []
    assert run.err == ""


def test_tls_is_named_with_what_to_do(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "tls.pcap"
    with path.open("wb") as file:
        ends = Endpoint(bytes((10, 0, 0, 1)), 40000), Endpoint(bytes((10, 0, 0, 9)), 5671)
        conversation = Conversation(PacketWriter(file), *ends, 0, 1)
        conversation.send(0, b"\x16\x03\x01\x00\x05hello", 1)
        conversation.close(2)
    advice = (
        "it looks like TLS, which hides the frames: record where the octets are not encrypted, or decrypt "
    )
    [line] = run(path, "--port", "5671", code=1)
    assert advice in line
    assert run(path, "--port", "any") == []
    nothing, tls = run.err.splitlines()
    assert nothing.endswith("no AMQP found on any port")
    assert f": 1 x not an AMQP connection that can be decoded: {advice}" in tls


def test_each_file_without_amqp_is_named_beside_those_with_it(run: Run, tmp_path: Path) -> None:
    assert len(run(_moved(tmp_path, 9999), BUNNY)) == 155
    assert run.err.count("no AMQP found") == 1
    assert "moved.pcap" in run.err


def test_an_empty_raw_stream_has_no_port_to_speak_of(run: Run, tmp_path: Path) -> None:
    assert run("--input", "stream", _raw(tmp_path)) == []
    assert run.err == ""


@pytest.mark.parametrize("glob", ["basic.publish", "Basic.Publish", "BASIC.PUB*", "Basic.[P]ublish"])
def test_methods_are_chosen_in_any_case(run: Run, glob: str) -> None:
    rows = run.rows(BUNNY, "--method", glob)
    assert {row["method"] for row in rows if row["kind"] == "method"} == {"basic.publish"}


@pytest.mark.parametrize("glob", ["queue.declare-ok", "Queue.DeclareOk", "Queue.Declare-Ok", "Queue.*Ok"])
def test_methods_are_chosen_by_the_names_of_their_classes(run: Run, glob: str) -> None:
    methods = {row["method"] for row in run.rows(BUNNY, "--method", glob)}
    assert "queue.declare-ok" in methods
    assert all(method.startswith("queue.") and method.endswith("-ok") for method in methods)


def test_a_summary_ends_with_what_is_in_the_file(run: Run) -> None:
    lines = run(BUNNY, "--summary", "--method", "tx.select")
    assert " tx.select" in lines[0]
    assert lines[1:6] == [
        "",
        str(BUNNY),
        "frames       155, 105677 octets in 2.982 s",
        "connections  1 rabbitmq-0-9-1",
        "methods      15 basic.publish, 6 channel.open, 6 channel.open-ok, 6 channel.close, "
        "6 channel.close-ok, 4 basic.get, 4 basic.ack, 3 exchange.declare, 51 others",
    ]
    assert lines[6:10] == [
        "messages     15 basic.publish, 50027 octets",
        "             3 basic.get-ok, 6 octets",
        "             1 basic.return, 3 octets",
        "             1 basic.deliver, 50000 octets",
    ]
    assert lines[10] == "answers      33 by the server, mean 0.91 ms, slowest 6.02 ms (channel.close)"
    assert lines[11] == "refused      1 channel.close 404 \"NOT_FOUND - no queue 'nope' in vhost '/'\""
    assert lines[-1] == "faults       none"


def test_a_summary_counts_faults_and_shows_what_was_sent_without_control_characters(
    run: Run, tmp_path: Path
) -> None:
    close = amqp.encode_method(1, amqp.Channel.Close(reply_code=404, reply_text="\x1b[2J"))
    path = _raw(tmp_path, close, b"\x01\x00\x01\x00\x00\x00\x05\x00\x3c\x00\x50\xff\xce")
    lines = run(path, "--input", "stream", "--summary", code=1)
    assert lines[-2:] == ["refused      1 channel.close 404 '\\x1b[2J'", "faults       1 error"]
    assert "answers      none" in lines


def test_a_summary_does_not_go_into_json_lines(run: Run) -> None:
    assert run(BUNNY, "--summary", "--format", "jsonl", code=2) == []
    assert "--summary is for people" in run.err


def test_an_input_that_cannot_be_read_is_named_with_what_to_do(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "traffic.pcap"
    path.write_bytes(bytes(99))
    run(path, code=2)
    assert run.err.endswith("; the octets of one direction alone are read with --input stream\n")
    run(tmp_path, code=2)
    assert run.err.endswith("; name the files in it, or a pattern: 'FOLDER/*.pcap'\n")
    run(tmp_path / "trafic.pcap", code=2)
    assert run.err.endswith("No such file or directory; the nearest name is 'traffic.pcap'\n")
    run(tmp_path / "absent", code=2)
    assert run.err.endswith("No such file or directory\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["decod"], "; the nearest name is 'decode'\n"),
        (["--versoin"], "unrecognized arguments: --versoin; the nearest name is '--version'\n"),
        ([], "the following arguments are required: COMMAND\n"),
    ],
)
def test_a_command_that_does_not_exist_is_named_with_the_nearest(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.endswith("amqpcodec --help shows what there is\n")


def test_help_loads_little_so_that_it_is_there_at_once() -> None:
    check = "import sys; from amqpcodec.cli import main\ntry: main(['--help'])\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, check=True, timeout=60)
    loaded = set(done.stdout.decode().splitlines()[-1].split())
    assert "amqpcodec.cli" in loaded
    assert not loaded & {"pyarrow", "pyspark", "rich", "plotly", "zstandard", "difflib", "ctypes"}
