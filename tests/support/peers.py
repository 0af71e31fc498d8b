"""Peers that write frames from a seed, some of them invalid, and the checks of their tables."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import amqpcodec
from amqpcodec import FieldValue
from amqpcodec._columns.schemas import table_columns

_VALUES: tuple[Any, ...] = (
    True, False, None, 0, -1, 7, -(2**31), 2**40, "", "text", "täxt", "x" * 300, b"\xff\0", 1.5, float("nan"),
    Decimal("1.50"), datetime(2026, 11, 21, 6, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    {"inner": [1, "two", {"three": None}]}, [], FieldValue("b", -5), FieldValue("u", 65535),
    FieldValue("f", 0.1),
)  # fmt: skip


class Peer:
    """Writes the frames of one direction, from a seed; some of them are not as they should be."""

    def __init__(self, source: random.Random, dialect: str) -> None:
        self.source = source
        self.codec: Any = amqpcodec.dialect(dialect)
        self.basic = next(cls for cls in self.codec.PROPERTIES.values() if cls.spec.name == "basic")
        self.methods = [cls for cls in self.codec.METHODS.values() if cls.spec.class_id != 10]
        self.carriers = [
            cls for cls in self.methods if cls.spec.content and cls.spec.name.startswith("basic.")
        ]

    def value(self, field: Any) -> Any:
        source = self.source
        match field.type:
            case "bit":
                return source.random() < 0.5
            case "octet":
                return source.randrange(256)
            case "short":
                return source.randrange(65536)
            case "long":
                return source.randrange(2**32)
            case "longlong":
                return source.choice((0, 1, 2**63 - 1, 2**63, 2**64 - 1))
            case "shortstr":
                return source.choice(("", "orders", "größe", "k" * 255, "odd\udcff"))
            case "longstr":
                return source.randbytes(source.randrange(5))
            case "timestamp":
                return source.choice((0, 1714521600, 253402300799, 253402300800))
            case "table":
                return self.table()
            case _:
                return (
                    amqpcodec.InlineContent(b"in")
                    if source.random() < 0.5
                    else amqpcodec.ReferenceContent(b"")
                )

    def table(self) -> dict[str, Any]:
        count = self.source.choice((0, 1, 3, 70))
        found = {f"key-{number}": self.source.choice(_VALUES) for number in range(count)}
        try:
            self.codec.encode_table(found)
        except amqpcodec.EncodeError:  # not every dialect has a tag for everything
            return {"number": 5, "text": "plain"}
        return found

    def method(self, channel: int, cls: Any) -> bytes:
        values = {field.attribute: self.value(field) for field in cls.spec.fields if not field.reserved}
        return bytes(self.codec.encode_method(channel, cls(**values)))

    def content(self, channel: int) -> list[bytes]:
        source = self.source
        properties = {
            field.attribute: self.value(field) for field in self.basic.spec.fields if source.random() < 0.4
        }
        body = source.randbytes(source.choice((0, 1, 20, 3000)))
        header = bytes(self.codec.encode_header(channel, self.basic(**properties), len(body)))
        chunks = [body[at : at + 1400] for at in range(0, len(body), 1400)]
        frames = [bytes(self.codec.encode_body(channel, chunk)) for chunk in chunks]
        return [self.method(channel, source.choice(self.carriers)), header, *frames]

    def frames(self, count: int) -> list[bytes]:
        """Frames of several channels by turns; a few are missing, doubled or of no use."""
        source = self.source
        waiting: list[list[bytes]] = [self.content(source.randrange(1, 4)) for _ in range(count)]
        found: list[bytes] = [bytes(self.codec.encode_heartbeat())]
        while waiting:
            chosen = source.choice(waiting[:2])
            found.append(chosen.pop(0))
            waiting = [each for each in waiting if each]
            what = source.random()
            if what < 0.05:
                found.append(self.method(source.randrange(4), source.choice(self.methods)))
            elif what < 0.07:
                found.append(found[-1])
            elif what < 0.09:
                found.pop()
            elif what < 0.10:
                found.append(self.method(0, self.codec.METHODS[10, 30]))
            elif what < 0.11:
                found.append(b"\x08\0\1\0\0\0\2xy\xce")
        return found


def damaged(source: random.Random, octets: bytes) -> bytes:
    """A stream with a few octets changed, left out or put in."""
    changed = bytearray(octets)
    for _ in range(source.choice((0, 0, 1, 1, 3))):
        at = source.randrange(len(changed))
        match source.randrange(4):
            case 0:
                changed[at] ^= 1 << source.randrange(8)
            case 1:
                del changed[at : at + source.randrange(1, 30)]
            case 2:
                changed[at:at] = source.randbytes(3)
            case _:
                changed[at] = source.choice(b"AMQP\x01\x02\x03\xce\x00\xff")
    return bytes(changed) or b"\0"


def columns_of(source: random.Random, table: str, dialect: str) -> list[str] | None:
    """All columns but the optional ones, or any few."""
    if source.random() < 0.4:
        return None
    columns = table_columns(table, [dialect])
    names = [column.name for column in columns if not column.children]
    names += [f"{column.name}.{child.name}" for column in columns for child in column.children]
    return source.sample(names, source.randrange(1, len(names)))
