"""Exchanges: what they pass a message on to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..reply_errors import AmqpPreconditionFailed
from .messages import Message

if TYPE_CHECKING:
    from .queues import Queue

MATCHES = ("all", "any", "all-with-x", "any-with-x")


class Binding:
    """Says what an exchange passes on, and to whom."""

    __slots__ = ("arguments", "destination", "key", "routing_key", "source", "takes")

    def __init__(
        self, source: Exchange, destination: Queue | Exchange, routing_key: str, arguments: dict[str, Any]
    ) -> None:
        self.source = source
        self.destination = destination
        self.routing_key = routing_key
        self.arguments = arguments
        self.takes = MATCHERS[source.kind](self)
        # What tells it from others: the same is bound once.
        self.key = destination, routing_key, tuple(sorted(map(repr, arguments.items())))


Matcher = Callable[[str, Message], bool]


def _direct(binding: Binding) -> Matcher:
    bound = binding.routing_key
    return lambda key, message: key == bound


def _fanout(binding: Binding) -> Matcher:
    return lambda key, message: True


def _topic(binding: Binding) -> Matcher:
    pattern = binding.routing_key
    return lambda key, message: topic_matches(pattern, key)


def topic_matches(pattern: str, key: str) -> bool:
    """Return whether a routing key has the words of a pattern: ``*`` is a word, ``#`` any number of them."""
    words = key.split(".") if key else []
    reached = {0}  # how many words the pattern so far may stand for
    for part in pattern.split(".") if pattern else []:
        if not reached:
            return False
        if part == "#":
            reached = set(range(min(reached), len(words) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(words) and part in ("*", words[at])}
    return len(words) in reached


def _headers(binding: Binding) -> Matcher:
    """Compare headers: those that begin with ``x-`` count only where the match says so."""
    kind = binding.arguments.get("x-match", "all")
    if kind not in MATCHES:
        shown = f'<<"{kind}">>' if isinstance(kind, str) else repr(kind)
        text = f"Invalid x-match field value {shown}; expected all, any, all-with-x, or any-with-x"
        raise AmqpPreconditionFailed(text)
    with_x = kind.endswith("-with-x")
    wanted = [
        (name, value)
        for name, value in binding.arguments.items()
        if name != "x-match" and (with_x or not name.startswith("x-"))
    ]
    found = all if kind.startswith("all") else any

    def takes(key: str, message: Message) -> bool:
        headers = message.headers
        return found(
            name in headers and (value is None or _same(headers[name], value)) for name, value in wanted
        )

    return takes


def _same(value: Any, other: Any) -> bool:
    """Return whether two values are equal; a number is no boolean."""
    return bool(value == other) and (type(value) is bool) == (type(other) is bool)


MATCHERS: dict[str, Callable[[Binding], Matcher]] = {
    "direct": _direct,
    "fanout": _fanout,
    "topic": _topic,
    "headers": _headers,
}


class Exchange:
    """An exchange, and its bindings.

    Attributes:
        alternate: the name of the exchange for what it cannot pass on; None for none.
        bindings: what it passes on, in order.
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
    ) -> None:
        self.name = name
        self.kind = kind
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments = arguments or {}
        self.alternate: str | None = self.arguments.get("alternate-exchange")
        self.bindings: dict[Any, Binding] = {}
        self._by_key: dict[str, dict[Any, Binding]] = {}  # of a direct exchange, which need not compare

    def bind(self, binding: Binding) -> None:
        """Pass on what a binding says."""
        self.bindings[binding.key] = binding
        self._by_key.setdefault(binding.routing_key, {})[binding.key] = binding

    def unbind(self, binding: Binding) -> None:
        """Pass it on no more."""
        del self.bindings[binding.key]
        same = self._by_key[binding.routing_key]
        del same[binding.key]
        if not same:
            del self._by_key[binding.routing_key]

    def destinations(self, message: Message, keys: list[str]) -> Iterator[Queue | Exchange]:
        """Yield what a message goes to, by any of its routing keys; some twice."""
        if self.kind == "direct":
            for key in keys:
                for binding in self._by_key.get(key, {}).values():
                    yield binding.destination
            return
        if self.kind != "topic":
            keys = keys[:1]  # any will do
        for binding in self.bindings.values():
            if any(binding.takes(key, message) for key in keys):
                yield binding.destination


__all__ = ["MATCHERS", "Binding", "Exchange", "topic_matches"]
