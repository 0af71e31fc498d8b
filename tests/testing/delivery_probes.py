"""Probes of properties, of dead letters, and of how messages are delivered and settled.

Tables of values, and of the one thing that is asked with each.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from probes import bind, consume, declare, delete, exchange, get, passive, queue, three
from probing import On, Raw, publish

from amqpcodec import rabbitmq as amqp

Basic, Exchange, Queue, Tx = amqp.Basic, amqp.Exchange, amqp.Queue, amqp.Tx
WHEN = datetime(2020, 1, 1, tzinfo=UTC)
SECONDS = int(WHEN.timestamp())
ACROSS_LINES = "a\r\nb"  # a name, which is "ab"


def sent(**properties: Any) -> list[Any]:
    """Return the steps of a message with properties, to be looked at."""
    return [queue(), queue("q1"), publish("", "q", **properties), 0.1, get(), get("q1")]


def refused(**properties: Any) -> list[Any]:
    """Return the steps of a message that is refused, or waits."""
    return [queue(), publish("", "q", **properties), 0.05, passive()]


def dies(**headers: Any) -> list[Any]:
    """Return the steps of a message with headers that is rejected, and goes on to another queue."""
    return [
        queue("dead"), queue(dead_letter_exchange="", dead_letter_routing_key="dead"),
        publish("", "q", b"1", headers=headers), 0.05, get(no_ack=False), Basic.Reject(1, False), 0.1,
        get("dead"), passive(),
    ]  # fmt: skip


def death(queue: Any, **more: Any) -> dict[str, Any]:
    """Return an entry of x-death."""
    return {"count": 1, "reason": "rejected", "queue": queue, "time": WHEN, "exchange": "", **more}


def matched(bound: Any, sent: Any) -> list[Any]:
    """Return the steps of a headers exchange that compares two values."""
    return [
        queue(), bind(queue="q", exchange="amq.headers", arguments={"a": bound}),
        publish("amq.headers", "", headers={"a": sent}), 0.05, passive(),
    ]  # fmt: skip


def recovered(*steps: Any) -> list[Any]:
    """Return steps after a delivery was taken back by basic.recover."""
    return [
        queue(),
        publish("", "q"),
        0.05,
        get(no_ack=False),
        Basic.Recover(True),
        *steps,
        0.1,
        On(2, passive()),
    ]


_UNCOUNTED = {"reason": "rejected", "queue": "b"}
_BEFORE: dict[str, Any] = {
    "of another queue": [death("b")],
    "of three queues": [death("a"), death("q"), death("c")],
    "of this queue": [death("q", count=7, extra=1)],
    "of this queue by its octets": [death(b"q")],
    "with counts that differ": [death("b", count=2), death("b", count=3)],
    "of two queues, one twice": [death("b", count=2), death("q", count=2), death("c"), death("b", count=3)],
    "without a count": [_UNCOUNTED],
    "without counts": [_UNCOUNTED, _UNCOUNTED],
    "of this queue without counts": [{**_UNCOUNTED, "queue": "q"}] * 2,
    "of a queue that is a number": [death(5)],
    "of tables that say nothing": [{"count": 1}, {"count": 2}],
    "with a count that is text": [death("q", count="many")],
    "with a count that is a boolean": [death("q", count=True)],
    "with a count of nothing": [death("q", count=None)],
    "with a count below zero": [death("q", count=-4)],
    "with another's count that is text": [death("b", count="many")],
    "of a number": [5],
    "of a table and a number": [death("b"), 5],
    "of nothing": [],
    "that is text": "never",
    "that is a table": {"a": 1},
}  # fmt: skip
_EXPIRATIONS = (
    "5000", "0007000", "+5000", "-0", " 5", "5 ", "5a", "1_0", "5.0", "5\n", "+", "+-5", "\u0665", "\uff15",
    "\xb2", "315360000000", "315360000001",
)  # fmt: skip
_MATCHES: dict[str, tuple[Any, Any]] = {
    "text and octets": ("x", b"x"), "octets and text": (b"x", "x"), "a number and text": (1, "1"),
    "a number and a time": (SECONDS, WHEN), "a time and a number": (WHEN, SECONDS),
    "a number and a fraction": (1, 1.0), "a number and a decimal": (1, Decimal(1)),
    "a decimal and a number": (Decimal(1), 1), "decimals": (Decimal("1.5"), Decimal("1.5")),
    "decimals of other scales": (Decimal("1.0"), Decimal(1)), "a boolean and a number": (True, 1),
    "times": (WHEN, WHEN), "fractions": (1.5, 1.5), "a fraction and a number": (1.0, 1),
    "a number and a boolean": (1, True), "arrays": ([1, "x"], [1, "x"]),
    "arrays of other types": ([1], [1.0]),
    "arrays of a boolean and a number": ([True], [1]), "arrays of text and octets": (["x"], [b"x"]),
    "arrays of a number and a time": ([SECONDS], [WHEN]), "tables": ({"a": 1}, {"a": 1}),
    "tables in another order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}), "nothing and anything": (None, 5),
}  # fmt: skip

_PROPERTIES: dict[str, list[Any]] = {
    **{f"delivery mode {mode}": refused(delivery_mode=mode) for mode in (0, 1, 2, 3, 255)},
    **{f"expiration {text!a}": refused(expiration=text) for text in _EXPIRATIONS},
    **{
        f"{name} of {value!r}": sent(headers={name: value})
        for name in ("CC", "BCC")
        for value in ([1, "q1", None], [], "q1", b"q1", 1, None, {})
    },
    "CC of other than texts, of a dead letter": dies(CC=[1, "other"]),
    "user_id with an end of a line": refused(user_id="guest\n"),
}
_SETTLING: dict[str, list[Any]] = {
    **{
        f"{type(method).__name__} after recover, {multiple}": recovered(Raw(method))
        for multiple in (False, True)
        for method in (Basic.Ack(1, multiple), Basic.Nack(1, multiple))
    },
    "reject after recover": recovered(Raw(Basic.Reject(1))),
    "ack of all after recover": recovered(Basic.Ack(0, True)),
    "ack of what comes again": recovered(get(no_ack=False), Basic.Ack(2)),
    "recover in a transaction leaves what is settled": [
        queue(), *three(), 0.05, Tx.Select(), get(no_ack=False), get(no_ack=False), Basic.Ack(1),
        Basic.Recover(True), 0.05, On(2, passive()), Tx.Commit(), On(2, passive()),
    ],
    "tx commits into a full queue": [
        queue(max_length=1, overflow="reject-publish"), queue("q1"), publish("", "q1"), 0.05, Tx.Select(),
        get("q1", no_ack=False), Basic.Ack(1), publish("", "q", b"1"), publish("", "q", b"2"),
        publish("", "none", b"3", mandatory=True), 0.05, Tx.Commit(), 0.1, On(2, passive()),
        On(2, passive("q1")),
    ],
    "tx commits into a queue that drops": [
        queue(max_length=1), Tx.Select(), publish("", "q", b"1"), publish("", "q", b"2"), 0.05, Tx.Commit(),
    ],
    "a consumer without acks waits while its channel holds too much": [
        queue(), queue("q1"), consume("c"), *three(), 0.1, Basic.Qos(prefetch_count=1, global_=True),
        consume("d", "q1", no_ack=True), publish("", "q1", b"4"), 0.1, passive("q1"), Basic.Ack(2, True),
        0.05, passive("q1"), Basic.Ack(3), 0.1,
    ],
    "what needs no ack takes no room": [
        queue(), Basic.Qos(prefetch_count=1, global_=True), consume("c", no_ack=True), *three(), 0.1,
    ],
}  # fmt: skip
_NAMES: dict[str, list[Any]] = {
    "the exchange for traces": [exchange(exchange="amq.rabbitmq.trace", passive=True)],
    "the exchange for traces again": [
        exchange(exchange="amq.rabbitmq.trace", type="topic", durable=True, internal=True)
    ],
    "publish to the exchange for traces": [publish("amq.rabbitmq.trace", "k"), 0.1],
    "delete of a reserved name": [Exchange.Delete(exchange="amq.x")],
    "delete of a name like one": [Exchange.Delete(exchange="amq"), delete(queue="amq.x")],
    "names across lines": [
        declare(queue=ACROSS_LINES), declare(queue="a\nb", passive=True), exchange(exchange="e\n"),
        bind(queue="a\nb", exchange="e\r", routing_key="k\n"), publish("e", "k\n", b"1"), 0.05, get("ab"),
        Queue.Unbind(queue="a\nb", exchange="e\r", routing_key="k\n"), publish("e", "k\n", b"1"), 0.05,
        get("ab"),
        exchange(exchange="e1"), Exchange.Bind(destination="e1\n", source="e\r"),
        Exchange.Unbind(destination="e1\n", source="e\r"), Exchange.Delete(exchange="e1\n"),
        delete(queue=ACROSS_LINES), passive("ab"),
    ],
    **{
        f"a name across lines in {step.spec.name}": [declare(queue="ab"), step, delete(queue="ab")]
        for step in (get(ACROSS_LINES), consume("c", ACROSS_LINES), Queue.Purge(queue=ACROSS_LINES))
    },
    "a name of ends of lines": [exchange(exchange="\n", passive=True)],
    "a reserved name across lines": [declare(queue="am\nq.x")],
    "a tag across lines": [queue(), consume("c\n"), Basic.Cancel("c\n")],
}  # fmt: skip
_FIRST = {f"x-first-death-{name}": "of the publisher" for name in ("exchange", "queue", "reason")}

DELIVERY: dict[str, list[Any]] = {
    f"{group}: {name}": steps
    for group, probes in (
        ("properties", _PROPERTIES),
        ("deaths before", {name: dies(**{"x-death": value}) for name, value in _BEFORE.items()}),
        (
            "deaths before",
            {"without x-death": dies(**_FIRST), "with both": dies(**_FIRST, **{"x-death": []})},
        ),
        ("headers exchange", {name: matched(*pair) for name, pair in _MATCHES.items()}),
        ("settling", _SETTLING),
        ("names", _NAMES),
    )
    for name, steps in probes.items()
}
