"""The frame decoder. One text for both builds: frames_c is this file, compiled."""

from __future__ import annotations

from .._protocol.codes import FRAME_ERROR
from .._typing import PURE, TYPE_CHECKING, Any
from ..errors import DecodeError
from ..limits import DEFAULT_LIMITS, Limits, checked_limits
from .records_py import ContentHeader, Frame
from .slots.constructors_py import describe
from .stream_py import StreamDecoder
from .wire import BODY, HEADER, METHOD, PROTOCOL_HEADER

if PURE:
    from struct import Struct

    from .read_values import DECLINED, part
    from .values import Declined
    from .wire import ENVELOPE_SIZE, FRAME_END, OVERHEAD

    _new = object.__new__
    _envelope_and_ids_at = Struct(">BHII").unpack_from
    _content_size_at = Struct(">HQ").unpack_from

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from _typeshed import ReadableBuffer

    def fast_frame(decoder: FrameDecoder) -> Frame | None:
        """Return the next frame, or None where it is for the slow path. See frames_c.pxd."""


# As objects, which C code would have to make of its constants for every frame.
_METHOD: Any = METHOD
_HEADER: Any = HEADER
_BODY: Any = BODY


class FrameDecoder(StreamDecoder):
    """Turns a stream of octets into frames; knows nothing of sockets.

    Args:
        frame_max: octets of the largest frame to take, envelope included, as negotiated in
            connection.tune; 0 for no limit but that of `limits`.
        frame_max_slack: octets by which a frame may exceed frame_max; RabbitMQ forgives 8.
        tables: ``"dict"`` for plain dicts; ``"raw"`` for `RawTable`, which keeps the octets.
        properties: ``"decoded"``; or ``"raw"`` for content headers whose `RawProperties` keep the octets,
            decode them when a property is asked for, and are forwarded as they came. In strict mode they are
            checked at once.
        profile: name of a table profile in place of the dialect's own, see `amqpcodec.profiles`.
        strict: refuse what a broker should: text that is not UTF-8 or holds zero octets, table tags not
            of the profile, keys that occur twice, property flags without a property, a weight, methods
            on the wrong channel, values that break an assert.
        tolerant: where a value in a field table cannot be read, put an `UnreadableTable` in the place of the
            smallest table around it, and go on. Tables that are too deep or too large are read so as well.
            The length of that table has to be good in what it is in.
        limits: what is refused whatever was negotiated.
        expect_header: whether a protocol header may open the stream. False for a decoder that begins in the
            middle of a stream: it takes no protocol header, nor after `reset`.
        payloads: ``"decoded"``; or ``"raw"`` for payloads as the `bytes` that have come, of every frame. For
            proxies and brokers that forward frames: `encode_frame` makes the same octets of them. The decoder
            then checks what delimits a frame (its type, its size and its last octet) and nothing inside.
            A heartbeat may have a payload or a channel. A protocol header may be of any version; its payload
            is all eight octets. `tables`, `properties`, `profile`, `strict` and `tolerant` do not
            matter.

    Iterating raises `DecodeError` on octets that break the protocol, after every frame before them was
    emitted. The decoder then stays failed: it raises the same error again until `reset`, or until
    `skip_frame` where the error is not fatal. What is fed meanwhile is kept.

    Source: 0-9-1 section 4.2.3; the reply codes follow section 4.8 and RabbitMQ.
    """

    __slots__ = ("_channel", "_channel_object", "_raw")

    def __init__(
        self,
        *,
        frame_max: int = 131072,
        frame_max_slack: int = 0,
        tables: Literal["dict", "raw"] = "dict",
        properties: Literal["decoded", "raw"] = "decoded",
        profile: str | None = None,
        strict: bool = False,
        tolerant: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        expect_header: bool = True,
        payloads: Literal["decoded", "raw"] = "decoded",
    ) -> None:
        if payloads not in ("decoded", "raw"):
            raise ValueError(f'payloads must be "decoded" or "raw", not {payloads!r}')
        limits = checked_limits(limits)
        rules = self._reader_rules(tables, profile, strict, limits, tolerant)
        raw_reading = self._properties_reading(properties, tables, profile, strict, limits, tolerant)
        self._set_up(rules, frame_max, frame_max_slack, limits.frame_size, expect_header, raw_reading)
        self._raw = payloads == "raw"
        self._channel = -1  # of the last frame: mostly it is that of the next one too,
        self._channel_object: Any = None  # which saves C code from making the number an object again

    if TYPE_CHECKING:

        def feed(self, data: ReadableBuffer) -> Iterator[Frame]: ...
        def buffer_updated(self, nbytes: int) -> Iterator[Frame]: ...
        def __iter__(self) -> Iterator[Frame]: ...

    if PURE:

        def __next__(self) -> Frame:
            # An interpreter pays for calls. So this one itself takes a frame that lies whole in the chunk.
            lock = self._lock
            if not (lock.locked or self._strict or self._partial is not None or self._error is not None):
                at, data = self._pos, self._chunk
                if at == self._end and not self._queue:
                    raise StopIteration
                lock.locked = True
                try:
                    frame_type, channel, size, index = _envelope_and_ids_at(data, at)
                    start = at + ENVELOPE_SIZE
                    end = start + size
                    if end >= self._end or size > self._size_limit or data[end] != FRAME_END:
                        raise Declined
                    after = self._offset + size + OVERHEAD
                    payload: Any
                    if self._raw:
                        if frame_type > BODY or frame_type < METHOD:
                            raise Declined
                        payload = data[start:end] if type(data) is bytes else part(data, start, end)
                    elif frame_type == METHOD:
                        reader = self._reader
                        reader.declined = after
                        payload = self._methods.read_at(index, reader, data, start + 4, end)
                    elif frame_type == BODY and channel:
                        payload = data[start:end] if type(data) is bytes else part(data, start, end)
                    elif frame_type == HEADER and channel:
                        payload = self._content_header(data, start, end, channel, index >> 16)
                    else:
                        raise Declined
                    frame: Frame = _new(Frame)
                    frame.type = frame_type
                    frame.channel = channel
                    frame.payload = payload
                    self._pos = end = end + 1
                    self._offset = after
                    if end == self._end:
                        self._drop_chunk()
                    return frame
                except DECLINED:
                    pass  # and nothing has changed
                finally:
                    lock.locked = False
            value: Frame | None = self._next()
            if value is None:
                raise StopIteration
            return value

        def _content_header(
            self, data: bytes | bytearray, start: int, end: int, channel: int, class_id: int
        ) -> ContentHeader:
            """Return the content header data[start:end] of a frame that lies whole in the chunk.

            Raises:
                Declined: or any other of `DECLINED`: it is for the slow path.
            """
            header: ContentHeader = _new(ContentHeader)
            header.weight, header.body_size = _content_size_at(data, start + 2)
            start += 12
            before = self._offset - self._pos
            reading = self._raw_reading
            if reading is None:
                reader = self._reader
                reader.declined = before + end
                header.properties = self._properties.read_at(class_id, reader, data, start, end)
            elif start > end or not self._properties.has(class_id):
                raise Declined
            else:
                header.properties = reading.keep(bytes(data[start:end]), class_id, before + start, channel)
            return header

        def _read_fast(self) -> Frame | None:
            """Return None: `__next__` went before."""

    else:

        def __next__(self) -> Frame:
            frame: Any = fast_frame(self)
            if frame is None:
                frame = self._next()
                if frame is None:
                    raise StopIteration
            return frame  # type: ignore[no-any-return]

    def _read(self) -> Any:
        if self._raw:
            return self._read_raw()
        reader = self._reader
        if reader.channel != self._channel:
            self._channel = self._channel_object = reader.channel
        fast = self._read_fast()
        if fast is not None:
            return fast
        if reader.frame_type == METHOD:
            frame = Frame.__new__(Frame)
            frame.type = _METHOD
            frame.payload = self._read_method()
        elif reader.frame_type == HEADER:
            frame = Frame.__new__(Frame)
            frame.type = _HEADER
            frame.payload = self._header()
        elif reader.frame_type == BODY:
            frame = Frame.__new__(Frame)
            frame.type = _BODY
            frame.payload = self._read_body()
        else:
            return self._read_other()
        frame.channel = self._channel_object
        return frame

    def _header(self) -> ContentHeader:
        header = ContentHeader.__new__(ContentHeader)
        header.properties = self._read_properties()
        header.body_size = self._reader.body_size
        header.weight = self._reader.weight
        return header

    def _read_raw(self) -> Frame:
        """A frame whose payload nobody looks into."""
        reader = self._reader
        octets = reader.rest()
        if reader.frame_type != PROTOCOL_HEADER:
            return self._frame(reader.frame_type, reader.channel, octets)
        if not octets.startswith(b"AMQP"):
            message = f"protocol header {octets!r} is not of {self._dialect.name}"
            raise DecodeError(message, FRAME_ERROR, 0, fatal=True)
        return self._frame(PROTOCOL_HEADER, 0, octets)


describe([FrameDecoder])
