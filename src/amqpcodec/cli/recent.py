"""A bounded memory of connections, of which a recording may have any number."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

MOST = 65_536
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """A mapping that forgets: it has at least the `most` keys used last, and at most twice as many.

    Args:
        most: that number.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._new: dict[_Key, _Value] = {}
        self._old: dict[_Key, _Value] = {}

    def get(self, key: _Key) -> _Value | None:
        """A value; None if there is none, or none any more."""
        value = self._new.get(key)
        if value is None and key in self._old:
            value = self[key] = self._old.pop(key)
        return value

    def __setitem__(self, key: _Key, value: _Value) -> None:
        if len(self._new) >= self._most and key not in self._new:
            self._old, self._new = self._new, {}
        self._new[key] = value

    def pop(self, key: _Key) -> None:
        """Forget a key, if it is there."""
        self._new.pop(key, None)
        self._old.pop(key, None)

    def __len__(self) -> int:
        return len(self._new) + len(self._old)
