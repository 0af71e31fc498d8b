"""Joins deliveries to the publishes that they come from: how long did a message wait?

A delivery does not say which publish it is of. Three things tell, the surest first:

* the order of its queue, where all that goes into it and comes out of it was recorded: see `fifos`;
* an id that one publish alone has, to the same exchange and routing key and with the same body;
* a content that one publish alone has: the same exchange, routing key, properties and body.

It runs only if a column asks for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from amqpcodec._state import Fields, damaged
from amqpcodec.capture import Connection

from .fifos import HALF, Fifos
from .origins import NO_TIME, none_for
from .steps import DELIVER, GET_OK, PUBLISH, RETURN

if TYPE_CHECKING:
    from .following_py import Followed, Message

MOST_PUBLISHES = 100_000  # that are remembered, in total
EXACT, BY_ID, BY_CONTENT, DROPPED = "exact", "by id", "by content", "dropped"
WAYS = (EXACT, BY_ID, BY_CONTENT, DROPPED)
_ARGUMENTS = 11  # octets of a method's frame before its arguments
_FLAGS_AT, _PROPERTIES_AT = 19, 21  # of a content header's frame
_MORE_FLAGS = 1
# Properties of the class basic up to the last one that counts here, by the bit that says that they are there.
_SHORTSTR, _TABLE, _OCTET = range(3)
_KINDS = (
    (0x8000, _SHORTSTR), (0x4000, _SHORTSTR), (0x2000, _TABLE), (0x1000, _OCTET), (0x0800, _OCTET),
    (0x0400, _SHORTSTR), (0x0200, _SHORTSTR), (0x0100, _SHORTSTR), (0x0080, _SHORTSTR),
)  # fmt: skip
_READ = 0xFF80  # the bits of these
EXPIRATION = 0x0100
_CORRELATION_ID, _MESSAGE_ID = 0x0400, 0x0080
_PAYLOAD = slice(7, -1)  # of a frame


class Publish:
    """A publish that deliveries may be of.

    Attributes:
        flow, offset: the number of its connection, and where it is in that.
        time_ns: its time, or NO_TIME.
        vhost: the virtual host; None if it is not known.
        content, ident: its keys, see `Known`; empty where it has none.
    """

    __slots__ = ("content", "flow", "ident", "offset", "time_ns", "vhost")

    def __init__(
        self, flow: int, offset: int, time_ns: int, vhost: str | None, content: bytes, ident: bytes
    ) -> None:
        self.flow = flow
        self.offset = offset
        self.time_ns = time_ns
        self.vhost = vhost
        self.content = content
        self.ident = ident

    def state(self) -> list[Any]:
        """Return the state that `restored` takes."""
        return [self.flow, self.offset, none_for(self.time_ns), self.vhost, self.content, self.ident]


def restored(state: Fields) -> Publish:
    """Return the publish of a state."""
    flow, offset, time_ns = state.number(0), state.number(0), state.time()
    vhost, content, ident = state.text_or_none(), state.octets(), state.octets()
    state.end()
    return Publish(flow, offset, NO_TIME if time_ns is None else time_ns, vhost, content, ident)


class Kept:
    """A publish with a key.

    Attributes:
        publish: the first one that is remembered; None if others had the key that are not.
        count: how many have it.
        places: where it was delivered, see `place_of`; None for nowhere yet.
    """

    __slots__ = ("count", "places", "publish")

    def __init__(self, publish: Publish | None) -> None:
        self.publish = publish
        self.count = 1
        self.places: set[str] | None = None


class Known:
    """Publishes by a key, of which it matters whether one alone has it."""

    def __init__(self) -> None:
        self._by_key: dict[bytes, Kept] = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._by_key

    def add(self, key: bytes, publish: Publish) -> None:
        """Add a publish; nothing is done without a key."""
        if key:
            kept = self._by_key.get(key)
            if kept is None:
                self._by_key[key] = Kept(publish)
            else:
                kept.count += 1

    def forget(self, key: bytes) -> None:
        """Forget a publish. The others that have its key still are several."""
        kept = self._by_key.get(key)
        if kept is not None:
            kept.publish = None
            kept.count -= 1
            if not kept.count:
                del self._by_key[key]

    def deliver(self, key: bytes, vhost: str | None, place: str | None) -> Publish | None:
        """Return the publish that alone has a key; None if it was in another virtual host.

        Args:
            key: the key.
            vhost: that of the delivery, if it is known.
            place: where it is delivered; None if it comes again there. Two first deliveries at a place are
                of two publishes, one of which was not recorded.
        """
        kept = self._by_key.get(key)
        if kept is None or kept.publish is None:
            return None
        if place is not None:
            if kept.places is None:
                kept.places = {place}
            elif place in kept.places:
                kept.publish = None
                return None
            else:
                kept.places.add(place)
        if kept.count > 1:
            return None
        other = kept.publish.vhost
        return kept.publish if vhost is None or other is None or vhost == other else None

    def state(self) -> list[Any]:
        """Return what `restore` takes beside the publishes."""
        return [
            [key, kept.publish is None, sorted(kept.places or ())]
            for key, kept in self._by_key.items()
            if kept.publish is None or kept.places
        ]

    def restore(self, state: Iterator[Fields]) -> None:
        """Go on from a state, once all publishes are there."""
        for fields in state:
            kept = self._by_key.get(fields.octets())
            if kept is None:
                raise damaged("there is no publish of this content")
            if fields.flag():
                kept.publish = None
            places = fields.list()
            if not all(type(place) is str for place in places):
                raise damaged("a message was delivered nowhere")
            kept.places = set(places) or None
            fields.end()


def route_of(message: Message) -> bytes:
    """Return exchange and routing key of a message, as two short strings behind each other.

    Raises:
        IndexError: its method is damaged.
    """
    frames = message.frames
    at = _ARGUMENTS + 2
    if message.step == DELIVER:
        at = _ARGUMENTS + 10 + frames[_ARGUMENTS]
    elif message.step == GET_OK:
        at = _ARGUMENTS + 9
    elif message.step != PUBLISH:
        at += 1 + frames[at]
    middle = at + 1 + frames[at]
    end = middle + 1 + frames[middle]
    if end >= message.header_at():
        raise IndexError(end)
    return frames[at:end]


def place_of(message: Message) -> str:
    """Return where a message is delivered: its queue, or its consumer if that is not known."""
    if message.queue is not None:
        return f"queue {message.queue}"
    return f"channel {message.channel} of {message.connection.number} for {message.consumer_tag}"


def is_redelivered(message: Message) -> bool:
    """Return whether a delivery, or what was got, has the bit `redelivered`."""
    frames = message.frames
    at = _ARGUMENTS + 8 + (1 + frames[_ARGUMENTS] if message.step == DELIVER else 0)
    return bool(frames[at] & 1)


def flags_of(header: bytes) -> int:
    """Return the flags of the properties in the frame of a content header."""
    return header[_FLAGS_AT] << 8 | header[_FLAGS_AT + 1] if len(header) > _PROPERTIES_AT else 0


@lru_cache(maxsize=512)
def _there(flags: int) -> tuple[tuple[int, int], ...]:
    """Return which of the properties that are read are there, and what they are."""
    return tuple((bit, kind) for bit, kind in _KINDS if flags & bit)


def ident_of(header: bytes, route: bytes, body: bytes) -> bytes:
    """Return what names a message among those on the same route: its id or correlation id, and its body.

    Args:
        header: the frame of its content header.
        route: where it goes, from `route_of`.
        body: what stands for its body.

    Returns:
        A key; nothing for a message without an id.
    """
    flags = flags_of(header)
    if not flags & (_MESSAGE_ID | _CORRELATION_ID) or flags & _MORE_FLAGS:
        return b""
    at, end = _PROPERTIES_AT, len(header) - 1
    found = b""
    for bit, kind in _there(flags & _READ):
        if at >= end:
            return b""
        size = 1
        if kind == _SHORTSTR:
            size = 1 + header[at]
        elif kind == _TABLE:
            size = 4 + int.from_bytes(header[at : at + 4], "big")
        if bit == _MESSAGE_ID or (bit == _CORRELATION_ID and size > 1):
            found = header[at : at + size] + bytes((bit == _MESSAGE_ID,))
        at += size
    if at > end or len(found) <= 2:
        return b""
    return route + found + body


def digest(header: bytes, parts: Iterable[bytes]) -> bytes:
    """Return what stands for the body of a content, and behind it what stands for properties and body.

    Args:
        header: the frame of its content header.
        parts: the payloads of the frames of its body.
    """
    found = blake2b(digest_size=HALF)
    for part in parts:
        found.update(part)
    body = found.digest()
    found.update(header[_PAYLOAD])
    return body + found.digest()


class Waits:
    """The publishes that deliveries may be of.

    Attributes:
        fifos: the queues whose order is known.
    """

    def __init__(self) -> None:
        self.fifos = Fifos(MOST_PUBLISHES)
        self._publishes: deque[Publish] = deque()
        self._most = MOST_PUBLISHES
        self._forgotten = False
        self._by_content, self._by_ident = Known(), Known()

    def take(self, followed: Followed, message: Message) -> None:
        """Take a message whose frames have come; say in a delivery what it is of."""
        try:
            if message.step == RETURN:
                self.fifos.spoil_route(followed.connection, route_of(message))
            elif message.step == PUBLISH:
                self._publish(followed, message)
            else:
                self._deliver(followed, message)
        except IndexError:  # its method is damaged, so that it is not known where it goes
            self.fifos.lose(followed.connection)

    def settle(self, message: Message, outcome: str | None) -> None:
        """Take what became of a message that has waited for an answer."""
        if message.step != PUBLISH:
            if outcome in ("requeued", "none", "unknown"):
                self.fifos.requeue(message.connection, message.queue)
        elif outcome in ("refused", "none"):
            with suppress(IndexError):  # a damaged one has spoilt all of them before
                self.fifos.spoil_route(message.connection, route_of(message))

    def _publish(self, followed: Followed, message: Message) -> None:
        route, header = route_of(message), message.header or b""
        content, ident = self._keys(message, route, header)
        vhost = self.fifos.vhost(followed.connection)
        publish = Publish(followed.connection.number, message.offset, message.time_ns, vhost, content, ident)
        targets = self.fifos.targets(vhost, route)
        if targets:
            lasting = bool(content) and not flags_of(header) & EXPIRATION
            self.fifos.publish(followed, message.channel, targets, publish, lasting)
        if content:
            if len(self._publishes) >= self._most:
                self._forget(self._publishes.popleft())
            self._remember(publish)

    def _remember(self, publish: Publish) -> None:
        self._publishes.append(publish)
        self._by_content.add(publish.content, publish)
        self._by_ident.add(publish.ident, publish)

    def _forget(self, publish: Publish) -> None:
        self._forgotten = True
        self._by_content.forget(publish.content)
        self._by_ident.forget(publish.ident)

    def _deliver(self, followed: Followed, message: Message) -> None:
        content, ident = self._keys(message, route_of(message), message.header or b"")
        again = is_redelivered(message)
        publish, decided = self.fifos.deliver(followed, message, content, again)
        way = EXACT
        if not decided or publish is not None:
            place, vhost = None if again else place_of(message), self.fifos.vhost(followed.connection)
            by_ident = self._by_ident.deliver(ident, vhost, place)
            by_content = self._by_content.deliver(content, vhost, place)
            if publish is None:
                publish, way = (by_content, BY_CONTENT) if by_ident is None else (by_ident, BY_ID)
        if publish is not None:
            message.found = way
            message.publish_flow, message.publish_offset = publish.flow, publish.offset
            if NO_TIME not in (publish.time_ns, message.time_ns):
                message.wait_ns = max(message.time_ns - publish.time_ns, 0)
        elif self._forgotten and content not in self._by_content:
            message.found = DROPPED

    def _keys(self, message: Message, route: bytes, header: bytes) -> tuple[bytes, bytes]:
        """Return the keys of a message; empty ones of one that is not whole."""
        if not message.complete:
            return b"", b""
        return route + message.content, ident_of(header, route, message.content[:HALF])

    # -- states

    def state(self) -> list[Any]:
        """Return the state that `restore` takes."""
        kept = dict.fromkeys(self._publishes)
        waiting = [publish for publish in self.fifos.pending() if publish not in kept]
        numbers = {publish: number for number, publish in enumerate((*kept, *waiting))}
        known = self._by_content.state(), self._by_ident.state()
        states = [publish.state() for publish in numbers]
        return [self._forgotten, len(kept), states, *known, *self.fifos.state(numbers)]

    def restore(self, state: Fields, connections: dict[int, Connection]) -> None:
        """Go on from a state.

        Args:
            state: what `state` returned.
            connections: those still known, by number.

        Raises:
            ValueError: it is damaged.
        """
        self._forgotten, kept = state.flag(), state.number(0, self._most)
        publishes = [restored(fields) for fields in state.items()]
        for publish in publishes[:kept]:
            self._remember(publish)
        for known in (self._by_content, self._by_ident):
            known.restore(state.items())
        self.fifos.restore(state, publishes, connections)
        state.end()
