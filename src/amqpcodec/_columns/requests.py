"""Requests that say something about messages, and their replies.

There are few of these methods, so they are decoded, and one text of Python serves both builds. `step_of` says
what a method is to a follower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .text import clean

if TYPE_CHECKING:
    from .following_py import Channel, Followed

Source = tuple[str | None, bool]  # of messages: a queue, and whether they are not acknowledged
Request = tuple[str, str | None, bool]  # a consumer tag and such a source

_MOST_ASKED = 1024  # requests of one kind without an answer, or consumers, on one channel

# What a method is to a follower.
PUBLISH, DELIVER, GET_OK, RETURN, ANSWER, REQUEST = range(1, 7)
_STEPS: dict[str, tuple[int, tuple[str, ...]]] = {
    "basic.publish": (PUBLISH, ("short", "shortstr")),
    "basic.deliver": (DELIVER, ("shortstr", "longlong")),
    "basic.get-ok": (GET_OK, ("longlong",)),
    "basic.return": (RETURN, ()),
    "basic.ack": (ANSWER, ("longlong", "bit")),
    "basic.nack": (ANSWER, ("longlong", "bit", "bit")),
    "basic.reject": (ANSWER, ("longlong", "bit")),
}

# What requests are asked for.
_NEEDED = {
    "queue.declare": frozenset(("queue",)),
    "queue.declare-ok": frozenset(("queue", "message_count")),
    "basic.consume": frozenset(("queue", "consumer_tag", "no_ack")),
    "basic.consume-ok": frozenset(("consumer_tag",)),
    "basic.cancel": frozenset(("consumer_tag",)),
    "basic.cancel-ok": frozenset(("consumer_tag",)),
    "basic.get": frozenset(("queue", "no_ack")),
}


def step_of(method: Any) -> int:
    """Return what a method is to a follower, given its class; 0 for nothing."""
    spec = method.spec
    if spec.name in HANDLERS:
        needed = _NEEDED.get(spec.name, frozenset())
        return REQUEST if needed <= {field.attribute for field in spec.fields} else 0
    step, types = _STEPS.get(spec.name, (0, ()))
    return step if types == tuple(field.type for field in spec.fields)[: len(types)] else 0


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
    followed.drop(channel.delivered, "unknown", packet, time_ns)
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


HANDLERS: dict[str, Handler] = {
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
    "connection.close-ok": _reset,
}
