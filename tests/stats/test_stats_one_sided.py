"""Recordings of one direction: that is said once, and nothing is claimed about the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import make_capture as make
from support.make_capture import CLIENT, SERVER
from support.troubled import calm, troubled

from amqpcodec import stats


def _summary(packets: list[make.Recorded], folder: Path) -> stats.Summary:
    path = folder / "made.pcap"
    path.write_bytes(make.pcap(packets, nanos=True))
    collector = stats.Collector()
    collector.add(path, path.name)
    return collector.summary()


@pytest.mark.parametrize("side", [CLIENT, SERVER])
def test_one_finding_says_that_a_direction_is_missing(side: int, tmp_path: Path) -> None:
    summary = _summary(make.one_side(calm().packets, side), tmp_path)
    assert summary.verdict == "1 problem found: 1 connection recorded in one direction only."
    assert [each.code for each in summary.findings if each.severity != "note"] == ["one-sided"]
    assert [(each.kind, each.direction) for each in summary.first_incidents] == [("one-sided", 1 - side)]
    assert summary.confirms.unanswered == summary.acks.unanswered == 0
    assert summary.confirms.unfollowed + summary.acks.unfollowed == 1


@pytest.mark.parametrize(("side", "known"), [(CLIENT, {"rejected", "silent"}), (SERVER, {"blocked"})])
def test_what_one_direction_shows_is_still_found(side: int, known: set[str], tmp_path: Path) -> None:
    summary = _summary(make.one_side(troubled().packets, side), tmp_path)
    found = {each.code for each in summary.findings}
    claimed_of_both = {
        "not-opened",
        "ended-without-close",
        "open-at-the-end",
        "unacknowledged",
        "unconfirmed",
        "gaps",
    }
    assert known <= found
    assert not found & claimed_of_both
    assert {life.ended for life in summary.lives if not life.channel} <= {"closed", "unknown"}
