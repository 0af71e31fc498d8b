"""Exchanges: what they pass a message on to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from ..reply_errors import AmqpPreconditionFailed
from .arguments import CLASSIC, comparable, term, typed, weight, wire_type
from .messages import Message
from .topics import Topics, words_of

if TYPE_CHECKING:
    from .queues import Queue

ALTERNATE = "alternate-exchange"
LOCAL_RANDOM = "x-local-random"
MATCHES = ("all", "any", "all-with-x", "any-with-x")


class Binding:
    """Says what an exchange passes on, and to whom.

    Attributes:
        key: what tells it from others: the same is bound once.
        size: how many objects it counts for.
        takes: whether it wants the headers of a message; those of a headers exchange look at them.
    """

    __slots__ = ("arguments", "destination", "key", "routing_key", "size", "source", "takes")

    def __init__(
        self, source: Exchange, destination: Queue | Exchange, routing_key: str, arguments: dict[str, Any]
    ) -> None:
        self.source = source
        self.destination = destination
        self.routing_key = routing_key
        self.arguments = arguments
        self.key = destination, routing_key, tuple(sorted(map(repr, arguments.items())))
        self.size = weight(arguments) + (len(words_of(routing_key)) if source.type == "topic" else 0)
        self.takes = (
            _headers(arguments, source.is_strict) if source.type == "headers" else lambda headers: True
        )


def _headers(arguments: dict[str, Any], is_strict: bool) -> Callable[[dict[str, Any]], bool]:
    """Return what compares headers: those that begin with ``x-`` count only where the match says so."""
    term_of = typed if is_strict else comparable
    wanted_of = partial(typed, bound=True) if is_strict else comparable
    kind = arguments.get("x-match", "all")
    if not isinstance(kind, str):
        text = f"Invalid x-match field type {wire_type(kind)} (value {term(kind)}); expected longstr"
        raise AmqpPreconditionFailed(text)
    if kind not in MATCHES:
        text = f"Invalid x-match field value {term(kind)}; expected all, any, all-with-x, or any-with-x"
        raise AmqpPreconditionFailed(text)
    with_x = kind.endswith("-with-x")
    wanted = [
        (name, None if value is None else wanted_of(value))
        for name, value in arguments.items()
        if name != "x-match" and (with_x or not name.startswith("x-"))
    ]
    found = all if kind.startswith("all") else any
    return lambda headers: found(
        name in headers and (value is None or term_of(headers[name]) == value) for name, value in wanted
    )


class Exchange:
    """An exchange, and its bindings.

    Attributes:
        alternate: the name of the exchange for what it cannot pass on; None for none.
        bindings: what it passes on, in order.
        size: how many objects it counts for.
        is_strict: whether headers are compared with their types.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: dict[str, Any] | None = None,
        is_strict: bool = False,
    ) -> None:
        self.name = name
        self.type = kind
        self.is_strict = is_strict
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments = arguments or {}
        self.size = weight(self.arguments)
        self.alternate: str | None = self.arguments.get(ALTERNATE)
        self.bindings: dict[Any, Binding] = {}
        self._by_key: dict[str, dict[Any, Binding]] = {}  # of a direct exchange
        self._topics = Topics()
        self._turns = count()

    def bind(self, binding: Binding) -> None:
        """Pass on what a binding says."""
        self.bindings[binding.key] = binding
        if self.type == "topic":
            self._topics.add(binding)
        elif self.type == "direct":
            self._by_key.setdefault(binding.routing_key, {})[binding.key] = binding

    def unbind(self, binding: Binding) -> None:
        """Pass it on no more."""
        del self.bindings[binding.key]
        if self.type == "topic":
            self._topics.remove(binding)
        elif self.type == "direct":
            same = self._by_key[binding.routing_key]
            del same[binding.key]
            if not same:
                del self._by_key[binding.routing_key]

    def check_binding(self, destination: Queue | Exchange, key: str) -> None:
        """Refuse a binding that exchanges of its type cannot have.

        Raises:
            AmqpPreconditionFailed: it cannot have it.
        """
        if self.type != LOCAL_RANDOM:
            return
        if key:
            raise AmqpPreconditionFailed(f"Non empty binding '{key}' key not permitted")
        if isinstance(destination, Exchange):
            raise AmqpPreconditionFailed("Destination not found")
        if destination.kind != CLASSIC:
            kind = f"rabbit_{destination.kind}_queue"
            raise AmqpPreconditionFailed(f"Queue type {kind} not valid for this exchange type")

    def destinations(self, message: Message, keys: Iterable[str]) -> dict[Queue | Exchange, None]:
        """Return what a message goes to, by any of its routing keys."""
        found: Iterable[Binding]
        match self.type:
            case "direct":
                found = (binding for key in keys for binding in self._by_key.get(key, {}).values())
            case "topic":
                found = self._topics.matching(keys)
            case "headers":
                headers = message.headers
                found = (binding for binding in self.bindings.values() if binding.takes(headers))
            case _ if self.type == LOCAL_RANDOM and self.bindings:
                found = [[*self.bindings.values()][next(self._turns) % len(self.bindings)]]
            case _:
                found = self.bindings.values()
        return dict.fromkeys(binding.destination for binding in found)


__all__ = ["ALTERNATE", "Binding", "Exchange"]
