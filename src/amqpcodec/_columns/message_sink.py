"""The table `messages`: frames put together to contents.

What is out of order has the error of `MessageDecoder`, and leaves a row. It is no error where the recording
may lack what came before.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from amqpcodec import DecodeError
from amqpcodec._kernel.content_order import (
    BEFORE_HEADER,
    CUT_OFF,
    IN_BODY,
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
    refusal,
)
from amqpcodec._kernel.wire import BODY, FRAME_END, HEADER, METHOD, OVERHEAD
from amqpcodec._state import Fields, Note, damaged
from amqpcodec.capture import Close, Connection, Fault
from amqpcodec.capture.envelopes import method_ids

from .contents_py import OpenContents
from .following_py import Follower
from .requests import ANSWER, DELIVER, GET_OK, REQUEST, step_of
from .rows import ENVELOPE, NO_TIME, FrameOrigin
from .sinks import Flows, Sink, flow_of

_BREAKS = ("gap", "lost")
INCOMPLETE = "INCOMPLETE"  # the code of a row that has no error, but is not whole
_HEADER_HEAD = struct.Struct("!HHQ")
_BODY_SIZE = struct.Struct("!Q")
_LEAST = {METHOD: OVERHEAD + 4, HEADER: OVERHEAD + _HEADER_HEAD.size}  # octets of a frame
_LEAST_CLASS = OVERHEAD + 2  # octets of a content header's frame that says its class
_CLASS = slice(7, 9)  # of the frame of a method or of a content header
_PAYLOAD = slice(7, -1)
_CHANNEL_AT = 1  # octets of a frame before its channel: where the error of a frame out of order is


class OpenMessage:
    """The frames of one content on their way to a row of `messages`.

    Attributes:
        origin: of the first frame.
        dialect: module of the dialect.
        channel: channel number.
        method: octets of the method's frame, None if the recording does not have it. It is the first frame.
        header: octets of the content header's frame, None if it has not come.
        header_offset: offset of that frame.
        parts: the payloads of the body's frames.
        body_size: octets of the body as announced; None before the header.
        left: octets of the body still to come.
        frames: how many there were.
        octets: octets of those frames.
        last_ns: time of the last frame.
        complete: whether method, header and body are all there.
        refused: whether its row is out already, since its body is too large; its frames lead to nothing.
        error: what is wrong with its order or size.
        culprit: octets of the frame that is wrong in that way.
        queue: where it comes from, if that is known.
    """

    __slots__ = (
        "body_size", "channel", "complete", "culprit", "dialect", "error", "frames", "header",
        "header_offset", "last_ns", "left", "method", "octets", "origin", "parts", "queue", "refused",
    )  # fmt: skip

    def __init__(self, origin: FrameOrigin, dialect: ModuleType, channel: int) -> None:
        self.origin = origin
        self.dialect = dialect
        self.channel = channel
        self.method: bytes | None = None
        self.header: bytes | None = None
        self.header_offset = 0
        self.parts: list[bytes] = []
        self.body_size: int | None = None
        self.left = 0
        self.frames = 0
        self.octets = 0
        self.last_ns: int | None = None
        self.complete = False
        self.refused = False
        self.error: DecodeError | None = None
        self.culprit = b""
        self.queue: str | None = None

    @property
    def ids(self) -> tuple[int, int] | None:
        """Return the class and method ids of its method."""
        return None if self.method is None else method_ids(self.method)

    @property
    def stage(self) -> int:
        """The stage of its channel while it is open."""
        return BEFORE_HEADER if self.header is None else IN_BODY

    @property
    def name(self) -> str:
        """The name of its method."""
        if self.method is None:
            return "content"
        return str(self.dialect.METHODS[method_ids(self.method)].spec.name)

    def blame(self, error: DecodeError, octets: bytes) -> None:
        """A frame is wrong: the row is to say so."""
        self.error = error
        self.culprit = octets

    def count(self, origin: FrameOrigin, octets: bytes) -> None:
        """One more frame of this content."""
        self.frames += 1
        self.octets += len(octets)
        self.last_ns = origin.time_ns

    def snapshot(self, note: Note) -> list[Any]:
        """The state of a content; `note` is called with its packet."""
        origin = self.origin
        # The only thing wrong with a content that stays open, if its row is not out already.
        lacks_method = [1] if self.error is not None and not self.refused else []
        return [
            note(origin.packet), origin.time_ns, origin.offset, self.dialect.DIALECT.name, self.channel,
            self.method, self.header, self.header_offset, self.parts, self.left, self.frames,
            self.octets, self.last_ns, self.refused, *lacks_method,
        ]  # fmt: skip

    @classmethod
    def restored(
        cls, state: Fields, connection: Connection, direction: int, dialects: Mapping[str, ModuleType]
    ) -> OpenMessage:
        """The open content that a state was made of."""
        origin = FrameOrigin(connection, direction, state.packet(), state.time(), state.number(0))
        dialect: Any = dialects.get(state.text())
        if dialect is None:
            raise damaged("there is no such dialect")
        content = cls(origin, dialect, state.number(0, 0xFFFF))
        method, header = state.octets_or_none(), state.octets_or_none()
        if method is not None and not (_is_frame(method, METHOD) and method_ids(method) in dialect.METHODS):
            raise damaged("there is a content of a method that nobody knows")
        if header is None if method is None else header is not None and not _is_frame(header, HEADER):
            raise damaged("there is a content without a content header")
        content.method, content.header = method, header
        content.header_offset, content.parts = state.number(0), state.list()
        if not all(type(part) is bytes for part in content.parts):
            raise damaged("there is a body that is not octets")
        content.body_size = None if header is None else _BODY_SIZE.unpack_from(header, 11)[0]
        content.left = state.number(0, content.body_size or 0)
        content.frames, content.octets, content.last_ns = state.number(1), state.number(0), state.time()
        content.refused = state.flag()
        if state.later(0, 1) and header is not None:
            content.blame(_error(NO_METHOD, origin, dialect), header)
        state.end()
        return content


class MessageSink(Sink):
    """One row a content.

    Args:
        open_contents: what contents are kept in that are not complete: `OpenContents` of the build in use.
        follower: who knows the queues of consumers: `Follower` of the build in use.

    Attributes:
        follower: that one.
    """

    def __init__(
        self,
        *arguments: Any,
        open_contents: Callable[[Connection, int], OpenContents] = OpenContents,
        follower: type[Follower] = Follower,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.follower = follower()
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
        return [[found], [self.follower.snapshot(note)]]

    def restore(self, state: Iterable[Fields], flows: Flows) -> None:
        """See `Sink.restore`."""
        parts = list(state)
        if len(parts) != 2:
            raise damaged("there are not the two parts of a table of messages")
        open_ones, followed = parts
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
            self.follower.restore(connection, fields, self.make.dialects)
            fields.end()
        open_ones.end()
        followed.end()

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
            followed.request(channel, origin.direction, method, packet, time_ns)

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
                content.blame(_error(NO_METHOD, origin, dialect), octets)
            if not self._may_open(contents, content, octets):
                return
        content.header, content.header_offset = octets, origin.offset
        if self._announce(content, origin, octets):
            self._put_or_emit(contents, content)

    def _announce(self, content: OpenMessage, origin: FrameOrigin, octets: bytes) -> bool:
        """Note the size of the body; False if the header is too short to say so, which ends the content."""
        if len(octets) < _LEAST[HEADER]:
            self.emit(content)
            return False
        content.body_size = content.left = _HEADER_HEAD.unpack_from(octets, 7)[2]
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
            error = _error(NO_HEADER, origin, dialect)
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
        content.blame(_error(verdict, origin, content.dialect, content=content.name, **details), octets)
        self.emit(content)


def _channels(numbers: list[Any]) -> list[int]:
    """Channel numbers in a state."""
    if not all(type(number) is int and 0 <= number <= 0xFFFF for number in numbers):
        raise damaged("there is no such channel")
    return numbers


def _in_order(contents: OpenContents) -> list[OpenMessage]:
    """Contents in the order in which they were opened."""
    return sorted(contents, key=lambda content: content.origin.offset)


def _error(verdict: int, origin: FrameOrigin, dialect: Any, **details: Any) -> DecodeError:
    """Return the error of a frame that was found at `origin`, with the details of `content_order.refusal`."""
    code, message = refusal(verdict, dialect.DIALECT.unexpected_frame, **details)
    return DecodeError(message, code, origin.offset + _CHANNEL_AT, dialect=origin.connection.dialect)


def _is_frame(octets: bytes, frame_type: int) -> bool:
    """Return whether octets are one whole method or content header."""
    if len(octets) < _LEAST[frame_type] or octets[-1] != FRAME_END:
        return False
    kind, _, size = ENVELOPE.unpack_from(octets)
    return bool(kind == frame_type and size + OVERHEAD == len(octets))
