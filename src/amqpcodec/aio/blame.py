"""Finds out what a broker ends connections for, and when to send it no more."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from .._protocol.codes import COMMAND_INVALID, INTERNAL_ERROR, NOT_ALLOWED, NOT_IMPLEMENTED
from ..connection import ChannelClosed, ConnectionClosed
from ..reply_errors import (
    AmqpAccessRefused,
    AmqpConnectionForced,
    AmqpInternalError,
    AmqpNotAllowed,
    AmqpResourceLocked,
)

# What another attempt may mend. A locked queue may be an exclusive one of the connection before.
PASSING = (OSError, AmqpConnectionForced, AmqpResourceLocked)
CONNECTION = 10  # the class of connection.open
UPDATE_SECRET = (CONNECTION, 70)
# With which a broker ends the connection for one method that it refuses, and names it.
REFUSALS = (COMMAND_INVALID, NOT_ALLOWED, NOT_IMPLEMENTED, INTERNAL_ERROR)
ALONE_SECONDS = 1.0  # for the answer to what is tried alone: without an end by then, it does no harm
TRYING_SECONDS = 5.0  # for all that is tried on one connection: calls and consumers wait as long


@dataclass(slots=True)
class Ends:
    """Ends of connections in a row, at which something was not answered yet.

    Attributes:
        open: all of them.
        alone: those at which nothing else was open.
    """

    open: int = 0
    alone: int = 0


class Blame:
    """Finds the message or consumer for which a broker ends connections.

    Some brokers say no more than 541 internal-error, or end the stream, where they cannot read something. A
    client that sends it again meets the same end. The one thing that was open at an end is to blame. Where
    several were open at two ends in a row, the client tries each of them alone.

    Args:
        most: at how many ends something is given up; None for never.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._ends: WeakKeyDictionary[Any, Ends] = WeakKeyDictionary()  # of messages and consumers
        self._set_up: tuple[type[Exception], str] | None = None
        self._set_ups = 0

    def ended(self, closed: ConnectionClosed, waiting: list[tuple[Any, Any]]) -> Any:
        """Take note of the end of a connection.

        Args:
            closed: the end.
            waiting: what was not answered by then: a message or consumer, or None for a call, which is not
                sent again; and its method.

        Returns:
            The message or consumer that is to be given up, or None.
        """
        if is_named(closed):
            guilty = [each for each, method in waiting if sent_by(closed, method)]
            if len(guilty) == 1:
                return guilty[0]
            self._ends.update((each, Ends(2)) for each in guilty if each is not None)  # to be tried alone
        elif is_refusal(closed):
            before, self._ends = self._ends, WeakKeyDictionary()
            for each in (each for each, _ in waiting if each is not None):
                ends = self._ends[each] = before.get(each) or Ends()
                ends.open += 1
                ends.alone += len(waiting) == 1
                if self._reaches(ends.alone):
                    return each  # there is no other
        return None

    def is_suspect(self, thing: object) -> bool:
        """Return whether a message or consumer is to be tried alone."""
        ends = self._ends.get(thing)
        return ends is not None and ends.open > 1

    def acquit(self, thing: object) -> None:
        """Take note that something was sent and did no harm."""
        self._ends.pop(thing, None)

    def set_up_ended(self, error: Exception) -> None:
        """Take note of an end while `on_connect` waited for answers."""
        kind = type(error), str(error)
        self._set_ups = self._set_ups + 1 if kind == self._set_up else 1
        self._set_up = kind

    def is_set_up(self) -> None:
        """Take note that `on_connect` is done."""
        self._set_ups = 0

    @property
    def is_final(self) -> bool:
        """Return whether connections have ended too often in one way while `on_connect` waited."""
        return self._reaches(self._set_ups)

    def _reaches(self, count: int) -> bool:
        return self._most is not None and count >= self._most


def may_pass(error: Exception) -> bool:
    """Return whether another attempt may do better."""
    if isinstance(error, ValueError) or getattr(error, "reason", None) == "WRONG_VERSION_NUMBER":
        return False  # a certificate that does not hold; a server without TLS
    if isinstance(error, ExceptionGroup):  # of a TaskGroup in `on_connect`
        return all(may_pass(each) for each in error.exceptions)
    if isinstance(error, AmqpInternalError):  # a crash, or a virtual host that is down
        return error.class_id in (0, CONNECTION)
    if isinstance(error, AmqpAccessRefused):  # RabbitMQ's words, for an exclusive consumer
        return str(error).endswith("in exclusive use")
    if isinstance(
        error, AmqpNotAllowed
    ):  # a limit of a virtual host or a user; or new credentials are refused
        return "connection limit" in str(error) or (error.class_id, error.method_id) == UPDATE_SECRET
    return isinstance(error, PASSING)


def is_named(closed: ConnectionClosed) -> bool:
    """Return whether an end names the method that is refused: nothing has crashed."""
    return closed.by == "peer" and closed.reply_code in REFUSALS and closed.class_id > CONNECTION


def is_refusal(closed: ConnectionClosed) -> bool:
    """Return whether the broker may have ended a connection for what it was sent."""
    return closed.by == "eof" or (closed.by == "peer" and closed.reply_code == INTERNAL_ERROR)


def sent_by(closed: ConnectionClosed | ChannelClosed, method: Any) -> bool:
    """Return whether the end is that of a method of this kind."""
    return (method.spec.class_id, method.spec.method_id) == (closed.class_id, closed.method_id)


def given_up(error: Exception) -> Exception:
    """Return the broker's error for who is given up; others may be told by another."""
    again = copy(error)
    again.__cause__ = error
    again.add_note("It is not sent again: the broker ends the connection for it.")
    return again


def awaited(closed: ConnectionClosed, number: int) -> Iterable[Any]:
    """Return the requests on a channel that were not answered; opening and closing it is no such request."""
    for channel in closed.outstanding:
        if channel.channel == number:
            return [each for each in channel.awaited if each.spec.name.partition(".")[0] != "channel"]
    return []


__all__ = [
    "ALONE_SECONDS",
    "TRYING_SECONDS",
    "Blame",
    "awaited",
    "given_up",
    "is_named",
    "is_refusal",
    "may_pass",
    "sent_by",
]
