"""The message decoder. One text for both builds: messages_c is this file, compiled.

`content_order` says what is out of order. Frames of other channels may come in between.
"""

from __future__ import annotations

from .._typing import PURE, TYPE_CHECKING, Any
from ..errors import DecodeError
from ..limits import DEFAULT_LIMITS, MAX_LIMIT, Limits, checked_limits
from . import content_order
from .content_order import (
    BEFORE_HEADER,
    CUT_OFF,
    IN_BODY,
    IN_ORDER,
    NO_CONTENT,
    TOO_LARGE,
    TOO_MANY,
    judge_body,
    judge_header,
    judge_method,
)
from .records_py import Frame, Message
from .slots.constructors_py import describe
from .stream_py import StreamDecoder
from .wire import BODY, ENVELOPE_SIZE, HEADER, METHOD, OVERHEAD, as_unsigned

if PURE:
    from struct import Struct

    from .read_values import DECLINED, part
    from .values import Declined
    from .wire import FRAME_END

    _new = object.__new__
    _envelope_at = Struct(">BHI").unpack_from
    _envelope_and_ids_at = Struct(">BHII").unpack_from
    _ids_at = Struct(">I").unpack_from
    _header_at = Struct(">BHIHHQ").unpack_from

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from _typeshed import ReadableBuffer

    def fast_message(decoder: MessageDecoder) -> Message | None:
        """Return the next message, or None where it is for the slow path. See messages_c.pxd."""


class Content:
    """A message on its way in: `left` octets of its body are still to come, `held` octets are kept.

    One that was refused for its size is `discarded`: its body frames are in order, but lead to nothing.
    """

    __slots__ = ("body_size", "channel", "chunks", "discarded", "held", "left", "method", "properties")

    channel: int
    method: Any
    properties: Any
    body_size: int
    left: int
    chunks: list[bytes] | None
    discarded: bool
    held: int  # counted by a decoder that limits it


