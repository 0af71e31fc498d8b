"""How other libraries make Python values of what tables hold, and the other way round, by their releases.

A tag that is missing here is one that a library refuses, or treats in a way that the kernel does not know.
Like every other value that these rules do not cover, it is left to the library.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from importlib import import_module

from ..profiles import (
    ARRAY,
    AWARE_TIME,
    BOOL,
    BYTEARRAY,
    CUT_DOUBLE,
    CUT_FLOAT,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    LONGSTR,
    NAIVE_TIME,
    OCTETS,
    OWN_INT,
    QUOTIENT,
    SCALED,
    SHORT_TIME,
    SHORTSTR,
    TABLE,
    TEXT,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    VOID,
    TableProfile,
    ValueRules,
)

_NAIVE_TIMES = {"T": NAIVE_TIME} if sys.version_info < (3, 12) else {}  # since then each is a warning
_INTEGERS = {
    "b": ("b", 1, -(2**7), 2**7 - 1),
    "s": ("s", 2, -(2**15), 2**15 - 1),
    "u": ("u", 2, 0, 2**16 - 1),
    "I": ("I", 4, -(2**31), 2**31 - 1),
    "i": ("i", 4, 0, 2**32 - 1),
    "l": ("l", 8, -(2**63), 2**63 - 1),
}
_SHARED = {
    "t": BOOL, "b": INT8, "B": UINT8, "s": INT16, "u": UINT16, "I": INT32, "i": UINT32, "l": INT64,
    "L": INT64, "f": FLOAT, "d": DOUBLE, "S": LONGSTR, "A": ARRAY, "F": TABLE, "V": VOID,
}  # fmt: skip
_INTEGERS_OF_PAMQP_3 = (
    ("b", 1, 0, 2**7 - 1), ("s", 2, 2**7, 2**15 - 1), ("s", 2, -(2**15), -(2**7) - 1), ("u", 2, 0, 2**16 - 1),
    ("I", 4, 0, 2**31 - 1), ("I", 4, -(2**31), -(2**15) - 1), ("i", 4, 0, 2**32 - 1), ("l", 8, 0, 2**63 - 1),
    ("l", 8, -(2**63), -(2**31) - 1),
)  # fmt: skip


def _scaled_by_pamqp(value: Decimal) -> tuple[int, int]:
    """`pamqp.encode.decimal` since 4.0."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise TypeError
    if exponent > 0:
        return 0, int(value)
    return -exponent, int(value.scaleb(-exponent))


def _scaled_by_pika(value: Decimal) -> tuple[int, int]:
    """`pika.data.encode_value`."""
    value = value.normalize()
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise TypeError
    if exponent < 0:
        return -exponent, int(value * (Decimal(10) ** -exponent))
    return 0, int(value)


def _scaled_by_amqp(value: Decimal) -> tuple[int, int]:
    """`amqp.serialization._write_item`."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise TypeError
    number = int("".join(map(str, digits)))
    return -exponent, -number if sign else number


def pamqp_profile(rules: str) -> TableProfile:
    """Tables as pamqp reads and writes them.

    Args:
        rules: of the release, see `_relied.Known`.
    """
    tags = {**_SHARED, "x": BYTEARRAY, "T": SHORT_TIME, "\0": VOID}
    if rules in ("3.2", "3.3"):
        # They read the mantissa of a decimal as unsigned, write it otherwise, and -1 to -128 not at all.
        values = ValueRules(
            integers=_INTEGERS_OF_PAMQP_3, float_tag="f", bytearray_tag="x", sorted_keys=True, longest_key=128
        )
        if rules == "3.2":
            del tags["T"]
            tags |= _NAIVE_TIMES
    else:
        if rules == "4.0":  # 4.0.0 reads and writes decimals as 3.3 does
            tags["D"] = SCALED
        values = ValueRules(
            integers=tuple(_INTEGERS[tag] for tag in "bsuIil"), float_tag="f", bytearray_tag="x",
            decimal=_scaled_by_pamqp if rules == "4.0" else None, sorted_keys=True, longest_key=128,
        )  # fmt: skip
    return TableProfile(f"pamqp {rules}", tags, values=values)


def pika_profile(rules: str) -> TableProfile:
    """Tables as pika reads and writes them; this imports `pika.compat` for its class of integers.

    Args:
        rules: of the release, see `_relied.Known`.
    """
    long = import_module("pika.compat").long

    tags = {
        **_SHARED, "U": INT16, "l": OWN_INT, "L": OWN_INT, "f": CUT_FLOAT, "d": CUT_DOUBLE, "D": SCALED,
        "T": AWARE_TIME, "x": OCTETS,
    }  # fmt: skip
    integers = tuple(_INTEGERS[tag] for tag in "Il")
    if rules in ("1.2", "1.3"):
        tags.update({"b": UINT8, "B": INT8})
        del tags["l"], tags["T"]  # numbers are unsigned there
        tags |= _NAIVE_TIMES
    if rules == "1.3":
        integers = (_INTEGERS["I"], ("L", 8, -(2**63), -1), ("l", 8, 0, 2**63 - 1))
    values = ValueRules(
        octets_as_text=True, own_int=long, integers=integers, octets_tag="x", decimal=_scaled_by_pika
    )
    return TableProfile(f"pika {rules}", tags, values=values)


def amqp_profile(rules: str) -> TableProfile:
    """Tables as py-amqp reads and writes them.

    Args:
        rules: of the release, see `_relied.Known`.
    """
    tags = {**_SHARED, "U": INT16, "S": TEXT, "T": NAIVE_TIME, "D": QUOTIENT, "x": OCTETS}
    if rules == "5.2":
        tags |= {"s": SHORTSTR, "l": UINT64}
        del tags["T"]  # it warns of its own way to make a time, since Python 3.12
    if rules in ("5.2", "5.4.0"):
        tags |= {"b": UINT8, "B": INT8}
    integers = (("I", 4, -(2**31) + 1, 2**31 - 1), ("L", 8, -(2**63), 2**63 - 1))
    values = ValueRules(
        integers=integers, float_tag="d", octets_tag="S", tuples=True, decimal=_scaled_by_amqp
    )
    return TableProfile(f"amqp {rules}", tags, values=values)
