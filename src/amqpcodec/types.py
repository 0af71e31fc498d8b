"""Values of the wire that plain Python types cannot express."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""What a timestamp of zero is; the default of timestamp arguments."""


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A field-table value with its tag chosen by hand, such as ``FieldValue("u", 40000)``.

    Encoders write exactly this tag, if the table profile has it and the value fits; decoders
    never produce it. Takes the place of a plain value anywhere in a table or array.

    Attributes:
        tag: the one character of the wire (see `amqpcodec.profiles`).
        value: the Python value: int, bool, float, Decimal, str, bytes, datetime, dict, list or None.
    """

    tag: str
    value: Any


@dataclass(frozen=True, slots=True)
class InlineContent:
    """Body of a 0-9 message.transfer carried in the method itself (0-9 section 4.2.5.6).

    Attributes:
        octets: the body.
    """

    octets: bytes


@dataclass(frozen=True, slots=True)
class ReferenceContent:
    """Body of a 0-9 message.transfer named by a reference opened before (0-9 section 4.2.5.6).

    Attributes:
        octets: the name of the reference.
    """

    octets: bytes


class RawTable(Mapping[str, Any]):
    """A field table kept as the octets it came in: what ``tables="raw"`` gives in place of a dict.

    A read-only mapping, decoded on first access; encoders write the octets back unchanged, so that
    duplicate keys, chosen tags and even tags nobody knows survive.

    Args:
        octets: the key-tag-value entries, without the length before them.
        profile: name of the table profile that reads them.

    Raises:
        DecodeError: on first access, when the octets do not follow the profile; its offset counts
            from the start of `octets`.
    """

    __slots__ = ("_table", "octets", "profile")

    def __init__(self, octets: bytes, profile: str = "rabbitmq") -> None:
        self.octets = octets
        self.profile = profile
        self._table: dict[str, Any] | None = None

    def _decoded(self) -> dict[str, Any]:
        if self._table is None:
            from . import decode_pairs

            self._table = decode_pairs(self.octets, self.profile)
        return self._table

    def __getitem__(self, key: str) -> Any:
        return self._decoded()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RawTable) and self.octets == other.octets and self.profile == other.profile:
            return True
        return self._decoded() == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal to dicts, which have no hash either

    def __repr__(self) -> str:
        return f"RawTable({self.octets!r}, {self.profile!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return RawTable, (self.octets, self.profile)
