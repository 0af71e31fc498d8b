"""The runners of brokers: they say what is missing, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import brokerj
import pytest

from .suites import go, java, node, running, rust

RUNNER = brokerj.__file__


def run(*command: str, path: str) -> subprocess.CompletedProcess[str]:
    """The runner, finding programs in one folder alone."""
    return subprocess.run(
        [sys.executable, RUNNER, *command],
        env={"PATH": path},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def test_a_missing_java_is_named_with_the_way_to_get_it(tmp_path: Path) -> None:
    done = run("true", path=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "java is not installed (Debian: apt-get install default-jdk-headless)\n"


def test_a_missing_maven_is_named_once_something_is_to_be_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokerj, "CACHE", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        brokerj.NotInstalledError, match=r"^mvn is not installed \(Debian: apt-get install maven\)$"
    ):
        brokerj.libraries("some", "")
    (tmp_path / "some").mkdir()
    assert brokerj.libraries("some", "") == tmp_path / "some"


def test_a_java_that_ends_at_once_is_quoted_and_its_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho too old >&2; exit 3\n", encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setattr(brokerj.tempfile, "tempdir", str(tmp_path / "kept"))
    (tmp_path / "kept").mkdir()
    broker = brokerj.BrokerJ(str(java), tmp_path)
    with pytest.raises(RuntimeError, match=r"^Broker-J does not start:\n(too old\n)?$"):
        broker.wait()
    broker.stop()
    assert list((tmp_path / "kept").iterdir()) == []


BROKERJ = """\
import brokerj, sys, time
broker = brokerj.BrokerJ(sys.argv[1], sys.argv[2])
broker.wait()
print(broker.process.pid, flush=True)
time.sleep(600)
"""
RABBITMQ = """\
import sys, tempfile, time
from pathlib import Path
from support.broker import Node
node = Node(Path(sys.argv[1]), Path(tempfile.mkdtemp(prefix="amqpcodec-broker-")), 0, "")
print(node.process.pid, flush=True)
time.sleep(600)
"""


SUITE = """\
import sys
from pathlib import Path
from interop.suites.running import run
run(["sh", "-c", "sleep 600 & echo $$ >&2; wait"], Path(sys.argv[1]))
"""


def session(number: int) -> list[int]:
    """The processes of a session that are not gone."""
    found = []
    for each in Path("/proc").iterdir():
        with suppress(ProcessLookupError):
            if each.name.isdigit() and os.getsid(int(each.name)) == number:
                found.append(int(each.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="a system with /proc is needed")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("runner", [BROKERJ, RABBITMQ])
def test_nothing_is_left_over_once_a_runner_was_killed(
    runner: str, how: signal.Signals, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho BRK-1004; exec sleep 600\n", encoding="utf-8")
    program.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", runner, str(program), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            assert process.stdout is not None
            number = int(process.stdout.readline())
            (folder,) = tmp_path.glob("amqpcodec-broker*-*")
            assert session(number)
            process.send_signal(how)
            process.wait(20)
            deadline = time.monotonic() + 20
            while (session(number) or folder.exists()) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert (session(number), folder.exists()) == ([], False)
        finally:
            process.kill()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="a system with /proc is needed")
def test_what_a_suite_has_started_ends_with_its_runner(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SUITE, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stderr is not None
            number = os.getsid(int(process.stderr.readline()))
            assert session(number)
            process.kill()
            deadline = time.monotonic() + 20
            while session(number) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert session(number) == []
        finally:
            process.kill()


def test_a_program_that_prints_is_quoted_whatever_its_exit_code(tmp_path: Path) -> None:
    assert running.run(["sh", "-c", "echo one; exit 3"], tmp_path) == "one\n"


@pytest.mark.parametrize(
    ("suite", "missing"),
    [(go, "go"), (java, "java"), (node, "node"), (rust, "cargo")],
    ids=["Go", "Java", "Node", "Rust"],
)
def test_a_suite_names_the_program_that_is_missing(
    suite: ModuleType, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        brokerj.NotInstalledError, match=f"^{missing} is not installed .Debian: apt-get install "
    ):
        suite.passed("amqp://127.0.0.1:1/")
