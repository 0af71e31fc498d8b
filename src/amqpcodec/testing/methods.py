"""Does what each method of a client asks for, and answers: `HANDLERS`, by the names of the specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import reply_errors as refused
from .arguments import consumer_priority, consumer_timeout
from .channels import Channel, Subscription
from .hosts import GLOBAL_QOS
from .queues import Queue
from .replies import REPLY_TO
from .versions import CrashedError

Handler = Callable[[Channel, Any], None]


def _require_both(channel: Channel, source: str, kind: str, destination: str) -> None:
    """Let a user go on who may bind: who may write to what is bound, and read from the exchange."""
    if kind == "exchange" and not destination:
        channel.host.named("")
    channel.session.login.require(kind, destination, "write")
    if not source:
        channel.host.named("")
    channel.session.login.require("exchange", source, "read")


def _readable(channel: Channel, name: str) -> Queue:
    """Return a queue for a user who may read from it."""
    name = channel.queue_name(name)
    channel.session.login.require("queue", name, "read")
    return channel.host.queue(name, channel.session)


def exchange_declare(channel: Channel, method: Any) -> None:
    """Make an exchange, or find it."""
    channel.host.declare_exchange(method, channel.session)
    channel.answer(method)


def exchange_delete(channel: Channel, method: Any) -> None:
    """Delete an exchange."""
    channel.host.delete_exchange(method.exchange, method.if_unused, channel.session)
    channel.answer(method)


def exchange_bind(channel: Channel, method: Any) -> None:
    """Bind an exchange to another."""
    host = channel.host
    _require_both(channel, method.source, "exchange", method.destination)
    source = host.named(method.source)  # of two that are not there it is missed first
    host.bind(source, host.named(method.destination), method.routing_key, method.arguments)
    channel.answer(method)


def exchange_unbind(channel: Channel, method: Any) -> None:
    """Unbind an exchange from another; what is not there is not bound."""
    host = channel.host
    names = (method.source, method.destination)
    _require_both(channel, method.source, "exchange", method.destination)
    if all(name in host.exchanges for name in names):
        destination = host.exchanges[method.destination]
        host.unbind(method.source, destination, method.routing_key, method.arguments)
    channel.answer(method)


def queue_declare(channel: Channel, method: Any) -> None:
    """Make a queue, or find it."""
    if method.queue.startswith(REPLY_TO) and channel.session.broker.replies.has(method.queue):
        channel.last_queue = method.queue
        channel.answer(method, method.queue, 0, 1)
        return
    replies = channel.session.broker.replies
    if (
        method.queue.startswith(REPLY_TO)
        and channel.host.version.routes_replies
        and not replies.was_given(method.queue)
    ):
        raise CrashedError  # at a name that it cannot read
    queue = channel.host.declare_queue(method, channel.session)
    channel.last_queue = queue.name
    channel.answer(method, queue.name, len(queue.ready), queue.consumer_count)


def queue_bind(channel: Channel, method: Any) -> None:
    """Bind a queue. Where neither queue nor key is named, the key is the name of the queue declared last."""
    name = channel.queue_name(method.queue)
    _require_both(channel, method.exchange, "queue", name)
    source = channel.host.named(method.exchange)  # if the queue is not there either, this is missed first
    queue = channel.host.queue(name, channel.session)
    key = method.routing_key or (name if not method.queue else "")
    channel.host.bind(source, queue, key, method.arguments)
    channel.answer(method)


def queue_unbind(channel: Channel, method: Any) -> None:
    """Unbind a queue; what is not there is not bound, so it is nobody's."""
    host = channel.host
    name = method.queue or channel.last_queue
    _require_both(channel, method.exchange, "queue", name)
    key = method.routing_key or (name if not method.queue else "")
    if name in host.queues and method.exchange in host.exchanges:
        host.unbind(method.exchange, host.queues[name], key, method.arguments, channel.session)
    channel.answer(method)


def queue_purge(channel: Channel, method: Any) -> None:
    """Drop what waits in a queue."""
    channel.answer(method, _readable(channel, method.queue).purge())


def queue_delete(channel: Channel, method: Any) -> None:
    """Delete a queue, if it is there, and unused or empty where that is asked for."""
    host = channel.host
    if name := method.queue or channel.last_queue:
        channel.session.login.require("queue", name, "configure")
    if method.queue and method.queue not in host.queues:
        channel.answer(method, 0)
        return
    queue = channel.queue(method.queue)
    channel.answer(method, queue.check_delete(method.if_unused, method.if_empty))
    host.delete_queue(queue)  # consumers are told after the answer


def basic_qos(channel: Channel, method: Any) -> None:
    """Limit what is delivered and not settled: of consumers to come, or of all together."""
    if method.prefetch_size:
        raise refused.AmqpNotImplemented(f"prefetch_size!=0 ({method.prefetch_size})")
    version = channel.host.version
    if method.global_ and version.shares_limits and GLOBAL_QOS not in version.denied:
        channel.limit(method.prefetch_count)
    else:
        channel.limit(0)  # of the channel there is none then
        channel.consumer_prefetch = method.prefetch_count
    channel.answer(method)


