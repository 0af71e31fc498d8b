"""Which frames the user wants to see."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from ..capture import CapturedFrame

_METHOD, _HEADER, _BODY = 1, 2, 3


class Selection:
    """Frames by channel and by method.

    A content header and its bodies are wanted when the method they belong to is.

    Args:
        channels: channel numbers, or None for all.
        globs: patterns of method names such as ``"basic.*"``, or None for all frames. Case and missing
            hyphens do not matter: ``"Basic.GetOk"``, as the class is called, is ``"basic.get-ok"``.
    """

    def __init__(self, channels: Sequence[int] | None, globs: Sequence[str] | None) -> None:
        self._channels = frozenset(channels) if channels else None
        self._globs = tuple(glob.lower() for glob in globs or ())
        self._content: dict[tuple[int, int, int], bool] = {}
        self._matches = lru_cache(maxsize=1024)(self._matches_any)

    def wants(self, item: CapturedFrame) -> bool:
        """Whether to show a frame. Every frame of a capture has to be asked about, in order."""
        frame = item.frame
        if self._channels is not None and frame.channel not in self._channels:
            return False
        if not self._globs:
            return True
        location = item.connection.number, item.direction, frame.channel
        if frame.type == _METHOD:
            wanted = self._matches(frame.payload.spec.name)
            self._content[location] = wanted
            return wanted
        return frame.type in (_HEADER, _BODY) and self._content.get(location, False)

    def _matches_any(self, name: str) -> bool:
        forms = (name, name.replace("-", ""))
        return any(fnmatchcase(form, glob) for form in forms for glob in self._globs)
