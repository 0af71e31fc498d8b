"""Streams: messages that stay, and consumers that read on from where they ask."""

from __future__ import annotations

from collections.abc import Container, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from .. import FieldValue, replace
from .. import reply_errors as refused
from . import messages as states
from .arguments import NEVER, OFFSET, STREAM, age
from .messages import Content, Entry, Message, by_name
from .queues import Queue
from .quorum import refuse_properties
from .versions import CrashedError

if TYPE_CHECKING:
    from .channels import Subscription

FIRST, LAST, NEXT = "first", "last", "next"
TRANSIENT = 1  # a delivery mode


class Log:
    """The messages of a stream, from the first."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._times: list[datetime] = []
        self.octets = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def add(self, entry: Entry, time: datetime) -> None:
        """Add a message that has come at a time."""
        self._entries.append(entry)
        self._times.append(time)
        self.octets += len(entry.message.body)

    def at(self, offset: int) -> Message | None:
        """Return the message at an offset; None where it has not come."""
        return self._entries[offset].message if offset < len(self._entries) else None

    def since(self, time: datetime) -> int:
        """Return the offset of the first message that has come at a time or later, or else of the next."""
        return next((offset for offset, came in enumerate(self._times) if came >= time), len(self))

    def take(self) -> Entry:
        """Take the last message away."""
        entry = self._entries.pop()
        self.octets -= len(entry.message.body)
        return entry


class StreamQueue(Queue):
    """A queue whose messages stay, and are read by each consumer."""

    kind = STREAM
    tells = True
    heeds_channels = False
    ready: Log  # type: ignore[assignment]

    def _begin(self, declared: Any) -> None:
        refuse_properties(self.host.where(self.name), declared)
        self._places: dict[Subscription, int] = {}  # of what each consumer reads next

    def _make_ready(self) -> Any:
        return Log()

    # -- messages

    def put(self, message: Message) -> bool:
        """Take a message."""
        message.settled[self.name] = states.READY
        self.host.store.taken(message.size)
        self.ready.add(Entry(message, self, len(self.ready), NEVER), self.host.clock.now())
        self.dispatch()
        return True

    def dispatch(self) -> None:
        """Deliver to each consumer what it has room for."""
        for consumer in list(self.consumers):
            while consumer in self._places and consumer.takes_more():
                place = self._places[consumer]
                message = self.ready.at(place)
                if message is None:
                    break
                self._places[consumer] = place + 1
                consumer.deliver(Entry(message, self, place, NEVER))

    def content(self, entry: Entry, fetched: bool = False) -> Message | Content:
        """Return what is sent of a message: its headers tell its offset."""
        sent = entry.message.decoded()
        told: dict[str, Any] = {
            "headers": by_name({**(sent.headers or {}), OFFSET: FieldValue("l", entry.place)})
        }
        if self.host.version.streams_tell_mode and sent.delivery_mode is None:
            told["delivery_mode"] = TRANSIENT
        return Content(replace(sent, **told), entry.message.body)

    def get(self) -> Entry | None:
        """Refuse basic.get.

        Raises:
            AmqpNotImplemented: always.
        """
        raise refused.AmqpNotImplemented(f"basic.get not supported by stream queues {self.host.where(self)}")

    def purge(self) -> int:
        """Refuse queue.purge.

        Raises:
            AmqpNotImplemented: always.
        """
        raise refused.AmqpNotImplemented(
            f"queue.purge not supported by stream queues {self.host.where(self)}"
        )

    # -- deliveries that are settled: they are read, whatever is said of them

    def acknowledge(self, entry: Entry) -> None:
        """Take note that a message was read."""

    def give_back(self, entry: Entry) -> None:
        """Take note that a channel has ended."""

    def check_recover(self) -> None:
        """Fail at basic.recover, where the version does.

        Raises:
            CrashedError: it does.
        """
        if not self.host.version.streams_take_nacks:
            raise CrashedError

    def discard(self, entry: Entry) -> None:
        """Take note of basic.nack.

        Raises:
            AmqpNotImplemented: of a version that takes acknowledgements alone.
        """
        if not self.host.version.streams_take_nacks:
            text = f"basic.nack and basic.reject not supported by stream queues {self.host.where(self)}"
            raise refused.AmqpNotImplemented(text)

    reject = release = requeue = discard

    # -- consumers

    @property
    def consumer_count(self) -> int:
        """How many consumers it says it has: none, as long as others do not look."""
        return 0

    def check_consumer(self, method: Any, prefetch: int, is_limited: bool) -> None:
        """Refuse a consumer without a limit of its own, or with automatic acknowledgements."""
        where, version = self.host.where(self), self.host.version
        if not prefetch:
            whose = f"stream {where}" if version.names_streams else f"'{where}'"
            raise refused.AmqpPreconditionFailed(f"consumer prefetch count is not set for {whose}")
        if method.no_ack:
            kind = "stream" if version.names_streams else "stream queues"
            raise refused.AmqpNotImplemented(f"automatic acknowledgement not supported by {kind} {where}")
        self._start(method.arguments or {})

    def add_consumer(self, consumer: Subscription, arguments: dict[str, Any]) -> None:
        """Let a consumer read from where its arguments say; `dispatch` is the caller's."""
        super().add_consumer(consumer, arguments)
        self._places[consumer] = self._start(arguments)

    def remove_consumers(self, gone: Container[Subscription]) -> None:
        """Deliver no more to consumers."""
        super().remove_consumers(gone)
        self._places = {consumer: self._places[consumer] for consumer in self.consumers}

    def _start(self, arguments: dict[str, Any]) -> int:
        """Return the offset from which arguments say to read.

        Raises:
            AmqpPreconditionFailed, CrashedError: they do not say so in a way that is known.
        """
        match arguments.get(OFFSET, NEXT):
            case "next":
                return len(self.ready)
            case "first":
                return 0
            case "last":
                return max(len(self.ready) - 1, 0)
            case bool():
                raise CrashedError
            case int(number):
                return max(number, 0)
            case datetime() as time:
                return self.ready.since(time)
            case str(text):
                seconds = age(text)
                if seconds is not None:
                    return self.ready.since(self.host.clock.now() - timedelta(seconds=seconds))
                if self.host.version.checks_offsets:
                    raise refused.AmqpPreconditionFailed(
                        f"invalid arg '{OFFSET}' for {self.host.where(self)}: "
                        f'{{invalid_stream_offset_arg,{{longstr,<<"{text}">>}}}}'
                    )
        raise CrashedError

    def check_delete(self, if_unused: bool, if_empty: bool) -> int:
        """Return how many messages it says it has: none. It is deleted whatever is in it."""
        return 0


__all__ = ["StreamQueue"]
