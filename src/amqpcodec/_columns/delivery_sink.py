"""The table `deliveries`: messages, and what became of them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from amqpcodec import _backend
from amqpcodec.capture import Fault

from .following_py import Message
from .message_sink import INCOMPLETE, MessageSink
from .open_message import OpenMessage
from .origins import NO_TIME, FrameOrigin
from .rows import fault_code
from .schemas import WAITS
from .steps import ANSWER, step_of
from .waits_py import digest

_FOLLOWED = ("connection.open", "connection.close-ok")


class DeliverySink(MessageSink):
    """One row a message that was published, delivered, got or returned, once it is known what became of it.

    Args:
        arguments, options: those of `MessageSink`.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.follower.settler.call = self.settle
        if self.decoding.waits or any(self.make.wants(column.name) for column in WAITS):
            self.follower.waits = _backend.load("amqpcodec._columns.waits", self.decoding.impl).Waits()

    def is_counted_only(self, method: Any) -> bool:
        """See `Sink.is_counted_only`."""
        return super().is_counted_only(method) and method.spec.name not in _FOLLOWED

    def fault(self, fault: Fault) -> None:
        """Count a fault; a break in a direction ends the contents that are open there."""
        self.interrupt(fault)
        self._count(fault_code(fault))

    def emit(self, content: OpenMessage) -> None:
        """Follow a content that is whole, or of which nothing more will come."""
        if content.refused:
            return
        if content.error is None and not content.complete:
            self._count(INCOMPLETE)
        method = content.dialect.METHODS.get(content.ids) if content.method else None
        frames = (content.method or b"") + (content.header or b"")
        step = step_of(method) if method else 0
        message = self.message(
            content.origin, content.channel, content.dialect, step, frames, content.header_offset
        )
        message.size, message.complete = content.octets, content.complete
        message.error, message.culprit = content.error, content.culprit
        if self.follower.waits is not None and content.complete and content.header:
            message.content = digest(content.header, content.parts)
        self.follower.connection(content.origin.connection).take(message)

    def settle(self, message: Message, outcome: str | None, packet: int, time_ns: int) -> None:
        """Add the row of a message; see `Follower`."""
        self._add(self.make.delivery_row(message, outcome, packet, time_ns))

    def _answer(self, origin: FrameOrigin, octets: bytes, dialect: ModuleType, step: int) -> None:
        if step != ANSWER:
            super()._answer(origin, octets, dialect, step)
            return
        packet = NO_TIME if origin.packet is None else origin.packet
        time_ns = NO_TIME if origin.time_ns is None else origin.time_ns
        self.follower.connection(origin.connection).answer(origin.direction, octets, packet, time_ns)
