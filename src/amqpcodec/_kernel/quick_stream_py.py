"""The short way through a stream, which the decoders of the pure build try first.

It takes whole methods, content headers and bodies that lie in one chunk, when nothing about them is odd. It
changes nothing before it is sure of a frame, so that stream_py.py can start over with any other.
"""

from __future__ import annotations

from struct import Struct

from .._typing import TYPE_CHECKING, Any
from . import frames_py, messages_py
from .quick_reader_py import ODD, OddError
from .records_py import ContentHeader, Frame
from .stream_py import NOTHING, StreamDecoder
from .wire import BODY, ENVELOPE_SIZE, FRAME_END, HEADER, METHOD, OVERHEAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

    from .records_py import Message

_new = object.__new__
_envelope_at = Struct(">BHI").unpack_from
_envelope_and_ids_at = Struct(">BHII").unpack_from
_content_head_at = Struct(">HHQ").unpack_from


class _QuickStream(StreamDecoder):
    """From one frame to the next in one go."""

    __slots__ = ()

    def feed(self, data: Any) -> Any:
        """What the base does."""
        turn = self._turn
        if self._partial is not None and type(data) is bytes and not turn.taken:
            turn.taken = True
            try:
                if self._only_adds(data):
                    return NOTHING
            finally:
                turn.taken = False
        return super().feed(data)

    def _advance(self) -> bool:
        at = self._pos
        if self._partial is None and self._end - at > ENVELOPE_SIZE:
            data = self._chunk
            frame_type, channel, size = _envelope_at(data, at)
            end = at + ENVELOPE_SIZE + size
            plain = METHOD <= frame_type <= BODY and size <= self._size_limit
            if plain and end < self._end and data[end] == FRAME_END:
                reader = self._reader
                reader.frame_type = frame_type
                reader.channel = channel
                reader._data = data
                reader._start = reader._pos = at + ENVELOPE_SIZE
                reader._end = end
                reader._base = self._offset - at
                self._pos = end + 1
                self._offset += size + OVERHEAD
                return True
        return super()._advance()


class FrameDecoder(_QuickStream, frames_py.FrameDecoder):
    """From octets to frame in one go."""

    __slots__ = ()

    if TYPE_CHECKING:

        def feed(self, data: ReadableBuffer) -> Iterator[Frame]: ...

    def __next__(self) -> Frame:
        turn = self._turn
        if self._error is not None or self._partial is not None or self._strict or turn.taken:
            return super().__next__()
        if self._pos == self._end and not self._queue:
            raise StopIteration
        turn.taken = True
        try:
            at = self._pos
            data = self._chunk
            frame_type, channel, size, index = _envelope_and_ids_at(data, at)
            end = at + ENVELOPE_SIZE + size
            if end < self._end and data[end] == FRAME_END and size <= self._size_limit:
                read = -1
                payload: Any = None
                if frame_type == METHOD:
                    payload = _new(self._methods.classes[index])
                    read = payload._take(self._reader, data, at + 11, end)
                elif frame_type == BODY and channel:
                    read, payload = end, data[at + ENVELOPE_SIZE : end]
                    if type(payload) is not bytes:
                        payload = bytes(payload)
                elif frame_type == HEADER and channel:
                    read, payload = end, self._header_at(at + ENVELOPE_SIZE, end)
                if read == end:
                    frame = _new(Frame)
                    frame.type = frame_type
                    frame.channel = channel
                    frame.payload = payload
                    self._pos = end + 1
                    self._offset += size + OVERHEAD
                    if end + 1 == self._end:
                        self._let_go()
                    return frame
        except ODD:
            pass
        finally:
            turn.taken = False
        return super().__next__()

    def _header_at(self, pos: int, end: int) -> ContentHeader:
        data = self._chunk
        header: ContentHeader = _new(ContentHeader)
        class_id, header.weight, header.body_size = _content_head_at(data, pos)
        header.properties = _new(self._properties.classes[class_id])
        if header.properties._take(self._reader, data, pos + 12, end) != end:
            raise OddError
        return header


class MessageDecoder(_QuickStream, messages_py.MessageDecoder):
    """Its frames come quicker; what they make up is for messages_py.py."""

    __slots__ = ()

    if TYPE_CHECKING:

        def feed(self, data: ReadableBuffer) -> Iterator[Message | Frame]: ...


# The generated classes have no docstring of their own: help shows that of the next class they are made of.
_QuickStream.feed.__doc__ = StreamDecoder.feed.__doc__
FrameDecoder.__doc__ = frames_py.FrameDecoder.__doc__
MessageDecoder.__doc__ = messages_py.MessageDecoder.__doc__
