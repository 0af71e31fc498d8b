"""Objects that every thread uses at every call; the compiled twin, sharing_c.pyx, makes them immortal."""

from __future__ import annotations

from ..._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def share(things: Iterable[object]) -> None:
    """Declare that objects, and classes with what is in them, live as long as the process.

    An interpreter without a global lock counts references to an object from several threads by atomic
    steps on one place in memory, which threads wait for. The compiled build has these not counted at
    all. Python code cannot ask for that, so nothing is done here.
    """


__all__ = ["share"]
