"""Tables of a file, read at once: when their rows are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpcodec.stats import reading

BUNNY = Path(__file__).parents[2] / "examples" / "real-bunny.pcap"
TABLES = {"connections": ("flow",), "errors": ("code",), "methods": ("name",)}


@pytest.mark.parametrize(
    ("changed", "early"),
    [
        ({"_FULL": {"batch_rows": 5}}, True),  # a batch of methods is full
        ({"_MOST_ENDED": 0}, True),  # so many connections have ended
        ({"_MOST_CHUNKS": 2}, True),  # so much was read
        ({}, False),
    ],
)
def test_rows_are_handed_over_when_there_are_enough_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, object], early: bool
) -> None:
    monkeypatch.setattr(reading, "_CHUNK", 8)
    for name, value in changed.items():
        monkeypatch.setattr(reading, name, value)
    *parts, last = reading.TableReader(TABLES, False, {}).read(str(BUNNY))
    assert last.events == ()
    assert all(set(part.rows) in (set(), set(TABLES)) for part in parts)
    assert any(part.rows for part in parts) is early
    counts = {
        name: sum(batch.num_rows for part in (*parts, last) for batch in part.rows.get(name, ()))
        for name in TABLES
    }
    assert counts == {"connections": 1, "errors": 0, "methods": 101}
