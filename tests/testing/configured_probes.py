"""Probes of a node with settings: times for deliveries, denied features, a usual type of queues, a user."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from permission_probes import PERMISSIONS, definitions
from probes import Basic, consume, declare, get, passive, queue, three
from probing import Late, On, Raw, publish
from quorum_probes import durable, quorum
from support.broker import started

TIMEOUT = 1.5  # seconds
TERMS = "{channel_tick_interval, 500}"
SETTINGS = {"3.10": f"consumer_timeout = {TIMEOUT * 1000:.0f}"}  # lines of rabbitmq.conf
SETTINGS["4.0"] = SETTINGS["4.3"] = "\n".join(
    [
        SETTINGS["3.10"],
        "default_queue_type = quorum",
        "deprecated_features.permit.global_qos = false",
        "deprecated_features.permit.transient_nonexcl_queues = false",
    ]
)
OPTIONS: dict[str, dict[str, Any]] = {"3.10": {"consumer_timeout": TIMEOUT}}  # of a broker for tests
OPTIONS["4.0"] = OPTIONS["4.3"] = {
    **OPTIONS["3.10"], "default_queue_type": "quorum", "denied": ["global_qos", "transient_nonexcl_queues"],
}  # fmt: skip
LONG = Late(4)  # what takes so long is late
LIMITED = Basic.Qos(prefetch_count=1)
CLASSIC = durable(queue(queue_type="classic"))
STAYS = declare(queue="q", durable=True)
_ONE_LATE = [quorum(), LIMITED, consume("c"), publish("", "q", b"1"), 0.1, LONG]

_LATE: dict[str, list[Any]] = {
    "of a classic queue": [CLASSIC, consume("c"), *three(), 0.1, LONG, passive()],
    "of a quorum queue": [quorum(), consume("c"), *three(), 0.1, LONG, passive()],
    "of a classic queue, fetched": [CLASSIC, *three(), 0.1, get(no_ack=False), LONG, On(2, passive())],
    "of a quorum queue, fetched": [quorum(), *three(), 0.1, get(no_ack=False), LONG, On(2, passive())],
    "in time": [quorum(), consume("c"), *three(), 0.1, Basic.Ack(3, True), 0.1, LONG, passive()],
    "in the time of the queue": [
        quorum(consumer_timeout=60_000), consume("c"), *three(), 0.1, LONG, passive(),
    ],
    "in the time of a classic queue": [
        durable(queue(queue_type="classic", consumer_timeout=60_000)), On(2, passive()), On(2, consume("c")),
        *three(), 0.1, LONG, On(2, passive()),
    ],
    "in the time of the consumer": [
        quorum(), consume("c", arguments={"x-consumer-timeout": 60_000}), *three(), 0.1, LONG, passive(),
    ],
    "another consumer gets it": [
        quorum(), LIMITED, consume("c"), publish("", "q", b"1"), 0.1, LONG, On(2, consume("d")), 0.1,
        On(3, passive()),
    ],
    "settled later": [*_ONE_LATE, Raw(Basic.Ack(1)), 0.2, passive()],
    "settled later, one of several": [
        quorum(), consume("c"), *three(), 0.1, LONG, Raw(Basic.Ack(1)), 0.2, publish("", "q", b"4"), 0.1,
        passive(),
    ],
    "settled later, all of several": [
        quorum(), Basic.Qos(prefetch_count=2), consume("c"), *three()[:2], 0.1, LONG,
        Raw(Basic.Ack(2, True)), 0.2, passive(),
    ],
    "ended later": [*_ONE_LATE, Raw(Basic.Nack(1, False, False)), 0.2, passive()],
    "sent back later": [*_ONE_LATE, Raw(Basic.Nack(1, False, True)), 0.2, passive()],
    "sent back later, by reject": [*_ONE_LATE, Raw(Basic.Reject(1, True)), 0.2, passive()],
    "cancelled by the client as well": [
        *_ONE_LATE, Basic.Cancel("c"), passive(), consume("d"), 0.1, Raw(Basic.Ack(1)), 0.1, passive(),
    ],
    "counts for no limit": [
        quorum(delivery_limit=0), LIMITED, consume("c"), publish("", "q", b"1"), 0.1, LONG, passive(),
    ],
}  # fmt: skip
_DENIED: dict[str, list[Any]] = {
    "a limit of a channel": [
        CLASSIC, Basic.Qos(prefetch_count=1, global_=True), consume("c"), consume("d"),
        *[step for body in (b"1", b"2") for step in (publish("", "q", body), 0.05)],
    ],
    "a queue that neither stays nor is exclusive": [declare(queue="q")],
    "one that deletes itself": [declare(queue="q", auto_delete=True)],
    "one that is exclusive": [declare(queue="q", exclusive=True)],
    "one that is not there": [passive()],
    "one that is there": [CLASSIC, declare(queue="q", arguments={"x-queue-type": "classic"})],
}  # fmt: skip
_USUAL: dict[str, list[Any]] = {
    "of a queue that stays": [STAYS, STAYS, durable(queue(queue_type="classic"))],
    "the same again": [STAYS, quorum()],
    "of a queue that is classic": [CLASSIC, STAYS],
    "of an exclusive queue": [declare(queue="q", durable=True, exclusive=True)],
    "of a queue that deletes itself": [declare(queue="q", durable=True, auto_delete=True)],
    "what it counts": [
        STAYS, publish("", "q"), 0.1, get(no_ack=False), Basic.Reject(1, True), 0.1, get(no_ack=False),
    ],
    "what it lacks": [durable(queue(max_priority=4))],
}  # fmt: skip

CONFIGURED: dict[str, list[Any]] = {
    f"{group}: {name}": steps
    for group, probes in (("late", _LATE), ("denied", _DENIED), ("the usual type", _USUAL))
    for name, steps in probes.items()
} | PERMISSIONS


@contextmanager
def configured(like: str) -> Iterator[str]:
    """Give the URL of a node with the settings of a version, which has to be the one that is started."""
    with tempfile.TemporaryDirectory() as folder:
        users = Path(folder, "users.json")
        users.write_text(definitions(), encoding="utf-8")
        settings = f"{SETTINGS[like]}\nload_definitions = {users}"
        with started(settings=settings, terms=TERMS) as node:
            yield node.url
