"""Probes of quorum queues: what they refuse, which deliveries count, and in which order messages come."""

from __future__ import annotations

from typing import Any

from declaring_probes import each
from probes import (
    Basic,
    Channel,
    Confirm,
    Queue,
    Tx,
    bind,
    consume,
    declare,
    delete,
    get,
    queue,
    three,
)
from probing import On, Raw, publish

QUORUM = {"x-queue-type": "quorum"}
SETTLED = 0.1  # seconds in which a replicated log is written, and read


def quorum(name: str = "q", **arguments: Any) -> Any:
    """Return a declaration of a quorum queue with ``x-`` arguments; their dashes are underscores here."""
    return durable(queue(name, queue_type="quorum", **arguments))


def durable(method: Any) -> Any:
    """Return a declaration of a queue that stays."""
    method.durable = True
    return method


def passive(name: str = "q") -> Any:
    return declare(queue=name, passive=True)


def went_back(*steps: Any, **arguments: Any) -> list[Any]:
    """Return steps with a message that has gone back to its queue in some way, and comes again."""
    return [quorum(**arguments), publish("", "q", b"1"), SETTLED, *steps, SETTLED, get(no_ack=False)]


def goes_round(times: int, back: Any, **arguments: Any) -> list[Any]:
    """Return steps with a message that is fetched, and goes back each time, until a queue drops it."""
    round_ = [step for tag in range(1, times + 1) for step in (get(no_ack=False), back(tag), 0.02)]
    return [
        quorum(**arguments), durable(queue("dead")), publish("", "q", b"1"), SETTLED, *round_,
        get(no_ack=False), get("dead"), passive(),
    ]  # fmt: skip


def rejected(tag: int) -> Any:
    return Raw(Basic.Reject(tag, True)) if tag < 0 else Basic.Reject(tag, True)


def nacked(tag: int) -> Any:
    return Basic.Nack(tag, False, True)


def recovered(tag: int) -> Any:
    return Basic.Recover(True)


LETTERS = {"dead_letter_exchange": "", "dead_letter_routing_key": "dead"}

