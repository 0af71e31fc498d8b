"""Recorded traffic against lists of its frames made by another reader."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from amqpcodec.capture import DIRECTION_NAMES, CapturedFrame, read_frames

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LISTS = ROOT / "tests" / "data" / "captures"
SHARED = ROOT.parent / "shared" / "captures"
KINDS = {1: "METHOD", 2: "HEADER", 3: "BODY", 8: "HEARTBEAT", 65: "HDR"}


def _row(item: CapturedFrame) -> tuple[str, ...]:
    kind, payload = KINDS[item.frame.type], item.frame.payload
    position = (item.connection.number, DIRECTION_NAMES[item.direction], item.offset, item.packet, kind)
    if kind == "HDR":
        return (*map(str, position), ".".join(map(str, item.octets[4:])), "8", "", "", "")
    numbers: tuple[object, ...] = ("", "")
    if kind == "METHOD":
        numbers = (payload.spec.class_id, payload.spec.method_id)
    elif kind == "HEADER":
        numbers = (payload.properties.spec.class_id, "")
    digest = hashlib.sha1(item.octets[7:-1]).hexdigest()[:12]
    return tuple(map(str, (*position, item.frame.channel, item.size, *numbers, digest)))


def _check(capture: Path, listing: Path) -> None:
    lines = [
        line.split("\t")
        for line in listing.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    expected = [tuple(line + [""] * (10 - len(line))) for line in lines[1:]]
    items = list(read_frames(capture))
    assert all(isinstance(item, CapturedFrame) for item in items)
    assert sorted(map(_row, items)) == sorted(expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["real-bunny", "real-txamqp-0-8"])
def test_the_frames_of_the_examples(name: str) -> None:
    _check(EXAMPLES / f"{name}.pcap", LISTS / f"{name}.frames.tsv")


def test_the_frames_of_the_captures_that_cannot_be_passed_on() -> None:
    captures = sorted(SHARED.glob("*.pcap"))
    if not captures:
        pytest.skip("no sibling directory shared/captures beside this one")
    for capture in captures:
        _check(capture, capture.with_name(f"{capture.stem}.frames.tsv"))
