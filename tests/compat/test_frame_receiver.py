"""The example for maintainers of clients: both of its receivers make the same of the same octets."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pamqp")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "frame_receiver.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.mark.parametrize("size", [1, 7, 1460, 65536])
def test_both_receivers_give_the_same_events_however_octets_are_cut(
    example: dict[str, Any], size: int
) -> None:
    octets = example["session"](50)
    native = example["events"](example["receiver"](own=False), octets, size)
    own = example["events"](example["receiver"](own=True), octets, size)
    assert native == own
    assert native[0] == example["Reply"](1, "basic.qos-ok")
    assert [event.delivery_tag for event in native[2:]] == list(range(1, 51))
    assert native[2].headers == {"attempt": 1, "customer": "c-0"}


def test_a_body_in_several_frames_is_one_delivery(example: dict[str, Any]) -> None:
    octets = example["session"](1)
    *_, body = (256).to_bytes(4), octets[-264:]
    parts = b"".join(b"\x03\0\x01\0\0\0\x80" + body[at : at + 128] + b"\xce" for at in (7, 135))
    for own in (False, True):
        found = example["events"](example["receiver"](own=own), octets[:-264] + parts, 100)
        assert found == example["events"](example["receiver"](own=own), octets, 100)


@pytest.mark.parametrize("own", [False, True])
def test_octets_that_are_not_amqp_are_an_error_of_the_library(example: dict[str, Any], own: bool) -> None:
    with pytest.raises(example["ProtocolError"]):
        example["events"](example["receiver"](own=own), b"\x01\0\x01\0\0\0\x04\0\x3c\xff\xff\xce", 100)


def test_without_amqpcodec_the_library_uses_its_own_codec(
    example: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "amqpcodec", None)
    without = runpy.run_path(str(EXAMPLE))
    assert type(without["receiver"]()) is without["OwnReceiver"]
    assert type(example["receiver"]()) is example["NativeReceiver"]


def test_it_runs_and_says_what_is_gained() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True, timeout=120
    )
    assert "times as fast" in done.stdout
