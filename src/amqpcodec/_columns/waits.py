"""Joins deliveries to the publishes that they come from: how long did a message wait?

A delivery does not say which publish it is of. Three things tell, the surest first:

* the order of its queue, where all that goes into it and comes out of it was recorded: see `fifos`;
* an id that one publish alone has, to the same exchange and routing key and with the same body;
* a content that one publish alone has: the same exchange, routing key, properties and body.

It is one text of Python in both builds, which runs only if a column asks for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from amqpcodec._state import Fields
from amqpcodec.capture import Connection

from .fifos import Fifos
from .origins import NO_TIME
from .publishes import (
    EXPIRATION,
    HALF,
    Known,
    Publish,
    flags_of,
    ident_of,
    is_redelivered,
    place_of,
    route_of,
)
from .steps import PUBLISH, RETURN

if TYPE_CHECKING:
    from .following_py import Followed, Message

MOST_PUBLISHES = 100_000  # that are remembered, in total
EXACT, BY_ID, BY_CONTENT, DROPPED = "exact", "by id", "by content", "dropped"
WAYS = (EXACT, BY_ID, BY_CONTENT, DROPPED)
_PAYLOAD = slice(7, -1)  # of a frame


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
        content, ident = self._keys(message, route)
        vhost = self.fifos.vhost(followed.connection)
        publish = Publish(followed.connection.number, message.offset, message.time_ns, vhost, content, ident)
        lasting = bool(content) and not flags_of(header) & EXPIRATION
        self.fifos.publish(followed, message.channel, route, publish, lasting)
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
        content, ident = self._keys(message, route_of(message))
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

    def _keys(self, message: Message, route: bytes) -> tuple[bytes, bytes]:
        """Return the keys of a message; empty ones of one that is not whole."""
        if not message.complete:
            return b"", b""
        ident = ident_of(message.header or b"", route, message.content[:HALF])
        return route + message.content, ident

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
        publishes = [Publish.restored(fields) for fields in state.items()]
        for publish in publishes[:kept]:
            self._remember(publish)
        for known in (self._by_content, self._by_ident):
            known.restore(state.items())
        self.fifos.restore(state, publishes, connections)
        state.end()
