"""A channel of the broker in memory: it does what methods ask for, and answers them.

What it cannot do it raises as an exception of `amqpcodec.reply_errors`; what it lacks is 540 not-implemented.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from broker_queues import Message, Queue

from amqpcodec import rabbitmq as amqp
from amqpcodec import reply_errors as refused
from amqpcodec.connection import MessageReceived, Settled

if TYPE_CHECKING:
    from broker import Session

MOST_HELD = 60000  # deliveries of a channel that wait to be acknowledged
METHODS: dict[tuple[str, ...], Any] = {tuple(cls.spec.name.split(".")): cls for cls in amqp.METHODS.values()}


class Subscription:
    """A consumer of a channel."""

    def __init__(self, channel: Channel, tag: str, queue: Queue, no_ack: bool) -> None:
        self.channel, self.tag, self.queue, self.no_ack = channel, tag, queue, no_ack
        self.prefetch = channel.prefetch or MOST_HELD
        self.held = 0  # delivered and not acknowledged

    def takes_more(self) -> bool:
        """Whether it may get a message now: it has room, and its client reads."""
        session = self.channel.session
        if not session.stream.writable:
            session.delivered.set()  # once it is writable, the queue is asked again
            return False
        has_room = self.held < self.prefetch and len(self.channel.held) < MOST_HELD
        return has_room and session.connection.state == "open"

    def deliver(self, message: Message) -> None:
        """Send it a message."""
        self.channel.send(message, partial(amqp.Basic.Deliver, self.tag), self.queue, self.no_ack, self)
        self.channel.session.delivered.set()

    def cancelled(self) -> None:
        """The queue is gone: the client is told."""
        session = self.channel.session
        self.channel.cancel(self.tag)
        if session.connection.state == "open":
            session.connection.send(self.channel.number, amqp.Basic.Cancel(self.tag, True))
            session.delivered.set()


class Channel:
    """An open channel: its consumers, and what it has to acknowledge."""

    def __init__(self, session: Session, number: int) -> None:
        self.session, self.number = session, number
        self.store, self.connection = session.store, session.connection
        self.prefetch = 0
        self.last_queue = ""
        self.consumers: dict[str, Subscription] = {}
        self.held: dict[int, tuple[Message, Queue, Subscription | None]] = {}  # by delivery tag

    def handle(self, event: Any) -> None:
        """Do what the client wants."""
        method = event.method
        if isinstance(event, Settled):
            self.settle(event.tags, not isinstance(method, amqp.Basic.Ack) and method.requeue)
        elif isinstance(event, MessageReceived):
            self._publish(method, event)
        elif isinstance(method, amqp.Basic.Get):
            self._get(self._queue(method.queue), method.no_ack)
        else:
            answer = self._answer(method)
            if not getattr(method, "no_wait", False) and not getattr(method, "nowait", False):
                self.connection.send(self.number, answer)
            if isinstance(method, amqp.Basic.Consume):  # its messages come behind the answer
                self._queue(method.queue).dispatch()

    def send(self, message: Message, make: Any, queue: Queue, no_ack: bool, to: Subscription | None) -> None:
        """Send a message by the method that `make` makes."""
        tag = self.connection.next_delivery_tag(self.number)
        method = make(tag, message.redelivered, message.exchange, message.routing_key)
        self.connection.send_message(self.number, method, message.properties, message.body)
        if not no_ack:
            self.held[tag] = message, queue, to
            if to is not None:
                to.held += 1

    def settle(self, tags: Iterable[int], requeue: bool) -> None:
        """Messages are acknowledged, or go back to where they were."""
        settled = [self.held.pop(tag) for tag in tags]
        for message, queue, consumer in reversed(settled):
            if consumer is not None:
                consumer.held -= 1
            if requeue:
                queue.put_back(message)
        for queue in {queue for _, queue, _ in settled}:
            queue.dispatch()

    def cancel(self, tag: str) -> None:
        """End a subscription."""
        consumer = self.consumers.pop(tag, None)
        if consumer is not None:
            consumer.queue.consumers.remove(consumer)
            if consumer.queue.auto_delete and not consumer.queue.consumers:
                self.store.delete_queue(consumer.queue)

    def _publish(self, method: Any, event: MessageReceived) -> None:
        queues = self.store.exchange(method.exchange).route(method.routing_key)
        if method.mandatory and not queues:
            returned = amqp.Basic.Return(312, "NO_ROUTE", method.exchange, method.routing_key)
            self.connection.send_message(self.number, returned, event.properties, event.body)
        for queue in queues:
            queue.put(Message(method.exchange, method.routing_key, event.properties, event.body))
        if event.sequence_number is not None:
            self.connection.send(self.number, amqp.Basic.Ack(event.sequence_number))

    def _get(self, queue: Queue, no_ack: bool) -> None:
        if queue.ready:
            message = queue.ready.popleft()
            make = partial(amqp.Basic.GetOk, message_count=len(queue.ready))
            self.send(message, make, queue, no_ack, None)
        else:
            self.connection.send(self.number, amqp.Basic.GetEmpty())

    def _queue(self, name: str) -> Queue:
        """A queue; an empty name is that of the one declared last."""
        return self.store.queue(name or self.last_queue, self.session)

    def _answer(self, method: Any) -> Any:
        """Do what a method asks for; the answer."""
        store = self.store
        match method:
            case amqp.Exchange.Declare(exchange=name, passive=True):
                store.exchange(name)
            case amqp.Exchange.Declare(exchange=name, type=kind):
                store.declare_exchange(name, kind)
            case amqp.Exchange.Delete(exchange=name):
                store.delete_exchange(name)
            case amqp.Queue.Declare():
                return self._declare_queue(method)
            case amqp.Queue.Bind(queue=name, exchange=exchange, routing_key=key):
                queue = self._queue(name)
                store.exchange(exchange).bindings[queue.name, key] = queue
            case amqp.Queue.Unbind(queue=name, exchange=exchange, routing_key=key):
                store.exchange(exchange).bindings.pop((self._queue(name).name, key), None)
            case amqp.Queue.Purge(queue=name):
                return amqp.Queue.PurgeOk(self._queue(name).purge())
            case amqp.Queue.Delete(queue=name):
                return amqp.Queue.DeleteOk(store.delete_queue(self._queue(name)))
            case amqp.Basic.Qos(prefetch_count=prefetch):
                self.prefetch = prefetch
            case amqp.Basic.Consume():
                return amqp.Basic.ConsumeOk(self._consume(method))
            case amqp.Basic.Cancel(consumer_tag=tag):
                self.cancel(tag)
                return amqp.Basic.CancelOk(tag)
            case amqp.Basic.Recover():
                self.settle(list(self.held), requeue=True)
            case amqp.Confirm.Select():
                pass
            case _:
                raise refused.AmqpNotImplemented(method.spec.name)
        spec = method.spec
        return METHODS[spec.name.partition(".")[0], spec.responses[0]]()

    def _declare_queue(self, method: Any) -> Any:
        if method.passive:
            queue = self._queue(method.queue)
        elif method.arguments:
            raise refused.AmqpNotImplemented("arguments of queues")
        else:
            queue = self.store.declare_queue(method.queue, self.session, method.exclusive, method.auto_delete)
        self.last_queue = queue.name
        return amqp.Queue.DeclareOk(queue.name, len(queue.ready), len(queue.consumers))

    def _consume(self, method: Any) -> str:
        queue = self._queue(method.queue)
        tag = method.consumer_tag or f"amq.ctag-{uuid4()}"
        if tag in self.consumers:
            raise refused.AmqpNotAllowed(f"consumer tag '{tag}' is in use")
        self.consumers[tag] = consumer = Subscription(self, tag, queue, method.no_ack)
        queue.consumers.append(consumer)
        return tag
