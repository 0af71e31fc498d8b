"""The fast paths of the decoders in the pure build, from one frame to the next in one call.

An interpreter pays for calls. So these try whole methods, content headers and bodies that lie in one chunk.
They decline any other frame, and have then changed nothing. Those of the compiled build are in frames_c.pxd
and messages_c.pxd.
"""

from __future__ import annotations

from struct import Struct

from .._typing import TYPE_CHECKING, Any
from .fast_reader_py import DECLINED
from .records_py import ContentHeader, Frame, Message
from .values import Declined
from .wire import BODY, ENVELOPE_SIZE, FRAME_END, HEADER, METHOD, OVERHEAD

if TYPE_CHECKING:
    from .frames_py import FrameDecoder
    from .messages_py import MessageDecoder
    from .stream_py import StreamDecoder

_new = object.__new__
_envelope_at = Struct(">BHI").unpack_from
_envelope_and_ids_at = Struct(">BHII").unpack_from
_content_size_at = Struct(">HQ").unpack_from
_header_at = Struct(">BHIHHQ").unpack_from


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
    decoder._reader.fast = not decoder._strict
    if decoder._partial is not None or decoder._error is not None or decoder._strict or lock.locked:
        return None
    if decoder._pos == decoder._end and not decoder._queue:
        raise StopIteration
    lock.locked = True
    payload: Any
    begun = False  # reading fields
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
            begun = True
            payload = decoder._methods.read_at(index, decoder._reader, data, at + 11, end)
        elif frame_type == BODY and channel:
            payload = _octets(data, at + ENVELOPE_SIZE, end)
        elif frame_type == HEADER and channel:
            payload = _new(ContentHeader)
            payload.weight, payload.body_size = _content_size_at(data, at + 9)
            reading = decoder._raw_reading
            if reading is not None:
                if at + 19 > end or not decoder._properties.has(index >> 16):
                    return None
                octets = bytes(data[at + 19 : end])
                offset = decoder._offset + 19
                payload.properties = reading.keep(octets, index >> 16, offset, channel)
            else:
                begun = True
                payload.properties = decoder._properties.read_at(
                    index >> 16, decoder._reader, data, at + 19, end
                )
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
        decoder._reader.fast = not begun
        return None
    finally:
        lock.locked = False


def fast_message(decoder: MessageDecoder) -> Message | Frame | None:
    """The next message of a decoder, or a method without content; None where it is for the slow path.

    Its content header, and its body in one frame, lie right behind its method, and no other message is open.

    Raises:
        StopIteration: there are no octets.
    """
    lock = decoder._lock
    decoder._reader.fast = not decoder._strict
    if decoder._partial is not None or decoder._error is not None or decoder._strict or lock.locked:
        return None
    if decoder._current is not None or decoder._open or decoder._deferred is not None or not decoder._join:
        return None
    if decoder._pos == decoder._end and not decoder._queue:
        raise StopIteration
    lock.locked = True
    try:
        at = decoder._pos
        data = decoder._chunk
        frame_type, channel, size, index = _envelope_and_ids_at(data, at)
        end = at + ENVELOPE_SIZE + size
        if frame_type != METHOD or size > decoder._size_limit or data[end] != FRAME_END:
            return None
        methods = decoder._methods
        reader = decoder._reader
        found: Any
        if methods.classes[index].spec.content:
            found, last = _content(decoder, data, end + 1, channel, index >> 16)
            found.method = methods.read_at(index, reader, data, at + 11, end)
        elif end >= decoder._end:
            return None
        else:
            reader.fast = False
            found, last = _new(Frame), end
            found.type = METHOD
            found.payload = methods.read_at(index, reader, data, at + 11, end)
        reader.fast = True
        found.channel = channel
        decoder._pos = last + 1
        decoder._offset += last + 1 - at
        if last + 1 == decoder._end:
            decoder._drop_chunk()
        return found  # type: ignore[no-any-return]  # one of the two
    except DECLINED:
        return None
    finally:
        lock.locked = False


def _content(
    decoder: MessageDecoder, data: bytes | bytearray, at: int, channel: int, class_id: int
) -> tuple[Message, int]:
    """Return a message but for its method and channel, and where its last frame ends.

    Args:
        decoder: the decoder.
        data: octets, of which some may be none of the stream.
        at: where the content header has to be.
        channel: the channel of the method.
        class_id: the class of the method.
    """
    frame_type, header_channel, size, header_class, _, body_size = _header_at(data, at)
    end = at + ENVELOPE_SIZE + size
    if frame_type != HEADER or header_channel != channel or not channel or header_class != class_id:
        raise Declined
    if size > decoder._size_limit or body_size > decoder._body_limit or data[end] != FRAME_END:
        raise Declined
    last = end
    body = b""
    if body_size:
        start = end + 1 + ENVELOPE_SIZE
        last = start + body_size
        if _envelope_at(data, end + 1) != (BODY, channel, body_size) or body_size > decoder._size_limit:
            raise Declined
        if data[last] != FRAME_END:
            raise Declined
        body = _octets(data, start, last)
    if last >= decoder._end:
        raise Declined
    # What is declined from here on is for the slow path at once.
    decoder._reader.fast = False
    properties = decoder._properties
    reading = decoder._raw_reading
    message: Message = _new(Message)
    if reading is None:
        message.properties = properties.read_at(class_id, decoder._reader, data, at + 19, end)
    elif at + 19 > end or not properties.has(class_id):
        raise Declined
    else:
        offset = decoder._offset + at + 19 - decoder._pos
        message.properties = reading.keep(bytes(data[at + 19 : end]), class_id, offset, channel)
    message.body = body
    message.complete = True
    return message, last


def _octets(data: bytes | bytearray, start: int, end: int) -> bytes:
    """Return a part of the data, which is copied once."""
    if type(data) is bytes:
        return data[start:end]
    with memoryview(data) as view:
        return bytes(view[start:end])
