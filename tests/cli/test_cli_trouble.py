"""`amqpcodec decode --errors` in processes of each build, and the capture of a broker in trouble."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trouble_capture
from support.command import TROUBLE
from support.implementation import wanted
from support.tiers import few


@pytest.mark.skipif(os.name == "nt", reason="a pipe whose end is kept open is needed")
@pytest.mark.parametrize("build", wanted())
def test_an_error_appears_while_the_pipe_is_open(build: str) -> None:
    environment = {**os.environ, "AMQPCODEC_IMPL": build}
    command = [sys.executable, "-m", "amqpcodec", "decode", "--errors", "--limit", "4", "-"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(TROUBLE.read_bytes()[:40_000])
        process.stdin.flush()
        lines = [process.stdout.readline().decode() for _ in range(4)]
        assert "reply_code=403" in lines[-1]
        process.kill()


@pytest.mark.skipif(len(wanted()) < 2, reason="both builds are needed")
@pytest.mark.parametrize(
    "options",
    few(["", "--format jsonl --before 9", "--exchange orders --before 0"], 2, "further options"),
)
def test_both_builds_print_the_same_of_a_recording_with_losses(lossy: Path, options: str) -> None:
    command = [sys.executable, "-m", "amqpcodec", "decode", "--errors", *options.split(), str(lossy)]
    done = []
    for name in wanted():
        environment = {**os.environ, "AMQPCODEC_IMPL": name}
        done.append(subprocess.run(command, env=environment, capture_output=True, check=False))
    compiled, pure = ((each.stdout, each.stderr, each.returncode) for each in done)
    assert len(compiled[0]) > 5000
    assert compiled == pure


def test_the_capture_of_trouble_is_that_of_its_maker(tmp_path: Path) -> None:
    path = tmp_path / "trouble.pcap"
    with path.open("wb") as file:
        trouble_capture.record(file)
    assert path.read_bytes() == TROUBLE.read_bytes()
    assert path.stat().st_size < 100_000
