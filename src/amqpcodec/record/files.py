"""The files of a recorder: one, or one after the other, which are written as far as the disk takes it."""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import suppress

from ..capture.writing import FILE_HEADER

# Windows writes text where it is not told otherwise; elsewhere children inherit files.
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_MODE = 0o600  # who may read what was said is for its owner to decide


class CaptureFiles:
    """Files that packets are written to.

    Args:
        path: of the file. Where there may be several, their names have a number and a time before the ending.
        rotate_bytes: how large a file may become; None for any size.
        rotate_seconds: how long one is written to; None for any time.
        keep_files: how many are kept, the newest; None for all.

    Attributes:
        count: files so far.
        name: of the current one.

    Raises:
        OSError: the first cannot be opened.
    """

    def __init__(
        self,
        path: str,
        rotate_bytes: int | None,
        rotate_seconds: float | None,
        keep_files: int | None,
    ) -> None:
        self._path = path
        self._rotate_bytes = rotate_bytes
        self._rotate_seconds = rotate_seconds
        self._keep_files = keep_files
        self._kept: deque[str] = deque()
        self.count = 0
        self._unwritten = memoryview(b"")
        self._open()

    def _open(self) -> None:
        name = self._next_name()
        self._file = os.open(name, _FLAGS, _MODE)
        self._opened = time.monotonic()
        self._size = 0
        self._unwritten = memoryview(FILE_HEADER)
        self.name = name
        self.count += 1
        self._kept.append(name)
        while self._keep_files is not None and len(self._kept) > self._keep_files:
            with suppress(OSError):  # it is gone already, or not ours to remove
                os.unlink(self._kept.popleft())

    def _next_name(self) -> str:
        if self._rotate_bytes is None and self._rotate_seconds is None:
            return self._path
        stem, ending = os.path.splitext(self._path)
        now = time.strftime("%Y%m%d%H%M%S", time.gmtime())
        return f"{stem}_{self.count + 1:05}_{now}{ending}"

    def begin(self, records: bytes) -> None:
        """Take records that are to be written whole, to the next file where it is time for one.

        Raises:
            OSError: the next file cannot be opened; the current one is written to.
        """
        is_due = self._is_due(len(records))
        previous = self._file
        try:
            if is_due:
                self._open()
                os.close(previous)
        finally:
            self._begin = max(self._size, len(FILE_HEADER))
            self._unwritten = memoryview(bytes(self._unwritten) + records)

    def _is_due(self, size: int) -> bool:
        if self._size <= len(FILE_HEADER):
            return False
        if self._rotate_bytes is not None and self._size + size > self._rotate_bytes:
            return True
        return self._rotate_seconds is not None and time.monotonic() - self._opened >= self._rotate_seconds

    def write(self) -> bool:
        """Write more; return whether all is written.

        Raises:
            OSError: the disk takes no more for now. Calling again goes on where it has ended.
        """
        while self._unwritten:
            written = os.write(self._file, self._unwritten)
            self._size += written
            self._unwritten = self._unwritten[written:]
        return True

    def give_up(self) -> None:
        """Take back the records of the last `begin`: a file ends with a whole one."""
        self._unwritten = memoryview(b"")
        with suppress(OSError):  # a pipe
            os.ftruncate(self._file, min(self._begin, self._size))
            self._size = os.lseek(self._file, 0, os.SEEK_END)

    def close(self) -> None:
        """Close the current file."""
        with suppress(OSError):
            os.close(self._file)


__all__ = ["CaptureFiles"]
