"""Octets of a capture file, uncompressed on the way, with their place for error messages."""

from __future__ import annotations

import io
import os
import zlib
from types import TracebackType
from typing import BinaryIO

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 16


class ByteSource:
    """Reads a file front to back; gzip is recognised by its first two octets.

    Args:
        file: a path, or an object with ``read`` giving octets; need not be seekable. Closed by `close`
            only if it was opened here.
    """

    def __init__(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        self._owned = isinstance(file, (str, os.PathLike))
        self._raw = open(file, "rb", 0) if isinstance(file, (str, os.PathLike)) else file  # noqa: SIM115
        self._counted = _Counted(self._raw)
        plain = io.BufferedReader(self._counted, _CHUNK)
        self.compressed = plain.peek(2)[:2] == _GZIP_MAGIC
        self._inflated = _Inflated(plain) if self.compressed else None
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

    def skip(self, size: int) -> int:
        """Pass over `size` octets in pieces; gives how many there were."""
        passed = 0
        while passed < size:
            piece = self.read(min(_CHUNK, size - passed))
            if not piece:
                break
            passed += len(piece)
        return passed

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
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        octets = self._file.read(len(buffer))
        buffer[: len(octets)] = octets
        self.count += len(octets)
        return len(octets)


class _Inflated(io.RawIOBase):
    """What a gzip file (RFC 1952) of one or more members holds, as far as it can be had.

    Unlike `gzip.GzipFile` it gives out everything in front of a fault, and then ends.
    """

    def __init__(self, file: io.BufferedReader[_Counted]) -> None:
        self._file = file
        self._input = b""
        self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self.fault: str | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        octets = b""
        while not octets and not self.fault:
            if not self._input:
                self._input = self._file.read(_CHUNK)
            if self._member.eof and not self._next_member():
                break
            octets = self._inflate(len(buffer))
        buffer[: len(octets)] = octets
        return len(octets)

    def _next_member(self) -> bool:
        """Go on to the next member, if there is one; zeros behind the last one are padding."""
        self._input = self._input.lstrip(b"\0")
        if self._input:
            self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        return bool(self._input)

    def _inflate(self, size: int) -> bytes:
        ended = not self._input
        untouched = self._member.copy()
        try:
            octets = self._member.decompress(self._input, size)
        except zlib.error as error:
            self.fault = f"the gzip data is damaged: {error}"
            return self._before_fault(untouched, size)
        member = self._member
        self._input = member.unused_data if member.eof else member.unconsumed_tail
        if ended and not octets and not member.eof:
            self.fault = "the gzip data is cut off"
        return octets

    def _before_fault(self, member: zlib._Decompress, size: int) -> bytes:
        """What a step that failed would have given if it had taken one octet at a time."""
        octets = b""
        try:
            for place in range(len(self._input)):
                octets += member.decompress(self._input[place : place + 1], size)
        except zlib.error:
            pass
        return octets[:size]
