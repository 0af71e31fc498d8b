"""The base of the two forms of lines, text and JSON: how a frame becomes a line.

A form says what is the same in all lines of a kind of frames, and where in it the values of one frame go.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from .._kernel.wire import BODY as CONTENT_BODY
from .._kernel.wire import HEADER as CONTENT_HEADER
from .._kernel.wire import METHOD
from ..capture import CapturedFrame, Fault, Item
from .rendering import FieldLayout, Parts

if TYPE_CHECKING:
    from .messages_py import ShownMessage

OFFSET, SIZE, FIELDS, BODY_SIZE, BODY = "\1", "\2", "\3", "\4", "\5"
PROPERTIES, QUEUE, FRAMES = "\6", "\7", "\x08"
"""Stand for values in an outline: no line has these characters, since control characters are escaped."""

_MARK = re.compile("([\1-\x08])")


class Outline(NamedTuple):
    """A line of a kind of frames or messages, without what differs between them.

    Attributes:
        parts: the texts and marks that it consists of, behind what `Form.begin` returns.
        fields: how what FIELDS stands for is shown: arguments, or the properties in a content header. With
            something in a reserved field, a frame has another line.
        properties: the same of PROPERTIES, in the line of a message.
    """

    parts: list[str]
    fields: FieldLayout | None = None
    properties: FieldLayout | None = None


class Form:
    """Makes lines, each with its line end.

    Args:
        parts: shows arguments and properties.
        body_bytes: bytes of a body to show.

    Attributes:
        separator: what is between two fields.
        json: whether values are JSON, in ASCII.
    """

    separator = ""
    json = False

    def __init__(self, parts: Parts, body_bytes: int) -> None:
        self.parts = parts
        self.body_bytes = body_bytes

    def line(self, item: Item | ShownMessage) -> str:
        """The line of a frame, fault or message."""
        if isinstance(item, Fault):
            return self.fault(item)
        if not isinstance(item, CapturedFrame):
            return self.begin(item.first) + self._message(item)
        kind, payload = item.frame.type, item.frame.payload
        fields = body = ""
        body_size = 0
        if kind == METHOD:
            fields = self.separator.join(self.parts.of(payload))
        elif kind == CONTENT_BODY:
            body = self.body(payload[: self.body_bytes], item.size)
        elif kind == CONTENT_HEADER:
            fields = self.separator.join(self.parts.of(payload.properties))
            body_size = payload.body_size
        return self.begin(item) + self.frame(item, item.offset, item.size, fields, body_size, body)

    def outline(self, item: CapturedFrame) -> Outline | None:
        """Return the common parts of lines of frames with the class, channel and dialect of this one; None if
        each has to be made by `line`."""
        kind, payload = item.frame.type, item.frame.payload
        if not METHOD <= kind <= CONTENT_BODY:
            return None
        parts = _split(self.frame(item, OFFSET, SIZE, FIELDS, BODY_SIZE, BODY))
        if kind == CONTENT_BODY:
            return Outline(parts)
        plan = self.parts.plan(payload if kind == METHOD else payload.properties)
        return plan and Outline(parts, plan)

    def message_outline(self, message: ShownMessage) -> Outline | None:
        """Return the common parts of lines of complete messages like this one, as `outline` does of frames.

        They have a queue or none, and classes, channel and dialect in common.
        """
        parts = _split(self.message(message, OFFSET, FIELDS, QUEUE, PROPERTIES, SIZE, BODY, FRAMES))
        fields, properties = self.parts.plan(message.method), self.parts.plan(message.header.properties)
        return fields and properties and Outline(parts, fields, properties)

    def _message(self, message: ShownMessage) -> str:
        """The rest of a message's line, with its values."""
        fields = properties = ""
        if message.method is not None:
            fields = self.separator.join(self.parts.of(message.method))
        if message.header is not None:
            properties = self.separator.join(self.parts.of(message.header.properties))
        queue = "" if message.queue is None else self.parts.shown(message.queue)
        body = self.body(message.body, message.size)
        offset, size = message.first.offset, message.size
        return self.message(message, offset, fields, queue, properties, size, body, message.frames)

    def begin(self, item: CapturedFrame) -> str:
        """Return the beginning of the lines of all frames that one packet completes in a direction."""
        raise NotImplementedError

    def frame(
        self, item: CapturedFrame, offset: object, size: object, fields: str, body_size: object, body: str
    ) -> str:
        """The rest of a frame's line.

        Args:
            item: the frame; what follows are values of it, or marks in their places.
            offset: octets of the direction before it.
            size: octets of its payload.
            fields: the arguments of a method, or the properties of a content.
            body_size: octets of the body that a content header announces.
            body: the first octets of a body.
        """
        raise NotImplementedError

    def body(self, octets: bytes, size: int) -> str:
        """The first octets of a body of so many."""
        raise NotImplementedError

    def message(
        self, message: ShownMessage, offset: object, fields: str, queue: str, properties: str, size: object,
        body: str, frames: object,
    ) -> str:  # fmt: skip
        """The rest of a message's line.

        Args:
            message: the message; what follows are values of it, or marks in their places.
            offset: octets of the direction before it.
            fields: the arguments of its method.
            queue: its queue, if it is known.
            properties: its properties.
            size: octets of its body that have come.
            body: the first ones.
            frames: how many it has.
        """
        raise NotImplementedError

    def fault(self, fault: Fault) -> str:
        """The line of a fault."""
        raise NotImplementedError


def _split(line: str) -> list[str]:
    """Return the texts and marks of a line."""
    return [part for part in _MARK.split(line) if part]
