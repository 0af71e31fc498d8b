"""Probes of streams: what they refuse, where consumers begin, and how much they get."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from declaring_probes import each
from probes import (
    Basic,
    Channel,
    Confirm,
    Queue,
    bind,
    consume,
    declare,
    delete,
    get,
    passive,
    queue,
)
from probing import On, publish
from quorum_probes import durable

STREAM = {"x-queue-type": "stream"}
WRITTEN = 0.3  # seconds in which a log is written, and read
LIMITED = Basic.Qos(prefetch_count=10)


def stream(name: str = "q", **arguments: Any) -> Any:
    """Return a declaration of a stream with ``x-`` arguments; their dashes are underscores here."""
    return durable(queue(name, queue_type="stream", **arguments))


# Three messages, each of which is written apart.
_THREE = [step for body in (b"1", b"2", b"3") for step in (publish("", "q", body), WRITTEN)]


def read_from(offset: Any, *later: Any) -> list[Any]:
    """Return steps with a consumer of a stream that has three messages, and of more to come."""
    return [
        stream(), *_THREE, LIMITED, consume("c", arguments={"x-stream-offset": offset}), WRITTEN,
        publish("", "q", b"4"), WRITTEN, *later,
    ]  # fmt: skip


_DECLARING: dict[str, list[Any]] = {
    "a stream, and the same again": [stream(), stream(), passive()],
    "a stream that does not stay": [queue(queue_type="stream")],
    "an exclusive stream": [declare(queue="q", durable=True, exclusive=True, arguments=STREAM)],
    "a stream that deletes itself": [declare(queue="q", durable=True, auto_delete=True, arguments=STREAM)],
    "arguments of other queues": each(
        stream(message_ttl=5), stream(max_length=5), stream(dead_letter_exchange=""),
    ),
    "further arguments of other queues": each(
        stream(single_active_consumer=True), stream(max_priority=5), stream(delivery_limit=5),
    ),
    "arguments of further queues": each(
        stream(overflow="drop-head"), stream(expires=5000), stream(quorum_initial_group_size=1),
    ),
    "an age": each(stream(max_age="1D"), stream("q1", max_age="1"), stream("q2", max_age=5)),
    "sizes": each(
        stream(max_length_bytes=1000000), stream("q1", stream_max_segment_size_bytes=-1),
        stream("q2", initial_cluster_size=0),
    ),
    "the type differs": [stream(), durable(queue())],
    "an argument differs": [stream(max_age="1D"), stream(max_age="2D")],
    "get": [stream(), get()],
    "purge": [stream(), Queue.Purge(queue="q")],
    "delete if unused": [stream(), delete(queue="q", if_unused=True)],
    "delete if empty": [stream(), delete(queue="q", if_empty=True)],
    "delete if used": [stream(), LIMITED, consume("c"), delete(queue="q", if_unused=True)],
    "delete if not empty": [stream(), publish("", "q"), WRITTEN, delete(queue="q", if_empty=True)],
    "delete tells how many": [stream(), *_THREE, delete(queue="q")],
    "delete tells consumers": [stream(), LIMITED, consume("c"), On(2, delete(queue="q")), WRITTEN],
    "a consumer without a limit": [stream(), consume("c")],
    "a consumer without acks": [
        stream(), LIMITED, consume("c", no_ack=True), publish("", "q", b"1"), WRITTEN,
    ],
    "a consumer without acks and a limit": [
        stream(), consume("c", no_ack=True), publish("", "q", b"1"), WRITTEN,
    ],
    "a limit of a channel": [stream(), Basic.Qos(prefetch_count=5, global_=True), consume("c")],
    "an exclusive consumer, then another": [
        stream(), LIMITED, consume("c", exclusive=True), On(2, LIMITED), On(2, consume("d")), passive(),
    ],
    "a priority of a consumer": [stream(), LIMITED, consume("c", arguments={"x-priority": 5})],
    "an offset of other types": [
        stream(), *each(LIMITED, LIMITED, LIMITED), *each(
            consume("c", arguments={"x-stream-offset": "sometime"}),
            consume("c", arguments={"x-stream-offset": 1.5}),
            consume("c", arguments={"x-stream-offset": True}),
        ),
    ],
    "an offset below zero": [stream(), LIMITED, consume("c", arguments={"x-stream-offset": -1})],
}  # fmt: skip

_READING: dict[str, list[Any]] = {
    "from where nothing is said": [
        stream(), *_THREE, LIMITED, consume("c"), WRITTEN, publish("", "q", b"4"), WRITTEN,
    ],
    "from the first": read_from("first"),
    "from the last": read_from("last"),
    "from the next": read_from("next"),
    "from a number": read_from(1),
    "from a number that is not there yet": read_from(3),
    "from a number beyond": read_from(9),
    "from a time before": read_from(datetime(2020, 1, 1, tzinfo=UTC)),
    "from a time to come": read_from(datetime(2100, 1, 1, tzinfo=UTC)),
    "from an hour ago": read_from("1h"),
    "two consumers": [
        stream(), *_THREE, LIMITED, consume("c", arguments={"x-stream-offset": "first"}), WRITTEN,
        consume("d", arguments={"x-stream-offset": "first"}), WRITTEN,
    ],
    "as much as the limit": [
        stream(), *_THREE, Basic.Qos(prefetch_count=1),
        consume("c", arguments={"x-stream-offset": "first"}), WRITTEN, Basic.Ack(1), WRITTEN,
    ],
    "what goes back counts as read": [
        stream(), *_THREE, Basic.Qos(prefetch_count=1),
        consume("c", arguments={"x-stream-offset": "first"}), WRITTEN, Basic.Nack(1, False, True), WRITTEN,
        Basic.Reject(2, False), WRITTEN,
    ],
    "what is left is read again": [
        stream(), *_THREE, On(2, LIMITED),
        On(2, consume("c", arguments={"x-stream-offset": "first"})), WRITTEN, On(2, Channel.Close(200)),
        LIMITED,
        consume("c", arguments={"x-stream-offset": "first"}), WRITTEN,
    ],
    "recover": [
        stream(), *_THREE, LIMITED, consume("c", arguments={"x-stream-offset": "first"}), WRITTEN,
        Basic.Recover(True), WRITTEN,
    ],
    "headers and properties": [
        stream(), publish("", "q", b"1", headers={"a": 1}, priority=5, expiration="50"), WRITTEN, LIMITED,
        consume("c", arguments={"x-stream-offset": "first"}), WRITTEN,
    ],
    "by an exchange, confirmed": [
        stream(), bind(queue="q", exchange="amq.topic", routing_key="a.#"), Confirm.Select(),
        publish("amq.topic", "a.b", b"1"), WRITTEN, LIMITED,
        consume("c", arguments={"x-stream-offset": "first"}), WRITTEN,
    ],
    "declared again with consumers": [
        stream(), LIMITED, consume("c"), passive(), Basic.Cancel("c"), passive(),
    ],
}  # fmt: skip

STREAMS: dict[str, list[Any]] = {
    f"{group}: {name}": steps
    for group, probes in (("streams declared", _DECLARING), ("streams read", _READING))
    for name, steps in probes.items()
}
