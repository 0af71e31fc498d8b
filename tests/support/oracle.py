"""An independent reading of the wire: a small interpreter of the facts files.

It shares no code with the package, and no text: what a method looks like it reads from
``tests/data/facts``. Values are those of the golden vectors (see `support.vectors`). Slow and simple on
purpose; it only ever sees valid input.
"""

from __future__ import annotations

import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

FACTS = Path(__file__).resolve().parent.parent / "data" / "facts"
NUMBERS = {"octet": ">B", "short": ">H", "long": ">I", "longlong": ">Q", "timestamp": ">Q"}
TAGGED_NUMBERS = {
    "b": ">b", "B": ">B", "s": ">h", "U": ">h", "u": ">H", "I": ">i", "i": ">I", "l": ">q", "L": ">q",
    "f": ">f", "d": ">d", "T": ">Q",
}  # fmt: skip
SIZED_TEXT = "ScC"
# The tags that decoders read outside strict mode: those of 0-8 and 0-9 tolerate RabbitMQ's.
RABBITMQ_TAGS = "tbBsuIilLUfdDSAFTVx"
READ_TAGS = {
    "0-8": RABBITMQ_TAGS,
    "0-9": RABBITMQ_TAGS,
    "rabbitmq": RABBITMQ_TAGS,
    "wg-0-9-1": RABBITMQ_TAGS.replace("x", ""),
    "qpid": "tbBsuIilfdDSAFTVxcCk",
}
PROFILES = {
    "amqp-0-8": "0-8", "qpid-0-8": "qpid", "amqp-0-9": "0-9", "amqp-0-9-1": "wg-0-9-1",
    "rabbitmq-0-9-1": "rabbitmq",
}  # fmt: skip
INFINITIES = {"inf": float("inf"), "-inf": float("-inf")}


@cache
def facts(dialect: str) -> dict[str, Any]:
    """The facts of a dialect, as the file has them."""
    loaded: dict[str, Any] = json.loads((FACTS / f"{dialect}.json").read_text(encoding="utf-8"))
    return loaded


