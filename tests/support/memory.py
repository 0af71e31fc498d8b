"""How much memory some work has in use, where the interpreter reports it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def traced() -> Iterator[Callable[[], tuple[int, int]]]:
    """Yields a function that returns the bytes allocated since that are in use, and their peak."""
    tracemalloc = pytest.importorskip("tracemalloc", reason="this interpreter does not trace memory")
    tracemalloc.start()
    try:
        yield tracemalloc.get_traced_memory
    finally:
        tracemalloc.stop()
