"""Python values from octets: the same octets always make the same values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, TypeVar

from amqpcodec import FieldValue, InlineContent, ReferenceContent

Choice = TypeVar("Choice")
TAGS = "tbBsuUIilLfdDSAFTVxcCkz"
EDGES = (0, 1, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**64 - 1)


class Builder:
    """Takes octets one after the other and makes choices of them; zeros once there are no more.

    `raw_table` makes the raw tables, of which each build has a class of its own; None for no such values.
    """

    MOST_DEPTH = 6

    def __init__(self, data: bytes, raw_table: Callable[[bytes, str], Any] | None = None) -> None:
        self.data = data
        self.raw_table = raw_table
        self.raw_tables = 0
        self.at = 0
        self.depth = 0

    def octet(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def flag(self) -> bool:
        return bool(self.octet() & 1)

    def pick(self, choices: Sequence[Choice]) -> Choice:
        return choices[self.octet() % len(choices)]

    def pick_far(self, choices: Sequence[Choice]) -> Choice:
        """One of more choices than an octet can select."""
        return choices[(self.octet() << 8 | self.octet()) % len(choices)]

    def octets(self) -> bytes:
        size = self.octet()
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> str:
        octets = self.octets()
        if self.octet() & 7:
            return octets.decode("utf-8", "surrogateescape")
        return octets.decode("utf-16-le", "surrogatepass") if len(octets) % 2 == 0 else "x" * len(octets)

    def number(self) -> int:
        how = self.octet()
        if how < 128:
            return how
        if how < 192:
            edge = EDGES[how % len(EDGES)]
            return -edge - (how & 1) if how & 16 else edge
        return int.from_bytes(self.octets()[:12], "big", signed=bool(how & 1))

    def moment(self) -> datetime:
        zone = self.pick((None, UTC, timezone(timedelta(hours=-5))))
        return datetime(2020, 1, 1, tzinfo=zone) + timedelta(seconds=self.number() % 2**33, microseconds=7)

    def decimal(self) -> Decimal:
        sign, digits, scale = self.flag(), self.number(), self.octet()
        if scale == 255:
            return Decimal(self.pick(("NaN", "sNaN", "Infinity", "-0")))
        return Decimal((sign, tuple(map(int, str(abs(digits)))), 20 - scale))

    def value(self) -> Any:
        """A value for a field table, or for a field of the wrong type."""
        if self.depth >= self.MOST_DEPTH:
            return None
        self.depth += 1
        try:
            return self.pick(self.MAKERS)(self)
        finally:
            self.depth -= 1

    def table(self) -> dict[Any, Any]:
        return {self.text(): self.value() for _ in range(self.octet() % 5)}

    def items(self) -> list[Any]:
        return [self.value() for _ in range(self.octet() % 5)]

    def raw(self) -> Any:
        octets = self.octets()
        if self.raw_table is None:
            return octets
        self.raw_tables += 1
        return self.raw_table(octets, "rabbitmq")

    def record(self, classes: Mapping[Any, Any]) -> Any:
        """A method, or properties, with values that mostly fit the fields."""
        cls = self.pick(tuple(classes.values()))
        made = cls()
        for field in cls.spec.fields:
            how = self.octet()
            if how & 1:
                maker = self.BY_TYPE[field.type] if how & 30 else Builder.value
                setattr(made, field.attribute, maker(self))
        return made

    MAKERS: tuple[Callable[[Builder], Any], ...] = (
        lambda self: None,
        lambda self: self.flag(),
        number,
        text,
        octets,
        table,
        items,
        moment,
        decimal,
        lambda self: tuple(self.items()),
        lambda self: bytearray(self.octets()),
        lambda self: memoryview(self.octets())[:: self.pick((1, 2, -1))],
        lambda self: self.pick((0.0, -0.0, 1.5, 1e39, float("inf"), float("nan"))),
        lambda self: FieldValue(self.pick(TAGS), self.value()),
        lambda self: self.raw(),
        lambda self: self.pick((InlineContent, ReferenceContent))(self.octets()),
        lambda self: object,
    )
    BY_TYPE: Mapping[str, Callable[[Builder], Any]] = {
        "bit": flag,
        "octet": octet,
        "short": lambda self: self.octet() << 8 | self.octet(),
        "long": lambda self: abs(self.number()) & 0xFFFFFFFF,
        "longlong": lambda self: abs(self.number()) & 0xFFFFFFFFFFFFFFFF,
        "shortstr": text,
        "longstr": octets,
        "timestamp": lambda self: self.pick((Builder.moment, Builder.number))(self),
        "table": table,
        "content": lambda self: InlineContent(self.octets()),
    }
