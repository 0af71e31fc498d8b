"""Publishes, as far as deliveries are joined to them, and what is read of both from their octets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from amqpcodec._state import Fields, damaged

from .origins import NO_TIME, none_for
from .steps import DELIVER, GET_OK, PUBLISH

if TYPE_CHECKING:
    from .following_py import Message

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
HALF = 16  # octets of what stands for a body, and of what stands for properties and body
_CORRELATION_ID, _MESSAGE_ID = 0x0400, 0x0080


class Publish(NamedTuple):
    """A publish that deliveries may be of.

    Attributes:
        flow, offset: the number of its connection, and where it is in that.
        time_ns: its time, or NO_TIME.
        vhost: the virtual host; None if it is not known.
        content, ident: its keys, see `Known`; empty where it has none.
    """

    flow: int
    offset: int
    time_ns: int
    vhost: str | None
    content: bytes
    ident: bytes

    def state(self) -> list[Any]:
        """Return the state that `restored` takes."""
        return [self.flow, self.offset, none_for(self.time_ns), self.vhost, self.content, self.ident]

    @classmethod
    def restored(cls, state: Fields) -> Publish:
        """Return the publish of a state."""
        flow, offset, time_ns = state.number(0), state.number(0), state.time()
        publish = cls(
            flow, offset, NO_TIME if time_ns is None else time_ns, state.text_or_none(), state.octets(),
            state.octets(),
        )  # fmt: skip
        state.end()
        return publish


class _Kept:
    """A publish with a key.

    Attributes:
        publish: the first one that is remembered; None if others had the key that are not.
        count: how many have it.
        places: where it was delivered, see `place_of`.
    """

    __slots__ = ("count", "places", "publish")

    def __init__(self, publish: Publish | None) -> None:
        self.publish = publish
        self.count = 1
        self.places: set[str] = set()


class Known:
    """Publishes by a key, of which it matters whether one alone has it."""

    def __init__(self) -> None:
        self._by_key: dict[bytes, _Kept] = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._by_key

    def add(self, key: bytes, publish: Publish) -> None:
        """Add a publish; nothing is done without a key."""
        if key:
            kept = self._by_key.get(key)
            if kept is None:
                self._by_key[key] = _Kept(publish)
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
            if place in kept.places:
                kept.publish = None
                return None
            kept.places.add(place)
        alone = kept.count == 1 and (vhost is None or kept.publish.vhost in (None, vhost))
        return kept.publish if alone else None

    def state(self) -> list[Any]:
        """Return what `restore` takes beside the publishes."""
        return [
            [key, kept.publish is None, sorted(kept.places)]
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
            kept.places.update(places)
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


def names_in(route: bytes) -> tuple[str, str]:
    """Return the exchange and the routing key of a route."""
    middle = 1 + route[0]
    exchange, routing_key = route[1:middle], route[middle + 1 :]
    return exchange.decode("utf-8", "surrogateescape"), routing_key.decode("utf-8", "surrogateescape")


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
