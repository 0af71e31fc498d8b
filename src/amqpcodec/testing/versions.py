"""What versions of RabbitMQ do in different ways: `VERSIONS`, read where the behaviour is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Like = Literal["3.10", "4.0", "4.3"]


@dataclass(frozen=True, slots=True)
class Version:
    """Holds what a version does, where others do something else. The defaults are those of 3.10.

    Attributes:
        told: the version in connection.start. It is not always the one compared with: clients look at it.
        delivery_limit: how often a message may come back to a quorum queue that sets no limit; None for ever.
        released_counts: whether basic.nack and basic.recover count for that limit, as all else does.
        tells_acquired: whether ``x-acquired-count`` says how often a message has come back.
        tells_none: whether basic.get has an ``x-delivery-count`` of 0.
        limited_alone_first: whether what comes back stands before the others only where there is a limit.
        below_none_is_no_limit: whether a delivery limit below 0 is none; else nothing may come back.
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
    """

    told: str = "3.13.0"
    delivery_limit: int | None = None
    released_counts: bool = True
    tells_acquired: bool = False
    tells_none: bool = True
    limited_alone_first: bool = True
    below_none_is_no_limit: bool = False
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
    classic_takes=("x-queue-leader-locator",),
)
_V4_3 = replace(
    _V4_0,
    told="4.3.6",
    released_counts=False,
    tells_acquired=True,
    limited_alone_first=False,
    priorities="strict",
    counts_go_on=("classic", "quorum"),
    counts_continue=True,
    ends_count=True,
    unchecked=frozenset({"x-cancel-on-ha-failover", "x-queue-mode"}),
    queue_versions=(2,),
)
VERSIONS: dict[str, Version] = {"3.10": _V3_10, "4.0": _V4_0, "4.3": _V4_3}


def version_of(like: str) -> Version:
    """Return what a version does.

    Raises:
        ValueError: it is none of those that are known.
    """
    if like not in VERSIONS:
        raise ValueError(f"like must be one of {', '.join(map(repr, VERSIONS))}, not {like!r}")
    return VERSIONS[like]


__all__ = ["VERSIONS", "Like", "Version", "version_of"]
