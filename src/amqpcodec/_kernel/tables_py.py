"""Field tables on their own. One text for both builds: tables_c is this file, compiled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..limits import Limits
from ..profiles import table_profile
from .reader_py import Reader, ReaderRules
from .writer_py import Writer, WriterRules

_FIELD = "table"


# Rules are never changed, so that one of each kind serves all threads.
@lru_cache(maxsize=16)
def _reader_rules(profile: str, strict: bool) -> ReaderRules:
    return ReaderRules(table_profile(profile), strict, Limits(), False)


@lru_cache(maxsize=16)
def _writer_rules(profile: str, strict: bool) -> WriterRules:
    return WriterRules(table_profile(profile), strict, Limits().table_depth)


def decode_table(octets: Any, profile: str = "rabbitmq", *, strict: bool = False) -> dict[str, Any]:
    """Read one field table (0-9-1 section 4.2.5.5).

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
    data = octets if type(octets) is bytes else memoryview(octets).tobytes()
    reader = Reader(_reader_rules(profile, strict), False)
    reader.attach(data)
    reader.aim(0, len(data), 0)
    table = reader.table(_FIELD)
    reader.finish()
    return table  # type: ignore[no-any-return]  # the reader makes dicts unless told to keep octets


def decode_pairs(octets: Any, profile: str = "rabbitmq") -> dict[str, Any]:
    """Read the entries of a field table without the length before them, as `RawTable` holds them.

    Args:
        octets: bytes-like: the entries.
        profile: name of the table profile to read tags by, see `amqpcodec.profiles`.

    Returns:
        The values by key; of two equal keys the later wins.

    Raises:
        DecodeError: with the offset counted from the first octet.
        ValueError: no such profile.
    """
    data = octets if type(octets) is bytes else memoryview(octets).tobytes()
    reader = Reader(_reader_rules(profile, False), False)
    reader.attach(data)
    reader.aim(0, len(data), 0)
    return reader.pairs(_FIELD)


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
    writer = Writer(_writer_rules(profile, strict), 256)
    writer.table(table, _FIELD)
    return writer.finish()


__all__ = ["decode_pairs", "decode_table", "encode_table"]
