"""What is asked of a broker: one list, for the broker for tests and for RabbitMQ. Names are sentences."""

from __future__ import annotations

from typing import Any

from probing import On, Raw, publish

from amqpcodec import rabbitmq as amqp

Basic, Channel, Confirm, Exchange, Queue, Tx = (
    amqp.Basic, amqp.Channel, amqp.Confirm, amqp.Exchange, amqp.Queue, amqp.Tx,
)  # fmt: skip
declare, bind, delete = Queue.Declare, Queue.Bind, Queue.Delete


def exchange(**more: Any) -> Any:
    return Exchange.Declare(**{"type": "direct", **more})


def queue(name: str = "q", **arguments: Any) -> Any:
    """Return a declaration with ``x-`` arguments; their dashes are underscores here."""
    return declare(queue=name, arguments={f"x-{key.replace('_', '-')}": arguments[key] for key in arguments})


def get(name: str = "q", no_ack: bool = True) -> Any:
    return Basic.Get(queue=name, no_ack=no_ack)


def consume(tag: str, name: str = "q", **more: Any) -> Any:
    return Basic.Consume(queue=name, consumer_tag=tag, **more)


def three(key: str = "q") -> list[Any]:
    return [publish("", key, body) for body in (b"1", b"2", b"3")]


def passive(name: str = "q") -> Any:
    return declare(queue=name, passive=True)


