"""A content on its way to a row of `messages`, and the errors of its order."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from amqpcodec import DecodeError
from amqpcodec._kernel.content_order import BEFORE_HEADER, IN_BODY, NO_METHOD, refusal
from amqpcodec._kernel.wire import HEADER, METHOD, OVERHEAD
from amqpcodec._state import Fields, Note, damaged
from amqpcodec.capture import Connection
from amqpcodec.capture.envelopes import is_frame, method_ids

from .origins import FrameOrigin

LEAST_HEADER = OVERHEAD + 12  # octets of a content header's frame that says the size of the body
_BODY_SIZE = slice(11, 19)  # of that frame
_CHANNEL_AT = 1  # octets of a frame before its channel: where the error of a frame out of order is


class OpenMessage:
    """The frames of one content on their way to a row of `messages`.

    Attributes:
        origin: of the first frame.
        dialect: module of the dialect.
        channel: channel number.
        method: octets of the method's frame, None if the recording does not have it. It is the first frame.
        header: octets of the content header's frame, None if it has not come.
        header_offset: offset of that frame.
        parts: the payloads of the body's frames.
        body_size: octets of the body as announced; None before the header.
        left: octets of the body still to come.
        frames: how many there were.
        octets: octets of those frames.
        last_ns: time of the last frame.
        complete: whether method, header and body are all there.
        refused: whether its row is out already, since its body is too large; its frames lead to nothing.
        error: what is wrong with its order or size.
        culprit: octets of the frame that is wrong in that way.
        queue: where it comes from, if that is known.
    """

    __slots__ = (
        "body_size", "channel", "complete", "culprit", "dialect", "error", "frames", "header",
        "header_offset", "last_ns", "left", "method", "octets", "origin", "parts", "queue", "refused",
    )  # fmt: skip

    def __init__(self, origin: FrameOrigin, dialect: ModuleType, channel: int) -> None:
        self.origin = origin
        self.dialect = dialect
        self.channel = channel
        self.method: bytes | None = None
        self.header: bytes | None = None
        self.header_offset = 0
        self.parts: list[bytes] = []
        self.body_size: int | None = None
        self.left = 0
        self.frames = 0
        self.octets = 0
        self.last_ns: int | None = None
        self.complete = False
        self.refused = False
        self.error: DecodeError | None = None
        self.culprit = b""
        self.queue: str | None = None

    @property
    def ids(self) -> tuple[int, int] | None:
        """Return the class and method ids of its method."""
        return None if self.method is None else method_ids(self.method)

    @property
    def stage(self) -> int:
        """The stage of its channel while it is open."""
        return BEFORE_HEADER if self.header is None else IN_BODY

    @property
    def name(self) -> str:
        """The name of its method."""
        if self.method is None:
            return "content"
        return str(self.dialect.METHODS[method_ids(self.method)].spec.name)

    def blame(self, error: DecodeError, octets: bytes) -> None:
        """A frame is wrong: the row is to say so."""
        self.error = error
        self.culprit = octets

    def count(self, origin: FrameOrigin, octets: bytes) -> None:
        """One more frame of this content."""
        self.frames += 1
        self.octets += len(octets)
        self.last_ns = origin.time_ns

    def snapshot(self, note: Note) -> list[Any]:
        """The state of a content; `note` is called with its packet."""
        origin = self.origin
        # The only thing wrong with a content that stays open, if its row is not out already.
        lacks_method = [1] if self.error is not None and not self.refused else []
        return [
            note(origin.packet), origin.time_ns, origin.offset, self.dialect.DIALECT.name, self.channel,
            self.method, self.header, self.header_offset, self.parts, self.left, self.frames,
            self.octets, self.last_ns, self.refused, *lacks_method,
        ]  # fmt: skip

    @classmethod
    def restored(
        cls, state: Fields, connection: Connection, direction: int, dialects: Mapping[str, ModuleType]
    ) -> OpenMessage:
        """The open content that a state was made of."""
        origin = FrameOrigin(connection, direction, state.packet(), state.time(), state.number(0))
        dialect: Any = dialects.get(state.text())
        if dialect is None:
            raise damaged("there is no such dialect")
        content = cls(origin, dialect, state.number(0, 0xFFFF))
        method, header = state.octets_or_none(), state.octets_or_none()
        if method is not None and not (is_frame(method, METHOD) and method_ids(method) in dialect.METHODS):
            raise damaged("there is a content of a method that nobody knows")
        whole = header is not None and len(header) >= LEAST_HEADER and is_frame(header, HEADER)
        if not whole and (method is None or header is not None):
            raise damaged("there is a content without a content header")
        content.method, content.header = method, header
        content.header_offset, content.parts = state.number(0), state.list()
        if not all(type(part) is bytes for part in content.parts):
            raise damaged("there is a body that is not octets")
        content.body_size = None if header is None else body_size_in(header)
        content.left = state.number(0, content.body_size or 0)
        content.frames, content.octets, content.last_ns = state.number(1), state.number(0), state.time()
        content.refused = state.flag()
        if state.later(0, 1) and header is not None:
            content.blame(order_error(NO_METHOD, origin, dialect), header)
        state.end()
        return content


def body_size_in(header: bytes) -> int:
    """Return the size of the body that the frame of a content header announces."""
    return int.from_bytes(header[_BODY_SIZE], "big")


def order_error(verdict: int, origin: FrameOrigin, dialect: Any, **details: Any) -> DecodeError:
    """Return the error of a frame that was found at `origin`, with the details of `content_order.refusal`."""
    code, message = refusal(verdict, dialect.DIALECT.unexpected_frame, **details)
    return DecodeError(message, code, origin.offset + _CHANNEL_AT, dialect=origin.connection.dialect)