_DECLARING: dict[str, list[Any]] = {
    "a queue, and the same again": [quorum(), quorum(), passive()],
    "a queue that does not stay": [queue(queue_type="quorum")],
    "an exclusive queue": [declare(queue="q", durable=True, exclusive=True, arguments=QUORUM)],
    "a queue that deletes itself": [declare(queue="q", durable=True, auto_delete=True, arguments=QUORUM)],
    "a queue that neither stays nor is shared": [declare(queue="q", exclusive=True, arguments=QUORUM)],
    "arguments of other queues": each(
        quorum(max_priority=5), quorum(queue_mode="lazy"), quorum(queue_version=2),
    ),
    "arguments of streams": each(
        quorum(max_age="1D"), quorum(initial_cluster_size=1), quorum(stream_max_segment_size_bytes=1),
    ),
    "a delivery limit": each(
        quorum(delivery_limit=-1), quorum("q1", delivery_limit="5"), quorum("q2", delivery_limit=0),
    ),
    "a delivery limit of less than none": each(quorum(delivery_limit=-2)),
    "a strategy of dead letters": each(
        quorum(dead_letter_strategy="at-most-once"), quorum("q1", dead_letter_strategy="x"),
        quorum("q2", dead_letter_strategy=5),
    ),
    "a size of the group": each(
        quorum(quorum_initial_group_size=1), quorum("q1", quorum_initial_group_size=0),
        quorum("q2", quorum_initial_group_size="1"),
    ),
    "a leader": each(
        quorum(queue_leader_locator="balanced"), quorum("q1", queue_leader_locator="x"),
        quorum("q2", queue_leader_locator="client-local"),
    ),
    "an overflow": each(
        quorum(overflow="reject-publish"), quorum("q1", overflow="reject-publish-dlx"),
        quorum("q2", overflow="x"),
    ),
    "lengths": each(
        quorum(max_length=-1), quorum("q1", max_length_bytes="5"), quorum("q2", max_in_memory_length=-1),
    ),
    "the type differs": [quorum(), durable(queue())],
    "the type of a queue is new": [durable(queue()), quorum()],
    "an argument differs": [quorum(delivery_limit=5), quorum(delivery_limit=6)],
    "of all arguments that differ one is named": each(
        quorum(message_ttl=1, expires=90_000, dead_letter_exchange="", overflow="drop-head"),
        quorum(message_ttl=2, expires=80_000, dead_letter_exchange="e", overflow="reject-publish"),
        quorum(message_ttl=2, expires=80_000, dead_letter_exchange="", overflow="reject-publish"),
    ),
    "an argument is missing": [quorum(delivery_limit=5), quorum()],
    "an argument is new": [quorum(), quorum(delivery_limit=5)],
    "delete if unused": [quorum(), delete(queue="q", if_unused=True)],
    "delete if empty": [quorum(), delete(queue="q", if_empty=True)],
    "delete if unused, of none": [delete(queue="q", if_unused=True)],
    "delete if used": [quorum(), consume("c"), delete(queue="q", if_unused=True)],
    "delete tells how many": [quorum(), *three(), SETTLED, delete(queue="q")],
    "delete tells consumers": [quorum(), consume("c"), On(2, delete(queue="q")), 0.2],
    "purge tells how many": [
        quorum(), *three(), SETTLED, get(no_ack=False), Queue.Purge(queue="q"), passive(),
    ],
    "a limit of a channel, then a consumer": [
        quorum(), Basic.Qos(prefetch_count=1, global_=True), consume("c"),
    ],
    "a consumer, then a limit of its channel": [
        quorum(), consume("c"), Basic.Qos(prefetch_count=1, global_=True), *three(), SETTLED,
    ],
    "a limit of a channel, then get": [
        quorum(), publish("", "q"), SETTLED, Basic.Qos(prefetch_count=1, global_=True), get(no_ack=False),
    ],
    "an exclusive consumer, then another": [quorum(), consume("c", exclusive=True), On(2, consume("d"))],
    "a consumer, then an exclusive one": [quorum(), consume("c"), On(2, consume("d", exclusive=True))],
    "a consumer of other queues": [quorum(), *each(consume("c", arguments={"x-stream-offset": "first"}))],
    "a bad priority of a consumer": [quorum(), consume("c", arguments={"x-priority": "high"})],
    "a consumer tag twice": [quorum(), consume("c"), Raw(consume("c")), SETTLED],
}  # fmt: skip