ERRORS: dict[str, list[Any]] = {
    "a queue that is not there": [passive()],
    "an exchange that is not there": [exchange(exchange="e", passive=True)],
    "consume of a queue that is not there": [consume("c")],
    "get of a queue that is not there": [get()],
    "bind of a queue that is not there": [bind(queue="q", exchange="amq.direct")],
    "bind to an exchange that is not there": [queue(), bind(queue="q", exchange="e")],
    "purge of a queue that is not there": [Queue.Purge(queue="q")],
    "publish to an exchange that is not there": [publish("e", "k"), 0.1],
    "delete of what is not there": [delete(queue="q"), Exchange.Delete(exchange="e")],
    "unbind of what is not bound": [queue(), Queue.Unbind(queue="q", exchange="amq.direct", routing_key="k")],
    "unbind of what is not there": [Queue.Unbind(queue="q", exchange="amq.direct", routing_key="k")],
    "bind where neither queue nor exchange is there": [bind(queue="q", exchange="e")],
    "bind of exchanges that are not there": [Exchange.Bind(destination="e", source="e1")],
    "no queue declared before": [get("")],
    "no queue declared before, passive": [passive("")],
    "no queue declared before, bind": [bind(queue="", exchange="amq.direct")],
    "the queue declared last": [queue(), publish("", "q", b"1"), 0.05, get("")],
    "an empty routing key is the queue's where no queue is named": [
        queue(), bind(queue="", exchange="amq.direct", routing_key=""), publish("amq.direct", "q"), 0.05,
        get(),
    ],
    "durable differs": [queue(), declare(queue="q", durable=True)],
    "auto-delete differs": [queue(), declare(queue="q", auto_delete=True)],
    "exclusive differs": [queue(), declare(queue="q", exclusive=True)],
    "an argument differs": [queue(message_ttl=5000), queue(message_ttl=6000)],
    "an argument is missing": [queue(message_ttl=5000), queue()],
    "of all arguments that differ one is named": [
        queue(max_length=1, overflow="drop-head", dead_letter_exchange="e"),
        queue(max_length_bytes=1, expires=60_000, max_priority=1),
    ],
    "of all arguments that are wrong one is named": [
        queue(overflow="no", max_length=-1, dead_letter_routing_key=1, message_ttl=-1),
    ],
    "an argument is new": [queue(), queue(max_length=5)],
    "a text argument differs": [queue(dead_letter_exchange="e"), queue(dead_letter_exchange="e1")],
    "an unknown argument": [queue(foo=5), queue(foo=6)],
    "exchange type differs": [exchange(exchange="e", type="direct"), exchange(exchange="e", type="topic")],
    "exchange durable differs": [exchange(exchange="e"), exchange(exchange="e", durable=True)],
    "exchange auto-delete differs": [exchange(exchange="e"), exchange(exchange="e", auto_delete=True)],
    "exchange internal differs": [exchange(exchange="e"), exchange(exchange="e", internal=True)],
    "alternate exchange differs": [
        exchange(exchange="e"), exchange(exchange="e", arguments={"alternate-exchange": "ae"}),
    ],
    "an unknown type of exchange": [exchange(exchange="e", type="foo")],
    "reserved names of exchanges": [exchange(exchange="amq.foo")],
    "reserved names of exchanges, there already": [exchange(exchange="amq.direct", durable=True)],
    "reserved names of exchanges, passive": [exchange(exchange="amq.foo", passive=True)],
    "reserved names of queues": [declare(queue="amq.foo")],
    "delete of an exchange of the broker": [Exchange.Delete(exchange="amq.direct")],
    "delete of the default exchange": [Exchange.Delete(exchange="")],
    "declare of the default exchange": [exchange(exchange="")],
    "declare of the default exchange, passive": [exchange(exchange="", passive=True)],
    "bind to the default exchange": [queue(), bind(queue="q", exchange="", routing_key="k")],
    "unbind from the default exchange": [queue(), Queue.Unbind(queue="q", exchange="", routing_key="q")],
    "bind of the default exchange": [Exchange.Bind(destination="", source="amq.direct")],
    "bind of an exchange that is not there": [Exchange.Bind(destination="e", source="amq.direct")],
    "bind to a source that is not there": [Exchange.Bind(destination="amq.direct", source="e")],
    "publish to an internal exchange": [exchange(exchange="e", internal=True), publish("e", "k"), 0.1],
    "delete if empty": [queue(), publish("", "q"), 0.05, delete(queue="q", if_empty=True)],
    "delete if unused": [queue(), consume("c"), delete(queue="q", if_unused=True)],
    "delete if unused, exchange": [
        queue(), exchange(exchange="e"), bind(queue="q", exchange="e"),
        Exchange.Delete(exchange="e", if_unused=True),
    ],
    "delete tells how many": [queue(), *three(), 0.05, delete(queue="q")],
    "an exclusive consumer, then another": [queue(), consume("c", exclusive=True), On(2, consume("d"))],
    "a consumer, then an exclusive one": [queue(), consume("c"), On(2, consume("d", exclusive=True))],
    "a consumer tag twice": [queue(), consume("c"), Raw(consume("c")), 0.1],
    "cancel of what does not consume": [Basic.Cancel("c")],
    "an unknown delivery tag": [Raw(Basic.Ack(5)), 0.1],
    "an unknown delivery tag, multiple": [Raw(Basic.Ack(5, True)), 0.1],
    "an unknown delivery tag, nack": [Raw(Basic.Nack(5)), 0.1],
    "an unknown delivery tag, reject": [Raw(Basic.Reject(5)), 0.1],
    "ack of all, where nothing waits": [Basic.Ack(0, True), queue()],
    "ack twice": [queue(), publish("", "q"), 0.05, get(no_ack=False), Basic.Ack(1), Raw(Basic.Ack(1)), 0.1],
    "immediate": [queue(), publish("", "q", immediate=True), 0.1],
    "prefetch size": [Basic.Qos(prefetch_size=5)],
    "recover without requeue": [Basic.Recover(False)],
    "recover": [Basic.Recover(True)],
    "recover async": [Basic.RecoverAsync(True), queue()],
    "flow is answered": [Channel.Flow(True)],
    "flow stops": [Channel.Flow(False)],
    "tx after confirm": [Confirm.Select(), Raw(Tx.Select()), 0.1],
    "confirm after tx": [Tx.Select(), Raw(Confirm.Select()), 0.1],
    "commit without tx": [Raw(Tx.Commit()), 0.1],
    "rollback without tx": [Raw(Tx.Rollback()), 0.1],
    "user_id of another": [queue(), publish("", "q", user_id="other"), 0.1],
    "user_id of one's own": [queue(), publish("", "q", user_id="guest"), 0.05, get()],
    "a bad expiration": [queue(), publish("", "q", expiration="abc"), 0.1],
    "a negative expiration": [queue(), publish("", "q", expiration="-5"), 0.1],
    "an empty expiration": [queue(), publish("", "q", expiration=""), 0.1],
    "a bad ttl": [queue(message_ttl=-1)],
    "a ttl that is text": [queue(message_ttl="5")],
    "a bad expires": [queue(expires=0)],
    "a bad length": [queue(max_length=-1)],
    "a bad overflow": [queue(overflow="foo")],
    "a bad priority": [queue(max_priority=256)],
    "a bad dead letter exchange": [queue(dead_letter_exchange=5)],
    "a dead letter key without an exchange": [queue(dead_letter_routing_key="k")],
    "a bad single active consumer": [queue(single_active_consumer="yes")],
    "a bad queue type": [queue(queue_type="foo")],
    "a bad consumer priority": [queue(), consume("c", arguments={"x-priority": "high"})],
    "a bad match": [
        exchange(exchange="e", type="headers"), queue(),
        bind(queue="q", exchange="e", arguments={"x-match": "some"}),
    ],
    "no match": [
        exchange(exchange="e", type="headers"), queue(), bind(queue="q", exchange="e", arguments={"a": 1}),
    ],
    "a bad CC": [queue(), publish("", "q", headers={"CC": "q1"}), 0.1],
    "a channel that is open already": [Raw(Channel.Open()), 0.1],
    "redeclare of an exclusive queue": [
        declare(queue="q", exclusive=True), declare(queue="q", exclusive=True), declare(queue="q"),
    ],
}  # fmt: skip

