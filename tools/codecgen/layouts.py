"""Layouts: the wire types of the fields of a method or of properties, in their order.

Classes of one layout share the routines that read and write it, whatever their fields are called. A layout is
named after its types, a letter each: `hssbb` is that of basic.publish. For their flags, properties have `f_`
before theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codecgen.model import Dialect, Field
from codecgen.wire_types import WIRE_TYPES

# What traffic is made of. In the compiled build the routines of these contain the code of their values.
_USUAL = ("basic.ack", "basic.deliver", "basic.get-ok", "basic.publish", "basic.return", "basic properties")
_BITS_PER_OCTET = 8
_FIELDS_MOST = 32
_FLAGS_MOST = 15  # in one word


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout that has routines.

    Attributes:
        name: its letters, also part of the names of its routines.
        types: the wire types.
        optional: whether flags say which fields are there, as in a content header.
        holders: the methods and properties that have it.
    """

    name: str
    types: tuple[str, ...]
    optional: bool
    holders: tuple[str, ...]

    @property
    def usual(self) -> bool:
        """Traffic is made of it."""
        return any(holder in _USUAL for holder in self.holders)


def layouts(dialects: Iterable[Dialect]) -> list[Layout]:
    """Return the layouts of dialects that have routines, by name.

    The slow path serves the others: properties of several words of flags or with bits, and rare types.
    """
    holders: dict[tuple[bool, tuple[str, ...]], dict[str, None]] = {}
    for optional, holder, fields in (each for dialect in dialects for each in _records(dialect)):
        types = tuple(field.type for field in fields)
        if _has_routines(optional, types):
            holders.setdefault((optional, types), {})[holder] = None
    found = [
        Layout(layout_name(optional, types), types, optional, tuple(names))
        for (optional, types), names in holders.items()
    ]
    return sorted(found, key=lambda layout: layout.name)


def layout_name(optional: bool, types: Iterable[str]) -> str:
    """Return the name of a layout; that of no arguments is `none`."""
    letters = "".join(WIRE_TYPES[each].letter for each in types)
    return f"f_{letters}" if optional else letters or "none"


def bits_from(types: tuple[str, ...], place: int) -> int:
    """Return how many bits share the octet from a place on; 0 for no bit (0-9-1 section 4.2.5.2)."""
    count = 0
    for name in types[place : place + _BITS_PER_OCTET]:
        if name != "bit":
            break
        count += 1
    return count


def _records(dialect: Dialect) -> Iterator[tuple[bool, str, tuple[Field, ...]]]:
    for cls in dialect.classes:
        for method in cls.methods:
            yield False, method.full_name, method.fields
        if cls in dialect.content_classes:
            yield True, f"{cls.name} properties", cls.properties


def _has_routines(optional: bool, types: tuple[str, ...]) -> bool:
    if not all(WIRE_TYPES[each].has_routines for each in types):
        return False
    return len(types) <= _FLAGS_MOST and "bit" not in types if optional else len(types) <= _FIELDS_MOST
