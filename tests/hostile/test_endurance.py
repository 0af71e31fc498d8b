"""The long runs, short: leaks and soak; the documents have the figures of the long ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.campaign import in_full
from support.implementation import Implementation
from support.interpreter import counts_blocks

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
sys.path.insert(0, str(FUZZ))

import leaks  # noqa: E402
import report  # noqa: E402
import soak  # noqa: E402

SANITIZED = "AMQPCODEC_SANITIZED" in os.environ
FRAMES = {"c": in_full(100_000, 50_000), "py": in_full(20_000, 10_000)}
linux = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="reads the size of the process from /proc"
)


@linux
@counts_blocks
@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps freed memory for a while")
def test_nothing_is_kept_of_frames(impl: Implementation) -> None:
    kept = leaks.check(impl.name, "rabbitmq-0-9-1", FRAMES[impl.name])
    assert kept["frames"] >= FRAMES[impl.name]


@linux
@counts_blocks
def test_a_leak_is_noticed(impl: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    hoard: list[object] = []
    monkeypatch.setattr(leaks.Work, "_send_on", lambda work, value: hoard.append(value))
    with pytest.raises(AssertionError, match="kept after"):
        leaks.check(impl.name, "rabbitmq-0-9-1", 10_000)


@linux
def test_streams_pass_through_unchanged() -> None:
    figures = soak.soak(0.7, seed=7)
    assert figures["streams"] > 0  # how many there is time for is for the machine to say
    assert figures["values"] > 100


def test_the_document_has_the_stored_figures() -> None:
    assert report.main(["--check"]) == 0
