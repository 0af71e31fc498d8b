"""Constructors, and their names as Python shows them; the twin constructors_c.pyx adds signatures."""

from __future__ import annotations

from ..._records import constructor_name, set_fields
from ..._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..records_py import Record


def describe(classes: Iterable[type]) -> None:
    """Have errors about the arguments of constructors name the class, as ``Basic.Publish()``."""
    for cls in classes:
        init = vars(cls).get("__init__")
        if init is not None:
            init.__qualname__ = constructor_name(cls)


def give_specs(classes: Iterable[type[Record]], facts: object) -> None:
    """Give generated classes their `spec`, which a module of facts has by their names."""
    for cls in classes:
        cls.spec = getattr(facts, cls.__name__)


def expose(classes: Iterable[type]) -> None:
    """Make the fields of classes attributes, in the order of `__match_args__`; `__slots__` has done it."""


__all__ = ["describe", "expose", "give_specs", "set_fields"]
