"""Rows with equal keys, added up."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from amqpcodec.stats.groups import Groups

BUNNY = Path(__file__).parents[2] / "examples" / "real-bunny.pcap"


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_groups_are_those_of_a_loop_in_the_order_of_their_first_rows(rows: int) -> None:
    rng = random.Random(rows)
    texts = [rng.choice(["a", "b", "", None]) for _ in range(rows)]
    numbers = [rng.choice([0, 3, -1, None]) for _ in range(rows)]
    amounts = [rng.randrange(2**40) for _ in range(rows)]
    expected: dict[object, list[int]] = {}
    for text, number, amount in zip(texts, numbers, amounts, strict=True):
        expected.setdefault((text, number), []).append(amount)

    groups = Groups([pa.array(texts, pa.string()), pa.array(numbers, pa.int64())])
    column = pa.array(amounts, pa.int64())
    assert groups.keys == list(expected)
    assert groups.counts == list(map(len, expected.values()))
    assert groups.sums(column) == list(map(sum, expected.values()))
    assert groups.rows(column) == list(expected.values())


def test_stats_do_not_load_pandas_which_takes_longer_than_the_file() -> None:
    pytest.importorskip("pandas")
    script = "import sys; from amqpcodec.cli import main; main(); assert 'pandas' not in sys.modules"
    subprocess.run([sys.executable, "-c", script, "stats", BUNNY], check=True, capture_output=True)
