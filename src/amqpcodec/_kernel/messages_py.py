"""The message decoder. One text for both builds: messages_c is this file, compiled.

Content (0-9-1 section 4.2.6): a method frame, one header frame, body frames until the announced size has
come; all on one channel, other channels in between as they please.
"""

from __future__ import annotations

from typing import Any

from ..errors import CONTENT_TOO_LARGE, FRAME_ERROR, RESOURCE_ERROR, DecodeError
from ..limits import Limits
from .records_py import Frame, Message
from .stream_py import DEFAULT_LIMITS, StreamDecoder
from .wire import BODY, HEADER, METHOD


class Content:
    """A message on its way in."""

    __slots__ = ("body_size", "left", "method", "pieces", "properties")

    def __init__(self, method: Any) -> None:
        self.method = method
        self.properties: Any = None
        self.body_size = 0
        self.left = 0
        self.pieces: list[bytes] = []


class MessageDecoder(StreamDecoder):
    """Turns a stream of octets into messages, and into frames for what is not content.

    A content-bearing method, its content header and its body frames become one `Message`, given out
    when its last octet has come. Every other frame is given out as a `Frame`, in the order of the stream.

    Args:
        aborted: what to do when a method cuts a content off: ``"error"`` raises the reply code for an
            unexpected frame, as brokers do; ``"keep"`` gives out what has come with ``complete=False``,
            then the method.
        body: ``"bytes"`` for a body in one piece, ``"pieces"`` for the list of the body frames' octets.
        frame_max, frame_max_slack, tables, profile, strict, limits: as for `FrameDecoder`.

    Errors and their consequences are those of `FrameDecoder`. A frame out of order also drops the
    message that was open on its channel.
    """

    __slots__ = ("_held", "_join", "_keep", "_open")

    def __init__(
        self,
        *,
        frame_max: int = 131072,
        frame_max_slack: int = 0,
        tables: str = "dict",
        profile: str | None = None,
        strict: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        aborted: str = "error",
        body: str = "bytes",
    ) -> None:
        if aborted not in ("error", "keep"):
            raise ValueError(f'aborted must be "error" or "keep", not {aborted!r}')
        if body not in ("bytes", "pieces"):
            raise ValueError(f'body must be "bytes" or "pieces", not {body!r}')
        self._keep = aborted == "keep"
        self._join = body == "bytes"
        super().__init__(
            frame_max=frame_max, frame_max_slack=frame_max_slack, tables=tables, profile=profile,
            strict=strict, limits=limits,
        )  # fmt: skip

    def reset(self) -> None:
        """Forget all octets, open messages and any error; see `FrameDecoder.reset`."""
        super().reset()
        self._open: dict[int, Content] = {}
        self._held: Frame | None = None  # the method that cut a content off, for the next call

    def _next(self) -> Any:
        if self._held is not None:
            frame = self._held
            self._held = None
            return frame
        while self._advance():
            frame_type = self._reader.frame_type
            if frame_type == METHOD:
                value = self._method()
            elif frame_type == HEADER:
                value = self._header()
            elif frame_type == BODY:
                value = self._body()
            else:
                value = self._read_other()
            if value is not None:
                return value
        return None

    def _method(self) -> Any:
        """A method opens a content, or is given out as it is."""
        method = self._read_method()
        channel = self._reader.channel
        cut_off = self._open.pop(channel, None) if self._open else None
        if cut_off is not None and not self._keep:
            raise self._unexpected(f"method {method.spec.name} before the end of a {cut_off.method.spec.name}")
        if method._has_content():
            if len(self._open) >= self._limits.open_messages:
                message = f"more than {self._limits.open_messages} messages open"
                raise self._reader.refuse_frame(RESOURCE_ERROR, message)
            self._open[channel] = Content(method)
            frame = None
        else:
            frame = self._frame(METHOD, channel, method)
        if cut_off is None:
            return frame
        self._held = frame
        return self._message(channel, cut_off, False)

    def _header(self) -> Any:
        """A content header fills in the properties; without a body it ends the content."""
        properties = self._read_properties()
        channel = self._reader.channel
        content = self._open.get(channel)
        if content is None or content.properties is not None:
            self._open.pop(channel, None)
            raise self._unexpected("content header without a method before it")
        if properties.spec.class_id != content.method.spec.class_id:
            del self._open[channel]
            names = f"{properties.spec.name} after {content.method.spec.name}"
            raise self._unexpected(f"content header of class {names}")
        if self._body_size > self._limits.body_size:
            del self._open[channel]
            message = f"body of {self._body_size} octets, limit {self._limits.body_size}"
            raise self._reader.refuse_frame(CONTENT_TOO_LARGE, message)
        content.properties = properties
        content.body_size = content.left = self._body_size
        return self._finished(channel, content) if content.left == 0 else None

    def _body(self) -> Any:
        """A body frame adds a piece, and ends the content once all octets have come."""
        octets = self._read_body()
        channel = self._reader.channel
        content = self._open.get(channel)
        if content is None or content.properties is None:
            self._open.pop(channel, None)
            raise self._unexpected("body without a content header before it")
        content.left -= len(octets)
        content.pieces.append(octets)
        if content.left > 0:
            return None
        if content.left < 0:
            del self._open[channel]
            message = f"body of {content.body_size - content.left} octets, {content.body_size} announced"
            raise self._reader.refuse_frame(FRAME_ERROR, message)
        return self._finished(channel, content)

    def _finished(self, channel: int, content: Content) -> Message:
        del self._open[channel]
        return self._message(channel, content, True)

    def _message(self, channel: int, content: Content, complete: bool) -> Message:
        body: Any = content.pieces
        if self._join:
            body = body[0] if len(body) == 1 else b"".join(body)
        message = Message.__new__(Message)
        message.channel = channel
        message.method = content.method
        message.properties = content.properties
        message.body = body
        message.complete = complete
        return message

    def _unexpected(self, message: str) -> DecodeError:
        return self._reader.refuse_frame(self._dialect.unexpected_frame, message)
