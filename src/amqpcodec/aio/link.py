"""One connection of a client: routes what comes to channels, and lets them write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from re import match
from typing import TYPE_CHECKING, Any, Protocol

from ..connection import (
    Blocked,
    ChannelClosed,
    ConnectionClosed,
    FlowChanged,
    MessageReceived,
    MethodReceived,
    Settled,
    Unblocked,
    Violation,
)
from ..errors import AmqpError, ConnectionLostError, LocalProtocolError, printable
from .calls import Calls
from .connecting import closed_error, in_time, reply_error

if TYPE_CHECKING:
    from ..connection import Event
    from .stream import AmqpStream

CALLS_AT_ONCE = 100  # of `Client.call` at most, each on a channel of its own
OUT_BYTES = 1 << 18  # queued for the transport, beyond which messages wait
log = logging.getLogger("amqpcodec.aio")


def elsewhere() -> LocalProtocolError:
    """Return the error of who uses a client on another event loop, where nothing would wake him."""
    return LocalProtocolError(
        "the client runs on another event loop: use asyncio.run_coroutine_threadsafe with that one"
    )


class ChannelSink(Protocol):
    """Takes what comes on one channel of a link, as `EventSink` does for a whole stream.

    Programs hold channels, so these names are private.
    """

    def _on_message(self, event: MessageReceived) -> None:
        """Take a delivery, a returned message, or the answer to basic.get."""

    def _on_settled(self, event: Settled) -> None:
        """Take the confirms of publishes, or their refusals."""

    def _on_reply(self, request: Any, reply: Any) -> None:
        """Take the reply to a request."""

    def _on_cancel(self, method: Any) -> None:
        """Take the end of a consumer: the broker has cancelled it."""

    def _on_flow(self, active: bool) -> None:
        """Stop publishing, or go on: channel.flow."""

    def _on_closed(self, event: ChannelClosed) -> None:
        """Take the end of the channel, by the broker."""

    def _fail(self, error: Exception) -> None:
        """Be closed for good: everybody is told."""


class Writer(Protocol):
    """Has messages to write, and waits until it may."""

    def flush(self) -> None:
        """Write what may be written now."""


class Link:
    """One connection of a client, as the sink of its events.

    Args:
        stream: the connection, open.
        on_end: called with the link and the error once the connection is over.
        send_buffer: how many octets the connection takes until they are written.

    Attributes:
        out_bytes: octets that wait to be written, beyond which messages wait.
        channels: by number.
        counts_returns: whether a quorum queue counts whatever comes back to it, and drops it in the end.
        calls: requests on channel 0.
        calling: lets so many of `Client.call` go on at once.
        waiting: where messages wait to be written; a set that keeps the order.
        is_blocked: whether the broker wants no messages: connection.blocked.
        sets_up: whether the program's `on_connect` runs.
        is_set_up: whether all goes on that was there before: `on_connect` is done.
        is_explained: whether that for which it was ended is known, and is not sent again.
        closed: the last event of the connection, where it was the peer that ended it.
        ended: done once the connection is over; the result is the error that says why.
    """

    def __init__(
        self, stream: AmqpStream, on_end: Callable[[Link, Exception], None], send_buffer: int = OUT_BYTES
    ) -> None:
        self.stream = stream
        self.connection = stream.connection
        self.counts_returns = counts_returns(stream.server_properties)
        self._on_end = on_end
        self.channels: dict[int, ChannelSink] = {}
        self.calls = Calls()
        half = (self.connection.channel_max or 65535) // 2  # the others are the program's
        self.calling = asyncio.Semaphore(max(1, min(CALLS_AT_ONCE, half)))
        self.waiting: dict[Writer, None] = {}
        self.out_bytes = min(OUT_BYTES, send_buffer)
        self.is_blocked = False
        self.sets_up = False
        self.is_set_up = False
        self.is_explained = False
        self.closed: ConnectionClosed | None = None
        self.ended: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        stream.set_sink(self)

    # -- what the stream calls

    def event_received(self, event: Event) -> None:
        """Route an event."""
        if type(event) is MessageReceived:
            channel = self.channels.get(event.channel)
            if channel is not None:  # else it is being closed, and the broker takes the message back
                channel._on_message(event)
        elif type(event) is Settled:
            channel = self.channels.get(event.channel)
            if channel is not None:
                channel._on_settled(event)
        else:
            self._on_other(event)

    def _on_other(self, event: Event) -> None:
        match event:
            case MethodReceived(number, method, request):
                self._on_method(number, method, request)
            case FlowChanged(number, active):
                if number in self.channels:
                    self.channels[number]._on_flow(active)
            case Blocked(reason):
                if not self.is_blocked:  # some say it again and again
                    log.warning("the broker takes no messages for now: %s", reason)
                self.is_blocked = True
            case Unblocked():
                if self.is_blocked:
                    log.info("the broker takes messages again")
                self.is_blocked = False
                self.resume_writing()
            case ChannelClosed(number):
                if number in self.channels:
                    self.channels[number]._on_closed(event)
                elif event.crossed is not None:  # for what no one waits for any more
                    close: Any = event.crossed
                    text = printable(close.reply_text)
                    log.warning("a request was refused after all: %d %s", close.reply_code, text)
            case Violation(number, code, text) if number != 0:
                if number in self.channels:  # else it is closed already
                    self.channels[number]._fail(reply_error(code, text))
            case Violation(_, code, text):
                self.drop(reply_error(code, text))  # the peer's answer is not waited for
            case ConnectionClosed():
                self.closed = event
                self.end(closed_error(event, self.stream.reason))

    def _on_method(self, number: int, method: Any, request: Any) -> None:
        channel = self.channels.get(number)
        if number == 0:
            self.calls.answered(request, method)
        elif channel is not None and request is not None:
            channel._on_reply(request, method)
        elif channel is not None and method.spec.name == "basic.cancel":
            if not method.no_wait:
                self.send(number, self.connection.dialect.Basic.CancelOk(method.consumer_tag))
            channel._on_cancel(method)
        elif channel is not None:
            log.warning("%s on channel %d was not asked for", method.spec.name, number)

    def resume_writing(self) -> None:
        """Have those write that wait, in turns."""
        for writer in list(self.waiting):
            writer.flush()
            if writer in self.waiting:
                del self.waiting[writer]
                self.waiting[writer] = None

    def stream_ended(self, error: Exception | None) -> None:
        """End, by an exception of the handling of an event, or without a word of the peer."""
        self.end(error or ConnectionLostError("the connection is lost"))

    # -- what the client and its channels call

    def end(self, error: Exception) -> None:
        """Take note that the connection is over, and why."""
        if not self.ended.done():
            try:
                self._on_end(self, error)
            except Exception as fault:  # which ends the client, too
                error = fault
            self.ended.set_result(error)

    def send(self, number: int, method: Any) -> None:
        """Send what the broker has to be told; where it cannot be sent, the broker does not read: drop it."""
        try:
            self.connection.send(number, method)
        except AmqpError as error:
            self.drop(ConnectionLostError(f"{method.spec.name} cannot be sent: {error}"))

    def drop(self, error: Exception) -> None:
        """End the connection for a reason of this side, without waiting for the broker."""
        self.end(error)
        with suppress(LocalProtocolError):  # it is over, or nobody reads it
            self.connection.close()
        self.stream.end()

    async def close(self, seconds: float) -> None:
        """Close the connection, and wait so many seconds for the broker's answer."""
        late = TimeoutError("the broker has not answered connection.close in time")
        try:
            if seconds > 0:
                # wait_for of Python 3.11 drops a cancellation.
                await in_time(self.stream.close(), seconds, late)
            else:
                self.drop(ConnectionLostError("the connection is closed"))
        except TimeoutError as error:
            log.warning("%s", error)
        finally:
            await self.stream.leave()


def counts_returns(server_properties: Any) -> bool:
    """Return whether a server is a RabbitMQ whose quorum queues count every return towards their limit.

    There is no limit before 4.0. From 4.3 on, basic.nack does not count.
    """
    version = str(server_properties.get("version"))
    return server_properties.get("product") == "RabbitMQ" and match(r"4\.[0-2]\b", version) is not None


# In `on_connect`, and in tasks that it starts: the connection that it sets up.
setting_up: ContextVar[Link | None] = ContextVar("setting_up", default=None)


def in_set_up() -> Link | None:
    """Return the connection that the running task sets up, which may be lost; None where it sets up none."""
    link = setting_up.get()
    return link if link is not None and link.sets_up else None


__all__ = ["Link", "elsewhere", "in_set_up", "setting_up"]