_COUNTS: dict[str, list[Any]] = {
    "by reject": went_back(get(no_ack=False), Basic.Reject(1, True)),
    "by nack": went_back(get(no_ack=False), Basic.Nack(1, False, True)),
    "by recover": went_back(get(no_ack=False), Basic.Recover(True)),
    "by the end of a channel": went_back(On(2, get(no_ack=False)), On(2, Channel.Close(200))),
    "by the end of the channel of a consumer": went_back(
        On(2, consume("c")), SETTLED, On(2, Channel.Close(200))
    ),
    "by nack of a consumer that has gone": went_back(
        consume("c"), SETTLED, Basic.Cancel("c"), SETTLED, Basic.Nack(1, False, True)
    ),
    "by reject, twice": went_back(
        get(no_ack=False), Basic.Reject(1, True), SETTLED, get(no_ack=False), Basic.Reject(2, True)
    ),
    "by nack, then by reject": went_back(
        get(no_ack=False), Basic.Nack(1, False, True), SETTLED, get(no_ack=False), Basic.Reject(2, True)
    ),
    "by recover, then by reject": went_back(
        get(no_ack=False), Basic.Recover(True), SETTLED, get(no_ack=False), Basic.Reject(2, True)
    ),
    "by a limit of one, reject": goes_round(3, rejected, delivery_limit=1, **LETTERS),
    "by a limit of one, nack": goes_round(3, nacked, delivery_limit=1, **LETTERS),
    "by a limit of one, recover": goes_round(3, recovered, delivery_limit=1, **LETTERS),
    "by a limit of none": goes_round(2, rejected, delivery_limit=0, **LETTERS),
    "by a limit that is no limit": goes_round(25, rejected, delivery_limit=-1, **LETTERS),
    "by the limit that each queue has": goes_round(22, rejected, **LETTERS),
    "by the limit that each queue has, nack": goes_round(22, nacked, **LETTERS),
    "by the limit that each queue has, recover": goes_round(22, recovered, **LETTERS),
    "what the publisher says counts for nothing": [
        quorum(delivery_limit=3),
        publish("", "q", b"1", headers={"x-delivery-count": 7, "x-acquired-count": 7, "a": 1}), SETTLED,
        get(no_ack=False), Basic.Reject(1, True), SETTLED, get(no_ack=False),
    ],
    "a letter of what has come back": [
        quorum(**LETTERS), durable(queue("dead")), publish("", "q", b"1"), SETTLED, get(no_ack=False),
        Basic.Reject(1, True), SETTLED, get(no_ack=False), Basic.Reject(2, False), SETTLED, get("dead"),
    ],
    "a letter of what was nacked": [
        quorum(**LETTERS), durable(queue("dead")), publish("", "q", b"1"), SETTLED, get(no_ack=False),
        Basic.Nack(1, False, False), SETTLED, get("dead"),
    ],
    "a letter from a quorum queue to another": [
        quorum(**LETTERS), quorum("dead"), publish("", "q", b"1"), SETTLED, get(no_ack=False),
        Basic.Reject(1, True), SETTLED, get(no_ack=False), Basic.Reject(2, False), SETTLED,
        get("dead", no_ack=False), Basic.Reject(3, True), SETTLED, get("dead", no_ack=False),
    ],
    "a letter of a classic queue": [
        durable(queue(**LETTERS)), quorum("dead"), publish("", "q", b"1"), SETTLED, get(no_ack=False),
        Basic.Reject(1, True), SETTLED, get(no_ack=False), Basic.Reject(2, False), SETTLED,
        get("dead", no_ack=False), Basic.Nack(3, False, True), SETTLED, get("dead", no_ack=False),
    ],
    "a letter of a classic queue, nacked": [
        durable(queue(**LETTERS)), quorum("dead"), publish("", "q", b"1"), SETTLED, get(no_ack=False),
        Basic.Nack(1, False, True), SETTLED, get(no_ack=False), Basic.Nack(2, False, False), SETTLED,
        get("dead", no_ack=False), Basic.Reject(3, True), SETTLED, get("dead", no_ack=False),
    ],
    "a letter of what a channel has lost": [
        durable(queue(**LETTERS)), durable(queue("dead")), publish("", "q", b"1"), SETTLED,
        On(2, get(no_ack=False)), On(2, Channel.Close(200)), SETTLED, get(no_ack=False),
        Basic.Nack(1, False, False), SETTLED, get("dead"),
    ],
    "a letter of what has expired after it came back": [
        durable(queue(message_ttl=100, **LETTERS)), durable(queue("dead")), publish("", "q", b"1"),
        get(no_ack=False), Basic.Reject(1, True), 0.4, get("dead"),
    ],
    "a consumer gets it again": [
        quorum(), consume("c"), publish("", "q", b"1"), SETTLED, Basic.Reject(1, True), SETTLED,
        Basic.Nack(2, False, True), SETTLED, Basic.Ack(3), SETTLED, passive(),
    ],
}  # fmt: skip

