"""Limits on what a decoder accepts; none of them sizes an allocation, they only refuse."""

from __future__ import annotations

from ._typing import NoReturn

# Each level of nesting costs the compiled build up to 800 octets of stack. The default of 128 levels fits
# the smallest thread stacks in use (128 KiB on musl) with room to spare; these fit in 256 KiB.
MAX_TABLE_DEPTH = 256

MAX_LIMIT = 2**63 - 1
_GREATEST = {"table_depth": MAX_TABLE_DEPTH, "cached_strings": 65536}


class Limits:
    """The limits beyond which a decoder refuses, whatever was negotiated.

    Attributes:
        frame_size: octets of one frame with its 8 octets of envelope, also where frame_max is larger or
            0 (no limit agreed). The default is the most that the wire can express: a decoder holds no
            more than has come.
        table_depth: how deep tables and arrays may nest; also when encoding. At most 256; beyond the default
            of 128, threads need a stack of 256 KiB, which only musl does not give them.
        table_octets: octets of one field table, its length not counted.
        table_entries: entries and array items of one field table, nested ones included.
        array_items: items of one array, those of nested ones not counted.
        body_size: octets of one message body, as announced by its content header (`MessageDecoder`).
        open_messages: channels with a message not yet complete (`MessageDecoder`).
        cached_strings: places for short strings that a decoder of the compiled build keeps to return again,
            rounded down to a power of two, at most 65536. The strings take 16 bytes of memory a place at
            most, so some places are empty. A string that is not kept is made anew.

    Going over a limit raises `DecodeError`: 501 for frames, 506 for tables, arrays and open messages,
    311 for bodies; `EncodeError` for the depth of a value to be encoded. The cache just stays small.

    Raises:
        ValueError: a limit that is not a positive int, or beyond 2**63 - 1; a table_depth beyond 256;
            cached_strings beyond 65536.
    """

    __slots__ = (
        "array_items",
        "body_size",
        "cached_strings",
        "frame_size",
        "open_messages",
        "table_depth",
        "table_entries",
        "table_octets",
    )

    frame_size: int
    table_depth: int
    table_octets: int
    table_entries: int
    body_size: int
    open_messages: int
    array_items: int
    cached_strings: int

    def __init__(
        self,
        frame_size: int = 2**32 + 7,
        table_depth: int = 128,
        table_octets: int = 2**32 - 1,
        table_entries: int = 1_000_000,
        body_size: int = 512 * 1024 * 1024,
        open_messages: int = 65535,
        array_items: int = 1_000_000,
        cached_strings: int = 256,
    ) -> None:
        given = locals()
        for name in self.__slots__:
            if not issubclass(type(given[name]), int):
                raise ValueError(f"Limits.{name} must be positive, not {given[name]!r}")
            # The number itself: a subclass could make anything of its comparisons.
            number, most = int.__add__(given[name], 0), _GREATEST.get(name, MAX_LIMIT)
            if number < 1:
                raise ValueError(f"Limits.{name} must be positive, not {number}")
            if number > most:
                raise ValueError(f"Limits.{name} must be at most {most}, not {number}")
            object.__setattr__(self, name, number)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("Limits cannot be changed; make another")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("Limits cannot be changed; make another")

    def _values(self) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, Limits) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return f"Limits({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"

    def __reduce__(self) -> tuple[object, ...]:
        values = (self.frame_size, self.table_depth, self.table_octets, self.table_entries)
        return Limits, (*values, self.body_size, self.open_messages, self.array_items, self.cached_strings)


DEFAULT_LIMITS = Limits()
_OF_TABLES = ("table_depth", "table_octets", "table_entries", "array_items")


def table_limits(limits: Limits) -> Limits | None:
    """Return limits for reading a field table; None where they do not differ from the default ones."""
    if all(getattr(limits, name) == getattr(DEFAULT_LIMITS, name) for name in _OF_TABLES):
        return None
    return limits


def checked_limits(limits: Limits) -> Limits:
    """Limits as they were checked: those of another class, or a derived one, could be anything.

    Raises:
        TypeError: not `Limits`.
    """
    if type(limits) is not Limits:
        raise TypeError(f"limits must be Limits, not {type(limits).__name__}")
    return limits


__all__ = ["Limits"]
