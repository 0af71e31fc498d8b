"""Frames put together to messages, for ``decode --messages``: a line for each, as soon as it is whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._kernel.wire import BODY, HEADER, METHOD
from ..capture import CapturedFrame, Fault, Item

_Direction = tuple[int, int | None]  # the number of a connection, and which direction of it


class Message:
    """A message, or what the recording has of it.

    Attributes:
        first: its first frame, which says when and where: that of its method, if that was recorded.
        wanted: whether it is to be shown.
        queue: the queue it comes from or is routed to, as far as the capture tells.
        method: the method; None if it was not recorded.
        header: the content header; None before it has come.
        chunks: the first octets of the body, as they came.
        size: octets of the body that have come.
        frames: how many it has.
    """

    __slots__ = ("chunks", "first", "frames", "header", "method", "queue", "size", "wanted")

    def __init__(self, first: CapturedFrame, wanted: bool, queue: str | None) -> None:
        self.first = first
        self.wanted = wanted
        self.queue = queue
        self.method: Any = None
        self.header: Any = None
        self.chunks: list[bytes] = []
        self.size = 0
        self.frames = 1

    @property
    def body(self) -> bytes:
        """The first octets of the body."""
        return b"".join(self.chunks)

    @property
    def complete(self) -> bool:
        """Whether method, header and body are all there."""
        return self.method is not None and self.header is not None and self.size == self.header.body_size


class Messages:
    """Puts the frames of one file together.

    What is out of order, or cut by a gap, ends the message before it, which then is not complete.

    Args:
        body_bytes: how many octets of a body to keep.
    """

    def __init__(self, body_bytes: int) -> None:
        self._kept = body_bytes
        self._open: dict[_Direction, dict[int, Message]] = {}  # those of a direction by channel

    def feed(self, item: Item, wanted: bool, queue: str | None) -> Iterator[Message | Fault]:
        """Take the next frame or fault; emit the messages that end with it, and a fault that is wanted.

        Args:
            item: the frame or fault.
            wanted: whether it, or the message that it begins, is to be shown.
            queue: the one that a method is about.
        """
        if isinstance(item, Fault):
            yield from self._cut(item)
            if wanted:
                yield item
            return
        frame = item.frame
        if not METHOD <= frame.type <= BODY:
            return
        direction = item.connection.number, item.direction
        channels = self._open.get(direction)
        if channels is None:
            channels = self._open[direction] = {}
        message = channels.pop(frame.channel, None)
        if message is not None and not _continues(message, item):
            if message.wanted:
                yield message
            message = None
        if message is None:
            if frame.type == METHOD and not frame.payload.spec.content:
                return
            message = Message(item, wanted, queue)
        else:
            message.frames += 1
        if self._add(message, frame):
            channels[frame.channel] = message
            return
        if not channels:
            del self._open[direction]
        if message.wanted:
            yield message

    def finish(self) -> Iterator[Message]:
        """Nothing more will come: emit the messages that are not whole."""
        left, self._open = self._open, {}
        for channels in left.values():
            yield from _wanted(channels)

    def _add(self, message: Message, frame: Any) -> bool:
        """Add a frame to its message; whether more of the message is to come."""
        if frame.type == METHOD:
            message.method = frame.payload
            return True
        if frame.type == HEADER:
            message.header = frame.payload
            return bool(message.header.body_size)
        if message.size < self._kept:
            message.chunks.append(frame.payload[: self._kept - message.size])
        message.size += len(frame.payload)
        return message.header is not None and message.size < message.header.body_size

    def _cut(self, fault: Fault) -> Iterator[Message]:
        """A break in a direction ends the messages that are open there."""
        if fault.connection is None or fault.direction is None or fault.octets:
            return
        yield from _wanted(self._open.pop((fault.connection.number, fault.direction), {}))


def _wanted(channels: dict[int, Message]) -> Iterator[Message]:
    return (message for message in channels.values() if message.wanted)


def _continues(message: Message, item: CapturedFrame) -> bool:
    """Whether a frame goes on with a message."""
    if item.frame.type == HEADER:
        return message.header is None
    return item.frame.type == BODY and message.header is not None
