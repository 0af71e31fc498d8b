"""One frame out of the octets at hand, whoever keeps them."""

from __future__ import annotations

import struct
from typing import Any

from amqpcodec import Frame, Limits
from amqpcodec._kernel.wire import ENVELOPE_SIZE, FRAME_END, METHOD, OVERHEAD, PROTOCOL_HEADER

from .dialects import additions

_HEAD = struct.Struct("!BHI")
_IDS = struct.Struct("!HH")
_LEAST_METHOD = ENVELOPE_SIZE + _IDS.size
_HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"


class FrameReader:
    """Cuts frames of a dialect from octets, and decodes them. It keeps no octets.

    Whatever is refused is refused by a `FrameDecoder` of the dialect, so errors are the same.

    Args:
        module: of the dialect.
        beside: module of the dialect that knows further methods, if there is one.
        limits: `frame_size` counts here.
        payloads: whether to decode what frames carry; otherwise it stays octets.

    Attributes:
        module: as the argument.
        dialect: name of the dialect.
    """

    def __init__(self, module: Any, beside: Any, limits: Limits, payloads: bool) -> None:
        self.module = module
        self.dialect = str(module.DIALECT.name)
        self._beside = FrameReader(beside, None, limits, payloads) if beside else None
        self._additions = additions(module, beside) if beside else frozenset()
        # What was recorded is read whatever size was agreed on.
        self._decoder = module.FrameDecoder(frame_max=0, limits=limits)
        self._types = module.DIALECT.frame_types
        self._largest = limits.frame_size
        self._payloads = payloads

    def of(self, octets: bytes) -> FrameReader:
        """The reader for a whole frame: this one, or that of the dialect beside."""
        beside = self._beside
        if beside is None or octets[0] != METHOD or len(octets) < _LEAST_METHOD:
            return self
        return beside if _IDS.unpack_from(octets, ENVELOPE_SIZE) in self._additions else self

    def cut(self, buffer: bytearray, start: int) -> bytes | None:
        """The frame that a buffer begins with; None if it is not whole.

        Args:
            buffer: what is at hand; only the frame's head and end are looked at.
            start: octets of the stream before it. Only the first ones of all may be a protocol header.

        Raises:
            DecodeError: fatal; there is no frame, or it has no end.
        """
        if len(buffer) < ENVELOPE_SIZE:
            return None
        kind, _, size = _HEAD.unpack_from(buffer)
        end = size + OVERHEAD
        if kind == PROTOCOL_HEADER and not start:
            end = OVERHEAD
        elif kind not in self._types or end > self._largest:
            self._refuse(buffer[:ENVELOPE_SIZE])
        if len(buffer) < end:
            return None
        if kind != PROTOCOL_HEADER and buffer[end - 1] != FRAME_END:
            # As an empty frame: what lies between its head and its end has no part in the error.
            self._refuse(buffer[:3] + bytes(4) + buffer[end - 1 : end])
        return bytes(buffer[:end])

    def read(self, octets: bytes) -> Frame:
        """Decode a frame that was cut.

        Raises:
            DecodeError: it breaks the protocol; fatal only for a protocol header.
        """
        kind, channel, _ = _HEAD.unpack_from(octets)
        if kind == PROTOCOL_HEADER:
            self._decoder.reset()
        elif not self._payloads:
            return Frame(kind, channel, octets[ENVELOPE_SIZE:-1])
        try:
            frame: Frame = next(self._decoder.feed(octets))
        except BaseException:
            self._decoder.reset()
            raise
        return frame

    def _refuse(self, octets: bytearray) -> None:
        """Raise the error for octets that are no frame.

        A heartbeat goes before them, since the decoder takes a protocol header as the first octets alone.
        """
        try:
            next(self._decoder.feed(_HEARTBEAT + octets))
            next(self._decoder)
        finally:
            self._decoder.reset()
