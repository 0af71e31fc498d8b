"""A channel of a connection: its consumers, and what it has to acknowledge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .. import replace
from .. import reply_errors as refused
from . import messages as states
from .arguments import expiration, wire_type
from .exchanges import Exchange
from .messages import Entry, Message
from .queues import Queue

if TYPE_CHECKING:
    from .session import Session

REPLY_TO = "amq.rabbitmq.reply-to"


class Subscription:
    """A consumer of a channel."""

    def __init__(
        self, channel: Channel, tag: str, queue: Queue, no_ack: bool, priority: int, exclusive: bool
    ) -> None:
        self.channel = channel
        self.tag = tag
        self.queue = queue
        self.no_ack = no_ack
        self.priority = priority
        self.exclusive = exclusive
        self.prefetch = 0 if no_ack else channel.consumer_prefetch
        self.held = 0  # delivered and not settled

    def takes_more(self) -> bool:
        """Return whether it may get a message now: it has room, and its client reads."""
        channel = self.channel
        if self.prefetch and self.held >= self.prefetch:
            return False
        if channel.prefetch and not self.no_ack and channel.held_by_consumers >= channel.prefetch:
            return False
        return channel.session.takes_deliveries(self.queue)

    def deliver(self, entry: Entry) -> None:
        """Send it a message."""
        channel = self.channel
        channel.last_tag = tag = channel.last_tag + 1
        message = entry.message
        if self.no_ack:
            self.queue.acknowledge(entry)
        else:
            self.held += 1
            channel.held_by_consumers += 1
            channel.held[tag] = entry, self.queue, self
        basic = channel.session.amqp.Basic
        method = basic.Deliver(self.tag, tag, entry.redelivered, message.exchange, message.routing_key)
        channel.last_delivery = self.queue, entry
        channel.session.send(channel.number, method, message)

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
        self.held: dict[int, tuple[Entry, Queue, Subscription | None]] = {}
        self.held_by_consumers = 0
        self.last_delivery: tuple[Queue, Entry] | None = None
        self.transaction: list[Any] | None = None
        self.reply_name = ""
        self.reply_tag = ""

    def queue_name(self, name: str) -> str:
        """Return the name of a queue, for an empty one that of the queue declared last."""
        if not name and not self.last_queue:
            raise refused.AmqpNotFound("no previously declared queue")
        return name or self.last_queue

    def queue(self, name: str) -> Queue:
        """Return the queue of a name, empty for the one declared last, if this connection may use it."""
        return self.host.queue(self.queue_name(name), self.session)

    def answer(self, method: Any, *values: Any) -> None:
        """Answer a method, if it has an answer and one is wanted."""
        reply = self.session.broker.replies.get(type(method))
        if (
            reply is not None
            and not getattr(method, "no_wait", False)
            and not getattr(method, "nowait", False)
        ):
            self.session.send(self.number, reply(*values))

    # -- publishing

    def publish(self, event: Any) -> None:
        """Take a message of the client, and tell what has become of it as far as it wants to know."""
        method = event.method
        if method.immediate:
            raise refused.AmqpNotImplemented("immediate=true")
        exchange = self.host.exchange(method.exchange)
        if exchange.internal:
            where = f"exchange '{exchange.name}' in vhost '{self.host.name}'"
            raise refused.AmqpAccessRefused(f"cannot publish to internal {where}")
        message = Message(
            method.exchange, method.routing_key, event.properties.decoded(), event.body,
            raw=event.properties, mandatory=method.mandatory, virtual_host=self.host.name,
            connection=self.session.number, channel=self.number,
        )  # fmt: skip
        self._check(message)
        self.session.broker.history.add(message)
        if self.transaction is None:
            self.pass_on(message, exchange, event.sequence_number)
        else:
            self.session.broker.store.taken(message.size)
            self.transaction.append((message, exchange))

    def pass_on(self, message: Message, exchange: Exchange, number: int | None) -> None:
        """Route a message; return it, confirm it."""
        accepted = True
        if exchange.name == "" and message.routing_key.startswith(REPLY_TO + "."):
            routed = self.session.broker.reply(message)
        else:
            queues = self.host.route(message, exchange)
            routed = bool(queues)
            accepted = self.host.deliver(message, queues)
        basic = self.session.amqp.Basic
        if not routed and message.mandatory:
            message.returned = True
            method = basic.Return(312, "NO_ROUTE", message.exchange, message.routing_key)
            self.session.send(self.number, method, message)
        self.session.broker.history.settles(message)
        if number is not None:
            self.confirm(message, number, accepted)

    def confirm(self, message: Message, number: int, accepted: bool) -> None:
        """Confirm a publish, or refuse it."""
        basic = self.session.amqp.Basic
        message.confirm = "ack" if accepted else "nack"
        self.session.send(self.number, basic.Ack(number) if accepted else basic.Nack(number))

    def _check(self, message: Message) -> None:
        """Refuse a message whose properties are not right; let replies to this channel find it."""
        properties = message.properties
        user = properties.user_id
        if user is not None and user != self.session.user:
            text = f"user_id property set to '{user}' but authenticated user was '{self.session.user}'"
            raise refused.AmqpPreconditionFailed(text)
        if properties.expiration is not None:
            expiration(properties.expiration)
        if message.may_have_keys and properties.headers:
            for name in ("CC", "BCC"):
                if name in properties.headers:
                    _check_keys(name, properties.headers[name])
            message.hide_bcc()
        if properties.reply_to == REPLY_TO:
            if not self.reply_name:
                raise refused.AmqpPreconditionFailed("fast reply consumer does not exist")
            message.properties = replace(properties, reply_to=self.reply_name)
            message.raw = None

    # -- settling

    def settle(self, tags: Iterable[int], how: str) -> None:
        """Settle deliveries, or keep that for the end of the transaction.

        Args:
            tags: delivery tags.
            how: ``"acknowledge"``, ``"reject"`` or ``"requeue"``: a method of `Queue`.
        """
        if self.transaction is not None:
            self.transaction.append((tuple(tags), how))
        else:
            self.settle_now(tags, how)

    def settle_now(self, tags: Iterable[int], how: str) -> None:
        """Settle deliveries; consumers get what there is room for then."""
        touched: dict[Queue, None] = {}
        for tag in tags:
            held = self.held.pop(tag, None)
            if held is None:
                continue
            entry, queue, consumer = held
            if consumer is not None:
                consumer.held -= 1
                self.held_by_consumers -= 1
            getattr(queue, how)(entry)
            touched[queue] = None
        if self.prefetch:  # room for one queue is room for all that this channel consumes from
            touched.update(dict.fromkeys(consumer.queue for consumer in self.consumers.values()))
        for queue in touched:
            queue.dispatch()

    def end_transaction(self, commits: bool) -> None:
        """Do what has waited, or forget it."""
        waiting, self.transaction = self.transaction or [], []
        store = self.session.broker.store
        for first, second in waiting:
            if isinstance(first, Message):
                store.taken(-first.size)
                if commits:
                    self.pass_on(first, second, None)
            elif commits:
                self.settle_now(first, second)

    # -- the end

    def cancel(self, tag: str) -> None:
        """End a subscription."""
        if tag == self.reply_tag:
            self.session.broker.forget_replies(self)
        consumer = self.consumers.pop(tag, None)
        if consumer is not None:
            self.session.broker.store.made(-1)
            consumer.queue.remove_consumers((consumer,))
            consumer.queue.unused()
            consumer.queue.dispatch()

    def end(self) -> None:
        """Give back what is held, and cancel the consumers: the channel is closed."""
        self.end_transaction(commits=False)
        self.transaction = None
        self.session.broker.forget_replies(self)
        gone: dict[Queue, set[Subscription]] = {}
        for consumer in self.consumers.values():
            gone.setdefault(consumer.queue, set()).add(consumer)
        self.session.broker.store.made(-len(self.consumers))
        self.consumers.clear()
        for queue, consumers in gone.items():
            queue.remove_consumers(consumers)
        self.settle_now(list(self.held), "requeue")  # others get it
        for queue in gone:
            queue.unused()
            queue.dispatch()

    def get(self, queue: Queue, no_ack: bool) -> None:
        """Answer basic.get."""
        basic = self.session.amqp.Basic
        entry = queue.get()
        if entry is None:
            self.session.send(self.number, basic.GetEmpty())
            return
        self.last_tag = tag = self.last_tag + 1
        message = entry.message
        method = basic.GetOk(tag, entry.redelivered, message.exchange, message.routing_key, len(queue.ready))
        if no_ack:
            queue.acknowledge(entry)
        else:
            self.held[tag] = entry, queue, None
        self.session.send(self.number, method, message)

    def deliver_again(self) -> None:
        """Put the message that was delivered last into its queue again."""
        if self.last_delivery is not None:
            queue, entry = self.last_delivery
            queue.put_copy(entry)

    def deliver_reply(self, message: Message) -> None:
        """Send the consumer of replies a message, without a queue."""
        self.last_tag = tag = self.last_tag + 1
        basic = self.session.amqp.Basic
        method = basic.Deliver(self.reply_tag, tag, False, message.exchange, message.routing_key)
        message.settled[REPLY_TO] = states.ACKNOWLEDGED
        self.session.send(self.number, method, message)


def _check_keys(name: str, keys: Any) -> None:
    """Refuse a header of routing keys that is no array of texts."""
    wrong = [key for key in keys if not isinstance(key, str)] if isinstance(keys, list) else [keys]
    if wrong:
        text = f'invalid message: {{unacceptable_type_in_header,"{name}",{wire_type(wrong[0])}}}'
        raise refused.AmqpPreconditionFailed(text)


__all__ = ["REPLY_TO", "Channel", "Subscription"]
