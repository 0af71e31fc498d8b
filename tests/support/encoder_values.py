"""Python values for an encoder, valid and invalid, made anew for each call."""

from __future__ import annotations

from collections import OrderedDict, UserDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from amqpcodec import FieldValue, InlineContent, ReferenceContent


class IntChild(int):
    """An int whose operators and text say something else."""

    def __add__(self, other: Any) -> Any:
        return "sum"

    def __lt__(self, other: Any) -> bool:
        return True

    def __le__(self, other: Any) -> bool:
        return False

    def __str__(self) -> str:
        return "child"


class StrChild(str):
    """A str that claims other octets."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return b"y" * 300


class FloatChild(float):
    """A float that claims another value."""

    def __float__(self) -> float:
        return 99.0


class BytesChild(bytes):
    pass


class DictChild(dict[str, Any]):
    pass


class ListChild(list[Any]):
    pass


class Nowhere(tzinfo):
    """A time zone that does not know its offset, which makes a datetime naive."""

    def utcoffset(self, when: datetime | None) -> timedelta | None:
        return None


def self_referencing_dict() -> dict[str, Any]:
    table: dict[str, Any] = {}
    table["again"] = table
    return table


def self_referencing_list() -> list[Any]:
    items: list[Any] = [1]
    items.append(items)
    return items


INTEGERS = [
    0, 1, -1, 127, 128, -128, -129, 255, 256, 2**15 - 1, 2**15, -(2**15), -(2**15) - 1, 2**16 - 1, 2**16,
    2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1,
    2**64 - 1, 2**64, 10**30,
]  # fmt: skip
OTHERS = [
    None, True, False, 0.0, -0.0, 1.5, 1e39, -1e39, 3.4028235677973366e38, 5e-324, float("inf"), float("nan"),
    "", "text", "é" * 127, "é" * 128, "x" * 255, "x" * 256, "nul\0", "\ud800", "\udc80", "a\udcffb\ud800",
    "ÿ", "Ā", b"", b"octets", b"\xff\xfe", b"x" * 300, (), [], {}, {"a": 1}, {1: 2}, {None: 1}, {b"k": 1},
    {"x" * 256: 1}, {"\ud800": 1}, {"nul\0": 1}, {"a": {"b": [1, {"c": object()}]}}, [[1], [None, set()]],
    Decimal("1.5"), Decimal("-0"), Decimal("1E+9"), Decimal("1E+10"), Decimal("1E-255"), Decimal("1E-256"),
    Decimal(2**31), Decimal(-(2**31)), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("0E+11"),
    datetime(2020, 1, 2, 3, 4, 5, 999999), datetime(2020, 1, 2, tzinfo=UTC),
    datetime(1969, 12, 31, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=timezone(timedelta(hours=1))), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1, 1, 1), datetime(2020, 1, 1).date(),
    IntChild(5), IntChild(300), IntChild(-1), StrChild("x"), StrChild("é"), FloatChild(1.5), BytesChild(b"o"),
    DictChild(a=1), ListChild([1]), OrderedDict(b=1, a=2), MappingProxyType({"a": 1}), UserDict(a=1),
    FieldValue("u", 40000), FieldValue("z", 1), FieldValue("", 1), FieldValue("II", 1), FieldValue("é", 1),
    FieldValue("I", FieldValue("I", 1)), InlineContent(b"o"), ReferenceContent(b"r"), InlineContent("text"),
    object, 1j, {1}, range(3), iter(()), Ellipsis,
]  # fmt: skip
MADE: dict[str, Callable[[], Any]] = {
    "bytearray": lambda: bytearray(b"octets"),
    "memoryview": lambda: memoryview(b"octets"),
    "strided memoryview": lambda: memoryview(b"octets")[::2],
    "wide memoryview": lambda: memoryview(b"octets12").cast("I"),
    "self-referencing dict": self_referencing_dict,
    "self-referencing list": self_referencing_list,
    "tag not a str": lambda: FieldValue(7, 1),  # type: ignore[arg-type]
    "content of None": lambda: InlineContent(None),  # type: ignore[arg-type]
    "no UTC offset": lambda: datetime(2020, 1, 1, tzinfo=Nowhere()),
    "int of many digits": lambda: 10**5000,
    "negative int of many digits": lambda: -(10**5000),
}


def encoder_values() -> list[tuple[str, Callable[[], Any]]]:
    """Every value with its name; the second item makes the value."""
    listed = [*INTEGERS, *OTHERS]
    named = [
        (f"{index} {type(value).__name__} {value!r:.40}", lambda value=value: value)
        for index, value in enumerate(listed)
    ]
    return [*named, *MADE.items()]
