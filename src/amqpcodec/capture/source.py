"""Octets of a capture file, uncompressed on the way, with their place for error messages."""

from __future__ import annotations

import io
import os
from types import TracebackType
from typing import BinaryIO, Protocol

from .inflate import Inflated, compression

_CHUNK = 1 << 17
_MAGIC = 4  # octets at the start of a file that tell how it is compressed


class Octets(Protocol):
    """What the readers of containers need of a source, see `ByteSource`."""

    @property
    def offset(self) -> int:
        """Octets before the next one."""

    @property
    def fault(self) -> str | None:
        """Why the octets ended before their time, if they did."""

    def peek(self, size: int) -> bytes:
        """The next octets without taking them."""

    def read(self, size: int) -> bytes:
        """The next octets."""


class ByteSource:
    """Reads a file front to back; gzip and Zstandard are recognised by their first octets.

    Args:
        file: a path, or an object with ``read`` giving octets; need not be seekable. Closed by `close`
            only if it was opened here.
    """

    def __init__(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        self._owned = isinstance(file, (str, os.PathLike))
        self._raw = open(file, "rb", 0) if isinstance(file, (str, os.PathLike)) else file  # noqa: SIM115
        self._counted = _Counted(self._raw)
        plain = io.BufferedReader(self._counted, _CHUNK)
        self.compression = compression(plain.peek(_MAGIC)[:_MAGIC])  # its name, "" for none
        self._inflated = Inflated(plain, self.compression) if self.compression else None
        self._stream = plain if self._inflated is None else io.BufferedReader(self._inflated, _CHUNK)
        self._ahead = b""
        self.offset = 0

    @property
    def fault(self) -> str | None:
        """Why the file ended before its time, if it did."""
        return self._inflated.fault if self._inflated else None

    @property
    def consumed(self) -> int:
        """Octets taken from the file itself, before decompression: a measure of progress."""
        return self._counted.count

    def peek(self, size: int) -> bytes:
        """The next octets without taking them; fewer than `size` only at the end."""
        missing = size - len(self._ahead)
        if missing > 0:
            self._ahead += self._pull(missing)
        return self._ahead[:size]

    def read(self, size: int) -> bytes:
        """The next `size` octets; fewer only at the end of the file or of what can be uncompressed.

        A compressed file that breaks off or is damaged ends there, and `fault` says so.
        """
        if self._ahead:
            taken, self._ahead = self._ahead[:size], self._ahead[size:]
            octets = taken + self._pull(size - len(taken)) if len(taken) < size else taken
        else:
            octets = self._pull(size)
        self.offset += len(octets)
        return octets

    def readinto(self, buffer: memoryview) -> int:
        """Take as many octets into a buffer as can be had at once; gives their number, 0 at the end."""
        if self._ahead:
            size = min(len(buffer), len(self._ahead))
            buffer[:size] = self._ahead[:size]
            self._ahead = self._ahead[size:]
        else:
            # By the same steps as for `read`, so that a fault or an error has the same octets before it.
            size = self._stream.readinto1(buffer[:_CHUNK])
        self.offset += size
        return size

    def skip(self, size: int) -> None:
        """Pass over octets; where the file can seek and is not compressed, without reading them.

        Raises:
            ValueError: there are not so many.
        """
        left = size - len(self._ahead)
        self._ahead = self._ahead[size:]
        if left > 1 and self._inflated is None and self._counted.seekable():
            self._stream.seek(left - 1, os.SEEK_CUR)
            left = 1  # whose absence tells
        while left > 0:
            found = len(self._stream.read(min(left, _CHUNK)))
            if not found:
                raise ValueError(f"the file has less than {size} octets here")
            left -= found
        self.offset += size

    def _pull(self, size: int) -> bytes:
        if size <= _CHUNK:
            return self._stream.read(size)
        # In pieces, so that a length from a damaged file reserves no memory before its octets are there.
        pieces: list[bytes] = []
        while size and (piece := self._stream.read(min(size, _CHUNK))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self._owned:
            self._raw.close()

    def __enter__(self) -> ByteSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Counted(io.RawIOBase):
    """The file as a raw stream that counts what is taken from it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._fill = getattr(file, "readinto1", None) or getattr(file, "readinto", None)
        self._seekable = hasattr(file, "seekable") and file.seekable()
        self.count = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._seekable

    def tell(self) -> int:
        return self.count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_SET:
            offset -= self.count
        self._file.seek(offset, os.SEEK_CUR)
        self.count += offset
        return self.count

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        size = self._take(buffer)
        # A pipe may give less at first than tells how it is compressed.
        while size and self.count < _MAGIC and (more := self._take(buffer[size:])):
            size += more
        return size

    def _take(self, buffer: memoryview) -> int:
        if self._fill is not None:
            size: int = self._fill(buffer)
        else:
            octets = self._file.read(len(buffer))
            size = len(octets)
            buffer[:size] = octets
        self.count += size
        return size
