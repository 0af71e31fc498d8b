"""Field-table profiles: what each tag octet of a table value means.

The dialects disagree about tags (`s` is a short string in the working group's 0-9-1 text and a
16-bit integer on every RabbitMQ), so the meaning is data: a map from tag to wire kind. A dialect
names its default profile; every encoder and decoder takes another by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ._typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from decimal import Decimal

# Wire kinds: how the octets after a tag are laid out. The kernel switches on these numbers.
BOOL, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64 = range(1, 10)
FLOAT, DOUBLE, DECIMAL, SHORTSTR, LONGSTR, OCTETS, ARRAY, TIMESTAMP, TABLE, VOID, CHARACTER = range(10, 21)
# Kinds that only the codecs of other libraries have: the same octets, other Python values (see ValueRules).
BYTEARRAY, NAIVE_TIME, AWARE_TIME, SHORT_TIME, OWN_INT, CUT_FLOAT, CUT_DOUBLE, SCALED, TEXT, QUOTIENT = range(
    21, 31
)

KIND_NAMES = {
    BOOL: "bool", INT8: "int8", UINT8: "uint8", INT16: "int16", UINT16: "uint16", INT32: "int32",
    UINT32: "uint32", INT64: "int64", UINT64: "uint64", FLOAT: "float", DOUBLE: "double",
    DECIMAL: "decimal", SHORTSTR: "shortstr", LONGSTR: "longstr", OCTETS: "octets", ARRAY: "array",
    TIMESTAMP: "timestamp", TABLE: "table", VOID: "void", CHARACTER: "character", BYTEARRAY: "bytearray",
    NAIVE_TIME: "naive timestamp", AWARE_TIME: "aware timestamp", SHORT_TIME: "timestamp of 32 bits",
    OWN_INT: "int64 of a class", CUT_FLOAT: "truncated float", CUT_DOUBLE: "truncated double",
    SCALED: "scaled decimal", TEXT: "text", QUOTIENT: "divided decimal",
}  # fmt: skip


class ValueRules(NamedTuple):
    """How the codec of another library makes and takes Python values, where that differs from this one.

    A value that these rules do not cover is declined, and left to that library.

    Attributes:
        octets_as_text: short strings and keys that are not UTF-8 are read as bytes; False declines them.
        own_int: the class of integers that `OWN_INT` makes, written with 8 octets.
        integers: tag, octets, least and most for the integers written, tried in this order.
        float_tag: ``"f"``, ``"d"``, or empty to decline floats.
        octets_tag: ``"x"``, ``"S"``, or empty to decline bytes.
        bytearray_tag: ``"x"``, or empty to decline them.
        tuples: whether tuples are written as arrays.
        decimal: makes a scale and a mantissa of a Decimal; None declines them.
        sorted_keys: tables are written in the order of their keys.
        longest_key: octets of a key beyond which it is declined.
    """

    octets_as_text: bool = False
    own_int: type[int] | None = None
    integers: tuple[tuple[str, int, int, int], ...] = ()
    float_tag: str = ""
    octets_tag: str = ""
    bytearray_tag: str = ""
    tuples: bool = False
    decimal: Callable[[Decimal], tuple[int, int]] | None = None
    sorted_keys: bool = False
    longest_key: int = 255


class TableProfile(NamedTuple):
    """The tags of one reading of the specification.

    Attributes:
        name: how encoders and decoders name it.
        tags: tag character to wire kind, for what this profile defines.
        tolerated: further tags read (never written) outside strict mode, because peers send them
            and their layout is beyond doubt.
        values: rules of another library's codec, None for those of this one. With them a reader or
            writer of the compiled build raises `Declined` for all that it does not take.
        finite: whether NaN and infinities are refused when they are to be written.
    """

    name: str
    tags: Mapping[str, int]
    tolerated: Mapping[str, int] = MappingProxyType({})
    values: ValueRules | None = None
    finite: bool = False

    def readable(self, strict: bool) -> Mapping[str, int]:
        """Every tag a decoder takes, as tag character to wire kind."""
        return self.tags if strict else {**self.tags, **self.tolerated}


_0_8 = {"S": LONGSTR, "I": INT32, "D": DECIMAL, "T": TIMESTAMP, "F": TABLE}
_0_9 = {**_0_8, "V": VOID}
# What RabbitMQ reads and writes (its errata page for 0-9-1). `L` it takes, though it never sends it.
_RABBITMQ = {
    **_0_9, "t": BOOL, "b": INT8, "B": UINT8, "s": INT16, "u": UINT16, "i": UINT32, "l": INT64,
    "L": INT64, "f": FLOAT, "d": DOUBLE, "A": ARRAY, "x": OCTETS,
}  # fmt: skip
# From the text of 0-9-1: clients read it, but RabbitMQ drops the connection on it.
_SIGNED_SHORT = {"U": INT16}
_WORKING_GROUP = {**_RABBITMQ, **_SIGNED_SHORT, "s": SHORTSTR, "l": UINT64}
del _WORKING_GROUP["x"]
_QPID = {**_RABBITMQ, "c": LONGSTR, "C": LONGSTR, "k": CHARACTER}
del _QPID["L"]
_WIDELY_READ = {**_RABBITMQ, **_SIGNED_SHORT}

PROFILES = {
    profile.name: profile
    for profile in (
        TableProfile("0-8", _0_8, tolerated=_WIDELY_READ),
        TableProfile("0-9", _0_9, tolerated=_WIDELY_READ),
        TableProfile("wg-0-9-1", _WORKING_GROUP),
        # RabbitMQ ends the connection at a NaN or an infinity.
        TableProfile("rabbitmq", _RABBITMQ, tolerated=_SIGNED_SHORT, finite=True),
        TableProfile("qpid", _QPID),
        TableProfile("rabbitmq-nan", _RABBITMQ, tolerated=_SIGNED_SHORT),
    )
}


def table_profile(name: str) -> TableProfile:
    """The profile of that name.

    Args:
        name: ``"rabbitmq"``, ``"wg-0-9-1"``, ``"0-9"``, ``"0-8"``, ``"qpid"`` or ``"rabbitmq-nan"``.

    Raises:
        ValueError: no such profile.
    """
    try:
        return PROFILES[name]
    except KeyError:
        raise ValueError(f"no table profile {name!r}; there are {', '.join(PROFILES)}") from None


def profiles_with(kind: int) -> str:
    """Names of the profiles that can carry a wire kind, for the message of an error."""
    return ", ".join(profile.name for profile in PROFILES.values() if kind in profile.tags.values())


__all__ = ["KIND_NAMES", "PROFILES", "TableProfile"]