class MessageDecoder(StreamDecoder):
    """Turns a stream of octets into messages, and into frames for what is not content.

    A content-bearing method, its content header and its body frames become one `Message`, emitted
    when its last octet has come. Every other frame is emitted as a `Frame`, in the order of the stream.

    Args:
        aborted: what to do when a method cuts a content off: ``"error"`` raises the reply code for an
            unexpected frame, as brokers do; ``"keep"`` emits what has come with ``complete=False``,
            then the method.
        body: ``"bytes"`` for a whole body, ``"chunks"`` for the list of the body frames' octets.
        frame_max, frame_max_slack, tables, properties, profile, strict, tolerant, limits, expect_header: as
            for `FrameDecoder`.

    Errors and their consequences are those of `FrameDecoder`. A method or content frame that is out of order
    or cannot be decoded also drops the message that was open on its channel; content is refused there until a
    method comes.
    """

    __slots__ = (
        "_body_limit", "_current", "_join", "_keep", "_open", "_open_limit", "_spare", "_whole_limit",
    )  # fmt: skip

    if TYPE_CHECKING:

        def feed(self, data: ReadableBuffer) -> Iterator[Message | Frame]: ...
        def buffer_updated(self, nbytes: int) -> Iterator[Message | Frame]: ...
        def __iter__(self) -> Iterator[Message | Frame]: ...

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
        aborted: Literal["error", "keep"] = "error",
        body: Literal["bytes", "chunks"] = "bytes",
    ) -> None:
        if aborted not in ("error", "keep"):
            raise ValueError(f'aborted must be "error" or "keep", not {aborted!r}')
        if body not in ("bytes", "chunks"):
            raise ValueError(f'body must be "bytes" or "chunks", not {body!r}')
        limits = checked_limits(limits)
        rules = self._reader_rules(tables, profile, strict, limits, tolerant)
        raw_reading = self._properties_reading(properties, tables, profile, strict, limits, tolerant)
        self._set_up(rules, frame_max, frame_max_slack, limits.frame_size, expect_header, raw_reading)
        self._keep = aborted == "keep"
        self._join = body == "bytes"
        self._body_limit = limits.body_size
        self._open_limit = limits.open_messages
        self._whole_limit = MAX_LIMIT  # octets of the largest header frame that the fast path takes

    def _forget(self) -> None:
        """Open messages are forgotten as well."""
        StreamDecoder._forget(self)  # C methods have no super()
        # Most streams have one message open at a time; `_open` has those beyond it, by channel.
        self._current: Content | None = None
        self._open: dict[int, Content] = {}
        self._spare: Content | None = None  # done with, to be used again

    if PURE:

        def __next__(self) -> Message | Frame:
            # As that of `FrameDecoder`: a whole message or a method on its own, where no content is open.
            lock = self._lock
            if not (
                lock.locked or self._strict or self._partial is not None or self._error is not None
                or self._current is not None or self._open or self._deferred is not None or not self._join
            ):  # fmt: skip
                at, data = self._pos, self._chunk
                if at == self._end and not self._queue:
                    raise StopIteration
                lock.locked = True
                try:
                    frame_type, channel, size, index = _envelope_and_ids_at(data, at)
                    end = at + ENVELOPE_SIZE + size
                    if frame_type != METHOD or size > self._size_limit:
                        raise Declined
                    if end >= self._end or data[end] != FRAME_END:
                        raise Declined
                    found: Any
                    if index in self._methods.before_content:
                        found, end = self._whole(data, at, end, channel, index)
                    else:
                        reader = self._reader
                        reader.declined = self._offset + size + OVERHEAD
                        found = _new(Frame)
                        found.type = METHOD
                        found.channel = channel
                        found.payload = self._methods.read_at(index, reader, data, at + 11, end)
                    self._pos = end = end + 1
                    self._offset += end - at
                    if end == self._end:
                        self._drop_chunk()
                    return found  # type: ignore[no-any-return]  # one of the two
                except DECLINED:
                    pass  # and nothing has changed
                finally:
                    lock.locked = False
            value: Message | Frame | None = self._next()
            if value is None:
                raise StopIteration
            return value

    else:

        def __next__(self) -> Message | Frame:
            value: Any = fast_message(self)
            if value is None:
                value = self._next()
                if value is None:
                    raise StopIteration
            return value  # type: ignore[no-any-return]

    def _read(self) -> Any:
        frame_type = self._reader.frame_type
        if frame_type == METHOD:
            if self._current is None and not self._open and self._join:
                message = self._read_fast()
                if message is not None:
                    return self._passed(message)
            return self._method()
        if frame_type == HEADER:
            return self._header()
        if frame_type == BODY:
            return self._body()
        return self._read_other()

    if PURE:

        def _read_fast(self) -> Message | None:
            """Return the whole message that begins with the method that the reader is aimed at, or None where
            the slow path must read it. No content is open."""
            reader, data, after = self._reader, self._chunk, self._pos
            at = after - reader.frame_size
            # A frame that began in an earlier chunk has more octets than were taken of this one.
            if at < 0 or self._strict or self._offset <= reader.declined:
                return None
            try:
                index = _ids_at(data, at + ENVELOPE_SIZE)[0]
                if index not in self._methods.before_content:
                    return None
                message, end = self._whole(data, at, after - 1, reader.channel, index)
            except DECLINED:
                return None
            reader.passed = end + 1 - after
            return message

        def _whole(
            self, data: bytes | bytearray, at: int, end: int, channel: int, index: int
        ) -> tuple[Message, int]:
            """Return the message of a method, and where the octet is that ends its last frame. Its content
            header, and its body in one frame, lie whole right behind the method.

            Args:
                data: octets, of which some may be none of the stream.
                at, end: where the frame of the method begins, and the octet that ends it.
                channel: the channel of the method.
                index: its class id and method id.

            Raises:
                Declined: or any other of `DECLINED`: it is for the slow path.
            """
            frame_type, header_channel, size, class_id, _, body_size = _header_at(data, end + 1)
            start = end + 20  # of the properties
            last = end + 8 + size
            if frame_type != HEADER or header_channel != channel or not channel or class_id != index >> 16:
                raise Declined
            if size > self._size_limit or size + OVERHEAD > self._whole_limit or data[last] != FRAME_END:
                raise Declined
            header_end = last
            body = b""
            if body_size:
                if _envelope_at(data, last + 1) != (BODY, channel, body_size):
                    raise Declined
                if body_size > self._body_limit or body_size > self._size_limit:
                    raise Declined
                body_start = last + 1 + ENVELOPE_SIZE
                last = body_start + body_size
                if data[last] != FRAME_END:
                    raise Declined
                body = data[body_start:last] if type(data) is bytes else part(data, body_start, last)
            if last >= self._end:
                raise Declined
            reader, reading = self._reader, self._raw_reading
            message: Message = _new(Message)
            try:
                if reading is None:
                    message.properties = self._properties.read_at(class_id, reader, data, start, header_end)
                elif start > header_end or not self._properties.has(class_id):
                    raise Declined
                else:
                    octets, offset = bytes(data[start:header_end]), self._offset + start - self._pos
                    message.properties = reading.keep(octets, class_id, offset, channel)
                message.method = self._methods.read_at(index, reader, data, at + 11, end)
            except DECLINED:
                reader.declined = self._offset + last - self._pos
                raise
            message.channel = channel
            message.body = body
            message.complete = True
            return message, last

    def _passed(self, message: Message) -> Message | None:
        """Go on behind a whole message, at whose method the reader is; None if it is discarded."""
        reader = self._reader
        method = message.method
        if self._strict:
            self._record = method
            self._check_method(method, self._methods.content_class(method))
            self._record = None
        discarded = self._judge(reader.channel, method)
        self._pos += reader.passed
        self._offset += reader.passed
        return None if discarded else message

    def _find(self, channel: int) -> Content | None:
        """The content open on a channel."""
        current = self._current
        if current is not None and current.channel == channel:
            return current
        return self._open.get(channel) if self._open else None

    def _drop(self, content: Content) -> None:
        """Close a content."""
        if content is self._current:
            self._current = None
        else:
            del self._open[content.channel]

    def _judge(self, channel: int, method: Any) -> bool:
        """Return whether to discard the content of a method; for subclasses, which may also refuse it."""
        return False

    def _begin(self, channel: int, method: Any, discarded: bool) -> None:
        """Open a content for a method."""
        if len(self._open) + (self._current is not None) >= self._open_limit:
            raise self._refusal(TOO_MANY, None, "", 0, self._open_limit)
        content = self._spare
        if content is None:
            content = Content.__new__(Content)
        self._spare = None
        content.channel = channel
        content.method = method
        content.properties = None
        content.body_size = 0
        content.left = 0
        content.chunks = None
        content.discarded = discarded
        content.held = 0
        if self._current is None:
            self._current = content
        else:
            self._open[channel] = content

    def _method(self) -> Any:
        """A method opens a content, or is emitted as it is."""
        channel = self._reader.channel
        cut_off = self._find(channel) if self._current is not None or self._open else None
        if cut_off is not None:
            self._drop(cut_off)  # also if the method turns out to be unreadable
        method = self._read_method()
        if cut_off is not None and judge_method(stage_of(cut_off)) == CUT_OFF:
            if cut_off.discarded:
                cut_off = None
            elif not self._keep:
                raise self._refusal(CUT_OFF, cut_off, f"method {method.spec.name}", 0, 0)
        frame = None
        if self._methods.content_class(method) >= 0:
            discarded = self._judge(channel, method)
            self._begin(channel, method, discarded)
        else:
            frame = self._frame(METHOD, channel, method)
        if cut_off is None:
            return frame
        self._deferred = frame
        return self._message(cut_off, self._body_of(cut_off), False)

    def _header(self) -> Any:
        """A content header fills in the properties; without a body it ends the content."""
        content = self._find(self._reader.channel)
        try:
            properties = self._read_properties()
        except BaseException:
            if content is not None:
                self._drop(content)
                self._check_class(content)
            raise
        if content is None:
            raise self._refusal(judge_header(NO_CONTENT, False, 0, 0), None, "", 0, 0)
        body_size = self._reader.body_size
        same_class = self._reader.class_id == self._methods.content_class(content.method)
        verdict = judge_header(stage_of(content), same_class, body_size, self._body_limit)
        if verdict != IN_ORDER and verdict != TOO_LARGE:
            self._drop(content)
            raise self._refusal(verdict, content, properties.spec.name, 0, 0)
        content.properties = properties
        content.body_size = content.left = min(body_size, MAX_LIMIT)
        if verdict == TOO_LARGE:
            content.discarded = True
            raise self._refusal(TOO_LARGE, content, "", body_size, self._body_limit)
        if content.left:
            return None
        self._drop(content)
        return self._message(content, self._body_of(content), True)

    def _check_class(self, content: Content) -> None:
        """Raise the error of a header that cannot be read and is of another class than its method."""
        head = self._reader.head()
        class_id = int.from_bytes(head[:2], "big")
        if len(head) >= 2 and class_id != self._methods.content_class(content.method):
            self._record = None
            verdict = judge_header(stage_of(content), False, 0, 0)
            name = content_order.class_name(self._dialect.properties, class_id)
            raise self._refusal(verdict, content, name, 0, 0) from None

    def _body(self) -> Any:
        """A body frame adds a chunk, and ends the content once all octets have come."""
        octets = self._read_body()
        content = self._find(self._reader.channel)
        size = len(octets)
        if content is None:
            raise self._refusal(judge_body(NO_CONTENT, 0, 0), None, "", 0, 0)
        verdict = judge_body(stage_of(content), as_unsigned(size), as_unsigned(content.left))
        if verdict != IN_ORDER:
            self._drop(content)
            come = content.body_size - content.left + size
            raise self._refusal(verdict, content, "", come, content.body_size)
        content.left -= size
        if content.left == 0:
            self._drop(content)
        if content.discarded:
            return None
        if content.left == 0 and content.chunks is None and self._join:
            return self._message(content, octets, True)
        if size == 0 and self._join:
            return None  # legal, and as many as the peer likes: nothing is kept of them
        if content.chunks is None:
            content.chunks = []
        content.chunks.append(octets)
        return self._message(content, self._body_of(content), True) if content.left == 0 else None

    def _body_of(self, content: Content) -> bytes | list[bytes]:
        """Return the octets of a body that have come, in the form asked for."""
        chunks = content.chunks
        if chunks is None:
            return b"" if self._join else []
        return b"".join(chunks) if self._join else chunks

    def _message(self, content: Content, body: bytes | list[bytes], complete: bool) -> Message:
        message = new_message(content.channel, content.method, content.properties, body)
        message.complete = complete
        # Serves the next message; what it refers to belongs to this one alone.
        content.method = content.properties = content.chunks = None
        self._spare = content
        return message

    def _refusal(
        self, verdict: int, content: Content | None, frame: str, size: int, limit: int
    ) -> DecodeError:
        """Return the error of a frame that is out of order, see `content_order.refusal`."""
        code, message = content_order.refusal(
            verdict,
            self._dialect.unexpected_frame,
            frame=frame,
            content="" if content is None else content.method.spec.name,
            size=size,
            limit=limit,
        )
        error = self._reader.refuse_frame(code, message)
        # A method that cuts a content off is named itself.
        return error if content is None or verdict == CUT_OFF else self._of(content, error)

    def _of(self, content: Content, error: DecodeError) -> DecodeError:
        """Name the method of a content in an error about it."""
        spec = content.method.spec
        error.class_id = spec.class_id
        error.method_id = spec.method_id
        return error


def stage_of(content: Content) -> int:
    """Return the stage of the channel on which a content is open."""
    return BEFORE_HEADER if content.properties is None else IN_BODY


def new_message(channel: int, method: Any, properties: Any, body: bytes | list[bytes]) -> Message:
    """A whole message, without the cost of a constructor call."""
    message = Message.__new__(Message)
    message.channel = channel
    message.method = method
    message.properties = properties
    message.body = body
    message.complete = True
    return message


describe([MessageDecoder])
