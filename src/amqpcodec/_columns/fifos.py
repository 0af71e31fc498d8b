"""Queues whose order is known: all that goes in and comes out was recorded, as far as that shows.

A queue is followed from its declaration on, if the broker then says how many messages are in it, and no one
consumes them. What is published to it is known by the default exchange, or by bindings that were recorded. It
is followed no more once anything is in doubt: a gap, a return, a refusal, a time to live, a transaction, a
publisher or consumer that began before the recording, a message that should not have come.

While several publish, or several consume, a delivery is of a certain publish only if no other one waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from amqpcodec import DecodeError
from amqpcodec._state import Fields, damaged
from amqpcodec.capture import Connection, Endpoint

from .routes import Routes
from .steps import GET_OK
from .text import clean

if TYPE_CHECKING:
    from .following_py import Channel, Followed, Message
    from .waits_py import Publish

HALF = 16  # octets of what stands for a body, and of what stands for properties and body
MOST_QUEUES = 10_000  # that are followed; and names of others that are known
# Arguments of a queue that neither drop messages nor change their order.
_HARMLESS = frozenset(
    (
        "x-queue-type", "x-queue-mode", "x-queue-version", "x-dead-letter-exchange",
        "x-dead-letter-routing-key", "x-dead-letter-strategy", "x-single-active-consumer",
        "x-queue-master-locator", "x-queue-leader-locator", "x-delivery-limit", "x-quorum-initial-group-size",
    )
)  # fmt: skip
_KEPT_TYPES = ("classic", "quorum")
_MOST_ASKED = 1024  # declarations without an answer on a channel

Who = tuple[int, int]  # the number of a connection, and a channel


class Queue:
    """A queue that is followed.

    Attributes:
        vhost, name, server: where it is.
        transient: whether it goes away by itself.
        before: messages in it from before that are still to come.
        pending: the publishes in it, in order.
        ordered: whether the order of these is certain.
        publisher: who published last.
        takers: who consumes or gets, how often, and with which of them messages can be lost.
        again: deliveries that went back to it and have not come again.
        binding: bindings that are asked for and not yet there.
    """

    __slots__ = (
        "again", "before", "binding", "name", "ordered", "pending", "publisher", "server", "silent", "takers",
        "transient", "vhost",
    )  # fmt: skip

    def __init__(self, vhost: str, name: str, server: Any, transient: bool, before: int) -> None:
        self.vhost, self.name, self.server = vhost, name, server
        self.transient = transient
        self.before = before
        self.pending: deque[Publish] = deque()
        self.ordered = True
        self.publisher: Who | None = None
        self.takers: dict[Who, int] = {}
        self.silent: set[Who] = set()
        self.again = self.binding = 0

    def put(self, publish: Publish, who: Who) -> None:
        """Take a publish."""
        if self.pending and self.publisher != who:
            self.ordered = False
        self.publisher = who
        self.pending.append(publish)

    def state(self, numbers: Mapping[Publish, int]) -> list[Any]:
        """Return the state that `restored` takes."""
        takers = [[*who, times, who in self.silent] for who, times in self.takers.items()]
        return [
            self.vhost, self.name, *self.server, self.transient, self.before, self.ordered, self.again,
            self.binding, list(self.publisher or ()), takers, [numbers[publish] for publish in self.pending],
        ]  # fmt: skip

    @classmethod
    def restored(cls, state: Fields, publishes: Sequence[Publish]) -> Queue:
        """Return the queue of a state."""
        vhost, name, server = (
            state.text(),
            state.text(),
            Endpoint(state.octets(), state.number(0, 0xFFFF), state.text()),
        )
        queue = cls(vhost, name, server, state.flag(), state.number(0))
        queue.ordered, queue.again, queue.binding = state.flag(), state.number(0), state.number(0)
        publisher = state.list()
        if publisher:
            fields = Fields(publisher)
            queue.publisher = fields.number(0), fields.number(0, 0xFFFF)
            fields.end()
        for fields in state.items():
            who = fields.number(0), fields.number(0, 0xFFFF)
            queue.takers[who] = fields.number(1)
            if fields.flag():
                queue.silent.add(who)
            fields.end()
        queue.pending.extend(publishes[at] for at in _numbers(state.list(), len(publishes) - 1))
        state.end()
        return queue

    def draw(self, who: Who) -> tuple[Publish, bool]:
        """Return the publish that comes next, and whether that is certain."""
        alone = len(self.takers) == 1 and who in self.takers
        certain = len(self.pending) == 1 or (self.ordered and alone)
        self.ordered = len(self.pending) == 1 or (self.ordered and alone)
        return self.pending.popleft(), certain


class _Link:
    """The queues that a connection has to do with, and its requests about them."""

    __slots__ = ("binds", "declares", "publishes", "takes", "vhost")

    def __init__(self) -> None:
        self.vhost: str | None = None
        # By channel: declarations and bindings that are not answered, and queues with takers there.
        self.declares: dict[int, list[tuple[bool, bool]]] = {}
        self.binds: dict[int, list[Queue]] = {}
        self.takes: dict[int, list[Queue]] = {}
        self.publishes: dict[Queue, None] = {}  # that it has published to


class Fifos:
    """The queues of a recording that are followed.

    Args:
        most: publishes in all of them.

    Attributes:
        targets: returns those that a message may reach, see `Routes.targets`.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting = 0
        self._queues: dict[tuple[str, str], Queue] = {}
        self._routes = Routes(self._queues)
        self.targets = self._routes.targets
        self._links: dict[Connection, _Link] = {}

    def vhost(self, connection: Connection) -> str | None:
        """Return the virtual host of a connection, if it is known."""
        link = self._links.get(connection)
        return None if link is None else link.vhost

    def pending(self) -> Iterator[Publish]:
        """Yield the publishes in queues."""
        for queue in self._queues.values():
            yield from queue.pending

    # -- messages

    def publish(
        self, followed: Followed, channel: int, targets: Sequence[Queue], publish: Publish, lasting: bool
    ) -> None:
        """Take a publish to queues; `lasting` says that it is whole and stays until it is delivered."""
        connection = followed.connection
        for queue in targets:
            state = followed.channels.get(channel)
            doubtful = not lasting or queue.binding or (state is not None and state.transacted)
            if doubtful or self._waiting >= self._most or not self._is_sure(queue, connection):
                self._spoil(queue)
                continue
            self._waiting += 1
            queue.put(publish, (connection.number, channel))
            self._link(connection).publishes[queue] = None

    def deliver(
        self, followed: Followed, message: Message, content: bytes, again: bool
    ) -> tuple[Publish | None, bool]:
        """Take a delivery.

        Args:
            followed, message: its connection, and the message.
            content: its key.
            again: whether it was delivered before.

        Returns:
            The publish that it is of, if the order of its queue says so, and whether that is all that can be
            known: without a publish, it was in the queue before the recording.
        """
        who = followed.connection.number, message.channel
        queue = self._reached(followed.connection, message.queue)
        if queue is None:
            return None, False
        drawn = self._again(queue) if again else self._drawn(queue, who, content)
        if message.step == GET_OK:
            self._leave(followed.connection, message.channel, queue)
        return drawn

    def requeue(self, connection: Connection, name: str | None) -> None:
        """A delivery goes back to its queue."""
        queue = self._reached(connection, name)
        if queue is not None:
            queue.again += 1

    def spoil_route(self, connection: Connection, route: bytes) -> None:
        """A publish to this route may not have reached its queues."""
        for queue in list(self._routes.targets(self.vhost(connection), route)):
            self._spoil(queue)

    def lose(self, connection: Connection) -> None:
        """Octets of a connection are missing: anything may have happened to any queue."""
        for queue in list(self._queues.values()):
            self._spoil(queue)
        link = self._links.get(connection)
        if link is not None:
            link.declares.clear()
            link.binds.clear()

    def _again(self, queue: Queue) -> tuple[Publish | None, bool]:
        """Take a delivery that was delivered before."""
        if queue.again:
            queue.again -= 1
        elif queue.before:
            queue.before -= 1
            return None, True
        else:
            self._spoil(queue)
        return None, False

    def _drawn(self, queue: Queue, who: Who, content: bytes) -> tuple[Publish | None, bool]:
        """Take the first delivery of a message."""
        if queue.before:
            queue.before -= 1
            return None, True
        if not queue.pending:
            self._spoil(queue)
            return None, False
        publish, certain = queue.draw(who)
        self._waiting -= 1
        # Brokers may add to the headers, so it is the body that has to agree, and where it was sent.
        if certain and publish.content[:-HALF] != content[:-HALF]:
            self._spoil(queue)
            return None, False
        return (publish, True) if certain else (None, False)

    # -- methods

    def request(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        """Take a method that may say something about queues, before the follower does."""
        handler = _HANDLERS.get(method.spec.name)
        if handler is not None:
            handler(self, followed, number, direction, method)

    def end(self, connection: Connection, orderly: bool) -> None:
        """Take the end of a connection, after connection.close-ok or without it."""
        link = self._links.pop(connection, None)
        if link is None:
            return
        for queues in link.takes.values():
            for queue in queues:
                if queue.pending and (not orderly or queue.silent):
                    self._spoil(queue)
        for channel in link.takes:
            self._forget_takers(link, (connection.number, channel))
        if not orderly:
            for queue in link.publishes:
                if queue.pending and queue.publisher and queue.publisher[0] == connection.number:
                    self._spoil(queue)

    def _open(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        self._link(followed.connection).vhost = clean(method.virtual_host)

    def _declare(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        """A client asks for a queue; what it is like is known unless it only asks whether there is one."""
        known = not method.passive and _is_harmless(method.arguments)
        if not (getattr(method, "no_wait", False) or getattr(method, "nowait", False)):
            link = self._link(followed.connection)
            asked = link.declares.setdefault(number, [])
            asked.append((known, method.exclusive or method.auto_delete))
            if len(asked) > _MOST_ASKED:
                asked[:] = [(False, False)] * _MOST_ASKED  # it is not known any more which is answered

    def _declared(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        link, name = self._link(followed.connection), clean(method.queue)
        asked = link.declares.get(number)
        known, transient = asked.pop(0) if asked else (False, False)
        queue = self._reached(followed.connection, name)
        if queue is not None:
            unseen = method.consumer_count > sum(queue.takers.values())
            if unseen or (queue.transient and not method.message_count and (queue.pending or queue.before)):
                self._spoil(queue)
        elif link.vhost is not None:
            new = known and not method.consumer_count and len(self._queues) < MOST_QUEUES
            if not self._routes.meet(link.vhost, name) and new:
                server = followed.connection.server
                made = Queue(link.vhost, name, server, transient, method.message_count)
                self._queues[link.vhost, name] = made
                self._routes.changed(link.vhost)

    def _remove(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        """Take queue.delete or queue.purge, or an unbinding."""
        queue = self._reached(followed.connection, self._name(followed, number, method))
        if queue is not None:
            self._spoil(queue)

    def _bind(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        queue = self._reached(followed.connection, self._name(followed, number, method))
        if queue is None:
            return
        no_wait = getattr(method, "no_wait", False) or getattr(method, "nowait", False)
        if no_wait or not self._routes.bind(queue, clean(method.exchange), clean(method.routing_key)):
            self._spoil(queue)
            return
        queue.binding += 1
        self._link(followed.connection).binds.setdefault(number, []).append(queue)

    def _bound(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        asked = self._link(followed.connection).binds.get(number)
        if asked:
            asked.pop(0).binding -= 1

    def _exchange(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        vhost = self.vhost(followed.connection)
        if vhost is not None and not method.passive:
            self._routes.declare(vhost, clean(method.exchange), clean(method.type))

    def _exchange_gone(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        for queue in self._routes.bound_to(clean(method.exchange)):
            self._spoil(queue)

    def _consume(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        queue = self._reached(followed.connection, self._name(followed, number, method))
        if queue is not None:
            self._enter(followed.connection, number, queue)
            if method.no_ack:
                queue.silent.add((followed.connection.number, number))

    def _cancelled(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        channel: Channel | None = followed.channels.get(number)
        if not direction or channel is None or channel.consumers is None:
            return
        source = channel.consumers.get(method.consumer_tag.encode("utf-8", "surrogateescape"))
        queue = self._reached(followed.connection, source[0] if source else None)
        if queue is not None:
            self._leave(followed.connection, number, queue)

    def _get(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        queue = self._reached(followed.connection, self._name(followed, number, method))
        if queue is not None:
            self._enter(followed.connection, number, queue)

    def _get_empty(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        channel = followed.channels.get(number)
        queue = None
        if channel is not None and channel.gets:
            queue = self._reached(followed.connection, channel.gets[0][1])
        if queue is not None:
            self._leave(followed.connection, number, queue)

    def _reset(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        """Take the end of a channel that is agreed on, or that is opened again."""
        link, who = self._link(followed.connection), (followed.connection.number, number)
        for queue in link.takes.get(number, ()):
            if who in queue.silent and queue.pending:
                self._spoil(queue)
        self._forget_takers(link, who)
        for asked in (link.takes, link.declares, link.binds):
            asked.pop(number, None)

    def _close(self, followed: Followed, number: int, direction: int, method: Any) -> None:
        """A broker that closes a channel takes no more of what comes there."""
        who = followed.connection.number, number
        if direction:
            for queue in self._link(followed.connection).publishes:
                if queue.pending and queue.publisher == who:
                    self._spoil(queue)

    # -- what they share

    def _link(self, connection: Connection) -> _Link:
        link = self._links.get(connection)
        if link is None:
            link = self._links[connection] = _Link()
        return link

    def _name(self, followed: Followed, number: int, method: Any) -> str | None:
        """Return the queue that a method names; where it names none, the channel's last one."""
        channel = followed.channels.get(number)
        return clean(method.queue) if method.queue else channel.queue if channel is not None else None

    def _is_sure(self, queue: Queue, connection: Connection) -> bool:
        return self.vhost(connection) == queue.vhost and connection.server == queue.server

    def _reached(self, connection: Connection, name: str | None) -> Queue | None:
        """Return the queue of a name, if it is followed; those that it may be instead are no longer."""
        if name is None:
            return None
        link = self._links.get(connection)
        vhost = None if link is None else link.vhost
        if vhost is not None and (vhost, name) not in self._queues:
            return None
        for queue in self._routes.named(vhost, name):
            if self._is_sure(queue, connection):
                return queue
            self._spoil(queue)
        return None

    def _enter(self, connection: Connection, number: int, queue: Queue) -> None:
        who = connection.number, number
        queue.takers[who] = queue.takers.get(who, 0) + 1
        takes = self._link(connection).takes.setdefault(number, [])
        if queue not in takes:
            takes.append(queue)

    def _leave(self, connection: Connection, number: int, queue: Queue) -> None:
        who = connection.number, number
        left = queue.takers.get(who, 0) - 1
        if left > 0:
            queue.takers[who] = left
        elif left == 0:
            del queue.takers[who]
            self._link(connection).takes[number].remove(queue)

    def _forget_takers(self, link: _Link, who: Who) -> None:
        for queue in link.takes.get(who[1], ()):
            queue.takers.pop(who, None)
            queue.silent.discard(who)

    def _spoil(self, queue: Queue) -> None:
        """Follow a queue no more."""
        if self._queues.pop((queue.vhost, queue.name), None) is not None:
            self._waiting -= len(queue.pending)
            queue.pending.clear()
            self._routes.meet(queue.vhost, queue.name)
            self._routes.changed(queue.vhost)

    # -- states

    def state(self, numbers: Mapping[Publish, int]) -> list[Any]:
        """Return the state that `restore` takes.

        Args:
            numbers: of the publishes that wait.
        """
        places = {queue: place for place, queue in enumerate(self._queues.values())}
        links = [
            [
                connection.number, link.vhost,
                [[channel, list(map(list, asked))] for channel, asked in link.declares.items() if asked],
                [
                    [channel, [places[queue] for queue in queues if queue in places]]
                    for channel, queues in link.binds.items()
                ],
                [places[queue] for queue in link.publishes if queue in places],
            ]
            for connection, link in sorted(self._links.items(), key=lambda item: item[0].number)
        ]  # fmt: skip
        return [[queue.state(numbers) for queue in places], self._routes.state(), links]

    def restore(
        self, state: Fields, publishes: Sequence[Publish], connections: Mapping[int, Connection]
    ) -> None:
        """Go on from a state.

        Args:
            state: what comes next in it is what `state` returned.
            publishes: those that have waited, by their numbers.
            connections: those still known, by number.

        Raises:
            ValueError: it is damaged.
        """
        for fields in state.items():
            queue = Queue.restored(fields, publishes)
            self._queues[queue.vhost, queue.name] = queue
            self._waiting += len(queue.pending)
        self._routes.restore(state.fields())
        queues = list(self._queues.values())
        for fields in state.items():
            connection = connections.get(fields.number(0))
            if connection is None:
                raise damaged("there is no such connection")
            self._restore_link(connection, fields, queues)
        for queue in queues:
            for number, channel in queue.takers:
                connection = connections.get(number)
                if connection is None:
                    raise damaged("there is no such connection")
                self._link(connection).takes.setdefault(channel, []).append(queue)

    def _restore_link(self, connection: Connection, state: Fields, queues: Sequence[Queue]) -> None:
        link, last = self._link(connection), len(queues) - 1
        link.vhost = state.text_or_none()
        for fields in state.items():
            asked = link.declares.setdefault(fields.number(0, 0xFFFF), [])
            for each in fields.items():
                asked.append((each.flag(), each.flag()))
                each.end()
            fields.end()
        for fields in state.items():
            bound = link.binds.setdefault(fields.number(0, 0xFFFF), [])
            bound += [queues[at] for at in _numbers(fields.list(), last)]
            fields.end()
        link.publishes = dict.fromkeys(queues[at] for at in _numbers(state.list(), last))
        state.end()


def _is_harmless(arguments: Any) -> bool:
    """Return whether a queue with these arguments neither drops messages nor changes their order."""
    try:
        found = dict(arguments.items()) if arguments else {}
    except DecodeError:
        return False
    return found.get("x-queue-type", _KEPT_TYPES[0]) in _KEPT_TYPES and _HARMLESS.issuperset(found)


def _numbers(values: list[Any], last: int) -> list[int]:
    """Numbers in a state."""
    if not all(type(value) is int and 0 <= value <= last for value in values):
        raise damaged("there is no such queue or publish")
    return values


_HANDLERS: Mapping[str, Any] = {
    "connection.open": Fifos._open,
    "queue.declare": Fifos._declare,
    "queue.declare-ok": Fifos._declared,
    "queue.delete": Fifos._remove,
    "queue.purge": Fifos._remove,
    "queue.unbind": Fifos._remove,
    "queue.bind": Fifos._bind,
    "queue.bind-ok": Fifos._bound,
    "exchange.declare": Fifos._exchange,
    "exchange.delete": Fifos._exchange_gone,
    "basic.consume": Fifos._consume,
    "basic.cancel": Fifos._cancelled,
    "basic.cancel-ok": Fifos._cancelled,
    "basic.get": Fifos._get,
    "basic.get-empty": Fifos._get_empty,
    "channel.open": Fifos._reset,
    "channel.close-ok": Fifos._reset,
    "channel.close": Fifos._close,
}
