"""Writers of tables of other libraries that write an `UnreadableTable` as it came.

Without them, what a fast path leaves to a library would go out with an empty table in that place. They are
made where `install` is asked to be tolerant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from importlib import import_module

from .._typing import Any
from ..types import UnreadableTable
from ._looked_up import Expected
from ._patches import Patch


def _sized(table: UnreadableTable) -> bytes:
    return len(table.octets).to_bytes(4, "big") + table.octets


def pamqp_writers() -> Iterator[Patch]:
    """Replace `pamqp.encode.field_table`."""
    encode = import_module("pamqp.encode")
    stock = encode.field_table

    @wraps(stock)
    def field_table(value: Any) -> bytes:
        written: bytes = _sized(value) if type(value) is UnreadableTable else stock(value)
        return written

    yield Patch(encode, "field_table", field_table)
    yield Patch(encode.METHODS, "table", field_table, "pamqp.encode.METHODS['table']")


def pika_writers() -> Iterator[Patch]:
    """Replace `pika.data.encode_table`."""
    data = import_module("pika.data")
    stock = data.encode_table

    @wraps(stock)
    def encode_table(pieces: list[bytes], table: Any) -> int:
        if type(table) is not UnreadableTable:
            written: int = stock(pieces, table)
            return written
        pieces.append(_sized(table))
        return len(pieces[-1])

    yield Patch(data, "encode_table", encode_table)


def amqp_writers() -> Iterator[Patch]:
    """Replace `amqp.serialization._write_table`."""
    serialization = import_module("amqp.serialization")
    stock = serialization._write_table

    @wraps(stock)
    def _write_table(d: Any, write: Callable[[bytes], object], bits: Any) -> Any:
        return write(_sized(d)) if type(d) is UnreadableTable else stock(d, write, bits)

    yield Patch(serialization, "_write_table", _write_table)


def expected(patches: Sequence[Patch]) -> list[Expected]:
    """Return what guards have to expect once these patches are made."""
    return [
        Expected(
            patch.owner if isinstance(patch.owner, dict) else vars(patch.owner), patch.name, patch.replacement
        )
        for patch in patches
    ]
