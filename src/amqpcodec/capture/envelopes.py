"""One frame out of the octets at hand, whoever keeps them."""

from __future__ import annotations

import struct
from typing import Any

from amqpcodec import Frame, Limits
from amqpcodec._kernel.framing import MORE, WHOLE, frame_at, framing_error
from amqpcodec._kernel.wire import ENVELOPE_SIZE, FRAME_END, METHOD, OVERHEAD, PROTOCOL_HEADER

from . import dialects

_HEAD = struct.Struct("!BH")
_IDS = struct.Struct("!HH")
_LEAST_METHOD = OVERHEAD + _IDS.size


def method_ids(octets: bytes) -> tuple[int, int] | None:
    """Class and method id in a method's frame; None if it is too short for them."""
    if len(octets) < _LEAST_METHOD:
        return None
    class_id, method_id = _IDS.unpack_from(octets, ENVELOPE_SIZE)
    return class_id, method_id


def is_frame(octets: bytes, frame_type: int) -> bool:
    """Return whether octets are one whole frame of a type."""
    whole = len(octets) >= OVERHEAD and octets[0] == frame_type and octets[-1] == FRAME_END
    return whole and int.from_bytes(octets[3:ENVELOPE_SIZE], "big") + OVERHEAD == len(octets)


class FrameReader:
    """Cuts frames of a dialect from octets, and decodes them. It keeps no octets. Its errors are those of
    `FrameDecoder`.

    Args:
        module: of the dialect.
        alternate: module of the dialect that knows further methods, if there is one.
        limits: `frame_size` counts here.
        payloads: whether to decode what frames carry; otherwise it stays octets.

    Attributes:
        module, alternate: as the arguments.
        dialect: name of the dialect.
        common: what `DirectionState.frames` needs: a decoder, the dialect's name, mask of frame types, limit
            of payloads, class of the methods that negotiate. None if frames have to be decoded one by one.
    """

    def __init__(self, module: Any, alternate: Any, limits: Limits, payloads: bool) -> None:
        self.module = module
        self.dialect = str(module.DIALECT.name)
        self.alternate = alternate
        self._alternate = FrameReader(alternate, None, limits, payloads) if alternate else None
        self._additions = dialects.additions(module, alternate) if alternate else frozenset()
        # What was recorded is read whatever size was agreed on.
        self._decoder = module.FrameDecoder(frame_max=0, limits=limits, expect_header=False)
        self._types = module.DIALECT.frame_mask
        self._size_limit = limits.frame_size - OVERHEAD
        self._payloads = payloads
        negotiating = dialects.negotiating_class(module)
        self.common = None
        if payloads and alternate is None and negotiating is not None:
            self.common = self._decoder, self.dialect, self._types, self._size_limit, negotiating

    def of(self, octets: bytes) -> FrameReader:
        """The reader for a whole frame: this one, or that of the alternate dialect."""
        alternate = self._alternate
        if alternate is None or octets[0] != METHOD:
            return self
        return alternate if method_ids(octets) in self._additions else self

    def cut(self, buffer: bytearray | memoryview, start: int) -> bytes | None:
        """The frame that a buffer begins with; None if it is not whole.

        Args:
            buffer: what is at hand; only the frame's head and end are looked at.
            start: octets of the stream before it. Only the first ones of all may be a protocol header.

        Raises:
            DecodeError: fatal; there is no frame, or it has no end.
        """
        end = len(buffer)
        status, size = frame_at(buffer, 0, end, self._types, self._size_limit, opens=not start)
        if status == WHOLE:
            return bytes(buffer[:size])
        if status == MORE:
            return None
        error = framing_error(status, size, buffer, 0, self._size_limit, start)
        error.dialect = self.dialect
        raise error

    def read(self, octets: bytes) -> Frame:
        """Decode a frame that was cut.

        Raises:
            DecodeError: it breaks the protocol; fatal only for a protocol header.
        """
        kind, channel = _HEAD.unpack_from(octets)
        if kind == PROTOCOL_HEADER:
            header: Frame = next(self.module.FrameDecoder().feed(octets))
            return header
        if not self._payloads:
            return Frame(kind, channel, octets[ENVELOPE_SIZE:-1])
        return self.decode(octets)

    def decode(self, octets: bytes) -> Frame:
        """Decode a frame that was cut, payload and all.

        Raises:
            DecodeError: it breaks the protocol.
        """
        try:
            frame: Frame = next(self._decoder.feed(octets))
        except BaseException:
            self._decoder.reset()
            raise
        return frame
