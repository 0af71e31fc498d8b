"""Does what each method of a client asks for: `HANDLERS`, by the names of the specification.

A handler takes the channel and the method, and returns the answer, or None if it has none to give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import reply_errors as refused
from .arguments import consumer_priority
from .channels import REPLY_TO, Channel, Subscription

Handler = Callable[[Channel, Any], Any]


def exchange_declare(channel: Channel, method: Any) -> Any:
    """Make an exchange, or find it."""
    channel.host.declare_exchange(method)
    return channel.session.amqp.Exchange.DeclareOk()


def exchange_delete(channel: Channel, method: Any) -> Any:
    """Delete an exchange."""
    channel.host.delete_exchange(method.exchange, method.if_unused)
    return channel.session.amqp.Exchange.DeleteOk()


def exchange_bind(channel: Channel, method: Any) -> Any:
    """Bind an exchange to another."""
    destination = channel.host.named(method.destination)
    channel.host.bind(method.source, destination, method.routing_key, method.arguments)
    return channel.session.amqp.Exchange.BindOk()


def exchange_unbind(channel: Channel, method: Any) -> Any:
    """Unbind an exchange from another; what is not there is not bound."""
    host = channel.host
    names = (method.source, method.destination)
    if "" in names:
        host.named("")
    if all(name in host.exchanges for name in names):
        destination = host.exchanges[method.destination]
        host.unbind(method.source, destination, method.routing_key, method.arguments)
    return channel.session.amqp.Exchange.UnbindOk()


def queue_declare(channel: Channel, method: Any) -> Any:
    """Make a queue, or find it."""
    reply_channel = method.passive and channel.session.broker.reply_channel(method.queue)
    if reply_channel or (method.passive and method.queue == REPLY_TO):
        return channel.session.amqp.Queue.DeclareOk(method.queue, 0, 1)
    queue = channel.host.declare_queue(method, channel.session)
    channel.last_queue = queue.name
    return channel.session.amqp.Queue.DeclareOk(queue.name, len(queue.ready), len(queue.consumers))


def queue_bind(channel: Channel, method: Any) -> Any:
    """Bind a queue. Where neither queue nor key is named, the key is the name of the queue declared last."""
    queue = channel.queue(method.queue)
    key = method.routing_key or (queue.name if not method.queue else "")
    channel.host.bind(method.exchange, queue, key, method.arguments)
    return channel.session.amqp.Queue.BindOk()


def queue_unbind(channel: Channel, method: Any) -> Any:
    """Unbind a queue; what is not there is not bound."""
    host = channel.host
    if not method.exchange:
        host.named("")
    name = method.queue or channel.last_queue
    key = method.routing_key or (name if not method.queue else "")
    if name in host.queues and method.exchange in host.exchanges:
        host.unbind(method.exchange, channel.queue(name), key, method.arguments)
    return channel.session.amqp.Queue.UnbindOk()


def queue_purge(channel: Channel, method: Any) -> Any:
    """Drop what waits in a queue."""
    return channel.session.amqp.Queue.PurgeOk(channel.queue(method.queue).purge())


def queue_delete(channel: Channel, method: Any) -> Any:
    """Delete a queue, if it is there, and unused or empty where that is asked for."""
    host = channel.host
    delete_ok = channel.session.amqp.Queue.DeleteOk
    if method.queue and method.queue not in host.queues:
        return delete_ok(0)
    queue = channel.queue(method.queue)
    if method.if_unused and queue.consumers:
        raise refused.AmqpPreconditionFailed(f"{host.where(queue)} in use")
    if method.if_empty and queue.ready:
        raise refused.AmqpPreconditionFailed(f"{host.where(queue)} not empty")
    return delete_ok(host.delete_queue(queue))


def basic_qos(channel: Channel, method: Any) -> Any:
    """Limit what is delivered and not settled: of consumers to come, or of all together."""
    if method.prefetch_size:
        raise refused.AmqpNotImplemented(f"prefetch_size!=0 ({method.prefetch_size})")
    if method.global_:
        channel.prefetch = method.prefetch_count
        for consumer in list(channel.consumers.values()):
            consumer.queue.dispatch()
    else:
        channel.consumer_prefetch = method.prefetch_count
    return channel.session.amqp.Basic.QosOk()


def basic_consume(channel: Channel, method: Any) -> Any:
    """Begin to deliver. The answer is sent here: deliveries follow it."""
    session = channel.session
    tag = method.consumer_tag or f"amq.ctag-{next(session.tags)}"
    if method.queue == REPLY_TO:
        session.broker.take_replies(channel, tag, method.no_ack)
        _answer_consume(channel, method, tag)
        return None
    queue = channel.queue(method.queue)
    where = channel.host.where(queue)
    if queue.is_exclusively_used or (method.exclusive and queue.consumers):
        raise refused.AmqpAccessRefused(f"{where} in exclusive use")
    priority = consumer_priority(where, method.arguments or {})
    session.broker.store.made(1)
    consumer = Subscription(channel, tag, queue, method.no_ack, priority, method.exclusive)
    channel.consumers[tag] = consumer
    _answer_consume(channel, method, tag)
    queue.add_consumer(consumer)
    queue.dispatch()
    return None


def _answer_consume(channel: Channel, method: Any, tag: str) -> None:
    if not method.no_wait:
        channel.session.send(channel.number, channel.session.amqp.Basic.ConsumeOk(tag))


def basic_cancel(channel: Channel, method: Any) -> Any:
    """End a subscription. The answer is sent first: the queue may go with it."""
    if not method.no_wait:
        channel.session.send(channel.number, channel.session.amqp.Basic.CancelOk(method.consumer_tag))
    channel.cancel(method.consumer_tag)


def basic_get(channel: Channel, method: Any) -> Any:
    """Hand out the first message of a queue."""
    return channel.get(channel.queue(method.queue), method.no_ack)


def basic_recover(channel: Channel, method: Any) -> Any:
    """Put all back that is not settled."""
    if not method.requeue:
        raise refused.AmqpNotImplemented("requeue=false")
    recovered = list(channel.held)
    basic = channel.session.amqp.Basic
    if isinstance(method, basic.Recover):
        channel.session.send(channel.number, basic.RecoverOk())
    channel.settle_now(recovered, "requeue")


def confirm_select(channel: Channel, method: Any) -> Any:
    """Confirm publishes from now on, which the connection counts."""
    return channel.session.amqp.Confirm.SelectOk()


def tx_select(channel: Channel, method: Any) -> Any:
    """Keep publishes and settlements for tx.commit from now on."""
    channel.transaction = channel.transaction or []
    return channel.session.amqp.Tx.SelectOk()


def tx_commit(channel: Channel, method: Any) -> Any:
    """Do what has waited."""
    channel.end_transaction(commits=True)
    return channel.session.amqp.Tx.CommitOk()


def tx_rollback(channel: Channel, method: Any) -> Any:
    """Forget what has waited."""
    channel.end_transaction(commits=False)
    return channel.session.amqp.Tx.RollbackOk()


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

SETTLING = {"basic.ack": "acknowledge", "basic.nack": "reject", "basic.reject": "reject"}


def handlers_of(amqp: Any) -> dict[type, Handler]:
    """Return the handler of each method class of a dialect."""
    return {cls: HANDLERS[cls.spec.name] for cls in amqp.METHODS.values() if cls.spec.name in HANDLERS}


__all__ = ["HANDLERS", "SETTLING", "handlers_of"]
