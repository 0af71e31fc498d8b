"""The contents of a direction that are not complete, by channel. The pure build."""

from __future__ import annotations

from collections.abc import Iterator

from amqpcodec.capture import Connection

from .open_message import OpenMessage
from .origins import NO_TIME


class OpenContents:
    """The contents of a direction that are not complete, and what is known of its channels.

    Its owner takes a content out, changes it, and puts it back if it is still open.

    Args:
        connection: the connection.
        direction: 0 client to server, 1 server to client.
    """

    def __init__(self, connection: Connection, direction: int) -> None:
        self.connection = connection
        self.direction = direction
        self._open: dict[int, OpenMessage] = {}
        self._known: set[int] = set()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenMessage]:
        return iter(self._open.values())

    @property
    def known(self) -> set[int]:
        """The channels of which a method or content header was seen.

        What is out of order on any other may be the rest of a content that began before the recording, or in
        a gap.
        """
        return set(self._known)

    def know(self, channel: int) -> bool:
        """Note that a method or content header was seen; whether one was seen before."""
        before = channel in self._known
        self._known.add(channel)
        return before

    def knows(self, channel: int) -> bool:
        """Return whether a method or content header was seen."""
        return channel in self._known

    def take(self, channel: int) -> OpenMessage | None:
        """Take out the content that is open on a channel, if there is one."""
        return self._open.pop(channel, None)

    def put(self, content: OpenMessage) -> None:
        """Put in a content; none is open on its channel."""
        self._open[content.channel] = content

    def clear(self) -> None:
        """Forget all contents and channels."""
        self._open.clear()
        self._known.clear()


class Totals:
    """Counts and times of a connection so far.

    Attributes:
        frames_sent: from the client.
        frames_received: from the server.
        messages_sent: methods that carry content, from the client.
        messages_received: from the server.
        first_ns: when the first thing came; NO_TIME while nothing has come of which the time is known.
        last_ns: when the last one came.
    """

    __slots__ = (
        "first_ns", "frames_received", "frames_sent", "last_ns", "messages_received", "messages_sent",
    )  # fmt: skip

    def __init__(self) -> None:
        self.frames_sent = self.frames_received = 0
        self.messages_sent = self.messages_received = 0
        self.first_ns = self.last_ns = NO_TIME

    def see(self, time_ns: int) -> None:
        """Something came at this time, or at NO_TIME."""
        if time_ns != NO_TIME:
            self.last_ns = time_ns
            if self.first_ns == NO_TIME:
                self.first_ns = time_ns

    def count(self, direction: int, carries_content: bool, time_ns: int) -> None:
        """A frame came."""
        self.see(time_ns)
        if direction:
            self.frames_received += 1
            self.messages_received += carries_content
        else:
            self.frames_sent += 1
            self.messages_sent += carries_content
