"""How much memory some work has in use, where the interpreter tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def traced() -> Iterator[Callable[[], tuple[int, int]]]:
    """Gives what tells the bytes in use, of those allocated meanwhile, and the most there were."""
    tracemalloc = pytest.importorskip("tracemalloc", reason="this interpreter does not trace memory")
    tracemalloc.start()
    try:
        yield tracemalloc.get_traced_memory
    finally:
        tracemalloc.stop()
