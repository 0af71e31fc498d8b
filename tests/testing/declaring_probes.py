"""Probes of direct replies, of arguments of declarations, and of when messages are routed."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from probes import Basic, Confirm, Queue, Tx, bind, consume, declare, delete, exchange, get, queue
from probing import On, Reply, publish

REPLY_TO = "amq.rabbitmq.reply-to"
_CONSUME = consume("r", REPLY_TO, no_ack=True)
_ASKED = [queue(), _CONSUME, publish("", "q", b"ask", reply_to=REPLY_TO), 0.05, get()]


def reply(exchange: str = "") -> Reply:
    """Return a reply, on a channel of its own."""
    return Reply(lambda address: On(2, publish(exchange, address, b"answer", mandatory=True)))


def carbon_copy(key: str) -> Reply:
    """Return a message that goes to the address for replies as well."""
    return Reply(lambda address: publish("", key, b"both", mandatory=True, headers={"CC": [address]}))


def _dead_letters(address: str) -> Any:
    return queue("q1", dead_letter_exchange="", dead_letter_routing_key=address)


REPLIES: dict[str, list[Any]] = {
    "a mandatory reply is delivered and returned": [*_ASKED, reply(), 0.1],
    "and confirmed": [*_ASKED, On(2, Confirm.Select()), reply(), 0.1],
    "a reply to who has gone is returned": [*_ASKED, Basic.Cancel("r"), reply(), 0.1],
    "a reply by another exchange is none": [*_ASKED, reply("amq.direct"), 0.1],
    "a reply by CC": [*_ASKED, carbon_copy("none"), 0.1],
    "a reply by CC, and to a queue": [*_ASKED, carbon_copy("q"), 0.1, On(2, get())],
    "a dead letter is a reply": [
        *_ASKED, Reply(_dead_letters), publish("", "q1", b"dead"), 0.05, get("q1", no_ack=False),
        Basic.Reject(2, False), 0.1,
    ],
    "declared": [
        declare(queue=REPLY_TO), declare(queue=REPLY_TO, passive=True),
        declare(queue=REPLY_TO, durable=True, exclusive=True, arguments={"x-max-length": -1}),
    ],
    "declared, and consumed as the queue declared last": [
        declare(queue=REPLY_TO), consume("c", "", no_ack=True), On(2, declare(queue=REPLY_TO)),
        On(2, consume("c", "")),
    ],
    "declared, and fetched from": [declare(queue=REPLY_TO), get("")],
    "an address is declared by others": [
        *_ASKED, Reply(lambda address: On(2, declare(queue=address))), Basic.Cancel("r"),
        Reply(lambda address: On(2, declare(queue=address))),
    ],
    "an address that is not there": [
        declare(queue=f"{REPLY_TO}.none"), On(2, publish("", f"{REPLY_TO}.none", b"1", mandatory=True)), 0.1,
    ],
    "a name like it": [declare(queue=f"{REPLY_TO}like"), On(2, publish("", REPLY_TO, mandatory=True)), 0.1],
    "no queue is bound, purged or fetched from": [
        Queue.Purge(queue=REPLY_TO), On(2, get(REPLY_TO)),
        On(3, Queue.Bind(queue=REPLY_TO, exchange="amq.direct")),
    ],
    "it can be left, and entered again": [_CONSUME, Basic.Cancel("r"), _CONSUME],
}  # fmt: skip

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
LONGEST = 10 * 365 * 24 * 60 * 60 * 1000


def each(*steps: Any) -> list[Any]:
    """Return steps, each on a channel of its own: one may be closed."""
    return [On(channel, step) for channel, step in enumerate(steps, 1)]


def each_wrong(name: str, *values: Any) -> list[Any]:
    """Return declarations with up to three values of an argument."""
    return each(*(queue(f"q{number}", **{name: value}) for number, value in enumerate(values, 1)))


def again(first: dict[str, Any], *others: dict[str, Any]) -> list[Any]:
    """Return a declaration, and others of the same queue with up to two other arguments."""
    return each(queue(**first), *(queue(**other) for other in others))


def alternate(value: Any) -> Any:
    return exchange(exchange="e", arguments={"alternate-exchange": value})


ARGUMENTS: dict[str, list[Any]] = {
    "of quorum queues": each(
        queue(delivery_limit=5), queue(dead_letter_strategy="at-most-once"),
        queue(quorum_initial_group_size=3),
    ),
    "of quorum queues, in memory": each(
        queue(max_in_memory_length=5), queue(max_in_memory_bytes=5), queue(queue_leader_locator="random")
    ),
    "of streams": each(
        queue(max_age="1D"), queue(initial_cluster_size=1), queue(stream_max_segment_size_bytes=1)
    ),
    "of other queues after wrong ones, and in their order": each(
        queue(delivery_limit=5, max_length=-1), queue(max_age="1D", delivery_limit=5),
        queue(delivery_limit=5, max_age="1D"),
    ),
    "of other queues, and known ones, where the queue is there": again(
        {}, {"delivery_limit": 5}, {"delivery_limit": 5, "max_length": 5}
    ),
    "the type is checked first": each(
        queue(queue_type="foo", max_length=-1), queue(queue_type=5, expires=0),
        queue(queue_type="foo", dead_letter_exchange=5),
    ),
    "classic is what a queue is": [*again({}, {"queue_type": "classic"}), On(3, queue(queue_type="quorum"))],
    "classic is what a queue was": again({"queue_type": "classic"}, {}, {"queue_type": "foo"}),
    "a mode": each_wrong("queue_mode", "lazy", "eager", 5),
    "a mode differs": again({"queue_mode": "lazy"}, {}, {"queue_mode": "default"}),
    "a mode is new": again({}, {"queue_mode": "lazy"}),
    "a version": each_wrong("queue_version", 1, 3, "2"),
    "a version out of range": each_wrong("queue_version", -1, 0, 1 << 40),
    "a version differs": again({"queue_version": 1}, {"queue_version": 2}, {}),
    "a place is new": again({}, {"queue_master_locator": "random"}),
    "the longest times": each(
        queue("q1", message_ttl=LONGEST), queue("q2", message_ttl=LONGEST + 1),
        queue("q3", expires=LONGEST + 1),
    ),
    "times of other types": each_wrong("message_ttl", 5.5, None, b"5"),
    "times of further types": each_wrong("expires", True, [1], {"a": 1}),
    "a length of other types": each_wrong("max_length", Decimal("3.14"), NEW_YEAR, ""),
    "a dead letter key": each(
        queue(dead_letter_exchange="", dead_letter_routing_key=5), queue(dead_letter_routing_key=5),
        queue(dead_letter_routing_key="k", max_length=-1),
    ),
    "a dead letter exchange of other types": each_wrong("dead_letter_exchange", None, b"e", ["e"]),
    "an array and a table are new": again(
        {}, {"max_length": [5, 'a"\\\n']}, {"max_length": {"a": 5, "b": b"c"}}
    ),
    "nothing and a date are new": again({}, {"max_length": None}, {"max_length": NEW_YEAR}),
    "octets and a decimal are new": again({}, {"max_length": b"ab"}, {"max_length": Decimal("-3.14")}),
    "a number is no boolean, and no float": again(
        {"max_length": 1}, {"max_length": True}, {"max_length": 1.0}
    ),
    "a text of the same octets": again({"overflow": "drop-head"}, {"overflow": b"drop-head"}),
    "nothing for something": again({"overflow": "drop-head"}, {"overflow": None}, {"overflow": [True, "a"]}),
    "a long text is cut": again({}, {"overflow": "x" * 255}),
    "an exclusive queue is not durable": [
        declare(queue="q", durable=True, exclusive=True), declare(queue="q", exclusive=True),
    ],
    "an alternate exchange of other types": each(alternate(5), alternate(["a"]), alternate(None)),
    "an alternate exchange of further types": each(alternate(b"ae"), alternate({"a": 1}), alternate(True)),
    "an alternate exchange is new": each(exchange(exchange="e"), alternate(None), alternate(["a"])),
    "an alternate exchange differs": each(alternate("ae"), alternate(None), alternate(b"ae")),
    "the default exchange is no alternate": [
        alternate(""), queue(), publish("e", "q", b"1", mandatory=True), 0.05, get(),
    ],
    "a consumer for streams": [queue(), *each(consume("c", arguments={"x-stream-offset": "first"}))],
    "a consumer with wrong ones": [
        queue(), *each(
            consume("c", arguments={"x-priority": 5.5}),
            consume("d", arguments={"x-cancel-on-ha-failover": 1}),
            consume("e", arguments={"x-priority": None, "x-stream-offset": "first"}),
        ),
    ],
    "a consumer with wrong ones, where one is exclusive": [
        queue(), On(2, consume("c", exclusive=True)), consume("d", arguments={"x-priority": "high"}),
    ],
    "a match of other types": [
        queue(), *each(*(
            bind(queue="q", exchange="amq.headers", arguments={"x-match": match}) for match in (5, None, True)
        )),
    ],
}  # fmt: skip

_BOUND = bind(queue="q", exchange="amq.direct", routing_key="k")
_ROUTED = [Tx.Select(), publish("amq.direct", "k", b"1", mandatory=True), 0.05]
TRANSACTIONS: dict[str, list[Any]] = {
    "what is bound later gets nothing": [queue(), *_ROUTED, On(2, _BOUND), Tx.Commit(), get()],
    "what is unbound later gets it": [
        queue(), _BOUND, *_ROUTED, On(2, Queue.Unbind(queue="q", exchange="amq.direct", routing_key="k")),
        Tx.Commit(), 0.05, get(),
    ],
    "a queue that was deleted and declared again gets it": [
        queue(), _BOUND, *_ROUTED, On(2, delete(queue="q")), On(2, queue(max_length=5)), Tx.Commit(), 0.05,
        get(),
    ],
    "a queue that is gone gets nothing": [queue(), _BOUND, *_ROUTED, On(2, delete(queue="q")), Tx.Commit()],
    "a queue declared later is found by the default exchange": [
        Tx.Select(), publish("", "q", b"1", mandatory=True), 0.05, On(2, queue()), Tx.Commit(), 0.05, get(),
    ],
    "a reply goes out at once, and is returned at the commit": [
        *_ASKED, On(2, Tx.Select()), reply(), 0.05, Basic.Cancel("r"), On(2, Tx.Commit()),
    ],
}  # fmt: skip

DECLARING: dict[str, list[Any]] = {
    f"{group}: {name}": steps
    for group, probes in (("replies", REPLIES), ("arguments", ARGUMENTS), ("transactions", TRANSACTIONS))
    for name, steps in probes.items()
}
