# cython: nonecheck=True
"""Field tables on their own. One text for both builds: tables_c is this file, compiled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from .._typing import TYPE_CHECKING, Any
from ..limits import DEFAULT_LIMITS, Limits
from ..profiles import table_profile
from .rawtable_py import read_by
from .reader_py import ReaderRules
from .readers_py import ReaderPool
from .slots.sharing_py import share
from .writer_py import writer_rules

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_FIELD = "table"


class TableCodec:
    """Field tables on their own, by one table profile. It may be shared by threads."""

    __slots__ = ("_reading", "_reading_strictly", "_writing", "_writing_strictly")

    def __init__(self, profile: str) -> None:
        rules = table_profile(profile)
        self._reading = ReaderPool(ReaderRules(rules, False, DEFAULT_LIMITS, False))
        self._reading_strictly = ReaderPool(ReaderRules(rules, True, DEFAULT_LIMITS, False))
        self._writing = writer_rules(profile, False, DEFAULT_LIMITS.table_depth)
        self._writing_strictly = writer_rules(profile, True, DEFAULT_LIMITS.table_depth)
        # Codecs are made once, see `table_codec`.
        share([self._reading, self._reading_strictly])

    def decode_table(self, octets: ReadableBuffer, *, strict: bool = False) -> dict[str, Any]:
        """Read one field table by the table profile of this dialect; see `amqpcodec.decode_table`."""
        return self._decode(_octets(octets), strict)

    def _decode(self, data: bytes, strict: bool) -> dict[str, Any]:
        readers = self._reading_strictly if strict else self._reading
        reader = readers.take()
        reader.attach(data)
        reader.aim(0, len(data), 0)
        table = reader.table(_FIELD)
        reader.finish()
        readers.give_back(reader)  # after an error, it is let go
        return table  # type: ignore[return-value]  # the reader makes dicts unless told to keep octets

    def decode_pairs(self, octets: ReadableBuffer) -> dict[str, Any]:
        """Read the entries of a field table without its length; see `amqpcodec.decode_pairs`."""
        return self._decode_pairs(_octets(octets))

    def _decode_pairs(self, data: bytes) -> dict[str, Any]:
        reader = self._reading.take()
        reader.attach(data)
        reader.aim(0, len(data), 0)
        table = reader.pairs(_FIELD)
        self._reading.give_back(reader)
        return table

    def encode_table(self, table: Mapping[str, Any], *, strict: bool = False) -> bytes:
        """Write one field table by the table profile of this dialect; see `amqpcodec.encode_table`."""
        return self._encode(table, strict)

    def _encode(self, table: Mapping[str, Any], strict: bool) -> bytes:
        rules = self._writing_strictly if strict else self._writing
        writer = rules.writer()
        writer.table(table, _FIELD)
        return writer.finish()


@cache
def table_codec(profile: str) -> TableCodec:
    """The codec of a table profile, made once.

    Raises:
        ValueError: no such profile.
    """
    return TableCodec(profile)


@lru_cache(maxsize=64)
def _rules_of_kept(profile: str, limits: Limits, tolerant: bool) -> ReaderRules:
    return ReaderRules(table_profile(profile), False, limits, False, tolerant)


def read_pairs(octets: bytes, profile: str, limits: Limits | None, tolerant: bool) -> dict[str, Any]:
    """Read the entries that a `RawTable` holds.

    Args:
        octets: the entries.
        profile: name of the table profile to read tags by.
        limits: what is refused; None for the default ones.
        tolerant: as for `RawTable`.

    Raises:
        DecodeError: with the offset counted from the first octet.
        ValueError: no such profile.
    """
    if limits is None and not tolerant:
        return decode_pairs(octets, profile)
    rules = _rules_of_kept(profile, DEFAULT_LIMITS if limits is None else limits, tolerant)
    reader = rules.reader(False)
    reader.attach(octets)
    reader.aim(0, len(octets), 0)
    return reader.pairs(_FIELD)


read_by(read_pairs)


def decode_table(
    octets: ReadableBuffer, profile: str = "rabbitmq", *, strict: bool = False
) -> dict[str, Any]:
    """Read one field table (0-9-1 section 4.2.5.5).

    Small tables that repeat stay in memory, to be copied. `decode_pairs` keeps no values.

    Args:
        octets: bytes-like: the table's length in 4 octets, then its entries, and nothing after them.
        profile: name of the table profile to read tags by, see `amqpcodec.profiles`.
        strict: refuse text that is not UTF-8, zero octets in keys, keys that occur twice, and tags
            that are not of the profile.

    Returns:
        The values by key; of two equal keys the later wins.

    Raises:
        DecodeError: with the offset counted from the first octet.
        ValueError: no such profile.
    """
    return table_codec(profile).decode_table(octets, strict=strict)


def decode_pairs(octets: ReadableBuffer, profile: str = "rabbitmq") -> dict[str, Any]:
    """Read the entries of a field table without the length before them, as `RawTable` holds them.

    Of the values nothing stays in memory, so it suits responses of the mechanism AMQPLAIN.

    Args:
        octets: bytes-like: the entries.
        profile: name of the table profile to read tags by, see `amqpcodec.profiles`.

    Returns:
        The values by key; of two equal keys the later wins.

    Raises:
        DecodeError: with the offset counted from the first octet.
        ValueError: no such profile.
    """
    return table_codec(profile).decode_pairs(octets)


def encode_table(table: Mapping[str, Any], profile: str = "rabbitmq", *, strict: bool = False) -> bytes:
    """Write one field table (0-9-1 section 4.2.5.5).

    Args:
        table: the entries; values as described in `amqpcodec.profiles` and `FieldValue`.
        profile: name of the table profile to write by.
        strict: refuse keys with zero octets.

    Returns:
        The table's length in 4 octets, then its entries in order.

    Raises:
        EncodeError: a value no tag of the profile carries, with the path of keys to it.
        ValueError: no such profile.
    """
    return table_codec(profile).encode_table(table, strict=strict)


def _octets(octets: Any) -> bytes:
    return octets if type(octets) is bytes else memoryview(octets).tobytes()


__all__ = ["decode_pairs", "decode_table", "encode_table"]
