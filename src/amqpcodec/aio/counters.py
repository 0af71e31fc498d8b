"""Counters of a client, and its waits between attempts to connect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from random import random
from time import monotonic
from typing import NamedTuple

LASTING_SECONDS = 1.0  # after which a connection or channel counts as well: the waits start again


@dataclass(slots=True)
class ClientStats:
    """Counts of what a client has done since it began.

    Attributes:
        connections: that were there and set up.
        reopened: channels opened again on the same connection.
        published: messages written, the same one once for each time.
        confirmed, returned, nacked: how the broker has answered.
        uncertain: confirmed, and perhaps returned: another message was that cannot be told apart.
        unconfirmed: given up without an answer; the broker may have them.
        republished: messages written before a connection was lost, and queued to be written again.
        withdrawn: publishes cancelled before they were written.
        abandoned: publishes cancelled after; the broker may have the message.
        delivered: deliveries received.
        acknowledged: those acknowledged with ``ack``.
        stale: settled after their connection or channel was gone, which has no effect; they come again.
        dropped: deliveries that nobody has read, and that the broker has forgotten: they needed no
            acknowledgement, or were kept until the channel or the connection was gone.
        kept: unread deliveries that their queue would have dropped, and that wait for its next consumer.
        stray: deliveries to a consumer that is gone; they go back.
        unmatched: returns of messages that are not known.
        ignored: methods and messages that the broker has sent after the close of a channel or connection.
    """

    connections: int = 0
    reopened: int = 0
    published: int = 0
    confirmed: int = 0
    returned: int = 0
    nacked: int = 0
    uncertain: int = 0
    unconfirmed: int = 0
    republished: int = 0
    withdrawn: int = 0
    abandoned: int = 0
    delivered: int = 0
    acknowledged: int = 0
    stale: int = 0
    dropped: int = 0
    kept: int = 0
    stray: int = 0
    unmatched: int = 0
    ignored: int = 0


class Backoff(NamedTuple):
    """Waits before each further attempt to connect: twice as long each time, less a random part.

    They start again after a connection that was set up, unless it ends within the last wait, or a second.

    Attributes:
        first: seconds before the second attempt.
        most: seconds at most.
        attempts: how many in a row may fail; None for any number.
        seconds: how long after the first of them the last may begin; None for any time.
    """

    first: float = 0.2
    most: float = 30.0
    attempts: int | None = None
    seconds: float | None = None

    def waits(self) -> Iterator[float]:
        """Return the seconds before each further attempt: between half of the wait and all of it."""
        end = None if self.seconds is None else monotonic() + self.seconds
        wait = min(self.first, self.most)
        for _ in repeat(None) if self.attempts is None else range(self.attempts - 1):
            seconds = wait * (1 + random()) / 2
            if end is not None and monotonic() + seconds > end:
                return
            yield seconds
            wait = min(2 * wait, self.most)


__all__ = ["LASTING_SECONDS", "Backoff", "ClientStats"]
