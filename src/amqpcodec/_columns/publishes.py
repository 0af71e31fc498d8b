"""Publishes, as far as deliveries are joined to them, and what is read of both from their octets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from amqpcodec._state import Fields

from .origins import NO_TIME, none_for
from .steps import DELIVER, GET_OK, PUBLISH

if TYPE_CHECKING:
    from .following_py import Message

_ARGUMENTS = 11  # octets of a method's frame before its arguments
_SIZE_AT, _FLAGS_AT, _PROPERTIES_AT = 11, 19, 21  # of a content header's frame
_MORE_FLAGS = 1
# Properties of the class basic up to the last one that counts here, by the bit that says that they are there.
_SHORTSTR, _TABLE, _OCTET = range(3)
_KINDS = (
    (0x8000, _SHORTSTR), (0x4000, _SHORTSTR), (0x2000, _TABLE), (0x1000, _OCTET), (0x0800, _OCTET),
    (0x0400, _SHORTSTR), (0x0200, _SHORTSTR), (0x0100, _SHORTSTR), (0x0080, _SHORTSTR),
)  # fmt: skip
EXPIRATION = 0x0100
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


class Known:
    """Publishes by a key, of which it matters whether one alone has it."""

    def __init__(self) -> None:
        self._by_key: dict[bytes, list[Any]] = {}  # the first publish, and how many have the key

    def __contains__(self, key: bytes) -> bool:
        return key in self._by_key

    def add(self, key: bytes, publish: Publish) -> None:
        """Add a publish; nothing is done without a key."""
        if key:
            found = self._by_key.get(key)
            if found is None:
                self._by_key[key] = [publish, 1]
            else:
                found[1] += 1

    def forget(self, key: bytes) -> None:
        """Forget a publish. The others that have its key still are several."""
        found = self._by_key.get(key)
        if found is not None:
            found[1] -= 1
            if not found[1]:
                del self._by_key[key]
            elif found[1] == 1:
                found[0] = None

    def only(self, key: bytes, vhost: str | None) -> Publish | None:
        """Return the publish that alone has a key; None if it was in another virtual host."""
        found = self._by_key.get(key)
        if found is None or found[1] > 1 or found[0] is None:
            return None
        publish: Publish = found[0]
        return publish if vhost is None or publish.vhost in (None, vhost) else None

    def several(self) -> list[bytes]:
        """Return the keys of one publish that others had, too."""
        return [key for key, found in self._by_key.items() if found[0] is None]

    def restore(self, key: bytes) -> bool:
        """Take one of those of `several`, once all publishes are there; return whether there is one."""
        found = self._by_key.get(key)
        if found is None:
            return False
        found[0] = None
        return True


def route_of(message: Message) -> bytes:
    """Return exchange and routing key of a message, as two short strings behind each other."""
    frames = message.frames
    at = _ARGUMENTS + 2
    if message.step == DELIVER:
        at = _ARGUMENTS + 10 + frames[_ARGUMENTS]
    elif message.step == GET_OK:
        at = _ARGUMENTS + 9
    elif message.step != PUBLISH:
        at += 1 + frames[at]
    middle = at + 1 + frames[at]
    return frames[at : middle + 1 + frames[middle]]


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
    return int.from_bytes(header[_FLAGS_AT:_PROPERTIES_AT], "big")


def ident_of(header: bytes, route: bytes) -> bytes:
    """Return what names a message among those to the same place: its id, else its correlation id, and its size.

    Args:
        header: the frame of its content header.
        route: where it goes, from `route_of`.
    """
    flags = flags_of(header)
    if not flags & (_MESSAGE_ID | _CORRELATION_ID) or flags & _MORE_FLAGS:
        return b""
    at, end = _PROPERTIES_AT, len(header) - 1
    found = b""
    for bit, kind in _KINDS:
        if not flags & bit:
            continue
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
    return route + found + header[_SIZE_AT:_FLAGS_AT]
