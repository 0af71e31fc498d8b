"""The state of a suspended session as bytes: ordinary values, checked when they are read.

A state is a tree of lists; its leaves are None, bool, int, str and bytes. It is stored as JSON, with the
bytes behind it. Reading a state therefore makes only such values, whoever wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

# Called with the number of every packet in a state; returns it.
Note = Callable[[int | None], int | None]

FORM = 4  # incremented when the contents of a state or their meaning change
_MAGIC = b"amqpcodec state "
_CHECKSUM = 4  # octets
_LENGTH = 8
_FURTHEST = 1 << 60  # of any number but times; sums of a few of them fit into 64 bits
_LAST_NS = 1 << 62  # no time is as far from 1970 as this


def pack(tree: Any) -> bytes:
    """A tree as bytes."""
    chunks: list[bytes] = []

    def aside(octets: bytes) -> dict[str, int]:
        chunks.append(octets)
        return {"octets": len(octets)}

    text = json.dumps(tree, default=aside, separators=(",", ":")).encode()
    body = b"".join((len(text).to_bytes(_LENGTH, "big"), text, *chunks))
    return b"".join((_head(), _checksum(body), body))


def unpack(state: bytes) -> Fields:
    """The tree that `pack` has packed.

    Raises:
        TypeError: it is something else than bytes.
        ValueError: the bytes are damaged, or of another form.
    """
    if not isinstance(state, bytes | bytearray):
        raise TypeError(f"state: must be bytes, not {type(state).__name__}")
    head = _head()
    if not state.startswith(_MAGIC):
        raise ValueError("this is no state")
    if not state.startswith(head):
        form = state[len(_MAGIC) :].partition(b"\n")[0][:20].decode("ascii", "replace")
        raise ValueError(f"the state has form {form}, and this version of the library reads form {FORM}")
    begin = len(head) + _CHECKSUM
    body = state[begin:]
    if _checksum(body) != state[len(head) : begin]:
        raise damaged("its checksum is wrong")
    at = _LENGTH + int.from_bytes(body[:_LENGTH], "big")

    def fetch(found: dict[str, Any]) -> bytes:
        nonlocal at
        start, at = at, at + int(found["octets"])
        if not start <= at <= len(body):
            raise ValueError("octets are missing")
        return body[start:at]

    try:
        tree = json.loads(body[_LENGTH:at], object_hook=fetch)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise damaged(f"its form is wrong: {error}") from None
    return Fields(tree)


def _head() -> bytes:
    return b"%b%d\n" % (_MAGIC, FORM)


def _checksum(octets: bytes) -> bytes:
    return crc32(octets).to_bytes(_CHECKSUM, "big")


def damaged(reason: str) -> ValueError:
    """The error of an invalid state."""
    return ValueError(f"the state is damaged: {reason}")


def _utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise damaged("there is text that is none") from None
    return text


class Fields:
    """The values of a list in a state, read one by one in order.

    Every method raises ValueError if the next value is of another kind or out of range.
    """

    __slots__ = ("_at", "_values")

    def __init__(self, values: Any) -> None:
        if type(values) is not list:
            raise damaged("there is no list where one should be")
        self._values = values
        self._at = 0

    def is_next(self, kind: type) -> bool:
        """Return whether a value of a kind follows that is not empty; states of earlier versions lack it."""
        value = self._values[self._at] if self._at < len(self._values) else None
        return type(value) is kind and bool(value)

    def _take(self, missing: Any) -> Any:
        self._at += 1
        return self._values[self._at - 1] if self._at <= len(self._values) else missing

    def _next(self, *kinds: type) -> Any:
        value = self._take(self)
        if type(value) not in kinds:
            raise damaged("a value is missing, or is of another kind")
        return value

    def number(self, low: int = -_FURTHEST, high: int = _FURTHEST) -> int:
        """An int from `low` to `high`."""
        value: int = self._next(int)
        if not low <= value <= high:
            raise damaged(f"{value} is out of range")
        return value

    def later(self, low: int = -_FURTHEST, high: int = _FURTHEST) -> int:
        """An int from `low` to `high` that states of earlier versions lack: then 0."""
        value = self._take(0)
        if type(value) is not int or not low <= value <= high:
            raise damaged("a value is of another kind, or out of range")
        return value

    def perhaps(self, low: int = -_FURTHEST, high: int = _FURTHEST) -> int | None:
        """An int in a range, or None."""
        value: int | None = self._next(int, type(None))
        if value is not None and not low <= value <= high:
            raise damaged(f"{value} is out of range")
        return value

    def packet(self) -> int | None:
        """The number of a packet, or None."""
        return self.perhaps(low=1)

    def time(self) -> int | None:
        """A time in nanoseconds, or None."""
        return self.perhaps(1 - _LAST_NS, _LAST_NS - 1)

    def flag(self) -> bool:
        """A bool."""
        value: bool = self._next(bool)
        return value

    def octets(self) -> bytes:
        """Octets."""
        value: bytes = self._next(bytes)
        return value

    def octets_or_none(self) -> bytes | None:
        """Octets or None."""
        value: bytes | None = self._next(bytes, type(None))
        return value

    def text(self) -> str:
        """Text that can be written as UTF-8."""
        return _utf8(self._next(str))

    def text_or_none(self) -> str | None:
        """Such text or None."""
        value: str | None = self._next(str, type(None))
        return None if value is None else _utf8(value)

    def list(self) -> list[Any]:
        """A list of any values."""
        value: list[Any] = self._next(list)
        return value

    def fields(self) -> Fields:
        """A list, to be read one by one."""
        return Fields(self._next(list))

    def items(self) -> Iterator[Fields]:
        """A list of such lists."""
        return map(Fields, self._next(list))

    def expect(self, value: Any, complaint: str) -> None:
        """This value and no other; else the error has this text."""
        if self._take(self) != value:
            raise ValueError(complaint)

    def end(self) -> None:
        """There is nothing more."""
        if self._take(self) is not self:
            raise damaged("there are values too many")
