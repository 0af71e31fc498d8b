"""Columns of Python values as memory in Arrow's columnar layout, without pyarrow."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from .schemas import Column


class Filled(NamedTuple):
    """The memory of one column: Arrow's buffers for its kind, in Arrow's order.

    Attributes:
        length: number of rows.
        nulls: how many of them are null.
        buffers: objects with the buffer protocol. The first is the validity bitmap, None if no row is null.
            Behind it: the bits of a bool; the values of a number or timestamp in the machine's byte order;
            offsets (int32) and octets of a string or binary; the offsets of a map; nothing for a struct.
        children: those of a struct; of a map one struct of two strings, key and value.
    """

    length: int
    nulls: int
    buffers: tuple[Any, ...]
    children: tuple[Filled, ...] = ()


class Batch(NamedTuple):
    """Rows of a table: how many, and the memory of each column in the order asked for."""

    rows: int
    columns: tuple[Filled, ...]


_CONTENT_PARTS = (Column("inline", "binary"), Column("reference", "binary"))
MAP_ENTRY = (Column("key", "string"), Column("value", "string"))
_CODES = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "timestamp": "q"}


def parts(column: Column) -> tuple[Column, ...]:
    """The columns inside a struct or content."""
    return _CONTENT_PARTS if column.kind == "content" else column.children


def filled(column: Column, values: Sequence[Any]) -> Filled:
    """A column of values as memory.

    Args:
        column: its kind, and its children.
        values: one per row, None for null: bool, int (of a timestamp: microseconds since 1970), str,
            bytes; for a map the list of its (key, value) pairs, for a struct or content the dict of its
            parts.
    """
    validity, nulls = _validity(values)
    buffers, children = _FILLERS[column.kind](column, values)
    return Filled(len(values), nulls, (validity, *buffers), children)


def _validity(values: Sequence[Any]) -> tuple[bytes | None, int]:
    nulls = sum(value is None for value in values)
    return (_bits(value is not None for value in values) if nulls else None), nulls


def _bits(flags: Iterable[bool]) -> bytes:
    """A bitmap, the first flag in the lowest bit of the first octet."""
    digits = "".join("1" if flag else "0" for flag in flags)[::-1]
    return int(digits or "0", 2).to_bytes((len(digits) + 7) // 8, "little")


_Parts = tuple[tuple[Any, ...], tuple[Filled, ...]]


def _bools(column: Column, values: Sequence[Any]) -> _Parts:
    return (_bits(map(bool, values)),), ()


def _numbers(column: Column, values: Sequence[Any]) -> _Parts:
    return (array(_CODES[column.kind], [value or 0 for value in values]),), ()


def _strings(column: Column, values: Sequence[Any]) -> _Parts:
    return _octets(column, [None if value is None else value.encode() for value in values])


def _octets(column: Column, values: Sequence[Any]) -> _Parts:
    given = [value or b"" for value in values]
    return (_offsets(given), b"".join(given)), ()


def _offsets(values: Iterable[Any]) -> array[int]:
    end = 0
    offsets = array("i", [0])
    for value in values:
        end += len(value)
        offsets.append(end)
    return offsets


def _map(column: Column, values: Sequence[Any]) -> _Parts:
    given = [value or () for value in values]
    entries = [{"key": key, "value": value} for pairs in given for key, value in pairs]
    return (_offsets(given),), (filled(Column("entries", "struct", MAP_ENTRY), entries),)


def _struct(column: Column, values: Sequence[Any]) -> _Parts:
    given = [value or {} for value in values]
    return (), tuple(filled(child, [value.get(child.name) for value in given]) for child in parts(column))


_FILLERS: dict[str, Callable[[Column, Sequence[Any]], _Parts]] = {
    "bool": _bools,
    **dict.fromkeys(_CODES, _numbers),
    "string": _strings,
    "binary": _octets,
    "map": _map,
    "struct": _struct,
    "content": _struct,
}


class Columns:
    """The columns of a table, filled row by row.

    Args:
        columns: their kinds and names, in order.

    Attributes:
        rows: how many there are since the last `take`.
        octets: octets of the frames that they were made of.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = tuple(columns)
        self._begin()

    def append(self, cells: dict[str, Any], octets: int) -> None:
        """Add a row.

        Args:
            cells: values by the name of their column, as `filled` takes them; null where missing.
            octets: octets of the frames that the row was made of.
        """
        for name, append in self._appenders:
            append(cells.get(name))
        self.rows += 1
        self.octets += octets

    def take(self) -> Batch:
        """The rows so far; the next one is the first of another batch."""
        batch = Batch(self.rows, tuple(map(filled, self._columns, self._values)))
        self._begin()
        return batch

    def _begin(self) -> None:
        self.rows = self.octets = 0
        self._values: list[list[Any]] = [[] for _ in self._columns]
        names = (column.name for column in self._columns)
        self._appenders: list[tuple[str, Callable[[Any], None]]] = [
            (name, values.append) for name, values in zip(names, self._values, strict=True)
        ]


