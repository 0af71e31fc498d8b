"""The wire types of arguments and properties: the one table of what differs between them.

The emitters take from it what generated classes contain. `emit_wire_types` passes on what the package has to
know when it runs. A type also has a method of its name in the readers and writers of both builds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WireType:
    """A type that fields have on the wire.

    Attributes:
        name: as specifications have it.
        annotation: the type of its Python values; `imports` has the lines that its names need.
        default: the text of the value of an argument that is not given.
        octets: how many a value takes, in words.
        column: the kind of column that holds its values, one of `amqpcodec._columns.schemas`.
        letter: what names of layouts have for it, see `layouts`.
        struct: of a number of a fixed size its letter in `struct`, else empty.
        has_routines: whether routines of layouts read and write it; the slow path serves a type that is rare.
    """

    name: str
    annotation: str
    default: str
    octets: str
    column: str
    letter: str
    struct: str = ""
    has_routines: bool = True
    imports: tuple[str, ...] = ()


WIRE_TYPES = {
    each.name: each
    for each in (
        WireType("bit", "bool", "False", "no octets", "bool", "b"),
        WireType("octet", "int", "0", "1 octet", "int16", "o", "B"),
        WireType("short", "int", "0", "2 octets", "int32", "h", "H"),
        WireType("long", "int", "0", "4 octets", "int64", "i", "I"),
        WireType("longlong", "int", "0", "8 octets", "int64", "q", "Q"),
        WireType("shortstr", "str", '""', "1 + n octets", "string", "s"),
        WireType("longstr", "bytes", 'b""', "4 + n octets", "binary", "l"),
        WireType(
            "timestamp", "_datetime | int", "_EPOCH", "8 octets", "timestamp", "d", "Q",
            imports=(
                "from datetime import datetime as _datetime",
                "from amqpcodec.types import EPOCH as _EPOCH",
            ),
        ),
        WireType(
            "table", "_Mapping[str, _Any]", "None", "4 + n octets", "map", "t",
            imports=(
                "from collections.abc import Mapping as _Mapping",
                "from amqpcodec._typing import Any as _Any",
            ),
        ),
        WireType(
            "content", "_InlineContent | _ReferenceContent", "_NO_CONTENT", "1 + 4 + n octets", "content",
            "c", has_routines=False,
            imports=(
                "from amqpcodec.types import NO_CONTENT as _NO_CONTENT",
                "from amqpcodec.types import InlineContent as _InlineContent",
                "from amqpcodec.types import ReferenceContent as _ReferenceContent",
            ),
        ),
    )
}  # fmt: skip
"""All of them, by name. Specifications may use these names without declaring a domain."""
