"""Messages on their way to the broker: of one channel, on one connection after the other."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import AmqpError, ConnectionLostError, EncodeError, LocalProtocolError
from .failures import NackedError, ReturnedError
from .link import in_set_up
from .returns import Headers, Returns

if TYPE_CHECKING:
    from .counters import ClientStats
    from .link import Link

log = logging.getLogger("amqpcodec.aio")


@dataclass(slots=True, eq=False, weakref_slot=True)
class Publish:
    """One message.

    Attributes:
        confirmed: done once the broker has the message, or is known not to have it.
        number: its sequence number on this connection; 0 while it is not written.
        was_written: whether it was, on this connection or one before.
        is_given_up: whether it is counted that nobody waits for it any more.
        is_of_set_up: whether `on_connect` publishes it, which does so again on the next connection.
        returned: how the broker has returned it.
    """

    confirmed: asyncio.Future[None]
    method: Any
    properties: Any
    body: bytes
    number: int = 0
    was_written: bool = False
    is_given_up: bool = False
    is_of_set_up: bool = False
    returned: ReturnedError | None = None


def octets_of(body: Any) -> bytes:
    """Return a copy of a body that is no `bytes`, and may be changed.

    Raises:
        EncodeError: it is not bytes-like.
    """
    try:
        return memoryview(body).tobytes()
    except TypeError:
        raise EncodeError(f"a body must be bytes-like, not {type(body).__name__}", "body") from None


class Publishes:
    """Hold the messages of a channel that wait to be written, or to be confirmed.

    Args:
        window: how many may wait to be confirmed, or for `room`.
        republish: whether messages of a lost connection are written again.
        stats: where to count.
        headers: compares what is returned with what was published.
    """

    __slots__ = (
        "_cancelled", "_error", "_headers", "_link", "_loop", "_number", "_republish", "_returns", "_sent",
        "_stats", "_stopped", "_unconfirmed", "_unsent", "_waiting", "_window",
    )  # fmt: skip

    def __init__(self, window: int, republish: bool, stats: ClientStats, headers: Headers) -> None:
        self._headers = headers
        self._window = window
        self._republish = republish
        self._stats = stats
        self._loop = asyncio.get_running_loop()
        self._link: Link | None = None  # while messages may be written
        self._number = 0  # of the channel
        self._stopped = False  # by channel.flow
        self._error: Exception | None = None
        self._sent: dict[int, Publish] = {}  # by sequence number, in order
        self._returns: Returns | None = None  # once there are any on this connection
        self._unconfirmed: Publish | None = None  # the last one written that is never confirmed
        self._unsent: deque[Publish] = deque()
        self._cancelled = 0  # of those in _unsent, at least
        self._waiting: deque[asyncio.Future[None]] = deque()  # for room

    def __len__(self) -> int:
        return len(self._sent) + len(self._unsent)

    def outstanding(self) -> list[asyncio.Future[None]]:
        """Return the futures of all that is not confirmed."""
        return [publish.confirmed for publish in (*self._sent.values(), *self._unsent)]

    # -- what a program publishes

    def is_full(self) -> bool:
        """Return whether a message has to wait for room; not where there is an error to be raised."""
        return self._error is None and len(self._sent) + len(self._unsent) >= self._window

    async def room(self) -> None:
        """Wait while the window is full."""
        while self.is_full():
            if self._purge():
                continue
            self._refuse_in_set_up()
            waiter = self._loop.create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
                else:
                    self._wake(1)  # somebody else, where this one was about to go on
                raise

    def put(self, publish: Publish) -> None:
        """Write a message, or queue it where it may not be written now.

        Raises:
            AmqpError: the channel is closed, or the message cannot be encoded.
        """
        if self._error is not None:
            raise self._error.with_traceback(None)
        link = self._link
        if link is not None and not link.is_set_up:
            publish.is_of_set_up = in_set_up() is link
        if self._unsent or link is None or not self._may_write():
            self._refuse_in_set_up()
            self._unsent.append(publish)
            if link is not None:
                link.waiting[self] = None
        else:
            try:
                self._write(publish, link)
            finally:
                if not publish.number:  # it takes no room
                    self._wake(1)

    def _refuse_in_set_up(self) -> None:
        """Refuse to let `on_connect` wait for what goes on after it."""
        if self._link is None and (link := in_set_up()) is not None:
            if link.ended.done():
                raise ConnectionLostError("the connection is lost")
            raise LocalProtocolError("on_connect publishes on channels that it has opened")

    def cancelled(self, publish: Publish) -> bool:
        """Take note that nobody waits for a message any more; return whether it was written."""
        self._count_cancelled(publish)
        if not publish.number:
            self._cancelled += 1
            if 2 * self._cancelled > len(self._unsent):
                self._purge()
        return publish.was_written

    def _purge(self) -> bool:
        """Drop what was cancelled before it was written; return whether there was anything."""
        before = self._unsent
        self._unsent = deque(publish for publish in before if not publish.confirmed.done())
        self._cancelled = 0
        for publish in before:
            if publish.confirmed.done():
                self._count_cancelled(publish)
        self._wake(self._window - len(self))
        return len(self._unsent) < len(before)

    def _count_cancelled(self, publish: Publish) -> None:
        if publish.is_given_up:
            return
        publish.is_given_up = True
        if publish.was_written:
            self._stats.abandoned += 1
        else:
            self._stats.withdrawn += 1

    # -- writing

    def _may_write(self) -> bool:
        link = self._link
        return (
            link is not None
            and not link.is_blocked
            and not self._stopped
            and len(self._sent) < self._window
            and link.connection.bytes_to_send < link.out_bytes
        )

    def _write(self, publish: Publish, link: Link) -> None:
        number = link.connection.send_message(self._number, publish.method, publish.properties, publish.body)
        self._stats.published += 1
        publish.was_written = True
        if number is None:
            publish.confirmed.set_result(None)  # the broker says no more of it
            self._unconfirmed = publish
        else:
            publish.number = number
            self._sent[number] = publish

    def flush(self) -> None:
        """Write what waits, as far as it may be written."""
        unsent = self._unsent
        while unsent and self._may_write():
            assert self._link is not None
            self._write_first(self._link)
        self._wake(self._window - len(self))
        if not unsent and self._link is not None:
            self._link.waiting.pop(self, None)

    def _write_first(self, link: Link) -> None:
        """Write the first of what waits, unless it was cancelled."""
        publish = self._unsent.popleft()
        if publish.confirmed.done():
            self._count_cancelled(publish)
            return
        try:
            self._write(publish, link)
        except Exception as error:  # a value that cannot be encoded
            publish.confirmed.set_exception(error)

    def first(self) -> Publish | None:
        """Return the message that is to be written next."""
        return self._unsent[0] if self._unsent else None

    def send_first(self, link: Link, number: int) -> None:
        """Write the first message alone, before `resume`."""
        self._number = number
        self._write_first(link)

    def unanswered(self) -> list[tuple[Publish | None, Any]]:
        """Return what was written on this connection, and is neither confirmed nor refused.

        A message is None where it is never confirmed, and so not published again.
        """
        waiting: list[tuple[Publish | None, Any]] = [(each, each.method) for each in self._sent.values()]
        if self._unconfirmed is not None:
            waiting.append((None, self._unconfirmed.method))
        return waiting

    def give_up(self, publish: Publish, error: Exception) -> None:
        """Publish a message no more: the broker ends the connection for it."""
        del self._sent[publish.number]
        if publish.confirmed.done():
            self._count_cancelled(publish)
        self._give_up([publish.confirmed], error)

    def _wake(self, count: int) -> None:
        """Let so many go on that wait for room."""
        while count > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1

    # -- what the broker says

    def flow(self, active: bool) -> None:
        """Stop, or go on: channel.flow."""
        self._stopped = not active
        self.flush()

    def settled(self, numbers: tuple[int, ...], taken: bool) -> None:
        """Take confirms of messages, or refusals."""
        sent = self._sent
        stats = self._stats
        for number in numbers:
            publish = sent.pop(number, None)
            if publish is None:  # the program has asked for confirms by itself
                continue
            error: AmqpError | None = publish.returned
            if error is None and self._returns is not None:
                error = self._returns.settled(number)
            if not taken:
                stats.nacked += 1
                error = publish.returned or NackedError("the broker has not taken the message")
            elif error is None:
                stats.confirmed += 1
            elif publish.returned is None:
                stats.uncertain += 1
            confirmed = publish.confirmed
            if confirmed.done():
                self._count_cancelled(publish)
            elif error is None:
                confirmed.set_result(None)
            else:
                confirmed.set_exception(error)
        if self._unsent or self._waiting:
            self.flush()

    def returned(self, method: Any, properties: Any, body: bytes) -> None:
        """Take a message back that no queue took."""
        self._stats.returned += 1
        if self._returns is None:
            self._returns = Returns(self._headers)
        self._returns.know(self._sent)
        if not self._returns.returned(method, properties, body):
            self._stats.unmatched += 1
            log.warning("a message to exchange %r was returned that is not known", method.exchange)

    # -- connections come and go

    def resume(self, link: Link, number: int) -> None:
        """Go on with a connection, on a channel of it: first with what was not confirmed before."""
        self._link, self._number = link, number
        if self._unsent:
            link.waiting[self] = None
        self.flush()

    def lost(self, error: Exception, republish: bool = True) -> None:
        """Queue again, in order, what was not confirmed: the connection is over.

        What `on_connect` has published raises the error, unless it is done. So does all, where nothing is to
        be published again.
        """
        again, over = [], []
        is_set_up = self._link is None or self._link.is_set_up
        if not is_set_up:
            over = [publish.confirmed for publish in self._unsent if publish.is_of_set_up]
            self._unsent = deque(publish for publish in self._unsent if not publish.is_of_set_up)
        self._link = None
        self._returns = self._unconfirmed = None
        self._stopped = False
        for publish in self._sent.values():
            if publish.confirmed.done():
                self._count_cancelled(publish)
            elif publish.returned is not None:
                publish.confirmed.set_exception(publish.returned)
            elif republish and self._republish and (is_set_up or not publish.is_of_set_up):
                publish.number = 0
                again.append(publish)
            else:
                over.append(publish.confirmed)
        self._sent.clear()
        self._give_up(over, error)
        self._unsent.extendleft(reversed(again))
        self._stats.republished += len(again)
        self._wake(self._window - len(self))

    def refuse(self, error: Exception) -> None:
        """Take no more messages; those that wait for room raise the error."""
        self._error = error
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)  # `put` raises it
        self._waiting.clear()

    def fail(self, error: Exception) -> None:
        """Be closed for good: everybody is told."""
        self.refuse(error)
        if self._link is not None:
            self._link.waiting.pop(self, None)
            self._link = None
        self._give_up(self.outstanding(), error)
        self._returns = None
        self._sent.clear()
        self._unsent.clear()

    def _give_up(self, messages: list[asyncio.Future[None]], error: Exception) -> None:
        """Tell those that wait that nobody knows whether the broker has their messages."""
        waiting = [confirmed for confirmed in messages if not confirmed.done()]
        for confirmed in waiting:
            confirmed.set_exception(error)
            confirmed.exception()  # the line below is enough where nobody asks
        if waiting:
            self._stats.unconfirmed += len(waiting)
            log.warning("messages not confirmed: %d; %s", len(waiting), error)


__all__ = ["Publishes", "octets_of"]
