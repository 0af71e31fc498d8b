"""The page has the tables that `make interop` compares it with."""

from __future__ import annotations

from .__main__ import PAGE
from .differences import BROKERJ, table


def test_the_page_has_every_difference_and_no_other() -> None:
    assert f"\n\n{table()}\n\n" in PAGE.read_text(encoding="utf-8")
    assert len({difference.topic for difference in BROKERJ}) == len(BROKERJ)
