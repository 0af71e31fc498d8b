"""How long messages waited: deliveries joined to the publishes that they are of."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import pytest
from support.parts import rows_of
from support.queued import Peer, World, shop

from amqpcodec import arrow


def rows(build: str, world: World, **options: Any) -> list[dict[str, Any]]:
    reader = arrow.read_capture(io.BytesIO(world.capture(**options)), "deliveries", _impl=build)
    return [row for row in rows_of(reader) if row["kind"] in ("deliver", "get-ok")]


def joined(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    found = sorted(found, key=lambda row: row["ts_ns"])
    return [(row["wait_by"], row["publish_flow"], row["publish_offset"]) for row in found]


def check(found: list[dict[str, Any]], world: World) -> Counter[str | None]:
    """No row claims what is not true; how many were found in each way."""
    ways: Counter[str | None] = Counter()
    for row in found:
        ways[row["wait_by"]] += 1
        if row["wait_by"] is not None:
            truth = world.of[row["flow"], row["offset"]]
            assert (row["publish_flow"], row["publish_offset"]) == truth, row
            assert row["wait_us"] >= 0
    return ways


@pytest.mark.parametrize("seed", range(12))
def test_what_is_joined_is_true(build: str, seed: int) -> None:
    world = shop(seed)
    ways = check(rows(build, world), world)
    print(ways)
