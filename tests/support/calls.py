"""Which Python functions some work calls: a fast path of C, or of one function, calls none of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def python_calls() -> Iterator[Counter[str]]:
    """Yield the names of the Python functions called meanwhile, with how often."""
    calls: Counter[str] = Counter()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)
