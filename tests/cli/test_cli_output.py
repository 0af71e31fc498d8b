"""What commands read from and write to: terminals, pipes, devices that are full, outputs that are closed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pytest
from support.command import BUNNY, Run, Terminal
from support.implementation import wanted
from support.subprocesses import INTERRUPTIBLE, interrupt
from support.tiers import few

from amqpcodec.capture import ByteSource
from amqpcodec.cli import inputs
from amqpcodec.cli.progress import LARGE, progress


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


@pytest.mark.parametrize(("size", "shown"), [(LARGE, True), (LARGE - 1, False)])
def test_a_progress_bar_for_large_files_on_a_terminal(
    size: int, shown: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    path = tmp_path / "large"
    path.write_bytes(bytes(size))
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with ByteSource(path) as source, progress(str(path), source) as output:
        source.read(100_000)
        assert list(output.counting(iter(range(5000)))) == list(range(5000))
    assert ("large" in terminal.getvalue()) is shown


def test_lines_above_the_bar_are_not_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    path = tmp_path / "large"
    path.write_bytes(bytes(LARGE))
    terminal = Terminal()
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
    monkeypatch.setattr(sys, "stderr", Terminal())
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
@pytest.mark.parametrize("build", wanted())
def test_lines_appear_while_the_pipe_is_open_and_an_interruption_ends_it(build: str) -> None:
    environment = {**os.environ, "AMQPCODEC_IMPL": build}
    with _command("decode", "-", stdin=subprocess.PIPE, env=environment, **INTERRUPTIBLE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        octets = BUNNY.read_bytes()
        for start, end, named in ((0, 600, "protocol"), (600, 1300, "connection.start ")):
            process.stdin.write(octets[start:end])
            process.stdin.flush()
            assert named in process.stdout.readline().decode()
        interrupt(process)
        _, err = process.communicate(timeout=20)
    assert (err.decode(), process.returncode) == (INTERRUPTED, 130)


@pytest.mark.skipif(os.name == "nt", reason="only on POSIX can a pipe be asked whether it has something")
@pytest.mark.parametrize(
    ("octets", "watched", "hinted"),
    [(0, True, True), (600, True, True), (2000, True, False), (0, False, False)],
)
def test_a_pipe_from_which_nothing_comes_gets_a_hint_once(
    run: Run, monkeypatch: pytest.MonkeyPatch, octets: int, watched: bool, hinted: bool
) -> None:
    monkeypatch.setattr(inputs, "PATIENCE", 0.05)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: watched)
    reads, writes = os.pipe()
    monkeypatch.setattr(inputs, "open_file", lambda _: io.FileIO(reads))

    def write() -> None:
        with io.FileIO(writes, "w") as file:
            file.write(BUNNY.read_bytes()[:octets])
            sleep(0.3)

    writer = Thread(target=write)
    writer.start()
    run("-", code=1 if octets else 2)
    writer.join()
    hints = [line for line in run.err.splitlines() if "nothing has come from the pipe for 0.05 s" in line]
    assert len(hints) == hinted
    assert all("have it run with -U --immediate-mode" in line for line in hints)


CLOSED = 'exec "$0" -m amqpcodec "$@" '
COMMANDS = {
    "decode": (["decode", BUNNY], 2),
    "stats": (["stats", BUNNY], 2),
    "convert": (["convert", BUNNY, "packets.arrow", "--table", "packets"], 0),
    "an absent file": (["decode", "absent"], 2),
    "a version": (["--version"], 2),
}


@pytest.mark.skipif(os.name == "nt", reason="a shell that closes standard output is needed")
@pytest.mark.parametrize("name", few(COMMANDS, 2, "further commands"))
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


@pytest.mark.skipif(not FULL.exists(), reason="a device that is always full is needed")
@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "arguments",
    few(
        [
            "--help",
            "decode --help",
            "bench --help",
            "--version",
            "convert --help",
            "stats --help",
            "spark --help",
        ],
        3,
        "further commands",
    ),
)
def test_help_that_cannot_be_written_is_an_error_of_the_output(arguments: str, buffered: bool) -> None:
    module, *options = f"amqpcodec {arguments}".replace(" bench", ".bench").split()
    command = [sys.executable, *(() if buffered else ("-u",)), "-m", module, *options]
    with FULL.open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=20)
    assert done.stderr.decode() == f"{module}: standard output: No space left on device\n"
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