ROUTING: dict[str, list[Any]] = {
    "direct": [
        queue(), bind(queue="q", exchange="amq.direct", routing_key="k"), publish("amq.direct", "k", b"1"),
        publish("amq.direct", "x", b"2"), 0.05, get(), get(),
    ],
    "fanout": [
        queue(), bind(queue="q", exchange="amq.fanout", routing_key="k"), publish("amq.fanout", "x"), 0.05,
        get(),
    ],
    "topic": [
        queue(), bind(queue="q", exchange="amq.topic", routing_key="a.*.#"), publish("amq.topic", "a.b",
        b"1"),
        publish("amq.topic", "a", b"2"), publish("amq.topic", "a.b.c.d", b"3"), publish("amq.topic", "",
        b"4"),
        0.05, get(), get(), get(),
    ],
    "headers all": [
        queue(), bind(queue="q", exchange="amq.headers", arguments={"x-match": "all", "a": 1, "b": "x"}),
        publish("amq.headers", "", b"1", headers={"a": 1, "b": "x", "c": 2}),
        publish("amq.headers", "", b"2", headers={"a": 1}), publish("amq.match", "", b"3", headers={}),
        0.05, get(), get(),
    ],
    "headers any": [
        queue(), bind(queue="q", exchange="amq.match", arguments={"x-match": "any", "a": 1, "b": None}),
        publish("amq.match", "", b"1", headers={"a": 2}), publish("amq.match", "", b"2", headers={"b": 5}),
        publish("amq.match", "", b"3", headers={"a": 1}), publish("amq.match", "", b"4"),
        0.05, get(), get(), get(),
    ],
    "headers with x": [
        queue(), bind(queue="q", exchange="amq.match", arguments={"x-match": "all", "x-a": 1}),
        publish("amq.match", "", b"1", headers={}), publish("amq.match", "", b"2"), 0.05, get(), get(),
    ],
    "a message that two bindings take comes once": [
        queue(), bind(queue="q", exchange="amq.topic", routing_key="a.*"),
        bind(queue="q", exchange="amq.topic", routing_key="*.b"), publish("amq.topic", "a.b"), 0.05, get(),
        get(),
    ],
    "CC and BCC": [
        queue("q"), queue("q1"), queue("q2"),
        publish("", "q", headers={"CC": ["q1"], "BCC": ["q2"], "n": 1}), 0.05, get("q"), get("q1"), get("q2"),
    ],
    "exchange to exchange": [
        queue(), exchange(exchange="e", type="fanout"), exchange(exchange="e1", type="topic"),
        Exchange.Bind(destination="e1", source="e", routing_key=""),
        Exchange.Bind(destination="e", source="e1", routing_key="#"),
        bind(queue="q", exchange="e1", routing_key="a.#"), publish("e", "a.b"), 0.05, get(), get(),
        Exchange.Unbind(destination="e1", source="e", routing_key=""), publish("e", "a.b"), 0.05, get(),
    ],
    "an alternate exchange": [
        queue(), exchange(exchange="ae", type="fanout"), bind(queue="q", exchange="ae"),
        exchange(exchange="e", arguments={"alternate-exchange": "ae"}),
        publish("e", "none", mandatory=True), 0.05, get(),
    ],
    "mandatory": [Confirm.Select(), publish("", "none", b"x", mandatory=True, message_id="m"), 0.1],
    "mandatory in transit": [publish("amq.direct", "none", b"x", mandatory=True), 0.1],
    "an internal exchange takes from others": [
        queue(), exchange(exchange="e", internal=True, type="fanout"), bind(queue="q", exchange="e"),
        Exchange.Bind(destination="e", source="amq.direct", routing_key="k"), publish("amq.direct", "k"),
        0.05,
        get(),
    ],
    "auto-delete of an exchange": [
        queue(), exchange(exchange="e", auto_delete=True), bind(queue="q", exchange="e", routing_key="k"),
        Queue.Unbind(queue="q", exchange="e", routing_key="k"), exchange(exchange="e", passive=True),
    ],
    "auto-delete of an exchange by its queue": [
        queue(), exchange(exchange="e", auto_delete=True), bind(queue="q", exchange="e", routing_key="k"),
        delete(queue="q"), exchange(exchange="e", passive=True),
    ],
    "auto-delete of an exchange by an exchange": [
        exchange(exchange="e", auto_delete=True), exchange(exchange="e1"),
        Exchange.Bind(destination="e1", source="e"), Exchange.Delete(exchange="e1"),
        exchange(exchange="e", passive=True),
    ],
}  # fmt: skip

