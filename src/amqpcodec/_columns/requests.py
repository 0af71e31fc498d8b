"""Requests that say something about messages, and their replies.

There are few of these methods, so they are decoded, and one text of Python serves both builds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .text import clean

if TYPE_CHECKING:
    from .following_py import Channel, Followed, Request

_MOST_ASKED = 1024  # requests of one kind without an answer, or consumers, on one channel


def request(followed: Followed, number: int, direction: int, method: Any, packet: int, time_ns: int) -> None:
    """Take a request or its reply.

    Args:
        followed: its connection.
        number: its channel.
        direction: 0 client to server, 1 server to client.
        method: the method, decoded; `steps.step_of` its class is REQUEST.
        packet, time_ns: of its frame, or NO_TIME.
    """
    waits, name = followed.follower.waits, method.spec.name
    if waits is not None:
        waits.fifos.request(followed, number, direction, method)
    if name == "connection.close-ok":
        followed.end(packet, time_ns)
        if waits is not None:
            waits.fifos.end(followed.connection, orderly=True)
        return
    handler = _HANDLERS.get(name)
    if handler is not None:
        handler(followed, followed.channel(number), direction, method, packet, time_ns)


# Called with the connection, the channel, the direction, the method, and its packet and time, or NO_TIME.
Handler = Callable[["Followed", "Channel", int, Any, int, int], None]


def _reset(
    followed: Followed, channel: Channel, direction: int, method: Any, packet: int, time_ns: int
) -> None:
    """Forget a channel that is opened, or whose end is agreed on."""
    followed.end_channel(channel, packet, time_ns)
    channel.begin()


def _confirm_select(
    followed: Followed, channel: Channel, direction: int, method: Any, packet: int, time_ns: int
) -> None:
    if not channel.next_tag:
        channel.next_tag = 1


def _recover(
    followed: Followed, channel: Channel, direction: int, method: Any, packet: int, time_ns: int
) -> None:
    """Drop the deliveries that wait: they come again, or a commit settles them."""
    followed.drop(channel.delivered, 0, "unknown", packet, time_ns)
    channel.transacted = channel.transacted or method.spec.name == "tx.select"


def _declare(
    followed: Followed, channel: Channel, direction: int, method: Any, packet: int, time_ns: int
) -> None:
    if method.queue:
        channel.queue = clean(method.queue)
        if direction and followed.follower.depth is not None:
            followed.follower.depth(channel.queue, method.message_count)


def _consume(
    followed: Followed, channel: Channel, direction: int, method: Any, packet: int, time_ns: int
) -> None:
    request = method.consumer_tag, _queue(channel, method), method.no_ack
    if getattr(method, "no_wait", False) or getattr(method, "nowait", False):
        _begin_consumer(channel, method.consumer_tag, request)
    else:
        channel.consumes = _asked(channel.consumes, request)


def _consume_ok(
    followed: Followed, channel: Channel, direction: int, method: Any, packet: int, time_ns: int
) -> None:
    tag = method.consumer_tag
    for index, request in enumerate(channel.consumes):
        if request[0] in ("", tag):
            channel.consumes = channel.consumes[:index] + channel.consumes[index + 1 :]
            _begin_consumer(channel, tag, request)
            return


def _cancelled(
    followed: Followed, channel: Channel, direction: int, method: Any, packet: int, time_ns: int
) -> None:
    """Forget a consumer whose end the broker confirms, or decides on."""
    if direction and channel.consumers is not None:
        channel.consumers.pop(method.consumer_tag.encode("utf-8", "surrogateescape"), None)


def _get(
    followed: Followed, channel: Channel, direction: int, method: Any, packet: int, time_ns: int
) -> None:
    channel.gets = _asked(channel.gets, ("", _queue(channel, method), method.no_ack))


def _get_empty(
    followed: Followed, channel: Channel, direction: int, method: Any, packet: int, time_ns: int
) -> None:
    if channel.gets and followed.follower.depth is not None:
        followed.follower.depth(channel.gets[0][1], 0)
    channel.gets = channel.gets[1:]


def _begin_consumer(channel: Channel, tag: str, request: Request) -> None:
    if channel.consumers is None:
        channel.consumers = {}
    key = tag.encode("utf-8", "surrogateescape")
    if len(channel.consumers) < _MOST_ASKED or key in channel.consumers:
        channel.consumers[key] = request[1], request[2]


def _queue(channel: Channel, method: Any) -> str | None:
    return clean(method.queue) if method.queue else channel.queue


def _asked(asked: tuple[Request, ...], request: Request) -> tuple[Request, ...]:
    """Return requests, and one more; the oldest of too many is forgotten."""
    return (*asked[1 - _MOST_ASKED :], request)


_HANDLERS: dict[str, Handler] = {
    "basic.recover": _recover,
    "basic.recover-async": _recover,
    "tx.select": _recover,
    "confirm.select": _confirm_select,
    "queue.declare": _declare,
    "queue.declare-ok": _declare,
    "basic.consume": _consume,
    "basic.consume-ok": _consume_ok,
    "basic.cancel": _cancelled,
    "basic.cancel-ok": _cancelled,
    "basic.get": _get,
    "basic.get-empty": _get_empty,
    "channel.open": _reset,
    "channel.close-ok": _reset,
}
