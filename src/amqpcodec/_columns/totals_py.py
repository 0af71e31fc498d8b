"""What is counted of the frames of a connection."""

from __future__ import annotations

NO_TIME = int(-(2.0**63))  # as compiled code marks a time that is not known


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
