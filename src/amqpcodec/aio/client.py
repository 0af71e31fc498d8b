"""A client that comes back: `Client` has channels, on one connection after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from ..connection import ConnectionClosed, ConnectionLimits
from ..errors import AmqpError, ConnectionLostError, LocalProtocolError
from ..reply_errors import AmqpInternalError
from .blame import (
    ALONE_SECONDS,
    TRYING_SECONDS,
    Blame,
    awaited,
    given_up,
    is_named,
    is_refusal,
    may_pass,
    sent_by,
)
from .calls import OF_ONE_CHANNEL, answer_to, call_name, no_answer
from .channel import Channel
from .checks import awaitable, check_backoff, check_hook, check_hosts, check_seconds
from .connecting import address_of, check_options, connect
from .counters import LASTING_SECONDS, Backoff, ClientStats
from .credentials import Credentials
from .deliveries import Delivery
from .failures import LateError
from .link import Link, elsewhere, in_set_up, setting_up
from .opened import Opened
from .renewal import Renewal
from .returns import Headers

log = logging.getLogger("amqpcodec.aio")


class Client:
    """A client of a broker, to be entered with ``async with``: it connects, and connects again.

    Entering waits for the first connection. Leaving closes the client; with an exception, at once.

    Each time there is a connection, `on_connect` declares what the program needs. The client declares
    nothing by itself: what the program declares elsewhere is not declared again. Channels, consumers and
    messages that are not confirmed go on after `on_connect`.

    A connection that breaks off, or that the broker ends by 320 connection-forced or 541 internal-error, is
    followed by another. Any other end is final, and so is an exception of `on_connect` that no other
    attempt can mend. All that waits then raises it, and so does all that is asked of the client later.

    A message or consumer for which the broker ends the connection each time is given up: it raises the
    broker's error, and all else goes on.

    Args:
        url: where the broker is, as `Address` describes it; or several places, to be tried in turn.
        on_connect: awaited with the client on each new connection.
        credentials: awaited before each attempt to connect, and before the credentials that it has returned
            end: the broker of a living connection gets the new ones.
        backoff: how long to wait between attempts, and when to give up.
        close_seconds: how long closing waits, where nothing else is said.
        give_up_after: how many connections in a row the broker may end for one message or consumer, or with
            one error in `on_connect`, by 541 or without a word; None for any number.
        before_publish: called with basic.publish and the properties of each message; returns the properties
            to publish with.
        around_delivery: called with each delivery of a consumer; returns a context manager, which is left
            when its task asks for the next delivery, or leaves the consumer.
        options: as for `connect`, or for `Connection`.

    Raises:
        TypeError: an option that there is not, or a value of another type.
        ValueError: a URL that cannot be read, or an option out of range.
        OSError: a certificate file that a URL names cannot be read.
    """

    def __init__(
        self,
        url: str | Sequence[str] = "amqp://",
        *,
        on_connect: Callable[[Client], Awaitable[object]] | None = None,
        credentials: Callable[[], Awaitable[Credentials]] | None = None,
        backoff: Backoff = Backoff(),  # noqa: B008, a tuple
        close_seconds: float = 10.0,
        give_up_after: int | None = 3,
        before_publish: Callable[[Any, Any], Any] | None = None,
        around_delivery: Callable[[Delivery], AbstractContextManager[Any]] | None = None,
        **options: Any,
    ) -> None:
        if "sock" in options:
            raise ValueError("sock is of one connection: a client makes its own")
        check_options(options, type(self))
        check_hook("on_connect", on_connect, is_awaited=True)
        check_hook("credentials", credentials, is_awaited=True)
        if credentials is not None and options.get("login") is not None:
            raise ValueError("credentials are in place of login: give one of them")
        check_hook("before_publish", before_publish)
        check_hook("around_delivery", around_delivery)
        check_backoff(backoff)
        check_seconds("close_seconds", close_seconds)
        if give_up_after is not None and give_up_after < 1:
            raise ValueError(f"give_up_after must be positive, not {give_up_after!r}")
        for each in check_hosts(url):
            address = address_of(each, None, options.get("ssl"))
            if options.get("ssl") is None:
                address.tls_context()  # says at once what no attempt can mend
        self._url = url
        self._on_connect = on_connect
        self._backoff = backoff
        self._renewal = Renewal(credentials, backoff)
        self._options = options
        self._close_seconds = close_seconds
        self._before_publish = before_publish
        self._around_delivery = around_delivery
        self._blame = Blame(give_up_after)
        self._stats = ClientStats()
        self._channels: dict[Opened, None] = {}  # a set that keeps the order
        self._idle: list[Opened] = []  # for `call`
        self._consumer_tags = 0
        self._link: Link | None = None
        self._changed = asyncio.Event()  # wakes those that wait in `_until_ready`, and is not set
        self._error: Exception | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False
        self._is_over = False

    async def __aenter__(self) -> Client:
        if self._task is not None:
            raise LocalProtocolError("a client is entered once: make another one")
        self._task = asyncio.create_task(self._run())
        try:
            await self._until_ready()
        except BaseException:
            await self.close(0)
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        await self.close(None if kind is None else 0)

    # -- what programs call

    async def channel(
        self,
        *,
        window: int = 128,
        prefetch: int = 0,
        confirm: bool = True,
        republish: bool = True,
        reopen: int = 0,
    ) -> Channel:
        """Open a channel. The broker's answer is not waited for: what is sent next comes after the request.

        Args:
            window: how many messages may wait to be confirmed; further ones wait to be written.
            prefetch: how many deliveries may be unsettled; 0 for any number.
            confirm: whether the broker confirms messages. Without it, a message counts as published once it
                is written, and may be lost.
            republish: whether messages that are not confirmed when a connection is lost are published again;
                else they raise ConnectionLostError.
            reopen: how often in a row the channel is opened again where the broker has closed it, with its
                prefetch and consumers, by the client's `backoff`. Messages that are not confirmed raise the
                broker's error, and are not published again. A channel that lasts a second begins anew.

        Returns:
            The channel, which is opened again on each further connection.

        Raises:
            LocalProtocolError: all channels of the connection are in use; the dialect has no confirms; or the
                client is not entered.
            ReplyError, ConnectionLostError: the client is over.
            ValueError: a window that lets nothing pass, a prefetch that basic.qos cannot carry, or a negative
                `reopen`.
        """
        if not isinstance(window, int) or window < 1:
            raise ValueError(f"window must be a number from 1, not {window!r}")
        if not isinstance(prefetch, int) or not 0 <= prefetch < 1 << 16:
            raise ValueError(f"prefetch must be 0 to 65535, not {prefetch!r}")
        if not isinstance(reopen, int) or reopen < 0:
            raise ValueError(f"reopen must be a number from 0, not {reopen!r}")
        await self._until_ready()
        if confirm and not hasattr(self._dialect, "Confirm"):
            raise LocalProtocolError(f"{self._dialect.DIALECT.name} has no publisher confirms")
        return self._new_channel(
            window=window, prefetch=prefetch, confirm=confirm, republish=republish, reopen=reopen
        )

    def _new_channel(self, **options: Any) -> Channel:
        assert self._link is not None  # `_until_ready` has waited for it
        channel = Channel(self, **options)
        channel._open(self._link)
        self._channels[channel] = None
        channel._resume()
        return channel

    async def call(self, method: Any, *, timeout: float | None = None) -> Any:
        """Send a request on a channel of the client's own, and return its reply.

        An error of one call ends no other. Methods of the connection go on channel 0.

        Args:
            method, timeout: as for `Channel.call`.

        Returns:
            The method that answers it; None with ``no_wait``.

        Raises:
            ReplyError, ConnectionLostError, LateError, EncodeError, LocalProtocolError: as `Channel.call`.
        """
        name = call_name(method)
        if name in OF_ONE_CHANNEL:
            raise LocalProtocolError(f"{name} is of one channel: send it by Channel.call")
        late = no_answer(name, timeout)
        ask = self._call_on_connection if name.startswith("connection.") else self._call
        return await answer_to(ask(method, late), timeout, late)

    async def _call_on_connection(self, method: Any, late: LateError) -> Any:
        link = await self._until_ready()
        reply = link.calls.send(link, 0, method)
        late.was_sent = True
        return await reply

    async def _call(self, method: Any, late: LateError) -> Any:
        while True:
            link = await self._until_ready()
            async with link.calling:
                if link is not self._link:
                    continue  # the connection was lost meanwhile
                channel = self._idle.pop() if self._idle else self._new_channel()
                try:
                    return await channel._call(method, late)
                finally:
                    self._put_back(channel, has_answer=not getattr(method, "no_wait", False))

    def _put_back(self, channel: Opened, has_answer: bool) -> None:
        """Use a channel for the next call, unless the broker may say something yet to this one."""
        if not has_answer or channel._has_open_calls():
            channel._end(LocalProtocolError("the channel is closed"))
        elif channel in self._channels:
            self._idle.append(channel)

    def stats(self) -> ClientStats:
        """Return what the client has done so far."""
        here = 0 if self._link is None else self._link.connection.ignored
        return replace(self._stats, ignored=self._stats.ignored + here)

    async def close(self, timeout: float | None = None) -> None:
        """Close the client. Calls end at once, with ConnectionLostError; nothing new is taken.

        Args:
            timeout: seconds until all that was published has to be confirmed, and the broker to have
                answered; None for `close_seconds`. What is not confirmed by then raises
                ConnectionLostError.
        """
        task = self._task
        if task is None:
            return
        if task.get_loop() is not asyncio.get_running_loop():
            raise elsewhere()
        if self._is_closing:
            await asyncio.wait((task,))
            return
        self._is_closing = True
        loop = asyncio.get_running_loop()
        seconds = self._seconds_to_close(timeout)
        deadline = loop.time() + seconds
        left = 0.0
        try:
            if self._error is None and seconds > 0:
                await self._drain(seconds)
            left = deadline - loop.time()
        finally:
            for channel in list(self._channels):
                channel._give_all_back()
            self._fail(self._error or closed_by_program())
            try:
                if self._link is not None:
                    await self._link.close(left)
            finally:
                task.cancel()
                await asyncio.wait((task,))

    async def _drain(self, seconds: float) -> None:
        """Take nothing new, and wait until all is confirmed that was published."""
        self._error = error = closed_by_program()
        self._look_again()
        for channel in self._channels:
            channel._drain(error)
        if waiting := [
            confirmed for channel in self._channels for confirmed in channel._publishes.outstanding()
        ]:
            await asyncio.wait(waiting, timeout=seconds)

    # -- one connection after the other

    async def _run(self) -> None:
        try:
            await self._keep_connected()
        except Exception as error:
            expected = isinstance(error, (AmqpError, OSError))
            log.error("the client ends: %r", error, exc_info=None if expected else error)
            self._fail(error)
        finally:
            self._fail(closed_by_program())

    async def _keep_connected(self) -> None:
        """Connect, and connect again, until an error is final."""
        loop = asyncio.get_running_loop()
        waits, last = self._backoff.waits(), 0.0
        while True:
            try:
                link = await self._connect()
                since = loop.time()
                try:
                    await self._renewal.keep(link)
                finally:
                    link.drop(closed_by_program())
                    await link.stream.leave()
                error = link.ended.result()
                passes = comes_back(link, error)
                if link.is_explained or loop.time() - since > min(last, LASTING_SECONDS):
                    waits = self._backoff.waits()
            except Exception as raised:
                error = raised
                passes = may_pass(error) and not self._blame.is_final
            if self._is_over:
                return
            wait = next(waits, None) if passes else None
            if wait is None:
                raise error
            log.warning("connecting again in %.2g seconds: %r", wait, error)
            await asyncio.sleep(wait)
            last = wait

    async def _connect(self) -> Link:
        """Return a connection that is set up, on which all goes on that was there before."""
        limits = self._options.get("connection_limits") or ConnectionLimits()
        options = {**self._options, **await self._renewal.options()}
        link = Link(await connect(self._url, **options), self._lost, limits.send_buffer)
        if link.ended.done():
            raise link.ended.result()
        self._link = link
        try:
            self._open_channels(link)
            if self._on_connect is not None:
                await self._set_up(link, self._on_connect)
            await self._send_alone(link)
        except BaseException as error:
            link.drop(error if isinstance(error, Exception) else closed_by_program())
            await link.stream.leave()
            raise
        self._stats.connections += 1
        log.info("connected")
        link.is_set_up = True
        for channel in list(self._channels):
            if self._error is not None:  # those of `on_connect` too take nothing new
                channel._drain(self._error)
            channel._resume()
        self._look_again()
        return link

    def _open_channels(self, link: Link) -> None:
        for channel in list(self._channels):
            self._open_again(channel, link)

    def _open_again(self, channel: Opened, link: Link) -> None:
        try:
            channel._open(link)
        except LocalProtocolError as error:  # there are fewer than on the connection before
            log.error("a channel cannot be opened again: %s", error)
            channel._fail(error)

    async def _send_alone(self, link: Link) -> None:
        """Send one after the other what the broker may end connections for: an end tells which it was.

        There may be many, of a network that fails twice in a row. The rest goes with all else after a while,
        and the next end finds fewer.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + TRYING_SECONDS
        for channel in self._channels_on(link):
            for thing, answered in channel._send_alone(self._blame.is_suspect):
                await asyncio.wait(
                    (answered, link.ended), timeout=ALONE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if link.ended.done():
                    return
                self._blame.acquit(thing)
                if not answered.done() or loop.time() >= until:  # nothing else is to wait for the rest
                    return

    async def _set_up(self, link: Link, on_connect: Callable[[Client], Awaitable[object]]) -> None:
        """Run the program's `on_connect`, as long as there is the connection."""

        async def run() -> None:
            setting_up.set(link)
            await awaitable("on_connect", on_connect(self))

        link.sets_up = True
        task = asyncio.create_task(run())
        task.add_done_callback(lambda task: task.cancelled() or task.exception())  # it is retrieved
        try:
            await asyncio.wait((task, link.ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
            while not (await asyncio.wait((task,), timeout=self._close_seconds or None))[0]:
                log.warning("there is no other connection until on_connect ends, which was cancelled")
            link.sets_up = False
        if link.ended.done():
            raise link.ended.result()  # whatever `on_connect` makes of it
        if task.cancelled():
            raise LocalProtocolError("on_connect was cancelled")
        task.result()
        self._blame.is_set_up()

    def _lost(self, link: Link, error: Exception) -> None:
        """Tell all on a connection that it is over; `_keep_connected` decides what follows."""
        if self._link is link:
            self._link = None
            self._stats.ignored += link.connection.ignored
        channels = self._channels_on(link)
        link.channels.clear()  # events may be left
        if link.closed is not None:
            self._find_out(link, link.closed, channels, error)
        if comes_back(link, error) and not isinstance(error, ConnectionLostError):
            cause, error = error, ConnectionLostError(str(error))
            error.__cause__ = cause
        link.calls.fail(error, link.closed)
        for channel in channels:
            channel._lost(error, link.closed)

    def _channels_on(self, link: Link) -> list[Opened]:
        return [channel for channel in self._channels if channel._link is link]

    def _find_out(
        self, link: Link, closed: ConnectionClosed, channels: list[Opened], error: Exception
    ) -> None:
        """Find out for what the broker has ended a connection; give up what it always ends one for.

        A broker that reads no more, since it is short of memory say, is likely to end for that.
        """
        if link.is_blocked and not is_named(closed):
            return
        waiting = [(channel, *each) for channel in channels for each in channel._unanswered(closed)]
        of_connection = [(None, request) for request in awaited(closed, 0)]
        if link.sets_up:
            if (waiting or of_connection) and is_refusal(closed):
                self._blame.set_up_ended(error)
            return
        unanswered = [*of_connection, *((thing, method) for _, thing, method in waiting)]
        link.is_explained = is_named(closed) and any(sent_by(closed, method) for _, method in unanswered)
        guilty = self._blame.ended(closed, unanswered)
        for channel, thing, _ in waiting:
            if thing is not None and thing is guilty:
                channel._give_up(thing, given_up(error))
                link.is_explained = True

    def _open_later(self, channel: Opened, error: Exception, *, republish: bool = True) -> None:
        """Open a channel again that the broker has closed for what may be otherwise soon."""
        link = channel._link
        wait = channel._next_wait(self._backoff)
        if link is None or wait is None:
            channel._fail(error)
            return

        def open_again() -> None:
            if self._link is link and channel in self._channels and channel._link is None:
                self._stats.reopened += 1
                self._open_again(channel, link)
                channel._resume()
                self._look_again()

        log.warning("opening a channel again in %.2g seconds: %r", wait, error)
        del link.channels[channel._number]
        channel._lost(error, republish=republish)
        asyncio.get_running_loop().call_later(wait, open_again)

    def _fail(self, error: Exception) -> None:
        """Be over: everybody is told."""
        if self._is_over:
            return
        self._is_over = True
        self._error = error
        for channel in list(self._channels):
            channel._fail(error)
        self._look_again()

    # -- called by channels

    @property
    def _dialect(self) -> Any:
        """The module of the dialect that is spoken."""
        assert self._link is not None  # channels are made on a connection
        return self._link.connection.dialect

    def _headers(self) -> Headers:
        return Headers(self._dialect, self._options)

    def _look_again(self) -> None:
        """Have those look again that wait for a connection, or for their channel."""
        self._changed.set()
        self._changed.clear()

    async def _until_ready(self, channel: Opened | None = None) -> Link:
        """Return a connection that is set up, once there is one, with the channel on it.

        `on_connect` does not wait for itself, and waits for no other connection than its own.

        Raises:
            ReplyError, ConnectionLostError: the client is over, or the channel.
            LocalProtocolError: the client is not entered, or the channel is closed.
        """
        if self._task is None:
            raise LocalProtocolError("the client is not entered: use it inside of `async with Client(...)`")
        if self._task.get_loop() is not asyncio.get_running_loop():
            raise elsewhere()
        while True:
            error, link, own = self._error, self._link, in_set_up()
            if channel is not None and channel._error is not None:
                raise channel._error.with_traceback(None)
            if own is not None and own.ended.done():
                raise ConnectionLostError("the connection is lost")
            if error is not None and own is None:
                raise error.with_traceback(None)
            is_ready = link is not None and (link is own or link.is_set_up)
            if link is not None and is_ready and (channel is None or channel._is_ready(link)):
                return link
            await self._changed.wait()

    def _seconds_to_close(self, timeout: float | None) -> float:
        return self._close_seconds if timeout is None else timeout

    def _next_consumer_tag(self) -> str:
        """Return a name for a consumer."""
        self._consumer_tags += 1
        return f"amqpcodec-{self._consumer_tags}"

    def _forget(self, channel: Opened) -> bool:
        """Open a channel no more; return whether it was one of the client's."""
        if channel not in self._channels:
            return False
        del self._channels[channel]
        if channel in self._idle:
            self._idle.remove(channel)
        return True


def comes_back(link: Link, error: Exception) -> bool:
    """Return whether another connection follows after this one."""
    is_passing = link.is_explained or isinstance(error, AmqpInternalError)
    return may_pass(error) or (is_passing and not link.sets_up)


def closed_by_program() -> ConnectionLostError:
    """Return what is raised once the program has closed the client."""
    return ConnectionLostError("the client is closed")


__all__ = ["Client"]
