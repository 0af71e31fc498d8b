"""The bytes of a capture file, uncompressed, with their offset for error messages."""

from __future__ import annotations

import io
import os
from collections.abc import Generator, Iterable
from types import TracebackType
from typing import BinaryIO, Protocol, cast

from .inflate import Inflated, compression

_CHUNK = 1 << 17
_MAGIC = 4  # bytes at the start of a file that identify its compression


class Octets(Protocol):
    """The interface that readers of containers need from a source, see `ByteSource`."""

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
        file: a path, or an object with ``read`` that returns bytes; need not be seekable. Closed by `close`
            only if it was opened here.

    Raises:
        OSError: the path cannot be opened or read.
        TypeError: neither a path nor such an object.
    """

    def __init__(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        self._owned = isinstance(file, (str, os.PathLike))
        if not self._owned and not callable(getattr(file, "read", None)):
            raise TypeError(f"file: must be a path or a binary file object, not {type(file).__name__}")
        self._raw = open(file, "rb", 0) if isinstance(file, (str, os.PathLike)) else file  # noqa: SIM115
        self._counted = _Counted(self._raw)
        file_bytes = io.BufferedReader(self._counted, _CHUNK)
        self.compression = compression(file_bytes.peek(_MAGIC)[:_MAGIC])  # its name, "" for none
        self._inflated = Inflated(file_bytes, self.compression) if self.compression else None
        self._stream = file_bytes if self._inflated is None else io.BufferedReader(self._inflated, _CHUNK)
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
        """Read into a buffer as far as possible at once; returns the number of bytes, 0 at the end."""
        if self._ahead:
            size = min(len(buffer), len(self._ahead))
            buffer[:size] = self._ahead[:size]
            self._ahead = self._ahead[size:]
        else:
            # In the same steps as `read`, so that a fault or an error comes after the same bytes.
            size = self._stream.readinto1(buffer[:_CHUNK])
        self.offset += size
        return size

    def skip(self, size: int) -> None:
        """Skip bytes; a seekable file that is not compressed skips them without reading.

        Raises:
            ValueError: the file has fewer.
        """
        left = size - len(self._ahead)
        self._ahead = self._ahead[size:]
        if left > 1 and self._inflated is None and self._counted.seekable():
            self._stream.seek(left - 1, os.SEEK_CUR)
            left = 1  # its absence shows a shorter file
        while left > 0:
            found = len(self._stream.read(min(left, _CHUNK)))
            if not found:
                raise ValueError(f"the file has less than {size} octets here")
            left -= found
        self.offset += size

    def _pull(self, size: int) -> bytes:
        if size <= _CHUNK:
            return self._stream.read(size)
        # In chunks, so that a length from a damaged file reserves no memory before its bytes are there.
        chunks: list[bytes] = []
        while size and (chunk := self._stream.read(min(size, _CHUNK))):
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

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


Source = str | os.PathLike[str] | BinaryIO | ByteSource


def each_of(files: Source | Iterable[Source]) -> Iterable[Source]:
    """Return several files as they are, and a single one as several."""
    if isinstance(files, (str, bytes)) or hasattr(files, "read") or not isinstance(files, Iterable):
        return (cast(Source, files),)
    return files


def opened(files: Source | Iterable[Source]) -> Generator[ByteSource]:
    """Yield files as sources, each opened when it is its turn, and closed behind it if it was opened here.

    Raises:
        OSError, TypeError: as for `ByteSource`.
    """
    for file in each_of(files):
        if isinstance(file, ByteSource):
            yield file
        else:
            with ByteSource(file) as source:
                yield source


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
        size = self._fill_from_file(buffer)
        # A pipe may return less at first than the magic number of a compression.
        while size and self.count < _MAGIC and (more := self._fill_from_file(buffer[size:])):
            size += more
        return size

    def _fill_from_file(self, buffer: memoryview) -> int:
        if self._fill is not None:
            size: int = self._fill(buffer)
        else:
            octets = self._file.read(len(buffer))
            size = len(octets)
            buffer[:size] = octets
        self.count += size
        return size
