"""Virtual hosts: the exchanges and queues that there are, and how messages get from one to the other.

What cannot be is raised as an exception of `amqpcodec.reply_errors`, which the session tells the client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any

from .. import reply_errors as refused
from .arguments import (
    CLASSIC,
    DEAD_LETTER_EXCHANGE,
    PLACE,
    QUEUE_TYPE,
    QUORUM,
    STREAM,
    as_compared,
    require_same,
    require_text,
    settings,
    shown,
    taken_by,
)
from .clock import Clock
from .deadletters import DeadLetters
from .exchanges import ALTERNATE, Binding, Exchange
from .messages import Message
from .queues import Queue
from .quorum import QuorumQueue
from .replies import REPLY_TO, Address, Replies
from .streams import StreamQueue
from .versions import Version

if TYPE_CHECKING:
    from .session import Session

DEFAULT = ""
PLAIN = re.compile("[a-z]*")  # names of types that RabbitMQ has heard of, mostly
TRACE = "amq.rabbitmq.trace"
OWN = {
    "amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic", "amq.headers": "headers",
    "amq.match": "headers", TRACE: "topic",
}  # fmt: skip
KINDS: dict[str, type[Queue]] = {CLASSIC: Queue, QUORUM: QuorumQueue, STREAM: StreamQueue}
LOCKED = (
    "cannot obtain exclusive access to locked {}. It could be originally declared on another connection "
    "or the exclusive property value does not match that of the original declaration."
)

TRANSIENT_SHARED, GLOBAL_QOS = "transient_nonexcl_queues", "global_qos"
DENIED = (
    "Feature `{0}` is deprecated.\nIts use is not permitted per the configuration (overriding the default, "
    'which is permitted):\n    "deprecated_features.permit.{0} = false"\nIts use will not be permitted by '
)


class Store:
    """Counts what all that is kept takes, and refuses more than it may be.

    Args:
        most_octets: of messages; `is_full` beyond.
        most_objects: exchanges, queues, bindings, channels and consumers. Words of patterns and long
            arguments count as well.
        changed: called when it gets full, and when it is not any more.
    """

    def __init__(self, most_octets: int, most_objects: int, changed: Callable[[], object]) -> None:
        self.octets = 0
        self.objects = 0
        self._most_octets = most_octets
        self._most_objects = most_objects
        self._changed = changed
        self.is_full = False

    def taken(self, octets: int) -> None:
        """Count octets of messages: more, or less."""
        self.octets += octets
        if (self.octets > self._most_octets) is not self.is_full:
            self.is_full = not self.is_full
            self._changed()

    def made(self, objects: int = 1) -> None:
        """Count objects: more, or less.

        Raises:
            AmqpResourceError: there would be too many.
        """
        if objects > 0 and self.objects + objects > self._most_objects:
            raise refused.AmqpResourceError(f"{self._most_objects} exchanges, queues and others are the most")
        self.objects += objects


class VirtualHost:
    """One virtual host.

    Attributes:
        exchanges, queues: by name.
        version: whose rules there are.
    """

    def __init__(self, name: str, clock: Clock, store: Store, replies: Replies, version: Version) -> None:
        self.name = name
        self.version = version
        self._routes_replies = version.routes_replies
        self.clock = clock
        self.store = store
        self.replies = replies
        self.dead_letters = DeadLetters(self)
        self.exchanges: dict[str, Exchange] = {}
        for own, kind in {DEFAULT: "direct", **OWN}.items():
            self.exchanges[own] = self._make_exchange(own, kind, durable=True, internal=own == TRACE)
        self.queues: dict[str, Queue] = {}
        self._bound: dict[Queue | Exchange, dict[Binding, None]] = {}
        self._names = count(1)

    def _make_exchange(self, name: str, kind: str, **properties: Any) -> Exchange:
        return Exchange(name, kind, is_strict=self.version.compares_strictly, **properties)

    # -- messages

    def route(self, message: Message, exchange: Exchange) -> list[str]:
        """Return the names of queues that a message goes to, each once, by way of other exchanges as well.

        Those of the default exchange may not be there. A direct reply goes out at once, and to no queue,
        unless the version takes its address for the name of one.
        """
        keys = message.routing_keys
        if exchange.name == DEFAULT:
            if not self._routes_replies and (
                message.seen is None or not self.version.letters_are_no_replies
            ):  # all but dead letters, which those are that are seen as such
                self.replies.send(message)
            return list(keys)
        found: dict[str, None] = {}
        seen = {exchange}
        waiting = [exchange]
        while waiting:
            current = waiting.pop()
            destinations = current.destinations(message, keys)
            for destination in destinations:
                if isinstance(destination, Queue):
                    found[destination.name] = None
                elif destination not in seen:
                    seen.add(destination)
                    waiting.append(destination)
            other = (
                None if destinations or current.alternate is None else self.exchanges.get(current.alternate)
            )
            if other is not None and other not in seen:  # the default one has none
                seen.add(other)
                waiting.append(other)
        return list(found)

    def there(self, names: Iterable[str]) -> list[Queue | Address]:
        """Return the queues of some names that are there, and the addresses that are as queues."""
        if self._routes_replies:
            found: list[Queue | Address | None] = [
                self.queues.get(name) or self.replies.address(name) for name in names
            ]
            return [each for each in found if each is not None]
        return [self.queues[name] for name in names if name in self.queues]

    def deliver(self, message: Message, queues: list[Queue | Address]) -> bool:
        """Put a message into queues; return False if one of them refuses it."""
        if len(queues) < 2:
            return not queues or queues[0].put(message)
        accepted = True
        holds = self.dead_letters.hold()
        for queue in queues:
            accepted = queue.put(message) and accepted
        if holds:
            self.dead_letters.release()
        return accepted

    # -- exchanges

    def exchange(self, name: str) -> Exchange:
        """Return the exchange of a name.

        Raises:
            AmqpNotFound: there is none.
        """
        found = self.exchanges.get(name)
        if found is None:
            raise refused.AmqpNotFound(f"no exchange '{name}' in vhost '{self.name}'")
        return found

    def named(self, name: str) -> Exchange:
        """Return an exchange that may be declared, bound and deleted: any but the default one."""
        if name == DEFAULT:
            raise refused.AmqpAccessRefused("operation not permitted on the default exchange")
        return self.exchange(name)

    def declare_exchange(self, method: Any, user: Session) -> None:
        """Make an exchange, or find it as it should be."""
        name = method.exchange
        if method.passive:
            if name != DEFAULT:
                user.login.require_any("exchange", name)
            self.named(name)
            return
        if method.type not in self.version.exchange_types:
            fault = "invalid" if PLAIN.fullmatch(method.type) else "unknown"
            kind = getattr(refused, self.version.wrong_type)
            raise kind(f"{fault} exchange type '{method.type}'")
        if name == DEFAULT:
            self.named(name)
        user.login.require("exchange", name, "configure")
        if name in self.exchanges:
            self._require_same_exchange(self.exchanges[name], method)
            return
        if name.startswith("amq."):
            raise refused.AmqpAccessRefused(f"exchange name '{name}' contains reserved prefix 'amq.*'")
        arguments = dict(method.arguments or {})
        self._require_next(user, "exchange", name, arguments.get(ALTERNATE))
        require_text(f"exchange '{name}' in vhost '{self.name}'", arguments, ALTERNATE)
        exchange = self._make_exchange(
            name, method.type, durable=method.durable, auto_delete=method.auto_delete,
            internal=method.internal, arguments=arguments,
        )  # fmt: skip
        self.store.made(exchange.size)
        self.exchanges[name] = exchange

    def _require_next(self, user: Session, kind: str, name: str, exchange: Any) -> None:
        """Let a user go on who may have messages go on to another exchange, if that is asked for."""
        if isinstance(exchange, str):
            user.login.require(kind, name, "read")
            user.login.require("exchange", exchange, "write")

    def _require_same_exchange(self, current: Exchange, method: Any) -> None:
        where = f"exchange '{current.name}' in vhost '{self.name}'"
        names = ("type", "durable", "auto_delete", "internal")
        _require_facts(where, current, {name: getattr(method, name) for name in names})
        require_same(where, current.arguments, dict(method.arguments or {}), (ALTERNATE,))

    def delete_exchange(self, name: str, if_unused: bool, user: Session) -> None:
        """Delete an exchange, if it is there."""
        if name == DEFAULT:
            self.named(name)
        if name.startswith("amq."):
            text = f"deletion of system exchange '{name}' in vhost '{self.name}' not allowed"
            raise refused.AmqpAccessRefused(text)
        user.login.require("exchange", name, "configure")
        exchange = self.exchanges.get(name)
        if exchange is None:
            return
        if if_unused and exchange.bindings:
            raise refused.AmqpPreconditionFailed(f"exchange '{name}' in vhost '{self.name}' in use")
        self._drop_exchange(exchange)

    def _drop_exchange(self, exchange: Exchange) -> None:
        if self.exchanges.pop(exchange.name, None) is None:
            return
        self.store.made(-exchange.size - sum(binding.size for binding in exchange.bindings.values()))
        for binding in exchange.bindings.values():
            del self._bound[binding.destination][binding]
        exchange.bindings.clear()
        self._unbind_all(exchange)

    def bind(self, exchange: Exchange, destination: Queue | Exchange, key: str, arguments: Any) -> None:
        """Have an exchange pass messages on."""
        exchange.check_binding(destination, key)
        binding = Binding(exchange, destination, key, dict(arguments or {}))
        if binding.key not in exchange.bindings:
            self.store.made(binding.size)
            exchange.bind(binding)
            self._bound.setdefault(destination, {})[binding] = None

    def unbind(
        self, source: str, destination: Queue | Exchange, key: str, arguments: Any, user: object = None
    ) -> None:
        """Have it pass them on no more, for a connection that may use the queue."""
        exchange = self.named(source)
        binding = exchange.bindings.get(Binding(exchange, destination, key, dict(arguments or {})).key)
        if binding is not None:
            if isinstance(destination, Queue):
                self.queue(destination.name, user)
            self._unbind(binding)

    def _unbind(self, binding: Binding) -> None:
        """Drop a binding; the exchange may delete itself then."""
        source = binding.source
        source.unbind(binding)
        self.store.made(-binding.size)
        del self._bound[binding.destination][binding]
        if source.auto_delete and not source.bindings:
            self._drop_exchange(source)

    def _unbind_all(self, destination: Queue | Exchange) -> None:
        """Unbind what is deleted."""
        for binding in list(self._bound.get(destination, ())):
            self._unbind(binding)
        self._bound.pop(destination, None)

    # -- queues

    def queue(self, name: str, user: object = None) -> Queue:
        """Return the queue of a name, for a connection that may use it.

        Raises:
            AmqpNotFound: there is none.
            AmqpResourceLocked: it is that of another connection.
        """
        found = self.queues.get(name)
        if found is None:
            raise refused.AmqpNotFound(f"no queue '{name}' in vhost '{self.name}'")
        if found.owner is not None and user is not None and found.owner is not user:
            raise refused.AmqpResourceLocked(LOCKED.format(self.where(found)))
        return found

    def where(self, queue: Queue | str) -> str:
        """Return a queue as texts have it."""
        name = queue if isinstance(queue, str) else queue.name
        return f"queue '{name}' in vhost '{self.name}'"

    def declare_queue(self, method: Any, user: Session) -> Queue:
        """Make a queue, or find it as it should be; an empty name makes one up."""
        name = method.queue
        if method.passive or name.startswith(REPLY_TO):  # which no one makes
            user.login.require_any("queue", name)
            queue = self.queue(name, user)
            queue.used()
            return queue
        arguments = dict(method.arguments or {})
        if name.startswith("amq.") and name not in self.queues:
            raise refused.AmqpAccessRefused(f"queue name '{name}' contains reserved prefix 'amq.*'")
        name = name or f"amq.gen-{next(self._names)}"
        user.login.require("queue", name, "configure")
        if name in self.queues:
            queue = self.queue(name, user)
            self._require_same_queue(queue, method, arguments)
            return queue
        if not (method.durable or method.exclusive) and TRANSIENT_SHARED in self.version.denied:
            raise refused.AmqpInternalError(DENIED.format(TRANSIENT_SHARED))
        self._require_next(user, "queue", name, arguments.get(DEAD_LETTER_EXCHANGE))
        found = settings(self.where(name), {QUEUE_TYPE: self._usual_type(method), **arguments}, self.version)
        owner = user if method.exclusive else None
        queue = KINDS[found.queue_type](self, method, name, arguments, found, owner)
        self.store.made(queue.size)
        self.queues[name] = queue
        queue.used()
        return queue

    def _usual_type(self, method: Any) -> str:
        """Return the type of a queue that is declared without one."""
        stays = method.durable and not method.exclusive and not method.auto_delete
        return self.version.default_queue_type if stays else CLASSIC

    def _require_same_queue(self, queue: Queue, method: Any, arguments: dict[str, Any]) -> None:
        where = self.where(queue)
        if (queue.owner is not None) != method.exclusive:
            raise refused.AmqpResourceLocked(LOCKED.format(where))
        durable = method.durable and not method.exclusive
        _require_facts(where, queue, {"durable": durable, "auto_delete": method.auto_delete})
        current, names = queue.arguments, taken_by(queue.kind, self.version)
        if self.version.compares_types:
            current = {**current, QUEUE_TYPE: queue.kind}
            arguments = {QUEUE_TYPE: self._usual_type(method), **arguments}
        current, arguments = (as_compared(each, self.version) for each in (current, arguments))
        require_same(where, current, arguments, (*names, PLACE))
        queue.used()

    def delete_queue(self, queue: Queue) -> int:
        """Delete a queue; return how many messages waited in it."""
        if self.queues.get(queue.name) is not queue:
            return 0
        del self.queues[queue.name]
        self.store.made(-queue.size)
        number = len(queue.ready)
        self._unbind_all(queue)
        queue.end()
        return number


def _require_facts(where: str, current: Queue | Exchange, received: dict[str, Any]) -> None:
    """Refuse a declaration that differs from what there is in one of some fields."""
    for name, new in received.items():
        old = getattr(current, name)
        if old != new:
            text = f"received '{shown(new)}' but current is '{shown(old)}'"
            raise refused.AmqpPreconditionFailed(f"inequivalent arg '{name}' for {where}: {text}")


__all__ = ["Store", "VirtualHost"]