_ORDER: dict[str, list[Any]] = {
    "get": [
        quorum(), *three(), SETTLED, get(no_ack=False), get(no_ack=False), Basic.Ack(1), SETTLED, passive(),
    ],
    "get of an empty queue": [quorum(), get()],
    "get of a queue of a single active consumer": [quorum(single_active_consumer=True), get()],
    "requeue one by one": [
        quorum(), *three(), SETTLED, get(no_ack=False), get(no_ack=False), Basic.Nack(2, False, True),
        SETTLED,
        Basic.Nack(1, False, True), SETTLED, get(no_ack=False), get(no_ack=False), get(no_ack=False),
    ],
    "requeue in order": [
        quorum(), *three(), SETTLED, get(no_ack=False), get(no_ack=False), Basic.Nack(1, False, True),
        SETTLED,
        Basic.Nack(2, False, True), SETTLED, get(no_ack=False), get(no_ack=False), get(no_ack=False),
    ],
    "requeue one by one, by reject": [
        quorum(), *three(), SETTLED, get(no_ack=False), get(no_ack=False), Basic.Reject(2, True), SETTLED,
        Basic.Reject(1, True), SETTLED, get(no_ack=False), get(no_ack=False), get(no_ack=False),
    ],
    "requeue of all": [
        quorum(), *three(), SETTLED, get(no_ack=False), get(no_ack=False), Basic.Nack(0, True, True), SETTLED,
        get(no_ack=False), get(no_ack=False), get(no_ack=False),
    ],
    "requeue without a limit": [
        quorum(delivery_limit=-1), *three(), SETTLED, get(no_ack=False), get(no_ack=False),
        Basic.Nack(2, False, True), SETTLED, Basic.Nack(1, False, True), SETTLED,
        get(no_ack=False), get(no_ack=False), get(no_ack=False),
    ],
    "prefetch of a consumer": [
        quorum(), Basic.Qos(prefetch_count=2), consume("c"), *three(), 0.2, Basic.Ack(1), 0.2,
    ],
    "what needs no ack": [quorum(), consume("c", no_ack=True), *three(), 0.2, passive()],
    "consumers take turns": [
        quorum(), Basic.Qos(prefetch_count=2), consume("c"), SETTLED, consume("d"), SETTLED,
        *[step for body in (b"1", b"2", b"3") for step in (publish("", "q", body), SETTLED)],
    ],
    "priorities of consumers": [
        quorum(), Basic.Qos(prefetch_count=2), consume("c", arguments={"x-priority": 1}),
        consume("d", arguments={"x-priority": 10}), *three(), 0.2,
    ],
    "single active consumer": [
        quorum(single_active_consumer=True), Basic.Qos(prefetch_count=1), consume("c"), consume("d"),
        *three(), 0.2, Basic.Cancel("c"), 0.2, Basic.Ack(1), 0.2,
    ],
    "priorities of messages": [
        quorum(),
        *[publish("", "q", bytes([48 + each]), priority=each) for each in (0, 4, 5, 9, 1)], publish("",
        "q", b"none"),
        0.2, *[get()] * 7,
    ],
    "priorities of many messages": [
        quorum(),
        *[publish("", "q", b"low")] * 4, *[publish("", "q", b"high", priority=7)] * 4,
        0.2, *[get()] * 8,
    ],
    "priorities beyond those that there are": [
        quorum(), *[publish("", "q", str(each).encode(), priority=each) for each in (30, 31, 32, 33, 255)],
        0.2, *[get()] * 5,
    ],
    "confirms": [quorum(), Confirm.Select(), publish("", "q"), 0.2, publish("", "none"), 0.2],
    "length drops the head": [quorum(max_length=2), *three(), 0.2, get(), get(), get()],
    "octets drop the head": [
        quorum(max_length_bytes=2500), *[publish("", "q", body * 1000) for body in (b"1", b"2", b"3")], 0.5,
        passive(),
    ],
    "length refuses one too late": [
        quorum(max_length=1, overflow="reject-publish"), Confirm.Select(),
        *[step for body in (b"1", b"2", b"3") for step in (publish("", "q", body), 0.15)], passive(),
    ],
    "what goes back into a full queue": [
        quorum(max_length=1), publish("", "q", b"1"), SETTLED, get(no_ack=False), publish("", "q", b"2"),
        SETTLED,
        Basic.Nack(1, False, True), SETTLED, get(no_ack=False), get(no_ack=False),
    ],
    "what comes back, and a higher priority": [
        quorum(), publish("", "q", b"low"), publish("", "q", b"high", priority=7), SETTLED, get(no_ack=False),
        get(no_ack=False), publish("", "q", b"other", priority=9), SETTLED, Basic.Nack(0, True, True),
        SETTLED,
        get(no_ack=False), get(no_ack=False), get(no_ack=False),
    ],
    "turns of priorities": [
        quorum(), publish("", "q", b"1"), SETTLED, get(),
        *[publish("", "q", b"low")] * 3, *[publish("", "q", b"high", priority=7)] * 3, 0.2, *[get()] * 6,
    ],
    "what a channel has lost comes first": [
        quorum(delivery_limit=-1), *three(), SETTLED, On(2, get(no_ack=False)), On(2, Channel.Close(200)),
        SETTLED, get(no_ack=False), get(no_ack=False),
    ],
    "what a channel has lost comes first, without a limit": [
        quorum(), *three(), SETTLED, On(2, get(no_ack=False)), On(2, Channel.Close(200)), SETTLED,
        get(no_ack=False), get(no_ack=False),
    ],
    "requeue with a limit": [
        quorum(delivery_limit=5), *three(), SETTLED, get(no_ack=False), get(no_ack=False),
        Basic.Nack(2, False, True), SETTLED, Basic.Nack(1, False, True), SETTLED, *[get(no_ack=False)] * 3,
    ],
    "time to live after a message that lives on": [
        quorum(), publish("", "q", b"1"), publish("", "q", b"2", expiration="50"), 0.3, passive(),
        get(no_ack=False), SETTLED, passive(),
    ],
    "time to live, after a higher priority": [
        quorum(), publish("", "q", b"low", expiration="50"), publish("", "q", b"high", priority=7), 0.3,
        passive(), get(), SETTLED, get(),
    ],
    "a consumer that has left is counted until all is settled": [
        quorum(), consume("c"), *three(), SETTLED, Basic.Cancel("c"), SETTLED, passive(), Basic.Ack(0, True),
        SETTLED, passive(),
    ],
    "length drops the head, and it dies": [
        quorum(max_length=2, **LETTERS), durable(queue("dead")), *three(), 0.2, get("dead"), get("dead"),
    ],
    "time to live of a queue": [quorum(message_ttl=50), publish("", "q"), 0.3, get()],
    "time to live of a message": [
        quorum(), publish("", "q", b"1", expiration="50"), publish("", "q", b"2"), 0.3, get(), get(),
    ],
    "time to live, and it dies": [
        quorum(**LETTERS), durable(queue("dead")), publish("", "q", b"1", expiration="50"), 0.3, get(),
        SETTLED,
        get("dead"),
    ],
    "tx commits": [
        quorum(), Tx.Select(), publish("", "q", b"1"), SETTLED, passive(), Tx.Commit(), SETTLED, get(),
    ],
    "bound to an exchange": [
        quorum(), bind(queue="q", exchange="amq.direct", routing_key="k"), publish("amq.direct", "k", b"1"),
        SETTLED, get(), get(),
    ],
}  # fmt: skip

QUORUMS: dict[str, list[Any]] = {
    f"{group}: {name}": steps
    for group, probes in (
        ("quorum declared", _DECLARING), ("quorum counts", _COUNTS), ("quorum order", _ORDER),
    )
    for name, steps in probes.items()
}  # fmt: skip