@cache
def methods(dialect: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Class and method facts by the method's full name."""
    return {
        f"{group['name']}.{method['name']}": (group, method)
        for group in facts(dialect)["classes"]
        for method in group["methods"]
    }


@cache
def contents(dialect: str) -> dict[str, dict[str, Any]]:
    """The facts of the classes that have properties, by name."""
    return {group["name"]: group for group in facts(dialect)["classes"] if group["properties"]}


CLASSES = [(name, group["name"]) for name in PROFILES for group in facts(name)["classes"]]
CONTENTS = [(name, group) for name in PROFILES for group in contents(name)]


def raw(text: Any) -> bytes:
    return text.encode() if isinstance(text, str) else bytes.fromhex(text["hex"])


def text_of(octets: bytes) -> Any:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return {"hex": octets.hex()}


class Malformed(Exception):  # noqa: N818
    """Octets that do not follow the layout."""


class Oracle:
    """Encodes and decodes for one dialect, with the tags of one table profile."""

    def __init__(self, dialect: str, profile: str) -> None:
        self.dialect = dialect
        self.tags = READ_TAGS[profile]
        self.working_group = profile == "wg-0-9-1"

    # -- out

    def method(self, name: str, channel: int, values: dict[str, Any]) -> bytes:
        """A method frame."""
        group, method = methods(self.dialect)[name]
        out = struct.pack(">HH", group["index"], method["index"])
        bits: list[bool] = []
        for field in method["fields"]:
            if field["type"] == "bit":
                bits.append(values[field["name"]])
                continue
            out += self._bits(bits) + self._value(field["type"], values[field["name"]])
            bits = []
        return self._frame(1, channel, out + self._bits(bits))

    def header(self, name: str, channel: int, size: int, weight: int, values: dict[str, Any]) -> bytes:
        """A content header frame; absent properties are not among the values."""
        group = contents(self.dialect)[name]
        flags, out = 0, b""
        for position, field in enumerate(group["properties"]):
            if field["name"] in values:
                flags |= 0x8000 >> position
                out += self._value(field["type"], values[field["name"]])
        head = struct.pack(">HHQH", group["index"], weight, size, flags)
        return self._frame(2, channel, head + out)

    def table(self, entries: list[Any]) -> bytes:
        """A field table with its length."""
        pairs = b"".join(
            self._short(key) + tag.encode() + self._tagged(tag, value) for key, tag, value in entries
        )
        return self._long(pairs)

    def _frame(self, frame_type: int, channel: int, payload: bytes) -> bytes:
        return struct.pack(">BHI", frame_type, channel, len(payload)) + payload + b"\xce"

    def _bits(self, bits: list[bool]) -> bytes:
        octets = [bits[at : at + 8] for at in range(0, len(bits), 8)]
        return bytes(sum(bit << position for position, bit in enumerate(octet)) for octet in octets)

    def _short(self, value: Any) -> bytes:
        return struct.pack(">B", len(raw(value))) + raw(value)

    def _long(self, octets: bytes) -> bytes:
        return struct.pack(">I", len(octets)) + octets

    def _value(self, wire_type: str, value: Any) -> bytes:
        match wire_type:
            case "shortstr":
                return self._short(value)
            case "longstr":
                return self._long(raw(value))
            case "table":
                return self.table(value)
            case "content":
                [(kind, octets)] = value.items()
                return bytes([kind == "reference"]) + self._long(raw(octets))
            case _:
                return struct.pack(NUMBERS[wire_type], value)

    def _tagged(self, tag: str, value: Any) -> bytes:
        if tag == "V":
            return b""
        if tag == "t":
            return bytes([value])
        if tag == "D":
            return struct.pack(">Bi", value["scale"], value["value"])
        if tag == "k":
            return raw(value)
        if tag == "x" or tag in SIZED_TEXT:
            return self._long(raw(value))
        if tag == "A":
            return self._long(b"".join(item.encode() + self._tagged(item, each) for item, each in value))
        if tag == "F":
            return self.table(value)
        if self.working_group and tag == "s":
            return self._short(value)
        number = INFINITIES[value["float"]] if isinstance(value, dict) else value
        return struct.pack(self._layout(tag), number)

    def _layout(self, tag: str) -> str:
        return ">Q" if self.working_group and tag == "l" else TAGGED_NUMBERS[tag]

    # -- in

    def read_method(self, frame: bytes) -> tuple[str, dict[str, Any]]:
        """Name and values of a method frame whose envelope is valid."""
        source = Source(frame[7:-1])
        ids = source.numbers(">HH")
        for name, (group, method) in methods(self.dialect).items():
            if (group["index"], method["index"]) == ids:
                values = self._read_fields(source, method["fields"])
                source.end()
                return name, values
        raise Malformed(ids)

    def read_header(self, frame: bytes) -> tuple[str, int, int, dict[str, Any]]:
        """Class, body size, weight and present properties of a header frame whose envelope is valid."""
        source = Source(frame[7:-1])
        index, weight, size, flags = source.numbers(">HHQH")
        found = [item for item in contents(self.dialect).items() if item[1]["index"] == index]
        if not found or frame[1:3] == b"\0\0":
            raise Malformed("no such content, or on channel 0")
        [(name, group)] = found
        further = flags
        while further & 1:
            [further] = source.numbers(">H")
        values = {
            field["name"]: self._read(source, field["type"])
            for position, field in enumerate(group["properties"])
            if flags & 0x8000 >> position
        }
        source.end()
        return name, size, weight, values

    def _read_fields(self, source: Source, fields: list[Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        run = 0
        for field in fields:
            if field["type"] == "bit":
                if run % 8 == 0:
                    octet = source.take(1)[0]
                values[field["name"]] = bool(octet >> run % 8 & 1)
                run += 1
            else:
                run = 0
                values[field["name"]] = self._read(source, field["type"])
        return values

    def _read(self, source: Source, wire_type: str) -> Any:
        match wire_type:
            case "shortstr":
                return text_of(source.short())
            case "longstr":
                return text_of(source.long())
            case "table":
                return self._read_pairs(source.long())
            case "content":
                kind = source.take(1)[0]
                if kind > 1:
                    raise Malformed(kind)
                return {("inline", "reference")[kind]: text_of(source.long())}
            case _:
                return source.numbers(NUMBERS[wire_type])[0]

    def _read_pairs(self, octets: bytes) -> list[Any]:
        source = Source(octets)
        entries = []
        while source.at < len(octets):
            key, tag = text_of(source.short()), chr(source.take(1)[0])
            entries.append([key, tag, self._read_tagged(source, tag)])
        return entries

    def _read_items(self, octets: bytes) -> list[Any]:
        source = Source(octets)
        items = []
        while source.at < len(octets):
            tag = chr(source.take(1)[0])
            items.append([tag, self._read_tagged(source, tag)])
        return items

    def _read_tagged(self, source: Source, tag: str) -> Any:
        if tag not in self.tags:
            raise Malformed(tag)
        if tag == "V":
            return None
        if tag == "t":
            return source.take(1) != b"\0"
        if tag == "D":
            scale, value = source.numbers(">Bi")
            return {"scale": scale, "value": value}
        if tag == "k":
            return text_of(source.take(1))
        if tag == "x":
            return {"hex": source.long().hex()}
        if tag in SIZED_TEXT:
            return text_of(source.long())
        if tag == "A":
            return self._read_items(source.long())
        if tag == "F":
            return self._read_pairs(source.long())
        if self.working_group and tag == "s":
            return text_of(source.short())
        value = source.numbers(self._layout(tag))[0]
        return {"float": str(value)} if value in INFINITIES.values() else value


class Source:
    """A cursor over octets."""

    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        self.at = 0

    def end(self) -> None:
        if self.at != len(self.octets):
            raise Malformed("octets left over")

    def take(self, size: int) -> bytes:
        if size > len(self.octets) - self.at:
            raise Malformed("octets missing")
        self.at += size
        return self.octets[self.at - size : self.at]

    def numbers(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def short(self) -> bytes:
        return self.take(self.take(1)[0])

    def long(self) -> bytes:
        return self.take(self.numbers(">I")[0])
