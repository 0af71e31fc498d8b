"""Reading from stores over a network: few large requests, made before their octets are needed."""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

_FIRST = 1 << 17  # octets: many files are only looked at
_LARGEST = 8 << 20  # octets: a request that waits 30 ms then costs little of the time
_GROWTH = 8  # each request is so many times the one before it
_IN_FLIGHT = 2  # requests, beside the one whose octets are being read


class ReadAhead(io.RawIOBase):
    """A file of a store, read by few requests; at most 24 MiB of it are in memory.

    The first request is small, and is made alone. Those after it grow to 8 MiB, and two are under way while
    an earlier one is being read. After a seek to elsewhere this begins anew.

    Args:
        file: a file of pyarrow with random access. It is closed with this one.
        end: where reading will end, if it is known: nothing after it is requested before it is needed.
    """

    def __init__(self, file: Any, end: int | None = None) -> None:
        self._file = file
        self._size: int = file.size()
        self._end = self._size if end is None else min(end, self._size)
        self._position = self._asked = 0
        self._request = _FIRST  # octets of the next one
        self._begin, self._octets = 0, b""  # the request that is being read: its offset, its octets
        self._coming: deque[tuple[int, Callable[[], bytes]]] = deque()  # those after it, in order
        self._threads: ThreadPoolExecutor | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset of the next octet."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to an offset; return it."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return how many octets it got, fewer only at the end.

        Raises:
            OSError: the store does not give them.
        """
        room, filled = memoryview(buffer).cast("B"), 0
        while filled < len(room) and self._position < self._size:
            octets = self._here(len(room) - filled)
            if not octets:
                break  # the file has become shorter
            count = min(len(octets), len(room) - filled)
            room[filled : filled + count] = octets[:count]
            filled += count
            self._position += count
        return filled

    def close(self) -> None:
        """Close the file, after the requests that are under way."""
        if not self.closed:
            if self._threads is not None:
                self._threads.shutdown(cancel_futures=True)
            self._coming.clear()
            self._file.close()
        super().close()

    def _here(self, wanted: int) -> memoryview:
        """Return octets from the position on, at least one if the file has any there."""
        while not 0 <= self._position - self._begin < len(self._octets):
            if not self._begin <= self._position <= self._asked:
                self._restart()
            if not self._coming:
                self._ask(wanted)
            offset, octets = self._coming.popleft()
            self._begin, self._octets = offset, octets()
            if not self._octets:
                break
            if self._request > _FIRST * _GROWTH and self._asked < self._end:
                self._ask(wanted)
        return memoryview(self._octets)[self._position - self._begin :]

    def _ask(self, wanted: int) -> None:
        """Request what comes next: the first time that alone, else as much as may be under way."""
        if self._request == _FIRST:
            size = self._grown(wanted)
            self._coming.append((self._asked, partial(self._file.read_at, size, self._asked)))
            self._asked += size
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_IN_FLIGHT, "amqpcodec-read-ahead")
        while len(self._coming) < _IN_FLIGHT and (self._asked < self._end or not self._coming):
            size = (
                min(self._grown(0), self._end - self._asked)
                if self._asked < self._end
                else max(wanted, _FIRST)
            )
            octets = self._threads.submit(self._file.read_at, size, self._asked)
            self._coming.append((self._asked, octets.result))
            self._asked += size

    def _grown(self, wanted: int) -> int:
        """Return the octets of the next request; the one after it is larger."""
        size, self._request = max(self._request, wanted), min(self._request * _GROWTH, _LARGEST)
        return size

    def _restart(self) -> None:
        """Begin anew at the position."""
        self._coming.clear()
        self._begin, self._octets = self._position, b""
        self._asked, self._request = self._position, _FIRST