QUEUEING: dict[str, list[Any]] = {
    "auto-delete": [
        declare(queue="q", auto_delete=True), consume("c"), Basic.Cancel("c"), 0.1, passive(),
    ],
    "auto-delete waits for a consumer": [
        declare(queue="q", auto_delete=True), On(2, Channel.Close(200)), passive(),
    ],
    "cancel notification": [queue(), consume("c"), On(2, delete(queue="q")), 0.1],
    "get": [queue(), *three(), 0.05, get(no_ack=False), get(no_ack=False), Basic.Ack(1), passive()],
    "get of an empty queue": [queue(), get()],
    "purge": [queue(), *three(), 0.05, get(no_ack=False), Queue.Purge(queue="q"), passive()],
    "declare counts": [queue(), *three(), 0.05, consume("c", no_ack=True), 0.05, passive()],
    "requeue one by one restores the order": [
        queue(), *three(), 0.05, get(no_ack=False), get(no_ack=False), get(no_ack=False),
        Basic.Reject(1, True), Basic.Reject(2, True), Basic.Reject(3, True), 0.05, get(), get(), get(),
    ],
    "requeue in disorder restores the order": [
        queue(), *three(), 0.05, get(no_ack=False), get(no_ack=False), get(no_ack=False),
        Basic.Nack(2, False, True), Basic.Nack(3, False, True), Basic.Nack(1, False, True), 0.05,
        get(), get(), get(),
    ],
    "requeue of all": [
        queue(), *three(), 0.05, get(no_ack=False), get(no_ack=False), Basic.Nack(0, True, True), 0.05,
        get(), get(), get(),
    ],
    "recover requeues": [
        queue(), *three(), 0.05, get(no_ack=False), get(no_ack=False), Basic.Recover(True), 0.05, get(),
        get(),
    ],
    "closing a channel requeues": [
        queue(), *three(), 0.05, On(2, get(no_ack=False)), On(2, Channel.Close(200)), 0.05, get(), get(),
    ],
    "prefetch of a consumer": [
        queue(), Basic.Qos(prefetch_count=2), consume("c"), *three(), 0.1, Basic.Ack(1), 0.1,
    ],
    "prefetch of a consumer is its own": [
        queue(), Basic.Qos(prefetch_count=1), consume("c"), consume("d"), *three(), 0.1,
    ],
    "prefetch of a channel": [
        queue(), Basic.Qos(prefetch_count=2, global_=True), consume("c"), consume("d"), *three(), 0.1,
    ],
    "prefetch later": [queue(), consume("c"), Basic.Qos(prefetch_count=1), *three(), 0.1],
    "prefetch of none": [queue(), Basic.Qos(prefetch_count=0), consume("c", no_ack=True), *three(), 0.1],
    "consumers take turns": [
        queue(), consume("c", no_ack=True), consume("d", no_ack=True), *three(), *three(), 0.1,
    ],
    "priorities of consumers": [
        queue(), Basic.Qos(prefetch_count=2), consume("c", arguments={"x-priority": 1}),
        consume("d", arguments={"x-priority": 10}), *three(), 0.1,
    ],
    "exclusive consumer goes, another may come": [
        queue(), consume("c", exclusive=True), Basic.Cancel("c"), 0.05, On(2, consume("d")),
    ],
    "confirms": [queue(), Confirm.Select(), publish("", "q"), 0.05, publish("", "none"), 0.1],
    "time to live of a queue": [queue(message_ttl=50), publish("", "q"), 0.2, passive(), get()],
    "time to live of a message": [
        queue(), publish("", "q", b"1", expiration="50"), publish("", "q", b"2"), 0.2, get(), get(),
    ],
    "time to live behind the head": [
        queue(), publish("", "q", b"1"), publish("", "q", b"2", expiration="50"), 0.2, passive(), get(),
        get(),
    ],
    "time to live of nothing": [queue(message_ttl=0), publish("", "q"), 0.1, get()],
    "time to live of nothing, with a consumer": [
        queue(message_ttl=0), publish("", "q"), 0.1, consume("c", no_ack=True), publish("", "q", b"1"), 0.1,
    ],
    "expires": [queue(expires=100), 0.4, passive()],
    "length drops the head": [queue(max_length=2), *three(), 0.1, get(), get(), get()],
    "octets drop the head": [queue(max_length_bytes=2), *three(), 0.1, get(), get(), get()],
    "a message over the octets": [
        queue(max_length_bytes=2), Confirm.Select(), publish("", "q", b"123"), 0.1, get(),
    ],
    "length refuses": [
        queue(max_length=2, overflow="reject-publish"), Confirm.Select(), *three(), 0.1, get(), get(), get(),
    ],
    "priorities of messages": [
        queue(max_priority=5), publish("", "q", b"1", priority=1), publish("", "q", b"5", priority=5),
        publish("", "q", b"9", priority=9), publish("", "q", b"0"), 0.1, get(), get(), get(), get(),
    ],
    "what goes back into a full queue pushes the first out": [
        queue(max_length=1, dead_letter_exchange="", dead_letter_routing_key="dead"), queue("dead"),
        publish("", "q", b"1"), 0.05, get(no_ack=False), publish("", "q", b"2"), 0.05, Basic.Reject(1, True),
        0.1, get(), get(), get("dead"),
    ],
    "consumers hear of a deleted queue after who has deleted it": [
        queue(), consume("c"), delete(queue="q"), 0.1,
    ],
    "time to live behind a message that lives on": [
        queue(max_priority=1), publish("", "q", b"1", priority=1), publish("", "q", b"2", expiration="1"),
        0.1, passive(), get(), passive(),
    ],
    "time to live before a message that lives on": [
        queue(max_priority=1), publish("", "q", b"1"), 0.05,
        publish("", "q", b"2", priority=1, expiration="0"), 0.1, passive(), get(), get(),
    ],
    "an exclusive consumer where one is active": [
        queue(single_active_consumer=True), consume("c", exclusive=True),
    ],
    "single active consumer": [
        queue(single_active_consumer=True), Basic.Qos(prefetch_count=1), consume("c", no_ack=True),
        consume("d", no_ack=True), *three(), 0.1, Basic.Cancel("c"), publish("", "q", b"4"), 0.1,
    ],
    "direct reply-to": [
        queue(), consume("r", "amq.rabbitmq.reply-to", no_ack=True),
        publish("", "q", b"ask", reply_to="none"), 0.05, get(),
    ],
    "direct reply-to wants no acks": [consume("r", "amq.rabbitmq.reply-to")],
    "direct reply-to twice": [
        consume("r", "amq.rabbitmq.reply-to", no_ack=True), consume("s", "amq.rabbitmq.reply-to",
        no_ack=True),
    ],
    "direct reply-to without a consumer": [publish("", "q", reply_to="amq.rabbitmq.reply-to"), 0.1],
    "direct reply-to, and back": [
        consume("r", "amq.rabbitmq.reply-to", no_ack=True),
        declare(queue="amq.rabbitmq.reply-to", passive=True),
    ],
    "prefetch of a channel makes room for others": [
        queue(), queue("q1"), Basic.Qos(prefetch_count=1, global_=True), consume("c"), consume("d", "q1"),
        publish("", "q", b"1"), 0.1, publish("", "q1", b"2"), 0.1, Basic.Ack(1), 0.1,
    ],
    "reject-publish takes again": [
        queue(max_length=1, overflow="reject-publish"), Confirm.Select(), publish("", "q", b"1"), 0.1,
        publish("", "q", b"2"), 0.1, get(), publish("", "q", b"3"), 0.1, get(),
    ],
    "tx commits": [
        queue(), Tx.Select(), publish("", "q", b"1"), 0.1, passive(), Tx.Commit(), 0.05, get(),
    ],
    "tx rolls back": [
        queue(), Tx.Select(), publish("", "q", b"1"), 0.1, Tx.Rollback(), 0.05, get(),
    ],
    "tx holds acks": [
        queue(), publish("", "q", b"1"), 0.05, Tx.Select(), get(no_ack=False), Basic.Ack(1), Tx.Rollback(),
        Basic.Ack(1), Tx.Commit(), On(2, passive()),
    ],
    "tx returns at commit": [
        Tx.Select(), publish("", "none", b"1", mandatory=True), 0.1, Tx.Commit(),
    ],
}  # fmt: skip

