"""The requests of a channel: which ones `call` sends, and those that wait for their replies."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from .._kernel.values import named
from ..errors import EncodeError, LocalProtocolError
from .blame import is_named, sent_by
from .connecting import in_time
from .failures import LateError, certainty

if TYPE_CHECKING:
    from ..connection import ConnectionClosed
    from .link import Link

_T = TypeVar("_T")
SENT_OTHERWISE = {
    "basic.publish": "Channel.publish",
    "basic.ack": "Delivery.ack",
    "basic.nack": "Delivery.nack",
    "basic.reject": "Delivery.reject",
    "channel.open": "Client.channel",
    "channel.close": "Channel.close",
    "basic.consume": "Channel.consume",
    "basic.cancel": "Channel.consume",
    "basic.get": "Channel.get",
    "connection.close": "Client.close",
}
# What has a meaning for the channel alone on which it is sent.
OF_ONE_CHANNEL = frozenset((
    "basic.qos", "basic.recover", "channel.flow", "confirm.select", "tx.select", "tx.commit", "tx.rollback",
))  # fmt: skip


def call_name(method: Any) -> str:
    """Return the name of a method that `call` sends.

    Raises:
        EncodeError: it is no method.
        LocalProtocolError: another function sends it, or it has no reply.
    """
    if isinstance(method, type) or not hasattr(method, "spec"):
        raise EncodeError(f"expected a method, such as Queue.Declare(), not {named(method)}")
    name: str = method.spec.name
    if name in SENT_OTHERWISE:
        raise LocalProtocolError(f"{name} is sent by {SENT_OTHERWISE[name]}")
    if not method.spec.responses or method.spec.content:
        raise LocalProtocolError(f"{name} has no reply: `call` sends requests, and waits for their replies")
    return name


def no_answer(name: str, seconds: float | None) -> LateError:
    """Return the error of a call that takes too long."""
    return LateError(f"no answer to {name} within {seconds} seconds")


async def answer_to(answer: Awaitable[_T], seconds: float | None, late: LateError) -> _T:
    """Return the answer to a call.

    Raises:
        LateError: it takes longer than that.
        CancelledError: the task is cancelled; the text says what is certain.
    """
    try:
        return await in_time(answer, seconds, late)
    except asyncio.CancelledError:
        raise asyncio.CancelledError(certainty(late.was_sent)) from None


class Calls:
    """The requests of a channel that wait for their replies."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[tuple[Any, asyncio.Future[Any]]] = deque()

    def send(self, link: Link, number: int, method: Any) -> asyncio.Future[Any]:
        """Send a request on a channel; return the future of its reply, which is None with ``no_wait``."""
        future = asyncio.get_running_loop().create_future()
        link.connection.send(number, method)
        if getattr(method, "no_wait", False):
            future.set_result(None)
        else:
            self._waiting.append((method, future))
        return future

    def __len__(self) -> int:
        return len(self._waiting)

    def answered(self, request: Any, reply: Any) -> bool:
        """Give a reply to who has sent the request; return whether somebody waits for it."""
        for at, (method, future) in enumerate(self._waiting):
            if method is request:
                del self._waiting[at]
                if future.done():
                    return False
                future.set_result(reply)
                return True
        return False

    def fail(self, error: Exception, closed: ConnectionClosed | None = None) -> None:
        """Raise an error to all that wait: no replies come any more.

        Args:
            error: what is raised; the broker's own one, its cause, to who has sent what it names.
            closed: the end of the connection, if that is why.
        """
        for method, future in self._waiting:
            if not future.done():
                is_named_by = closed is not None and is_named(closed) and sent_by(closed, method)
                future.set_exception((is_named_by and error.__cause__) or error)
                future.exception()  # who was cancelled in this turn does not ask for it
        self._waiting.clear()


__all__ = ["OF_ONE_CHANNEL", "Calls", "answer_to", "call_name", "no_answer"]
