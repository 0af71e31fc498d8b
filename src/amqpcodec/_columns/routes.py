"""Where exchanges take messages, as far as a recording shows: the default exchange, and bindings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from amqpcodec._state import Fields, damaged

if TYPE_CHECKING:
    from .fifos import Queue

MOST = 10_000  # exchanges, bindings, names and routes that are kept
_PREDECLARED = {"amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic"}
_TYPES = ("direct", "fanout", "topic")

Name = tuple[str | None, str]  # a virtual host, None for one that is not known, and a name in it


class Routes:
    """The bindings of queues.

    Args:
        queues: those that are followed; whoever changes them calls `changed`.
    """

    def __init__(self, queues: Mapping[tuple[str, str], Queue]) -> None:
        self._queues = queues
        self._types: dict[Name, str] = {}
        self._bindings: dict[Name, list[tuple[str, Queue]]] = {}
        self._count = 0
        self._met: set[Name] = set()  # names of queues that are not followed any more, or never were
        self._published: set[Name] = set()  # exchanges that something was published to
        self._full = False  # there were more of them than are kept
        self._hosts: dict[str, None] = {}  # of queues
        self._targets: dict[tuple[str | None, bytes], tuple[Queue, ...]] = {}

    def changed(self, vhost: str) -> None:
        """Routes lead elsewhere now, in a virtual host."""
        self._hosts[vhost] = None
        self._targets.clear()

    def meet(self, vhost: str | None, name: str) -> bool:
        """Note a queue that has to do with messages from now on; return whether it may have had before."""
        known = self._full or (vhost, name) in self._met or (None, name) in self._met
        self._note(self._met, (vhost, name))
        return known

    def declare(self, vhost: str, exchange: str, kind: str) -> None:
        """Take the declaration of an exchange."""
        if len(self._types) < MOST:
            self._types.setdefault((vhost, exchange), kind)

    def bind(self, queue: Queue, exchange: str, routing_key: str) -> bool:
        """Take a binding; return whether it is known what it brings from here on."""
        where = queue.vhost, exchange
        kind = _PREDECLARED.get(exchange) or self._types.get(where)
        before = self._full or where in self._published or (None, exchange) in self._published
        if kind not in _TYPES or before or self._count >= MOST:
            return False
        self._count += 1
        self._bindings.setdefault(where, []).append((routing_key, queue))
        self.changed(queue.vhost)
        return True

    def bound_to(self, exchange: str) -> list[Queue]:
        """Return the queues that are bound to an exchange of a name."""
        return [
            queue
            for (_, name), bindings in self._bindings.items()
            if name == exchange
            for _, queue in bindings
        ]

    def named(self, vhost: str | None, name: str) -> list[Queue]:
        """Return the queues that a name may stand for in a virtual host."""
        if vhost is not None:
            queue = self._queues.get((vhost, name))
            return [] if queue is None else [queue]
        return [self._queues[host, name] for host in self._hosts if (host, name) in self._queues]

    def targets(self, vhost: str | None, route: bytes) -> tuple[Queue, ...]:
        """Return the queues that are followed and that a message with this route may reach."""
        found = self._targets.get((vhost, route))
        if found is None:
            if len(self._targets) >= MOST:
                self._targets.clear()
            found = self._targets[vhost, route] = tuple(dict.fromkeys(self._found(vhost, *_names_in(route))))
        return found

    def _found(self, vhost: str | None, exchange: str, routing_key: str) -> Iterator[Queue]:
        if not exchange:
            self._note(self._met, (vhost, routing_key))
            yield from self.named(vhost, routing_key)
            return
        self._note(self._published, (vhost, exchange))
        for (host, name), bindings in (
            self._bindings.items() if vhost is None else self._bound(vhost, exchange)
        ):
            if name == exchange:
                kind = _PREDECLARED.get(name) or self._types[host, name]
                for pattern, queue in bindings:
                    followed = self._queues.get((queue.vhost, queue.name)) is queue
                    if followed and _matches(kind, pattern, routing_key):
                        yield queue

    def _bound(self, vhost: str, exchange: str) -> list[tuple[Name, list[tuple[str, Queue]]]]:
        bindings = self._bindings.get((vhost, exchange))
        return [] if bindings is None else [((vhost, exchange), bindings)]

    # -- states

    def state(self) -> list[Any]:
        """Return the state that `restore` takes."""
        types = [[*name, kind] for name, kind in self._types.items()]
        bindings = [
            [queue.vhost, queue.name, name, pattern]
            for (_, name), bound in self._bindings.items()
            for pattern, queue in bound
            if self._queues.get((queue.vhost, queue.name)) is queue
        ]
        met, published = (sorted(map(list, names), key=str) for names in (self._met, self._published))
        return [self._full, types, bindings, met, published]

    def restore(self, state: Fields) -> None:
        """Go on from a state, with the queues that were followed then."""
        self._full = state.flag()
        for fields in state.items():
            where = fields.text(), fields.text()
            self._types[where] = fields.text()
            fields.end()
        for vhost, _ in self._queues:
            self._hosts[vhost] = None
        for fields in state.items():
            queue = self._queues.get((fields.text(), fields.text()))
            exchange, pattern = fields.text(), fields.text()
            if queue is None or not (exchange in _PREDECLARED or (queue.vhost, exchange) in self._types):
                raise damaged("there is no such queue or exchange")
            self._bindings.setdefault((queue.vhost, exchange), []).append((pattern, queue))
            self._count += 1
            fields.end()
        for names in (self._met, self._published):
            for fields in state.items():
                names.add((fields.text_or_none(), fields.text()))
                fields.end()
        state.end()

    def _note(self, names: set[Name], name: Name) -> None:
        if len(names) < MOST:
            names.add(name)
        elif name not in names:
            self._full = True


def _matches(kind: str, pattern: str, routing_key: str) -> bool:
    """Return whether a binding to an exchange of a kind takes a routing key."""
    if kind == "topic":
        return _fits(pattern.split(".") if pattern else [], routing_key.split(".") if routing_key else [])
    return kind == "fanout" or pattern == routing_key


def _fits(pattern: list[str], words: list[str]) -> bool:
    """Return whether the words of a routing key fit a pattern: `*` is any word, `#` any number of words."""
    reached = _behind_any(pattern, {0})
    for word in words:
        following = {
            at + (pattern[at] != "#") for at in reached if pattern[at : at + 1] in (["*"], ["#"], [word])
        }
        reached = _behind_any(pattern, following)
    return len(pattern) in reached


def _behind_any(pattern: list[str], reached: set[int]) -> set[int]:
    """Return the places that are reached without a word, too."""
    for at in sorted(reached):
        while pattern[at : at + 1] == ["#"]:
            at += 1
            reached.add(at)
    return reached


def _names_in(route: bytes) -> tuple[str, str]:
    """Return the exchange and the routing key of a route."""
    middle = 1 + route[0]
    exchange, routing_key = route[1:middle], route[middle + 1 :]
    return exchange.decode("utf-8", "surrogateescape"), routing_key.decode("utf-8", "surrogateescape")
