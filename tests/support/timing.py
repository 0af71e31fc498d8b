"""Whether work grows with what it is given, by CPU time; and the garbage collector out of the way."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Seconds = Callable[[], float]


@contextmanager
def undisturbed() -> Iterator[None]:
    """No garbage collection, whose time depends on all the objects of the process."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def small_heap() -> Iterator[None]:
    """The garbage collector looks at new objects only: those of all other tests take it long."""
    gc.collect()
    if not hasattr(gc, "freeze"):
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def within(bound: float, measure: Seconds, turns: int) -> bool:
    """Whether the fastest of so many turns is below a bound; once one is, no other can change that."""
    return any(measure() < bound for _ in range(turns))
