"""The names of layouts, which are the wire types of a record's fields. The generator names them likewise."""

from __future__ import annotations

from .._protocol.wire_types import LETTERS
from .._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..spec import MethodSpec, PropertiesSpec


def layout_of(spec: MethodSpec | PropertiesSpec) -> str:
    """Return the name of the layout of methods or properties, by which their routines are found."""
    letters = "".join([LETTERS[field.type] for field in spec.fields])
    return letters or "none" if hasattr(spec, "method_id") else f"f_{letters}"
