"""Frames without a look at what they carry."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from amqpcodec import Frame, Limits

_HEAD = struct.Struct("!BHI")
_ENVELOPE = 8
_FRAME_END = 0xCE
_HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"


class EnvelopeDecoder:
    """Takes the place of a dialect's `FrameDecoder`: its frames carry their payloads as octets.

    What is no plain frame is given to a `FrameDecoder`, so that errors, all of them fatal, are the same.

    Args:
        dialect: module of the dialect.
        limits: `frame_size` counts here.

    Attributes:
        offset: octets from the start of the stream to the end of the last frame.
    """

    def __init__(self, dialect: Any, limits: Limits) -> None:
        self._dialect = dialect
        self._limits = limits
        self._types = dialect.DIALECT.frame_types
        self._buffer = bytearray()
        self.offset = 0

    def feed(self, octets: bytes) -> Iterator[Frame]:
        """Take octets from the stream; gives itself to iterate over."""
        self._buffer += octets
        return self

    def __iter__(self) -> Iterator[Frame]:
        return self

    def __next__(self) -> Frame:
        buffer = self._buffer
        if len(buffer) < _HEAD.size:
            raise StopIteration
        kind, channel, size = _HEAD.unpack_from(buffer)
        end = size + _ENVELOPE
        if kind not in self._types or end > self._limits.frame_size:
            return self._exactly()
        if len(buffer) < end:
            raise StopIteration
        if buffer[end - 1] != _FRAME_END:
            return self._exactly()
        frame = Frame(kind, channel, bytes(buffer[_HEAD.size : end - 1]))
        self._pass(end)
        return frame

    def _exactly(self) -> Frame:
        """What a `FrameDecoder` says of the next frame: it may be a protocol header.

        Raises:
            DecodeError: it is none.
        """
        decoder = self._dialect.FrameDecoder(frame_max=0, limits=self._limits)
        if self.offset:
            next(decoder.feed(_HEARTBEAT))  # only the first octets of a stream can be a protocol header
        before = decoder.offset
        frame: Frame = next(decoder.feed(bytes(self._buffer)))
        self._pass(decoder.offset - before)
        return frame

    def _pass(self, size: int) -> None:
        del self._buffer[:size]
        self.offset += size
