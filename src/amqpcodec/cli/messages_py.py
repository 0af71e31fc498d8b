"""Frames put together to messages, for ``decode --messages``: a line for each, as soon as it is whole.

One text for both builds: messages_c is this file, compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import amqpcodec

from .._kernel.content_order import (
    BEFORE_HEADER,
    IN_BODY,
    IN_ORDER,
    NO_CONTENT,
    TOO_MUCH,
    judge_body,
    judge_header,
    judge_method,
    refusal,
)
from .._kernel.wire import BODY, HEADER, METHOD
from ..capture import CapturedFrame, Fault, Item
from .recent import Recent

_Direction = tuple[int, int | None]  # the number of a connection, and which direction of it
_NONE: Sequence[ShownMessage | Fault] = ()


class ShownMessage:
    """A message, or what the recording has of it.

    Attributes:
        first: its first frame, which says when and where: that of its method, if that was recorded.
        wanted: whether it is to be shown.
        queue: the queue it comes from or is routed to, as far as the capture tells.
        method: the method; None if it was not recorded.
        header: the content header; None before it has come.
        chunks: the first octets of the body, as they came.
        size: octets of the body that have come.
        left: octets of the body that are to come; -1 before the header.
        frames: how many it has.
    """

    __slots__ = ("chunks", "first", "frames", "header", "left", "method", "queue", "size", "wanted")

    def __init__(self, first: CapturedFrame, wanted: bool, queue: str | None) -> None:
        self.first = first
        self.wanted = wanted
        self.queue = queue
        self.method: Any = None
        self.header: Any = None
        self.chunks: list[bytes] = []
        self.size = 0
        self.left = -1
        self.frames = 1

    @property
    def stage(self) -> int:
        """The stage of its channel while it is open."""
        return BEFORE_HEADER if self.header is None else IN_BODY

    @property
    def name(self) -> str:
        """The name of its method."""
        return "content" if self.method is None else str(self.method.spec.name)

    @property
    def announced(self) -> int:
        """Octets of its body as announced; 0 before the header."""
        return 0 if self.header is None else int(self.header.body_size)

    @property
    def body(self) -> bytes:
        """The first octets of the body."""
        return b"".join(self.chunks)

    @property
    def complete(self) -> bool:
        """Return whether method, header and body are all there."""
        return self.method is not None and self.header is not None and self.size == self.header.body_size


class Messages:
    """Puts the frames of one file together.

    What is out of order, or cut by a gap, ends the message before it, which then is not complete. For a
    frame out of order there is a fault as well, with the text and the reply code of `MessageDecoder`.

    Args:
        body_bytes: how many octets of a body to keep.
    """

    def __init__(self, body_bytes: int) -> None:
        self._kept = body_bytes
        self._open: dict[_Direction, dict[int, ShownMessage]] = {}  # those of a direction by channel
        # The channels of which a method or content header was seen. What is out of order on any other may be
        # the rest of a message that began before the recording, or in a gap.
        self._known: Recent[_Direction, set[int]] = Recent()
        self._last: tuple[_Direction | None, set[int]] = None, set()  # the entry of it that was used last

    def feed(self, item: Item, wanted: bool, queue: str | None) -> Sequence[ShownMessage | Fault]:
        """Take the next frame or fault; emit the messages that end with it, and a fault that is wanted.

        Args:
            item: the frame or fault.
            wanted: whether it, or the message that it begins, is to be shown.
            queue: the one that a method is about.
        """
        if isinstance(item, Fault):
            cut = self._cut(item)
            return [*cut, item] if wanted else list(cut)
        frame: Any = item.frame
        kind = frame.type
        if not METHOD <= kind <= BODY:
            return _NONE
        channel, payload = frame.channel, frame.payload
        direction = item.connection.number, item.direction
        channels = self._open.get(direction)
        message = None if channels is None else channels.get(channel)
        # What is in order, as nearly all frames are, is taken here; anything else by `_take`.
        if message is None:
            if kind == METHOD:
                self._know(direction, channel)
                if payload.spec.content:
                    if channels is None:
                        channels = self._open[direction] = {}
                    message = channels[channel] = ShownMessage(item, wanted, queue)
                    message.method = payload
                return _NONE
        elif channels is not None and _is_next(message, kind, payload):
            message.frames += 1
            if self._add(message, frame):
                return _NONE
            del channels[channel]
            if not channels:
                del self._open[direction]
            return (message,) if message.wanted else _NONE
        if channels is None:
            channels = self._open[direction] = {}
        found = list(self._take(channels, item, wanted, queue))
        if not channels:
            del self._open[direction]
        return found

    def _take(
        self, channels: dict[int, ShownMessage], item: CapturedFrame, wanted: bool, queue: str | None
    ) -> Iterator[ShownMessage | Fault]:
        """Take a method, or a frame of a content; emit the messages that end with it."""
        frame: Any = item.frame
        message = channels.pop(frame.channel, None)
        verdict = _judge(message, frame)
        if verdict != IN_ORDER:
            yield from self._refuse(verdict, message, item, wanted)
            message = None
        if frame.type != BODY:
            self._know((item.connection.number, item.direction), frame.channel)
        if verdict == TOO_MUCH or (frame.type == METHOD and not frame.payload.spec.content):
            return
        if message is None:
            message = ShownMessage(item, wanted, queue)
        else:
            message.frames += 1
        if self._add(message, frame):
            channels[frame.channel] = message
        elif message.wanted:
            yield message

    def finish(self) -> Iterator[ShownMessage]:
        """Nothing more will come: emit the messages that are not whole."""
        left, self._open = self._open, {}
        for channels in left.values():
            yield from _wanted(channels)

    def _add(self, message: ShownMessage, frame: Any) -> bool:
        """Add a frame to its message; whether more of the message is to come."""
        if frame.type == METHOD:
            message.method = frame.payload
            return True
        if frame.type == HEADER:
            message.header = frame.payload
            message.left = frame.payload.body_size
            return message.left > 0
        size = len(frame.payload)
        if message.size < self._kept:
            message.chunks.append(frame.payload[: self._kept - message.size])
        message.size += size
        message.left -= size
        return message.left > 0

    def _refuse(
        self, verdict: int, message: ShownMessage | None, item: CapturedFrame, wanted: bool
    ) -> Iterator[ShownMessage | Fault]:
        """End the message that a frame out of order comes into, and report that frame."""
        if message is not None:
            wanted = wanted or message.wanted
            if message.wanted:
                yield message
        known = self._known.get((item.connection.number, item.direction))
        if wanted and (message is not None or (known is not None and item.frame.channel in known)):
            yield _fault(verdict, message, item)

    def _know(self, direction: _Direction, channel: int) -> None:
        last, known = self._last
        if last != direction:
            found = self._known.get(direction)
            if found is None:
                found = self._known[direction] = set()
            known = found
            self._last = direction, known
        known.add(channel)

    def _cut(self, fault: Fault) -> Iterator[ShownMessage]:
        """End the messages that a break in a direction leaves open, or a damaged frame on its channel."""
        if fault.connection is None or fault.direction is None:
            return
        direction = fault.connection.number, fault.direction
        if not fault.octets:
            self._known.pop(direction)
            self._last = None, set()
            yield from _wanted(self._open.pop(direction, {}))
            return
        channel = int.from_bytes(fault.octets[1:3], "big")
        known, channels = self._known.get(direction), self._open.get(direction)
        if known is not None:
            known.discard(channel)
        if channels is not None and channel in channels:
            yield from _wanted({channel: channels.pop(channel)})


def _wanted(channels: dict[int, ShownMessage]) -> Iterator[ShownMessage]:
    return (message for message in channels.values() if message.wanted)


def _judge(message: ShownMessage | None, frame: Any) -> int:
    """Return the verdict on a frame, with the message that is open on its channel."""
    stage = NO_CONTENT if message is None else message.stage
    if frame.type == METHOD:
        return judge_method(stage)
    if frame.type == HEADER:
        return judge_header(stage, message is not None and _is_of_class(frame.payload, message), 0, 0)
    return judge_body(stage, len(frame.payload), 0 if message is None else message.announced - message.size)


def _is_next(message: ShownMessage, kind: int, payload: Any) -> bool:
    """Return whether a frame is the one that its message waits for."""
    if kind == BODY:
        return len(payload) <= message.left
    return kind == HEADER and message.header is None and _is_of_class(payload, message)


def _is_of_class(header: Any, message: ShownMessage) -> bool:
    return message.method is not None and header.properties.spec.class_id == message.method.spec.class_id


def _fault(verdict: int, message: ShownMessage | None, item: CapturedFrame) -> Fault:
    """Return the fault of a frame that is out of order."""
    payload: Any = item.frame.payload
    name, size, announced = "", 0, 0
    if item.frame.type == METHOD:
        name = f"method {payload.spec.name}"
    elif item.frame.type == HEADER:
        name = payload.properties.spec.name
    elif message is not None:
        size, announced = message.size + len(payload), message.announced
    dialect: Any = amqpcodec.dialect(item.dialect)
    code, text = refusal(
        verdict,
        dialect.DIALECT.unexpected_frame,
        frame=name,
        content="" if message is None else message.name,
        size=size,
        limit=announced,
    )
    octets, place = item.octets, (item.connection, item.direction, item.packet, item.time_ns, item.offset)
    return Fault("error", text, *place, len(octets), code, octets)
