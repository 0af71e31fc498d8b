"""Deliveries that are not settled in time: `look` is called now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._protocol.codes import PRECONDITION_FAILED
from .arguments import QUORUM
from .messages import Entry

if TYPE_CHECKING:
    from .channels import Channel, Subscription

LOOK_SECONDS = 60.0  # from one look to the next, at most
TEXT = (
    "PRECONDITION_FAILED - delivery acknowledgement on channel {} timed out. Timeout value used: {} ms. "
    "This timeout value can be configured, see consumers doc guide to learn more"
)


def look(channel: Channel, now: float) -> None:
    """Do what follows for the deliveries of a channel that were to be settled by now.

    Times are known by the looks alone, so that a delivery costs nothing more: one is as old as the first look
    that has seen it.
    """
    marks = channel.marks
    marks.append((now, channel.last_tag))
    first = next(iter(channel.held), channel.last_tag + 1)
    while marks and marks[0][1] < first:
        marks.popleft()
    overdue = {}
    place = 0
    for tag, entry in channel.held.items():
        while place < len(marks) and marks[place][1] < tag:
            place += 1
        timeout = _timeout(channel, entry)
        if timeout is not None and place < len(marks) and now - marks[place][0] >= timeout:
            overdue[tag] = timeout
    if not overdue:
        return
    fetched = any(channel.held[tag].consumer is None for tag in overdue)
    if channel.host.version.cancels_late and not fetched:
        _cancel(channel, list(overdue))
    else:
        shown = -1 if channel.host.version.cancels_late else round(next(iter(overdue.values())) * 1000)
        channel.session.close_channel(channel.number, PRECONDITION_FAILED, TEXT.format(channel.number, shown))


def _timeout(channel: Channel, entry: Entry) -> float | None:
    """Return the seconds in which a delivery is to be settled; None for any time."""
    version, queue = channel.host.version, entry.queue
    if version.cancels_late and queue.kind != QUORUM:
        return None
    own = None if entry.consumer is None else entry.consumer.timeout
    for seconds in (own, queue.settings.consumer_timeout):
        if seconds is not None:
            return seconds
    return version.consumer_timeout


def _cancel(channel: Channel, tags: list[int]) -> None:
    """Put deliveries back, and tell their consumers that they are cancelled, which they are not quite."""
    consumers: dict[Subscription, None] = {}
    for tag in tags:
        entry = channel.held.pop(tag)
        consumer = entry.consumer
        if consumer is not None:
            consumer.held -= 1
            channel.held_by_consumers -= 1
            channel.late[tag] = consumer
            consumers[consumer] = None
        entry.queue.release(entry)
    session = channel.session
    for consumer in consumers:
        consumer.queue.suspend(consumer)
        if session.can("consumer_cancel_notify"):
            method = session.amqp.Basic.Cancel(consumer.tag, True)
            # By its octets: for the connection, which is to deliver to it later, the consumer stays.
            session.send_octets(session.amqp.encode_method(channel.number, method))
    for consumer in consumers:
        consumer.queue.dispatch()


def settle(channel: Channel, tag: int, is_done: bool) -> None:
    """Take note that a delivery was settled too late: with its last one a consumer goes on.

    Args:
        channel, tag: of the delivery.
        is_done: whether it was; it may have been sent back.
    """
    if not is_done or tag not in channel.late:
        return
    consumer = channel.late.pop(tag)
    if consumer not in channel.late.values() and channel.consumers.get(consumer.tag) is consumer:
        consumer.queue.resume(consumer)
        consumer.queue.dispatch()


__all__ = ["LOOK_SECONDS", "look", "settle"]