def values(column: Column, memory: Filled) -> list[Any]:
    """The values in a column's memory: what `filled` made it of.

    Args:
        column: its kind, and its children.
        memory: the buffers, which may come from elsewhere.

    Raises:
        ValueError: offsets do not ascend, or lead out of the memory.
    """
    if memory.nulls == memory.length:
        return [None] * memory.length
    found = _READERS[column.kind](column, memory)
    validity = memory.buffers[0]
    if validity is None or not memory.nulls:
        return found
    bits = memoryview(validity)
    return [value if bits[row >> 3] >> (row & 7) & 1 else None for row, value in enumerate(found)]


def _view(buffer: Any, code: str) -> memoryview:
    """A buffer as items; one without octets may be left out."""
    return memoryview(b"" if buffer is None else buffer).cast("B").cast(code)  # type: ignore[call-overload, no-any-return]


def _read_bools(column: Column, memory: Filled) -> list[Any]:
    bits = _view(memory.buffers[1], "B")
    return [bool(bits[row >> 3] >> (row & 7) & 1) for row in range(memory.length)]


def _read_numbers(column: Column, memory: Filled) -> list[Any]:
    code = _CODES[column.kind]
    octets = _view(memory.buffers[1], "B")[: memory.length * array(code).itemsize]
    return octets.cast(code).tolist()  # type: ignore[call-overload, no-any-return]


def _read_offsets(memory: Filled, size: int) -> list[tuple[int, int]]:
    if not memory.length:
        return []
    offsets = _view(memory.buffers[1], "B")[: (memory.length + 1) * 4].cast("i").tolist()
    found = list(pairwise(offsets))
    if offsets[0] < 0 or offsets[-1] > size or any(end < start for start, end in found):
        raise ValueError("the offsets of a column lead out of its memory")
    return found


def _read_octets(column: Column, memory: Filled) -> list[Any]:
    octets = _view(memory.buffers[2], "B")
    return [bytes(octets[start:end]) for start, end in _read_offsets(memory, len(octets))]


def _read_strings(column: Column, memory: Filled) -> list[Any]:
    # What should be UTF-8 and is not comes as surrogate escapes, and goes out as the same octets.
    return [octets.decode(errors="surrogateescape") for octets in _read_octets(column, memory)]


def _read_map(column: Column, memory: Filled) -> list[Any]:
    keys, texts = map(values, MAP_ENTRY, memory.children[0].children)
    pairs = list(zip(keys, texts, strict=True))
    return [pairs[start:end] for start, end in _read_offsets(memory, len(pairs))]


def _read_struct(column: Column, memory: Filled) -> list[Any]:
    children = parts(column)
    names = [child.name for child in children]
    rows = zip(*map(values, children, memory.children), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows] if names else [{}] * memory.length


_READERS: dict[str, Callable[[Column, Filled], list[Any]]] = {
    "bool": _read_bools,
    **dict.fromkeys(_CODES, _read_numbers),
    "string": _read_strings,
    "binary": _read_octets,
    "map": _read_map,
    "struct": _read_struct,
    "content": _read_struct,
}
