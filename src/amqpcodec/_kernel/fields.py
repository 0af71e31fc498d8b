"""Numbers of how fields of records are read and written, ours and other libraries'. fields.pxd has them in C.

Their names say what the wire has, and where it counts what becomes of it in Python.
"""

from __future__ import annotations

from .._protocol.wire_types import LETTERS
from .._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..spec import MethodSpec, PropertiesSpec

BIT_FIELD = 1
OCTET_FIELD = 2
SHORT_FIELD = 3
LONG_FIELD = 4
LONGLONG_FIELD = 5  # unsigned
SIGNED_LONGLONG_FIELD = 6
SHORTSTR_FIELD = 7
OCTETS_FIELD = 8  # a longstr as bytes
TEXT_FIELD = 9  # a longstr as str
TEXT_OR_OCTETS_FIELD = 10  # a longstr as str, or as bytes where it is not UTF-8
TABLE_FIELD = 11
ARRAY_FIELD = 12
SHORT_TIME_FIELD = 13  # a timestamp of at most 32 bits as an aware datetime
NAIVE_TIME_FIELD = 14
FLOAT_FIELD = 15
DOUBLE_FIELD = 16
TIME_FIELD = 17  # a timestamp as an aware datetime, or as an int beyond the year 9999
CONTENT_FIELD = 18

# By the name of a wire type in the facts of a dialect.
FIELD_KINDS = {
    "bit": BIT_FIELD,
    "octet": OCTET_FIELD,
    "short": SHORT_FIELD,
    "long": LONG_FIELD,
    "longlong": LONGLONG_FIELD,
    "shortstr": SHORTSTR_FIELD,
    "longstr": OCTETS_FIELD,
    "table": TABLE_FIELD,
    "timestamp": TIME_FIELD,
    "content": CONTENT_FIELD,
}


def layout_of(spec: MethodSpec | PropertiesSpec) -> str:
    """Return the name of the layout of a method or of properties, which the generator names likewise."""
    letters = "".join([LETTERS[field.type] for field in spec.fields])
    return letters or "none" if hasattr(spec, "method_id") else f"f_{letters}"