_DLX = [exchange(exchange="dlx", type="fanout"), queue("dead"), bind(queue="dead", exchange="dlx")]
DEATHS: dict[str, list[Any]] = {
    "rejected": [
        *_DLX, queue(dead_letter_exchange="dlx"), publish("", "q", b"1", headers={"a": 1}), 0.05,
        get(no_ack=False), Basic.Reject(1, False), 0.1, get("dead"),
    ],
    "rejected without headers": [
        *_DLX, queue(dead_letter_exchange="dlx"), publish("", "q", b"1"), 0.05, get(no_ack=False),
        Basic.Nack(1, False, False), 0.1, get("dead"),
    ],
    "with a key of its own": [
        queue("dead"), queue(dead_letter_exchange="", dead_letter_routing_key="dead"), publish("", "q",
        b"1"), 0.05,
        get(no_ack=False), Basic.Reject(1, False), 0.1, get("dead"),
    ],
    "expired by the queue": [
        *_DLX, queue(dead_letter_exchange="dlx", message_ttl=50), publish("", "q", b"1"), 0.3, get("dead"),
    ],
    "expired by the message": [
        *_DLX, queue(dead_letter_exchange="dlx"), publish("", "q", b"1", expiration="50"), 0.3, get("dead"),
    ],
    "dropped for length": [
        *_DLX, queue(dead_letter_exchange="dlx", max_length=1), *three(), 0.1, get("dead"), get("dead"),
        get(),
    ],
    "refused with dead letters": [
        *_DLX, queue(dead_letter_exchange="dlx", max_length=1, overflow="reject-publish-dlx"),
        Confirm.Select(),
        *three(), 0.1, get("dead"), get("dead"), get(),
    ],
    "twice of one queue": [
        *_DLX, queue(dead_letter_exchange="dlx"), publish("", "q", b"1"), 0.05, get(no_ack=False),
        Basic.Reject(1, False), 0.1, bind(queue="q", exchange="dlx"), get("dead"),
    ],
    "round and round": [
        queue("dead", dead_letter_exchange="", dead_letter_routing_key="q"),
        queue(dead_letter_exchange="", dead_letter_routing_key="dead"), publish("", "q", b"1"), 0.05,
        get(no_ack=False), Basic.Reject(1, False), 0.1, get("dead", False), Basic.Reject(2, False), 0.1,
        get(no_ack=False), Basic.Reject(3, False), 0.1, get("dead", False),
    ],
    "a message is in its queues before what dies of it": [
        queue(message_ttl=0, dead_letter_exchange="", dead_letter_routing_key="dead"), queue("dead"),
        exchange(exchange="e", type="fanout"), bind(queue="q", exchange="e"),
        bind(queue="dead", exchange="e"), publish("e", "", b"1"), 0.1, get("dead"), get("dead"),
    ],
    "a cycle of expiry ends": [
        queue(message_ttl=50, dead_letter_exchange="", dead_letter_routing_key="q"), publish("", "q",
        b"1"), 0.4,
        passive(), get(),
    ],
    "purge and delete are no deaths": [
        *_DLX, queue(dead_letter_exchange="dlx"), *three(), 0.05, Queue.Purge(queue="q"), *three(), 0.05,
        delete(queue="q"), 0.1, get("dead"),
    ],
    "CC": [
        *_DLX, queue(dead_letter_exchange="dlx"), publish("", "q", b"1", headers={"CC": ["other"]}), 0.05,
        get(no_ack=False), Basic.Reject(1, False), 0.1, get("dead"),
    ],
    "BCC": [
        queue(max_length=0, dead_letter_exchange=""), queue("dead"),
        publish("", "q", b"1", headers={"BCC": ["dead"]}), 0.1, get("dead"), get("dead"), get("dead"),
    ],
    "a dead letter exchange that is not there": [
        queue(dead_letter_exchange="none"), publish("", "q", b"1"), 0.05, get(no_ack=False),
        Basic.Reject(1, False), 0.1, passive(),
    ],
}  # fmt: skip

PROBES: dict[str, list[Any]] = {
    f"{group}: {name}": steps
    for group, probes in (("errors", ERRORS), ("routing", ROUTING), ("queues", QUEUEING), ("deaths", DEATHS))
    for name, steps in probes.items()
}
