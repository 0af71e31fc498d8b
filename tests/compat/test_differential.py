"""Stock and accelerated peers do the same with everything, but for the differences kept on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.campaign import in_full
from support.compat.compare import PEERS, edge_mismatches, given_mismatches, random_mismatches, unexpected
from support.compat.differences import DIFFERENCES, Difference
from support.compat.engine import Pair, brief, pair, play

from amqpcodec import IMPL, compat

needs_compiled = pytest.mark.skipif(IMPL != "c", reason="the pure build replaces nothing")
COUNT = in_full(1500, 600)  # random comparisons for each peer; `make test-compat` makes more


@pytest.fixture(params=PEERS)
def peers(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """The two copies of each peer, one of them accelerated."""
    pytest.importorskip(request.param)
    both = pair(request.param)
    with compat.installed(request.param):
        yield both


def _none_of(found: Iterator[Any]) -> None:
    first = next(found, None)
    assert first is None, f"\n{first}"


@needs_compiled
def test_stock_and_accelerated_read_given_octets_alike(peers: Pair) -> None:
    _none_of(unexpected(given_mismatches(peers), peers.stock.package))


@needs_compiled
def test_stock_and_accelerated_take_and_refuse_alike_what_is_on_the_edge(peers: Pair) -> None:
    _none_of(unexpected(edge_mismatches(peers), peers.stock.package))


@needs_compiled
def test_stock_and_accelerated_do_random_things_alike(peers: Pair) -> None:
    _none_of(unexpected(random_mismatches(peers, "default run", COUNT), peers.stock.package))


@needs_compiled
@pytest.mark.parametrize("peer", PEERS)
def test_stock_and_tolerant_do_alike_what_stock_does_at_all(peer: str) -> None:
    pytest.importorskip(peer)
    both = pair(peer)
    with compat.installed(peer, tolerant=True):
        for found in (given_mismatches(both), random_mismatches(both, "tolerant", COUNT // 2)):
            _none_of(unexpected(found, peer, tolerant=True))


@needs_compiled
@pytest.mark.parametrize("known", DIFFERENCES, ids=lambda known: f"{known.peer}: {known.name}")
def test_a_difference_kept_on_purpose_occurs(known: Difference) -> None:
    pytest.importorskip(known.peer)
    both = pair(known.peer)
    with compat.installed(known.peer, tolerant=known.tolerant):
        one, other = (play(copy, known.scenario, "") for copy in both)
    assert (brief(one), brief(other)) == (known.stock, known.accelerated)
    assert known.covers is None or known.covers(one, other)


def test_the_documentation_lists_every_difference_with_its_reason() -> None:
    text = (Path(__file__).parents[2] / "docs" / "adopting.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| peer | difference | reason |\n| --- | --- | --- |\n")
    assert table.partition("\n\n")[0].splitlines() == [
        f"| {known.peer} | {known.name}{', with `tolerant=True`' * known.tolerant} | {known.reason} |"
        for known in DIFFERENCES
    ]
