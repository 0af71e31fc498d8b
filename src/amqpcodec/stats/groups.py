"""Rows with equal keys, added up by kernels.

`pyarrow.Table.group_by` imports `pyarrow.dataset`, and that imports pandas where it is installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyarrow import compute

from .cells import cells, constant


class Groups:
    """The groups of rows with equal keys, in the order of their first rows.

    Args:
        columns: those of the keys, with the same number of rows.

    Attributes:
        keys: the key of each group.
        counts: how many rows each has.
    """

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        encoded = [column.dictionary_encode("encode") for column in columns]
        values = [each.dictionary.to_pylist() for each in encoded]
        codes = encoded[0].indices.cast(pa.int64())
        for each, known in zip(encoded[1:], values[1:], strict=True):
            codes = compute.add(compute.multiply(codes, constant(len(known))), each.indices.cast(pa.int64()))
        self._order = compute.array_sort_indices(codes)  # stable: equal ones stay in order
        runs = compute.run_end_encode(codes.take(self._order))
        stretches = list(pairwise([0, *cells(runs.run_ends)]))
        rows: list[int] = list(cells(self._order.cast(pa.int64())))
        self._places = sorted(range(len(stretches)), key=lambda place: rows[stretches[place][0]])
        self._stretches = [stretches[place] for place in self._places]
        self._ends = runs.run_ends
        found = list(cells(runs.values))
        self.keys = [_key(found[place], values) for place in self._places]
        self.counts = [end - begin for begin, end in self._stretches]

    def sums(self, column: pa.Array) -> list[int]:
        """The sum of a column of numbers without nulls in each group."""
        if not self.keys:
            return []
        passed = compute.cumulative_sum(column.take(self._order))
        totals = cells(passed.take(compute.subtract(self._ends, constant(1, self._ends.type))))
        sums = [after - before for before, after in pairwise([0, *totals])]
        return [sums[place] for place in self._places]

    def rows(self, column: pa.Array) -> list[list[Any]]:
        """Return the values of a column in the rows of each group."""
        values = list(cells(column.take(self._order)))
        return [values[begin:end] for begin, end in self._stretches]


def _key(code: int, values: list[list[Any]]) -> tuple[Any, ...]:
    """The key that was encoded as a number."""
    key = []
    for known in reversed(values):
        code, index = divmod(code, len(known))
        key.append(known[index])
    return tuple(reversed(key))
