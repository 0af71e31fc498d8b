"""Compressed files as streams of what is in them: gzip (RFC 1952) and Zstandard (RFC 8878).

Zstandard is served by the standard library from Python 3.14 on, before that by the package `zstandard`.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

_STEP = 1 << 16
# A block of Zstandard may hold 128 KiB in four octets, and the package `zstandard` returns all of a step.
_ZSTANDARD_STEP = 1 << 10
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTANDARD_MAGIC = b"\x28\xb5\x2f\xfd"
_NO_ZSTANDARD = "the file is compressed with zstd; to read it: pip install zstandard"


class _Member(Protocol):
    """A part that can be uncompressed on its own: a gzip member, a Zstandard frame."""

    eof: bool
    rest: bytes  # of its last input, the octets that it did not use

    def decompress(self, octets: bytes, size: int) -> bytes:
        """About `size` octets; raises `_DamageError`."""


class _DamageError(Exception):
    """Octets that cannot be uncompressed, and the octets before the damage."""

    def __init__(self, reason: Exception, octets: bytes = b"") -> None:
        super().__init__(str(reason))
        self.octets = octets


class _GzipMember:
    def __init__(self) -> None:
        self._object = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self.eof = False
        self.rest = b""

    def decompress(self, octets: bytes, size: int) -> bytes:
        untouched = self._object.copy()
        try:
            found = self._object.decompress(octets, size)
        except zlib.error as error:
            raise _DamageError(error, _before_damage(untouched, octets, size)) from None
        self.eof = self._object.eof
        self.rest = self._object.unused_data if self.eof else self._object.unconsumed_tail
        return found


def _before_damage(member: zlib._Decompress, octets: bytes, size: int) -> bytes:
    """The output of a failed step as far as it comes octet by octet."""
    found = b""
    try:
        for at in range(len(octets)):
            found += member.decompress(octets[at : at + 1], size)
    except zlib.error:
        pass
    return found[:size]


class _ZstandardFrame:
    """A frame, by either of the libraries."""

    def __init__(self, frame: Any, bounded: bool, error: type[Exception]) -> None:
        self._frame = frame
        self._bounded = bounded
        self._error = error
        self.eof = False
        self.rest = b""

    def decompress(self, octets: bytes, size: int) -> bytes:
        try:
            found: bytes = self._frame.decompress(octets, *((size,) if self._bounded else ()))
        except self._error as error:
            raise _DamageError(error) from None
        self.eof = self._frame.eof
        self.rest = self._frame.unused_data if self.eof else b""
        return found


def _zstandard() -> Callable[[], _Member] | None:
    """A function that makes a reader of frames; None without a library."""
    try:
        library = import_module("compression.zstd")
        return lambda: _ZstandardFrame(library.ZstdDecompressor(), True, library.ZstdError)
    except ImportError:
        pass
    try:
        package = import_module("zstandard")
    except ImportError:
        return None
    return lambda: _ZstandardFrame(package.ZstdDecompressor().decompressobj(), False, package.ZstdError)


def compression(head: bytes) -> str:
    """How a file is compressed that begins with these octets; "" if it is not."""
    if head[:2] == _GZIP_MAGIC:
        return "gzip"
    return "zstd" if head[:4] == _ZSTANDARD_MAGIC else ""


class Inflated(io.RawIOBase):
    """The contents of a compressed file of one or more members, as far as they can be read.

    Args:
        file: the compressed octets.
        name: how they are compressed, ``"gzip"`` or ``"zstd"``.

    It returns everything before a fault, and then ends; `fault` is the reason.
    """

    def __init__(self, file: io.BufferedReader[Any], name: str) -> None:
        self._file = file
        self._name = name
        self._step = _STEP if name == "gzip" else _ZSTANDARD_STEP
        self.fault: str | None = None
        begin = _GzipMember if name == "gzip" else _zstandard()
        if begin is None:
            self.fault = _NO_ZSTANDARD
            begin = _GzipMember  # never asked
        self._begin: Callable[[], _Member] = begin
        self._member = begin()
        self._input = b""
        self._output = memoryview(b"")

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer as far as possible at once; returns the number of bytes, 0 at the end."""
        while not self._output and not self.fault:
            if not self._input:
                self._input = self._file.read(self._step)
            if self._member.eof and not self._next_member():
                break
            self._output = memoryview(self._inflate(len(buffer)))
        size = min(len(buffer), len(self._output))
        buffer[:size] = self._output[:size]
        self._output = self._output[size:]
        return size

    def _next_member(self) -> bool:
        """Begin the next member, if there is one; zeros behind the last one of gzip are padding."""
        if self._name == "gzip":
            self._input = self._input.lstrip(b"\0")
        if self._input:
            self._member = self._begin()
        return bool(self._input)

    def _inflate(self, size: int) -> bytes:
        ended = not self._input
        try:
            octets = self._member.decompress(self._input, size)
        except _DamageError as damage:
            self.fault = f"the {self._name} data is damaged: {damage}"
            return damage.octets
        self._input = self._member.rest
        if ended and not octets and not self._member.eof:
            self.fault = f"the {self._name} data is cut off"
        return octets
