"""The table `messages`: frames put together to contents.

What is out of order has the error of `MessageDecoder`, and leaves a row. It is no error where the recording
may lack what came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from amqpcodec._kernel.content_order import (
    BEFORE_HEADER,
    CUT_OFF,
    IN_ORDER,
    NO_HEADER,
    NO_METHOD,
    TOO_LARGE,
    TOO_MANY,
    TOO_MUCH,
    class_name,
    judge_body,
    judge_header,
    judge_method,
)
from amqpcodec._kernel.wire import BODY, HEADER, METHOD, OVERHEAD
from amqpcodec._state import Fields, Note, damaged
from amqpcodec.capture import Close, Connection, Fault
from amqpcodec.capture.envelopes import method_ids

from .contents_py import OpenContents
from .following_py import Follower, Message
from .following_states import follower_state, restore_followed
from .open_message import LEAST_HEADER, OpenMessage, body_size_in, order_error
from .origins import NO_TIME, FrameOrigin
from .requests import request
from .rows import ENVELOPE
from .sinks import Flows, Sink, flow_of
from .steps import ANSWER, DELIVER, GET_OK, REQUEST, step_of
from .waits_py import Waits

_BREAKS = ("gap", "lost")
INCOMPLETE = "INCOMPLETE"  # the code of a row that has no error, but is not whole
_LEAST_CLASS = OVERHEAD + 2  # octets of a content header's frame that says its class
_CLASS = slice(7, 9)  # of the frame of a method or of a content header
_PAYLOAD = slice(7, -1)


class MessageSink(Sink):
    """One row a content.

    Args:
        open_contents: what contents are kept in that are not complete: `OpenContents` of the build in use.
        follower: who knows the queues of consumers: `Follower` of the build in use.
        message: what it follows: `Message` of the build in use.

    Attributes:
        follower, message: those.
    """

    def __init__(
        self,
        *arguments: Any,
        open_contents: Callable[[Connection, int], OpenContents] = OpenContents,
        follower: type[Follower] = Follower,
        message: type[Message] = Message,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.follower = follower()
        self.message = message
        self._steps: dict[Any, int] = {}
        self._new_contents = open_contents
        self._directions: dict[tuple[Connection, int], OpenContents] = {}

    def frame(self, origin: FrameOrigin, octets: bytes, dialect: ModuleType) -> None:
        """Add a frame to its content."""
        frame_type, channel, _ = ENVELOPE.unpack_from(octets)
        if METHOD <= frame_type <= BODY:
            contents = self.contents(origin.connection, origin.direction)
            add = (
                self._method if frame_type == METHOD else self._header if frame_type == HEADER else self._body
            )
            add(contents, origin, channel, octets, dialect)

    def fault(self, fault: Fault) -> None:
        """A break in a direction ends the contents that are open there."""
        self.interrupt(fault)
        super().fault(fault)

    def interrupt(self, fault: Fault) -> None:
        """End the contents that are open in a direction, if a fault is a break there."""
        if fault.connection is not None and fault.direction is not None and not fault.octets:
            self._end(fault.connection, fault.direction)
            if fault.kind in _BREAKS:
                self.follower.lose(fault.connection, fault.direction)

    def close(self, event: Close) -> None:
        """The contents still open will not be completed."""
        self._end(event.connection, event.direction)
        self._directions.pop((event.connection, event.direction), None)
        self.follower.close(event.connection)

    def contents(self, connection: Connection, direction: int) -> OpenContents:
        """Return the open contents of a direction: one object until the direction is closed."""
        contents = self._directions.get((connection, direction))
        if contents is None:
            contents = self._new_contents(connection, direction)
            self._directions[connection, direction] = contents
            self.follower.connection(connection).heard |= 1 << direction
        return contents

    def snapshot(self, note: Note) -> list[Any]:
        """See `Sink.snapshot`."""
        directions = sorted(self._directions.items(), key=lambda item: (item[0][0].number, item[0][1]))
        found = [
            [
                connection.number,
                direction,
                sorted(contents.known),
                [each.snapshot(note) for each in _in_order(contents)],
            ]
            for (connection, direction), contents in directions
        ]
        waits = self.follower.waits
        joined = [] if waits is None else [waits.state()]
        return [[found], [follower_state(self.follower, note)], [joined]]

    def restore(self, state: Iterable[Fields], flows: Flows) -> None:
        """See `Sink.restore`."""
        parts = list(state)
        if len(parts) != 3:
            raise damaged("there are not the three parts of a table of messages")
        open_ones, followed, joined = parts
        for fields in open_ones.items():
            connection, direction = flow_of(flows, fields).connection, fields.number(0, 1)
            contents = self.contents(connection, direction)
            for channel in _channels(fields.list()):
                contents.know(channel)
            for content in fields.items():
                restored = OpenMessage.restored(content, connection, direction, self.make.dialects)
                contents.take(restored.channel)
                contents.put(restored)
            fields.end()
        for fields in followed.items():
            connection = flow_of(flows, fields).connection
            restore_followed(self.follower.connection(connection), fields, self.make.dialects, self.message)
            fields.end()
        open_ones.end()
        followed.end()
        self._restore_waits(joined, flows)

    def _restore_waits(self, state: Fields, flows: Flows) -> None:
        connections = {number: flow.connection for number, flow in flows.items()}
        kept = list(state.items())
        state.end()
        if self.follower.waits is not None and not kept:
            raise ValueError("the state was made for columns that do not say how long messages waited")
        for fields in kept:  # it is checked even if no column asks for it any more
            (self.follower.waits or Waits()).restore(fields, connections)

    def _end(self, connection: Connection, direction: int) -> None:
        """Nothing more will come of the contents that are open in a direction."""
        contents = self._directions.get((connection, direction))
        if contents is not None:
            left = _in_order(contents)
            contents.clear()
            for content in left:
                self.emit(content)

    def emit(self, content: OpenMessage) -> None:
        """Add the row of a content that is whole, or of which nothing more will come."""
        if content.refused:
            return
        step = self._step(content.dialect.METHODS.get(content.ids))
        if step in (DELIVER, GET_OK):
            followed = self.follower.connection(content.origin.connection)
            content.queue = followed.queue_of(step, content.channel, content.method or b"")
        row = self.make.message_row(content)
        if row.error is None and not content.complete:
            self._count(INCOMPLETE)
        self._add(row)

    def _method(
        self, contents: OpenContents, origin: FrameOrigin, channel: int, octets: bytes, dialect: ModuleType
    ) -> None:
        """A method ends the content that is open, and may open another."""
        method = dialect.METHODS.get(method_ids(octets))
        open_before = contents.take(channel)
        if open_before is not None and judge_method(open_before.stage) == CUT_OFF:
            name = f"method {method.spec.name}" if method else "a method that is not known"
            self._refuse(open_before, CUT_OFF, origin, octets, frame=name)
        contents.know(channel)
        step = self._step(method)
        if step >= ANSWER:
            self._answer(origin, octets, dialect, step)
        if method is not None and method.spec.content:
            content = OpenMessage(origin, dialect, channel)
            content.method = octets
            if self._may_open(contents, content, octets):
                contents.put(content)

    def _step(self, method: Any) -> int:
        """Return what a method is to the follower, given its class."""
        step = self._steps.get(method)
        if step is None:
            step = self._steps[method] = step_of(method) if method is not None else 0
        return step

    def _answer(self, origin: FrameOrigin, octets: bytes, dialect: ModuleType, step: int) -> None:
        """Tell the follower of a method without content."""
        if step != REQUEST:
            return  # rows of this table do not depend on answers
        method, _ = self.make.payload(origin, octets, dialect)
        if method is not None:
            packet = NO_TIME if origin.packet is None else origin.packet
            time_ns = NO_TIME if origin.time_ns is None else origin.time_ns
            channel = ENVELOPE.unpack_from(octets)[1]
            followed = self.follower.connection(origin.connection)
            request(followed, channel, origin.direction, method, packet, time_ns)

    def _may_open(self, contents: OpenContents, content: OpenMessage, octets: bytes) -> bool:
        """Return whether there may be one more content, which begins with a frame; else its row says so."""
        content.count(content.origin, octets)
        if len(contents) < self.decoding.limits.open_messages:
            return True
        self._refuse(content, TOO_MANY, content.origin, octets, limit=self.decoding.limits.open_messages)
        return False

    def _header(
        self, contents: OpenContents, origin: FrameOrigin, channel: int, octets: bytes, dialect: ModuleType
    ) -> None:
        """A content header goes with the method before it, or opens a content that has none."""
        content = contents.take(channel)
        if content is not None:
            class_id = int.from_bytes(octets[_CLASS], "big")
            same_class = len(octets) < _LEAST_CLASS or octets[_CLASS] == (content.method or b"")[_CLASS]
            verdict = judge_header(content.stage, same_class, 0, 0)
            if verdict != IN_ORDER:
                self._refuse(content, verdict, origin, octets, frame=class_name(dialect.PROPERTIES, class_id))
                content = None
        if content is not None:
            content.count(origin, octets)
        else:
            content = OpenMessage(origin, dialect, channel)
            if contents.know(channel):
                content.blame(order_error(NO_METHOD, origin, dialect), octets)
            if not self._may_open(contents, content, octets):
                return
        content.header, content.header_offset = octets, origin.offset
        if self._announce(content, origin, octets):
            self._put_or_emit(contents, content)

    def _announce(self, content: OpenMessage, origin: FrameOrigin, octets: bytes) -> bool:
        """Note the size of the body; False if the header is too short to say so, which ends the content."""
        if len(octets) < LEAST_HEADER:
            self.emit(content)
            return False
        content.body_size = content.left = body_size_in(octets)
        limit = self.decoding.limits.body_size
        if judge_header(BEFORE_HEADER, True, content.body_size, limit) == TOO_LARGE:
            self._refuse(content, TOO_LARGE, origin, octets, size=content.body_size, limit=limit)
            content.refused = True
        return True

    def _put_or_emit(self, contents: OpenContents, content: OpenMessage) -> None:
        """Keep a content that waits for more of its body; otherwise it is whole."""
        if content.left:
            contents.put(content)
            return
        content.complete = content.method is not None
        self.emit(content)

    def _body(
        self, contents: OpenContents, origin: FrameOrigin, channel: int, octets: bytes, dialect: ModuleType
    ) -> None:
        """A body frame adds a part to the content that waits for it; one alone is a row of its own."""
        content = contents.take(channel)
        part = octets[_PAYLOAD]
        if content is not None:
            verdict = judge_body(content.stage, len(part), content.left)
            if verdict != IN_ORDER:
                announced = content.body_size or 0
                come = announced - content.left + len(part)
                self._refuse(content, verdict, origin, octets, size=come, limit=announced)
                if verdict == TOO_MUCH:
                    return
                content = None
        if content is None:
            self._alone(contents, origin, channel, octets, dialect)
            return
        content.left -= len(part)
        content.count(origin, octets)
        if not content.refused:
            content.parts.append(part)
        self._put_or_emit(contents, content)

    def _alone(
        self, contents: OpenContents, origin: FrameOrigin, channel: int, octets: bytes, dialect: ModuleType
    ) -> None:
        content = OpenMessage(origin, dialect, channel)
        content.count(origin, octets)
        content.parts.append(octets[_PAYLOAD])
        error = self.make.payload(origin, octets, dialect)[1]
        if error is None and contents.knows(channel):
            error = order_error(NO_HEADER, origin, dialect)
        if error is not None:
            content.blame(error, octets)
        self.emit(content)

    def _refuse(
        self, content: OpenMessage, verdict: int, origin: FrameOrigin, octets: bytes, **details: Any
    ) -> None:
        """Add the row of a content that a frame ends which should not have come.

        Args:
            content: the content.
            verdict: on that frame.
            origin: where that was found.
            octets: that frame.
            details: those of `content_order.refusal`.
        """
        content.blame(order_error(verdict, origin, content.dialect, content=content.name, **details), octets)
        self.emit(content)


def _channels(numbers: list[Any]) -> list[int]:
    """Channel numbers in a state."""
    if not all(type(number) is int and 0 <= number <= 0xFFFF for number in numbers):
        raise damaged("there is no such channel")
    return numbers


def _in_order(contents: OpenContents) -> list[OpenMessage]:
    """Contents in the order in which they were opened."""
    return sorted(contents, key=lambda content: content.origin.offset)
