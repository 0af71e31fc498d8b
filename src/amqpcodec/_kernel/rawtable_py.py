"""Field tables kept as octets. One text for both builds: rawtable_c is this file, compiled."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from importlib import import_module
from typing import Any

from .._pickle import restore_public


class RawTable:
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
            # Looked up late, since reading a table takes the reader, which makes these.
            self._table = import_module("amqpcodec").decode_pairs(self.octets, self.profile)
        return self._table

    def __getitem__(self, key: str) -> Any:
        return self._decoded()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())

    def __contains__(self, key: object) -> bool:
        return key in self._decoded()

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or the default."""
        return self._decoded().get(key, default)

    def keys(self) -> KeysView[str]:
        """The keys, in the order of the octets."""
        return self._decoded().keys()

    def values(self) -> ValuesView[Any]:
        """The values, in the order of the octets."""
        return self._decoded().values()

    def items(self) -> ItemsView[str, Any]:
        """Keys and values, in the order of the octets."""
        return self._decoded().items()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RawTable):
            if self.octets == other.octets and self.profile == other.profile:
                return True
            return self._decoded() == other._decoded()
        return self._decoded() == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal to dicts, which have no hash either

    def __repr__(self) -> str:
        return f"RawTable({self.octets!r}, {self.profile!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_public, ("RawTable", (self.octets, self.profile))


Mapping.register(RawTable)

__all__ = ["RawTable"]
