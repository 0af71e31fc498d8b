"""A channel of a connection: its consumers, and what it has to acknowledge."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .. import replace
from .. import reply_errors as refused
from .._protocol.codes import INTERNAL_ERROR
from . import late
from . import messages as states
from .arguments import MAY_BE_INFINITE, is_finite
from .messages import Content, Entry, Message, by_name
from .queues import Queue
from .replies import REPLY_TO, Address

if TYPE_CHECKING:
    from .session import Session

DELIVERY_MODES = (None, 1, 2)
Settling = Literal["acknowledge", "discard", "reject", "release", "requeue", "give_back"]


@dataclass(slots=True, eq=False)
class Subscription:
    """A consumer of a channel.

    Attributes:
        prefetch: how much may be held; 0 for no limit.
        held: how much was delivered and is not settled.
        timeout: seconds in which that is to be settled; None where it says nothing.
    """

    channel: Channel
    tag: str
    queue: Queue
    no_ack: bool
    exclusive: bool
    priority: int
    prefetch: int
    held: int = 0
    timeout: float | None = None

    def takes_more(self) -> bool:
        """Return whether it may get a message now: it has room, and its client reads."""
        channel = self.channel
        if self.prefetch and self.held >= self.prefetch:
            return False
        if (
            channel.prefetch and self.queue.heeds_channels and channel.held_by_consumers >= channel.prefetch
        ):  # without acks as well
            return False
        return channel.session.takes_deliveries(self.queue)

    def deliver(self, entry: Entry) -> None:
        """Send it a message."""
        channel = self.channel
        channel.last_tag = tag = channel.last_tag + 1
        channel.last_delivery = entry
        message = entry.message
        if self.no_ack:
            self.queue.acknowledge(entry)
        else:
            self.held += 1
            channel.held_by_consumers += 1
            entry.consumer = self
            channel.held[tag] = entry
        session = channel.session
        method = session.amqp.Basic.Deliver(
            self.tag, tag, entry.redelivered, message.exchange, message.routing_key
        )
        session.send(channel.number, method, self.queue.content(entry) if self.queue.tells else message)

    def cancelled(self) -> None:
        """Take note that the queue is gone: the client is told, if it can be."""
        session = self.channel.session
        del self.channel.consumers[self.tag]
        session.broker.store.made(-1)
        if session.can("consumer_cancel_notify"):
            session.send(self.channel.number, session.amqp.Basic.Cancel(self.tag, True))


class Channel:
    """An open channel.

    Attributes:
        consumer_prefetch: of consumers to come; 0 for no limit.
        prefetch: of all consumers together; 0 for no limit.
        held: what is to be acknowledged, by delivery tag.
        marks: times, and the last delivery tag at each; `late.look` leaves them.
        late: consumers of deliveries that were not settled in time, and have gone back, by delivery tag.
        taken: what is to be confirmed, by sequence number.
        transaction: publishes and settlements that wait for tx.commit; None outside of transactions.
        reply_name: the name by which replies come to this channel; empty without a consumer for them.
    """

    def __init__(self, session: Session, number: int) -> None:
        self.session = session
        self.number = number
        self.host = session.host
        self.consumer_prefetch = 0
        self.prefetch = 0
        self.last_queue = ""
        self.last_tag = 0
        self.consumers: dict[str, Subscription] = {}
        self.held: dict[int, Entry] = {}
        self.held_by_consumers = 0
        self.marks: deque[tuple[float, int]] = deque()
        self.late: dict[int, Subscription] = {}
        self.last_delivery: Entry | None = None
        self.taken: dict[int, Message] = {}
        self.transaction: list[Any] | None = None
        self.reply_name = ""
        self.reply_tag = ""

    def limit(self, prefetch: int) -> None:
        """Let all consumers together hold so much; 0 for no limit."""
        if prefetch != self.prefetch:
            self.prefetch = prefetch
            for consumer in list(self.consumers.values()):
                consumer.queue.dispatch()

    def queue_name(self, name: str) -> str:
        """Return the name of a queue, for an empty one that of the queue declared last."""
        if not name and not self.last_queue:
            raise refused.AmqpNotFound("no previously declared queue")
        return name or self.last_queue

    def queue(self, name: str) -> Queue:
        """Return the queue of a name, empty for the one declared last, if this connection may use it."""
        return self.host.queue(self.queue_name(name), self.session)

    def send(self, method: Any, message: Message | Content | None = None) -> None:
        """Send a method behind the confirms that are due."""
        if self.taken:
            self.confirm_taken()
        self.session.send(self.number, method, message)

    def answer(self, method: Any, *values: Any) -> None:
        """Answer a method, if it has an answer and one is wanted."""
        reply = self.session.broker.answers.get(type(method))
        if (
            reply is not None
            and not getattr(method, "no_wait", False)
            and not getattr(method, "nowait", False)
        ):
            self.send(reply(*values))

    # -- publishing

    def publish(self, event: Any) -> None:
        """Take a message of the client, and tell what has become of it as far as it wants to know."""
        _, method, raw, body, _, sequence_number = event
        if method.immediate:
            raise refused.AmqpNotImplemented("immediate=true")
        host, session = self.host, self.session
        version = host.version
        session.login.require("exchange", method.exchange, "write")
        exchange = host.exchange(method.exchange)
        if exchange.internal:
            where = f"exchange '{exchange.name}' in vhost '{host.name}'"
            raise refused.AmqpAccessRefused(f"cannot publish to internal {where}")
        properties = raw.decoded()
        if MAY_BE_INFINITE.search(raw.octets) and not is_finite(properties.headers):
            session.close(INTERNAL_ERROR, "INTERNAL_ERROR")
            return
        if properties.reply_to == REPLY_TO:
            if not self.reply_name:
                raise refused.AmqpPreconditionFailed("fast reply consumer does not exist")
            properties.reply_to, raw = self.reply_name, None
        user = properties.user_id
        if user is not None and user != session.login.name:
            text = f"user_id property set to '{user}' but authenticated user was '{session.login.name}'"
            raise refused.AmqpPreconditionFailed(text)
        headers = properties.headers
        if version.sorts and headers and len(headers) > 1:
            properties, raw = replace(properties, headers=by_name(headers)), None
        message = Message(
            exchange.name, method.routing_key, properties, body, host.name, method.mandatory, session.number,
            self.number, raw,
        )  # fmt: skip
        if version.checks_modes and properties.delivery_mode not in DELIVERY_MODES:
            text = f"invalid message: {{delivery_mode_unknown,{properties.delivery_mode}}}"
            raise refused.AmqpPreconditionFailed(text)
        names = host.route(message, exchange)
        if self.transaction is None:
            self.pass_on(message, host.there(names), sequence_number)
        else:
            session.broker.store.taken(message.size)
            self.transaction.append((message, host.there(names) if version.routes_early else names))

    def pass_on(self, message: Message, queues: list[Queue | Address], number: int | None) -> bool:
        """Pass a message on to its queues; send it back, confirm it. Return False if a queue refuses it."""
        accepted = self.host.deliver(message, queues)
        if not queues and message.mandatory:
            message.returned = True
            method = self.session.amqp.Basic.Return(312, "NO_ROUTE", message.exchange, message.routing_key)
            self.session.send(self.number, method, message)
        self.session.broker.history.add(message)
        if number is not None:
            self.confirm(message, number, accepted)
        return accepted

    def confirm(self, message: Message, number: int, accepted: bool) -> None:
        """Confirm a publish with what else comes now, or refuse it at once."""
        if self.session.channels.get(self.number) is not self:
            return  # a fault has closed it with the message that was returned
        if accepted:
            self.taken[number] = message
            if len(self.taken) == 1:
                self.session.confirming.append(self)
            if self.session.faults.armed:  # which may be for one of them
                self.confirm_taken()
        else:
            message.confirm = "nack"
            self.send(self.session.amqp.Basic.Nack(number))

    def confirm_taken(self) -> None:
        """Confirm what is taken and not confirmed: together, unless something in between is open."""
        taken, self.taken = self.taken, {}
        for message in taken.values():
            message.confirm = "ack"
        session = self.session
        numbers = tuple(taken)
        if len(numbers) > 1 and numbers == session.connection.unconfirmed(self.number)[: len(numbers)]:
            session.send(self.number, session.amqp.Basic.Ack(numbers[-1], True))
        else:
            for number in numbers:
                session.send(self.number, session.amqp.Basic.Ack(number))

    # -- settling

    def settle(self, tags: Iterable[int], how: Settling) -> None:
        """Settle deliveries, or keep that for the end of the transaction.

        Args:
            tags: delivery tags.
            how: the name of a method of `Queue`.
        """
        if self.transaction is not None:
            self.transaction.append((tuple(tags), how))
        else:
            self.settle_now(tags, how)

    def settle_now(self, tags: Iterable[int], how: Settling) -> None:
        """Settle deliveries; consumers get what there is room for then."""
        touched: dict[Queue, None] = {}
        held = self.held
        for tag in tags:
            entry = held.pop(tag, None)
            if entry is None:
                late.settle(self, tag, how in ("acknowledge", "discard"))
                continue
            if entry.consumer is not None:
                entry.consumer.held -= 1
                self.held_by_consumers -= 1
            getattr(entry.queue, how)(entry)
            touched[entry.queue] = None
        for queue in self._in_turn(touched) if self.prefetch else touched:
            queue.dispatch()

    def _in_turn(self, touched: dict[Queue, None]) -> list[Queue]:
        """Return queues that there may be room for, which all that this channel consumes from share.

        Those come first that follow the last one to be settled: so each has its turn.
        """
        shared = list(dict.fromkeys(consumer.queue for consumer in self.consumers.values()))
        turn = max((at for at, queue in enumerate(shared, 1) if queue in touched), default=0)
        return [*shared[turn:], *shared[:turn], *(queue for queue in touched if queue not in shared)]

    def settled_in_transaction(self) -> set[int]:
        """Return the delivery tags whose settlements wait for tx.commit."""
        waiting = self.transaction or ()
        return {tag for first, _ in waiting if not isinstance(first, Message) for tag in first}

    def end_transaction(self, commits: bool) -> None:
        """Do what has waited, or forget it.

        Raises:
            AmqpPreconditionFailed: all is done but what a queue has refused.
        """
        waiting, self.transaction = self.transaction or [], []
        store = self.session.broker.store
        accepted = True
        for first, second in waiting:
            if isinstance(first, Message):
                store.taken(-first.size)
                if commits:
                    accepted = self._commit(first, second) and accepted
            elif commits:
                self.settle_now(first, second)
        if not accepted:
            raise refused.AmqpPreconditionFailed("partial tx completion")

    def _commit(self, message: Message, targets: list[Any]) -> bool:
        """Pass a message on that has waited, by names of queues or to those that there were.

        Raises:
            AmqpResourceError: one of those is gone, and the version does not take that for a refusal.
        """
        if not self.host.version.routes_early:
            return self.pass_on(message, self.host.there(targets), None)
        left = [queue for queue in targets if not queue.deleted]
        for queue in targets:
            if queue not in left and self.host.version.misses_queues and queue.name not in self.host.queues:
                where = f'{{resource,<<"{self.host.name}">>,queue,<<"{queue.name}">>}}'
                raise refused.AmqpResourceError(f"failed to deliver message: {{not_found,{where}}}")
        if left == targets:
            return self.pass_on(message, left, None)
        if left:
            self.pass_on(message, left, None)
        return False

    # -- the end

    def cancel(self, tag: str) -> None:
        """End a subscription."""
        if tag == self.reply_tag:
            self.session.broker.replies.forget(self)
        consumer = self.consumers.pop(tag, None)
        if consumer is not None:
            self.session.broker.store.made(-1)
            consumer.queue.remove_consumers((consumer,))
            consumer.queue.unused()
            consumer.queue.dispatch()

    def end(self) -> None:
        """Give back what is held, and cancel the consumers: the channel is closed."""
        self.taken.clear()
        self.end_transaction(commits=False)
        self.transaction = None
        self.session.broker.replies.forget(self)
        gone: dict[Queue, set[Subscription]] = {}
        for consumer in self.consumers.values():
            gone.setdefault(consumer.queue, set()).add(consumer)
        self.session.broker.store.made(-len(self.consumers))
        self.consumers.clear()
        for queue, consumers in gone.items():
            queue.remove_consumers(consumers)
        self.settle_now(list(self.held), "give_back")  # others get it
        for queue in gone:
            queue.unused()
            queue.dispatch()

    def get(self, queue: Queue, no_ack: bool) -> None:
        """Answer basic.get."""
        basic = self.session.amqp.Basic
        entry = queue.get()
        if entry is None:
            self.send(basic.GetEmpty())
            return
        self.last_tag = tag = self.last_tag + 1
        message = entry.message
        if no_ack:
            queue.acknowledge(entry)
        else:
            entry.consumer = None
            self.held[tag] = entry
        method = basic.GetOk(tag, entry.redelivered, message.exchange, message.routing_key, len(queue.ready))
        self.send(method, queue.content(entry, fetched=True))

    def deliver_again(self) -> None:
        """Put the message that was delivered last into its queue again."""
        if self.last_delivery is not None:
            self.last_delivery.queue.put_copy(self.last_delivery)

    def deliver_reply(self, message: Message) -> None:
        """Send the consumer of replies a message, without a queue."""
        self.last_tag = tag = self.last_tag + 1
        basic = self.session.amqp.Basic
        method = basic.Deliver(self.reply_tag, tag, False, message.exchange, message.routing_key)
        message.settled[REPLY_TO] = states.ACKNOWLEDGED
        self.session.send(self.number, method, message)


__all__ = ["Channel", "Subscription"]
