"""From which queue messages come, and which queue a method is about, as far as a capture tells."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ..capture import CLIENT_TO_SERVER, CapturedFrame, Fault
from .recent import Recent

_MOST_ASKED = 1024  # requests on a channel that wait for an answer
_MOST_CONSUMERS = 65536  # on a channel


class _Channel:
    """The queues of a channel: consumers by tag, requests not yet answered, the last queue declared."""

    __slots__ = ("consumers", "consumes", "gets", "last")

    def __init__(self) -> None:
        self.consumers: dict[str, str | None] = {}
        self.consumes: deque[tuple[str, str | None]] = deque(maxlen=_MOST_ASKED)
        self.gets: deque[str | None] = deque(maxlen=_MOST_ASKED)
        self.last: str | None = None

    def named(self, name: str) -> str | None:
        """The queue that a name means: an empty one is the last queue declared on the channel."""
        return name or self.last

    def consume(self, tag: str, queue: str | None) -> None:
        if len(self.consumers) < _MOST_CONSUMERS:
            self.consumers[tag] = queue


_Handler = Callable[[_Channel, Any, int], "str | None"]


class Queues:
    """Follows the methods of the connections of one file."""

    def __init__(self) -> None:
        self._connections: Recent[int, dict[int, _Channel]] = Recent()
        self._kinds: dict[
            type, tuple[_Handler | None, bool]
        ] = {}  # of a method: what handles it, and `queue`

    def of(self, item: CapturedFrame) -> str | None:
        """The queue that a method is about; every method has to be shown, in order.

        It is the queue that the method names, the one that its consumer or basic.get reads, or the one that
        the default exchange routes to.
        """
        frame: Any = item.frame
        payload, number = frame.payload, frame.channel
        kind = type(payload)
        if kind not in self._kinds:
            self._kinds[kind] = _HANDLERS.get(payload.spec.name), hasattr(payload, "queue")
        handler, has_queue = self._kinds[kind]
        if handler is None and not has_queue:
            self._end(item, payload.spec.name)
            return None
        channels = self._connections.get(item.connection.number)
        if channels is None:
            channels = self._connections[item.connection.number] = {}
        channel = channels.get(number)
        if channel is None:
            channel = channels[number] = _Channel()
        if handler is None:
            return channel.named(payload.queue)
        return handler(channel, payload, item.direction)

    def _end(self, item: CapturedFrame, name: str) -> None:
        """Forget what a method ends."""
        if name in _ENDS:
            (self._connections.get(item.connection.number) or {}).pop(item.frame.channel, None)
        elif name == "connection.close-ok":
            self._connections.pop(item.connection.number)

    def miss(self, fault: Fault) -> None:
        """Octets are missing: requests and answers of that connection can no longer be matched in order."""
        if fault.connection is None or fault.octets:
            return
        for channel in (self._connections.get(fault.connection.number) or {}).values():
            channel.gets.clear()
            channel.consumes.clear()


def _declare(channel: _Channel, payload: Any, direction: int) -> str | None:
    if payload.queue:
        channel.last = payload.queue
    return payload.queue or None


def _consume(channel: _Channel, payload: Any, direction: int) -> str | None:
    queue = channel.named(payload.queue)
    if getattr(payload, "no_wait", False) or getattr(payload, "nowait", False):
        channel.consume(payload.consumer_tag, queue)
    else:
        channel.consumes.append((payload.consumer_tag, queue))
    return queue


def _consume_ok(channel: _Channel, payload: Any, direction: int) -> str | None:
    tag: str = payload.consumer_tag
    for asked in channel.consumes:
        if asked[0] in ("", tag):
            channel.consumes.remove(asked)
            channel.consume(tag, asked[1])
            break
    return channel.consumers.get(tag)


def _deliver(channel: _Channel, payload: Any, direction: int) -> str | None:
    return channel.consumers.get(payload.consumer_tag)


def _cancel(channel: _Channel, payload: Any, direction: int) -> str | None:
    if direction == CLIENT_TO_SERVER:
        return channel.consumers.get(payload.consumer_tag)  # messages may still be on their way
    return channel.consumers.pop(payload.consumer_tag, None)


def _get(channel: _Channel, payload: Any, direction: int) -> str | None:
    queue = channel.named(payload.queue)
    channel.gets.append(queue)
    return queue


def _got(channel: _Channel, payload: Any, direction: int) -> str | None:
    return channel.gets.popleft() if channel.gets else None


def _publish(channel: _Channel, payload: Any, direction: int) -> str | None:
    return None if payload.exchange else payload.routing_key or None


_HANDLERS: dict[str, _Handler] = {
    "queue.declare": _declare,
    "queue.declare-ok": _declare,
    "basic.consume": _consume,
    "basic.consume-ok": _consume_ok,
    "basic.deliver": _deliver,
    "basic.cancel": _cancel,
    "basic.cancel-ok": _cancel,
    "basic.get": _get,
    "basic.get-ok": _got,
    "basic.get-empty": _got,
    "basic.publish": _publish,
}
_ENDS = frozenset(("channel.open", "channel.close-ok"))
