"""Quorum queues: deliveries that count, what comes back first, and the priorities of messages."""

from __future__ import annotations

from collections.abc import Container
from itertools import count
from typing import TYPE_CHECKING, Any

from .. import FieldValue, replace
from .. import reply_errors as refused
from . import messages as states
from .arguments import QUORUM
from .lines import Lines
from .messages import Content, Entry, Message, by_name
from .queues import Queue

if TYPE_CHECKING:
    from .channels import Subscription
    from .versions import Version

IN_FRONT = -(1 << 62)  # where those stand that have come back


class QuorumQueue(Queue):
    """A queue that several nodes would have, of which this broker is one."""

    kind = QUORUM
    tells = True
    heeds_channels = False

    def _begin(self, declared: Any) -> None:
        refuse_properties(self.host.where(self.name), declared)
        settings, version = self.settings, self.host.version
        if settings.overflow == "reject-publish-dlx":  # which it lacks
            settings.overflow = "drop-head"
        self._limit = _limit(settings.delivery_limit, version)
        self._goes_first = self._limit is not None or not version.limited_alone_first
        self._returned = count(IN_FRONT)
        self._suspended: set[Subscription] = set()

    def _make_ready(self) -> Lines:
        return Lines(self.host.version.priorities)

    def _count_on(self, entry: Entry) -> None:
        super()._count_on(entry)
        entry.redelivered = entry.message.carried[0] > 0

    def _has_no_room(self, message: Message) -> bool:
        return self._is_full(0, 0)  # it takes one too many

    def _line_up_again(self, entry: Entry, is_lost: bool) -> None:
        """Place a message in front, unless it has come back too often."""
        if self._limit is not None and entry.failures > self._limit:
            self._die(entry, states.DELIVERY_LIMIT)
            return
        entry.place = next(self._returned if self._goes_first or is_lost else self._positions)
        self.ready.add(entry)

    def _moved_on(self) -> None:
        self.host.clock.call_soon(self._expire)  # it looks later

    def acknowledge(self, entry: Entry) -> None:
        """End a message that was delivered, and has arrived."""
        super().acknowledge(entry)
        self._expire()

    def get(self) -> Entry | None:
        """Take the first message away, for someone who asks, unless a single consumer is to have all.

        Raises:
            AmqpResourceLocked: it is.
        """
        if self.settings.single_active_consumer:
            raise refused.AmqpResourceLocked(
                f"cannot obtain access to locked {self.host.where(self)}. basic.get operations are not "
                f"supported by {self.host.version.told_kind} queues with single active consumer"
            )
        return super().get()

    def content(self, entry: Entry, fetched: bool = False) -> Message | Content:
        """Return what is sent of a message: its headers tell how often it has come back."""
        version, message = self.host.version, entry.message
        failures, acquired = message.carried
        told = {}
        if (failures := entry.failures or failures) or (fetched and version.tells_none):
            told["x-delivery-count"] = FieldValue("l", failures)
        if version.tells_acquired and (acquired := entry.acquired or acquired):
            told["x-acquired-count"] = FieldValue("l", acquired)
        if not told:
            return message
        sent = message.decoded()
        return Content(replace(sent, headers=by_name({**(sent.headers or {}), **told})), message.body)

    @property
    def consumer_count(self) -> int:
        """How many consumers it says it has: also who has left, fetched or been late, and not settled."""
        held = [entry.consumer for entry in self.unacknowledged]
        return len({*self.consumers, *self._suspended, *held} - {None}) + held.count(None)

    def suspend(self, consumer: Subscription) -> None:
        """Deliver no more to a consumer for now; it is counted."""
        super().suspend(consumer)
        self._suspended.add(consumer)

    def resume(self, consumer: Subscription) -> None:
        """Deliver to a consumer again; `dispatch` is the caller's."""
        self._suspended.discard(consumer)
        super().resume(consumer)

    def remove_consumers(self, gone: Container[Subscription]) -> None:
        """Deliver no more to consumers."""
        super().remove_consumers(gone)
        self._suspended = {consumer for consumer in self._suspended if consumer not in gone}

    def check_consumer(self, method: Any, prefetch: int, is_limited: bool) -> None:
        """Refuse a consumer where its channel has a limit for all; one that is to be alone is as others."""
        if is_limited:
            raise refused.AmqpNotImplemented(f"{self.host.where(self)} does not support global qos")

    def check_delete(self, if_unused: bool, if_empty: bool) -> int:
        """Return how many messages it says it has; it does not look at them before it is deleted."""
        for name, is_asked in (("if-unused", if_unused), ("if-empty", if_empty)):
            if is_asked:
                raise refused.AmqpNotImplemented(
                    f"cannot delete {self.host.where(self)}. queue.delete operations with {name} flag set "
                    "are not supported by quorum queues"
                )
        return len(self.ready)


def refuse_properties(where: str, declared: Any) -> None:
    """Refuse a queue that does not stay, or is not for all: a replicated one has to.

    Raises:
        AmqpPreconditionFailed: it is so.
    """
    properties = {
        "auto-delete": declared.auto_delete,
        "exclusive-owner": declared.exclusive,
        "non-durable": not declared.durable,
    }
    for name, is_there in properties.items():
        if is_there:
            raise refused.AmqpPreconditionFailed(f"invalid property '{name}' for {where}")


def _limit(asked: Any, version: Version) -> int | None:
    """Return how often a message may come back; None for ever."""
    if not isinstance(asked, int):
        return version.delivery_limit
    return None if asked < 0 and version.below_none_is_no_limit else asked


__all__ = ["QuorumQueue", "refuse_properties"]
