"""Versions of RabbitMQ, and how they differ: `VERSIONS`, read where the behaviour is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

Like = Literal["3.10", "4.0", "4.3"]
REFUSED_SECRET = "New secret was refused by one of the backends"


@dataclass(frozen=True, slots=True)
class Version:
    """Holds what a version does, where others do something else. The defaults are those of 3.10.

    Attributes:
        told: the version in connection.start. It is not always the one compared with: clients look at it.
        delivery_limit: how often a message may come back to a quorum queue that sets no limit; None for ever.
        released_counts: whether basic.nack and basic.recover count for that limit, as all else does.
        tells_acquired: whether ``x-acquired-count`` says how often a message has come back.
        tells_none: whether basic.get has an ``x-delivery-count`` of 0.
        limited_alone_first: whether what a client sends back stands first only where there is a limit.
        below_none_is_no_limit: whether a delivery limit below 0 is none; else nothing may come back.
        told_kind: the type of a quorum queue in one of its texts.
        priorities: of messages in quorum queues.
        counts_go_on: the types of queues from which a dead letter takes its counts to the next queue.
        counts_continue: whether that queue counts on from there.
        ends_count: whether basic.reject counts also where it ends a message.
        compares_types: whether a queue that is declared again has its type compared, and not the argument.
        reads_deaths: whether an ``x-death`` of the publisher is one.
        tells_last_death: whether ``x-last-death-*`` tell of the last one.
        keeps_cc: whether the header CC stays where a dead letter gets a key of its own.
        sorts: whether tables are sorted by name.
        unchecked: arguments of queues and consumers whose values are not looked at.
        queue_versions: values of ``x-queue-version``.
        classic_takes: further arguments of classic queues.
        unknown: arguments of queues that are not looked at.
        compares_ages: whether ages are compared as times.
        streams_tell_mode: whether a message of a stream that says no delivery mode has one.
        streams_take_nacks: whether basic.nack, basic.reject and basic.recover are taken for streams.
        names_streams: whether texts name a stream as such.
        checks_offsets: whether a text that is no offset is refused; else the connection fails.
        default_queue_type: of a queue that stays, where its declaration says none.
        queue_types: those that may be the default.
        denied: deprecated features that are not permitted.
        consumer_timeout: seconds in which a delivery is to be settled; None for any time.
        cancels_late: whether a quorum queue cancels a consumer that is late, and no other queue minds; else
            the channel is closed.
        deniable: those that may be.
        exchange_types: those that there are.
        wrong_type: the error for another type.
        compares_strictly: whether a headers exchange tells numbers, fractions and times apart.
        checks_modes: whether a delivery mode has to be one that there is.
        shares_limits: whether basic.qos with ``global`` limits all consumers of a channel together.
        routes_early: whether a message goes to the queues that there are when it comes, and not at tx.commit.
        misses_queues: whether tx.commit closes the connection for one of them that is gone.
        letters_are_no_replies: whether dead letters do not reach addresses for direct replies.
        routes_replies: whether such addresses are as queues: they take messages when their channel is gone.
        measures_bodies: whether a body that is longer than announced is named as such.
        max_message_size: octets of the largest body.
        least_frame_max: that a client may ask for.
        names_access: whether texts say which access is refused.
        checks_passive: whether a passive declaration needs some access.
        ends_expired: whether a connection ends with its token; else what it does is refused.
        wrong_secret: the text about a secret that is none.
    """

    told: str = "3.13.0"
    delivery_limit: int | None = None
    released_counts: bool = True
    tells_acquired: bool = False
    tells_none: bool = True
    limited_alone_first: bool = True
    below_none_is_no_limit: bool = False
    told_kind: str = "quorum"
    priorities: Literal["none", "two", "strict"] = "none"
    counts_go_on: tuple[str, ...] = ()
    counts_continue: bool = False
    ends_count: bool = False
    compares_types: bool = False
    reads_deaths: bool = True
    tells_last_death: bool = False
    keeps_cc: bool = False
    sorts: bool = False
    unchecked: frozenset[str] = frozenset()
    queue_versions: tuple[int, ...] = (1, 2)
    classic_takes: tuple[str, ...] = ()
    unknown: frozenset[str] = frozenset({"x-consumer-timeout"})
    compares_ages: bool = False
    streams_tell_mode: bool = False
    streams_take_nacks: bool = False
    names_streams: bool = False
    checks_offsets: bool = False
    default_queue_type: str = "classic"
    queue_types: tuple[str, ...] = ("classic",)
    denied: frozenset[str] = frozenset()
    deniable: tuple[str, ...] = ()
    consumer_timeout: float | None = None
    cancels_late: bool = False
    exchange_types: tuple[str, ...] = ("direct", "fanout", "topic", "headers")
    wrong_type: str = "AmqpCommandInvalid"
    compares_strictly: bool = False
    checks_modes: bool = True
    shares_limits: bool = True
    routes_early: bool = False
    misses_queues: bool = False
    letters_are_no_replies: bool = False
    routes_replies: bool = False
    measures_bodies: bool = False
    max_message_size: int = 128 << 20
    least_frame_max: int = 4096
    names_access: bool = False
    checks_passive: bool = False
    ends_expired: bool = False
    wrong_secret: str = REFUSED_SECRET


_V3_10 = Version()
_V4_0 = replace(
    _V3_10,
    told="4.0.5",
    delivery_limit=20,
    tells_none=False,
    below_none_is_no_limit=True,
    priorities="two",
    counts_go_on=("quorum",),
    compares_types=True,
    reads_deaths=False,
    tells_last_death=True,
    keeps_cc=True,
    sorts=True,
    unchecked=frozenset({"x-cancel-on-ha-failover"}),
    classic_takes=("x-queue-leader-locator", "x-consumer-timeout"),
    unknown=frozenset(),
    streams_tell_mode=True,
    streams_take_nacks=True,
    names_streams=True,
    queue_types=("classic", "quorum", "stream"),
    deniable=("global_qos", "transient_nonexcl_queues"),
    exchange_types=(*_V3_10.exchange_types, "x-local-random"),
    wrong_type="AmqpPreconditionFailed",
    compares_strictly=True,
    checks_modes=False,
    routes_early=True,
    letters_are_no_replies=True,
    max_message_size=16 << 20,
    names_access=True,
)
_V4_3 = replace(
    _V4_0,
    told="4.3.6",
    released_counts=False,
    tells_acquired=True,
    limited_alone_first=False,
    told_kind='<<"quorum">>',
    priorities="strict",
    counts_go_on=("classic", "quorum"),
    counts_continue=True,
    ends_count=True,
    unchecked=frozenset({"x-cancel-on-ha-failover", "x-queue-mode"}),
    queue_versions=(2,),
    classic_takes=("x-queue-leader-locator",),
    cancels_late=True,
    compares_ages=True,
    checks_offsets=True,
    shares_limits=False,
    misses_queues=True,
    letters_are_no_replies=False,
    routes_replies=True,
    measures_bodies=True,
    least_frame_max=8192,
    checks_passive=True,
    ends_expired=True,
    wrong_secret="Secret update failed",
)
VERSIONS: dict[str, Version] = {"3.10": _V3_10, "4.0": _V4_0, "4.3": _V4_3}


class CrashedError(Exception):
    """Something at which RabbitMQ fails: the connection ends with 541, which names no method."""


def version_of(
    like: str,
    *,
    denied: Collection[str] = (),
    default_queue_type: str = "classic",
    consumer_timeout: float | None = None,
) -> Version:
    """Return what a version does, with options of its own.

    Raises:
        ValueError: it is none of those that are known, or lacks an option.
    """
    if like not in VERSIONS:
        raise ValueError(f"like must be one of {', '.join(map(repr, VERSIONS))}, not {like!r}")
    version = VERSIONS[like]
    if unknown := set(denied) - set(version.deniable):
        raise ValueError(f"RabbitMQ {like} denies no feature {', '.join(sorted(map(repr, unknown)))}")
    if default_queue_type not in version.queue_types:
        raise ValueError(f"queues of RabbitMQ {like} are of no type {default_queue_type!r} by default")
    if consumer_timeout is not None and not consumer_timeout > 0:
        raise ValueError(f"consumer_timeout must be more than 0 seconds, or None, not {consumer_timeout!r}")
    return replace(
        version,
        denied=frozenset(denied),
        default_queue_type=default_queue_type,
        consumer_timeout=consumer_timeout,
    )


__all__ = ["VERSIONS", "CrashedError", "Like", "Version", "version_of"]
