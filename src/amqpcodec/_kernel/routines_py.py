"""The routines of a layout: what reads and writes the fields of its records. The twin of routines_c.pyx."""

from __future__ import annotations

from .._typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from .reader_py import Reader
    from .writer_py import WriterRules

# Reads values from data[pos:end]: where what was read ends, and the values.
ReadRoutine: TypeAlias = "Callable[[Reader, bytes | bytearray, int, int], tuple[int, tuple[Any, ...]]]"
# Appends values to octets.
WriteRoutine: TypeAlias = "Callable[[tuple[Any, ...], bytearray, WriterRules], None]"


class Routines(NamedTuple):
    """One function reads records of a layout, and one writes them. Both may decline, by one of `DECLINED`."""

    read: ReadRoutine
    write: WriteRoutine