def basic_consume(channel: Channel, method: Any) -> None:
    """Begin to deliver."""
    session = channel.session
    tag = method.consumer_tag or f"amq.ctag-{next(session.broker.consumer_tags)}"
    name = channel.queue_name(method.queue)
    if name == REPLY_TO:
        session.broker.replies.take(channel, tag, method.no_ack)
        channel.answer(method, tag)
        return
    queue = _readable(channel, name)
    arguments = method.arguments or {}
    priority = consumer_priority(channel.host.where(queue), arguments, queue.kind, channel.host.version)
    queue.check_consumer(method, channel.consumer_prefetch, bool(channel.prefetch))
    session.broker.store.made(1)
    prefetch = 0 if method.no_ack else channel.consumer_prefetch
    consumer = Subscription(channel, tag, queue, method.no_ack, method.exclusive, priority, prefetch)
    if channel.host.version.cancels_late:
        consumer.timeout = consumer_timeout(arguments)
    channel.consumers[tag] = consumer
    queue.add_consumer(consumer, arguments)
    channel.answer(method, tag)  # a fault may close the channel in place of that
    queue.dispatch()


def basic_cancel(channel: Channel, method: Any) -> None:
    """End a subscription. The answer is sent first: the queue may go with it."""
    channel.answer(method, method.consumer_tag)
    channel.cancel(method.consumer_tag)


def basic_get(channel: Channel, method: Any) -> None:
    """Hand out the first message of a queue."""
    channel.get(_readable(channel, method.queue), method.no_ack)


def basic_recover(channel: Channel, method: Any) -> None:
    """Put all back that is not settled."""
    if not method.requeue:
        raise refused.AmqpNotImplemented("requeue=false")
    settled = channel.settled_in_transaction()
    recovered = [tag for tag in channel.held if tag not in settled]
    for tag in recovered:
        channel.held[tag].queue.check_recover()
    channel.answer(method)
    channel.settle_now(recovered, "release")


def confirm_select(channel: Channel, method: Any) -> None:
    """Confirm publishes from now on, which the connection counts."""
    channel.answer(method)


def tx_select(channel: Channel, method: Any) -> None:
    """Keep publishes and settlements for tx.commit from now on."""
    channel.transaction = channel.transaction or []
    channel.answer(method)


def tx_commit(channel: Channel, method: Any) -> None:
    """Do what has waited."""
    channel.end_transaction(commits=True)
    channel.answer(method)


def tx_rollback(channel: Channel, method: Any) -> None:
    """Forget what has waited."""
    channel.end_transaction(commits=False)
    channel.answer(method)


HANDLERS: dict[str, Handler] = {
    "exchange.declare": exchange_declare,
    "exchange.delete": exchange_delete,
    "exchange.bind": exchange_bind,
    "exchange.unbind": exchange_unbind,
    "queue.declare": queue_declare,
    "queue.bind": queue_bind,
    "queue.unbind": queue_unbind,
    "queue.purge": queue_purge,
    "queue.delete": queue_delete,
    "basic.qos": basic_qos,
    "basic.consume": basic_consume,
    "basic.cancel": basic_cancel,
    "basic.get": basic_get,
    "basic.recover": basic_recover,
    "basic.recover-async": basic_recover,
    "confirm.select": confirm_select,
    "tx.select": tx_select,
    "tx.commit": tx_commit,
    "tx.rollback": tx_rollback,
}


# Those whose names of exchanges and queues RabbitMQ reads without the ends of lines that are in them.
ON_ONE_LINE = frozenset(
    f"{name}.{verb}" for name in ("exchange", "queue") for verb in ("declare", "delete", "bind", "unbind")
)
NAMES = ("exchange", "queue", "source", "destination")


def put_on_one_line(method: Any) -> None:
    """Take CR and LF out of the names of exchanges and queues in a method."""
    for name in NAMES:
        value = getattr(method, name, "")
        if "\n" in value or "\r" in value:
            setattr(method, name, value.replace("\r", "").replace("\n", ""))


def by_class(named: dict[str, Any], amqp: Any) -> dict[type, Any]:
    """Return what belongs to methods, by their classes in a dialect instead of their names."""
    return {cls: named[cls.spec.name] for cls in amqp.METHODS.values() if cls.spec.name in named}


def replies_of(amqp: Any) -> dict[type, type]:
    """Return the class of each method's answer, the first if there are several."""
    classes = {cls.spec.name: cls for cls in amqp.METHODS.values()}
    return {
        cls: classes[f"{cls.spec.name.partition('.')[0]}.{cls.spec.responses[0]}"]
        for cls in classes.values()
        if cls.spec.responses
    }


__all__ = ["HANDLERS", "ON_ONE_LINE", "by_class", "put_on_one_line", "replies_of"]
