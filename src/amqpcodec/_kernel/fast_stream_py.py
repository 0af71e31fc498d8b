"""The fast paths of the decoders in the pure build, from one frame to the next in one call.

An interpreter pays for calls. So these try whole methods, content headers and bodies that lie in one chunk.
They decline any other frame, and have then changed nothing. The compiled build has no need of them.
"""

from __future__ import annotations

from struct import Struct

from .._typing import TYPE_CHECKING, Any
from .fast_reader_py import DECLINED
from .records_py import ContentHeader, Frame
from .values import Declined
from .wire import BODY, ENVELOPE_SIZE, FRAME_END, HEADER, METHOD, OVERHEAD

if TYPE_CHECKING:
    from .frames_py import FrameDecoder
    from .stream_py import StreamDecoder

_new = object.__new__
_envelope_at = Struct(">BHI").unpack_from
_envelope_and_ids_at = Struct(">BHII").unpack_from
_content_size_at = Struct(">HQ").unpack_from


def fast_advance(decoder: StreamDecoder) -> bool:
    """Aim the reader at the payload of the next whole frame; return False where it is not there yet."""
    at = decoder._pos
    if decoder._partial is not None or decoder._end - at <= ENVELOPE_SIZE:
        return decoder._slow_advance()
    data = decoder._chunk
    frame_type, channel, size = _envelope_at(data, at)
    end = at + ENVELOPE_SIZE + size
    if frame_type > BODY or frame_type < METHOD or size > decoder._size_limit:
        return decoder._slow_advance()
    if end >= decoder._end or data[end] != FRAME_END:
        return decoder._slow_advance()
    reader = decoder._reader
    reader.frame_type = frame_type
    reader.channel = channel
    reader._data = data
    reader._start = reader._pos = at + ENVELOPE_SIZE
    reader._end = end
    reader._base = decoder._offset - at
    decoder._pos = end + 1
    decoder._offset += size + OVERHEAD
    return True


def fast_frame(decoder: FrameDecoder) -> Frame | None:
    """The next frame of a decoder; None where it is for the slow path.

    Raises:
        StopIteration: there are no octets.
    """
    lock = decoder._lock
    if decoder._partial is not None or decoder._error is not None or decoder._strict or lock.locked:
        return None
    if decoder._pos == decoder._end and not decoder._queue:
        raise StopIteration
    lock.locked = True
    payload: Any = None  # until there is something to fill
    try:
        at = decoder._pos
        data = decoder._chunk
        frame_type, channel, size, index = _envelope_and_ids_at(data, at)
        end = at + ENVELOPE_SIZE + size
        if end >= decoder._end or size > decoder._size_limit or data[end] != FRAME_END:
            return None
        if decoder._raw:
            if frame_type > BODY or frame_type < METHOD:
                return None
            payload = bytes(data[at + ENVELOPE_SIZE : end])
        elif frame_type == METHOD:
            cls, fast = decoder._methods.readers[index]
            payload = _new(cls)
            if fast(payload, decoder._reader, data, at + 11, end) != end:
                raise Declined
        elif frame_type == BODY and channel:
            payload = data[at + ENVELOPE_SIZE : end]
            if type(payload) is not bytes:
                payload = bytes(payload)
        elif frame_type == HEADER and channel:
            cls, fast = decoder._properties.readers[index >> 16]
            payload = _new(ContentHeader)
            payload.weight, payload.body_size = _content_size_at(data, at + 9)
            reading = decoder._raw_reading
            if reading is not None:
                if at + 19 > end:
                    return None
                octets = bytes(data[at + 19 : end])
                offset = decoder._offset + 19
                payload.properties = reading.keep(octets, index >> 16, offset, channel)
            else:
                payload.properties = _new(cls)
                if fast(payload.properties, decoder._reader, data, at + 19, end) != end:
                    raise Declined
        else:
            return None
        frame: Frame = _new(Frame)
        frame.type = frame_type
        frame.channel = channel
        frame.payload = payload
        decoder._pos = end + 1
        decoder._offset += size + OVERHEAD
        if end + 1 == decoder._end:
            decoder._drop_chunk()
        return frame
    except DECLINED:
        # Fields that were declined here are for the slow path at once.
        decoder._reader.fast = payload is None
        return None
    finally:
        lock.locked = False
