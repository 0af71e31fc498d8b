"""Probes of what versions of RabbitMQ do in different ways, beside queues of other types."""

from __future__ import annotations

from typing import Any

from declaring_probes import REPLY_TO, each
from probes import Basic, Exchange, Tx, bind, consume, delete, exchange, passive, queue, three
from probing import On, publish
from quorum_probes import quorum

RANDOM = Exchange.Declare(exchange="e", type="x-local-random")
SHARED = Basic.Qos(prefetch_count=1, global_=True)


def typed(kind: str) -> Any:
    """Return a declaration of an exchange of a type."""
    return Exchange.Declare(exchange="e", type=kind)


_EXCHANGES: dict[str, list[Any]] = {
    "types that are none": each(typed("x-consistent-hash"), typed(""), typed("Direct")),
    "further types that are none": each(typed("x-delayed-message"), typed("foo"), typed("x-recent-history")),
    "a local random exchange": [
        RANDOM, queue(), bind(queue="q", exchange="e"), publish("e", "k", b"1"), publish("e", "", b"2"), 0.1,
        passive(),
    ],
    "a local random exchange without a queue": [RANDOM, publish("e", "k", mandatory=True), 0.1],
    "a local random exchange with a key": [RANDOM, queue(), bind(queue="q", exchange="e", routing_key="k")],
    "a local random exchange of a quorum queue": [RANDOM, quorum(), bind(queue="q", exchange="e")],
    "a local random exchange of an exchange": [
        RANDOM, exchange(exchange="e1"), Exchange.Bind(destination="e1", source="e"),
    ],
}  # fmt: skip
_LIMITS: dict[str, list[Any]] = {
    "of a channel, then its consumers": [queue(), SHARED, consume("c"), consume("d"), *three(), 0.1],
    "of a channel, after its consumer": [queue(), consume("c"), SHARED, *three(), 0.1],
    "of a channel, then of consumers": [
        queue(), SHARED, Basic.Qos(prefetch_count=2), consume("c"), *three(), 0.1,
    ],
    "of consumers, then of a channel": [
        queue(), Basic.Qos(prefetch_count=1), Basic.Qos(prefetch_count=2, global_=True), consume("c"),
        *three(),
        0.1,
    ],
    "of a channel, and a quorum queue": [quorum(), SHARED, consume("c"), *three(), 0.1],
}  # fmt: skip
_OTHERS: dict[str, list[Any]] = {
    "an address for replies that is none": [publish("", f"{REPLY_TO}.none", b"1", mandatory=True), 0.1],
    "the name for all addresses": [publish("", REPLY_TO, b"1", mandatory=True), 0.1],
    "tx commits to a queue that is gone": [
        queue(), Tx.Select(), publish("", "q", b"1"), 0.05, On(2, delete(queue="q")), Tx.Commit(), 0.1,
    ],
    "tx commits to queues one of which is gone": [
        queue(), queue("q1"), bind(queue="q", exchange="amq.fanout"), bind(queue="q1", exchange="amq.fanout"),
        Tx.Select(), publish("amq.fanout", "", b"1"), 0.05, On(2, delete(queue="q")), Tx.Commit(),
        On(2, passive("q1")),
    ],
}  # fmt: skip

OF_VERSIONS: dict[str, list[Any]] = {
    f"{group}: {name}": steps
    for group, probes in (("exchanges", _EXCHANGES), ("limits", _LIMITS), ("others", _OTHERS))
    for name, steps in probes.items()
}
