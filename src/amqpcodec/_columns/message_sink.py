"""The table `messages`: frames put together to contents.

Content (0-9-1 section 4.2.6): a method, one content header, body frames until the announced size has come;
all on one channel. What is out of order is told as `MessageDecoder` tells it, and leaves a row.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from amqpcodec import DecodeError
from amqpcodec._kernel.wire import BODY, HEADER, METHOD
from amqpcodec._state import Fields, Note, damaged
from amqpcodec.capture import Close, Connection, Fault
from amqpcodec.errors import CONTENT_TOO_LARGE, FRAME_ERROR, RESOURCE_ERROR

from .rows import ENVELOPE, Content, Place, method_ids
from .sink_base import Flows, Sink, flow_of

INCOMPLETE = "INCOMPLETE"  # what a row counts as that tells of no error, but is not whole
_HEADER_HEAD = struct.Struct("!HHQ")
_PAYLOAD = slice(7, -1)
_CHANNEL_AT = 1  # octets of a frame before its channel: the place of an error of order, as decoders tell it


class Lane:
    """What is known of one direction of a connection.

    Attributes:
        open: the contents not yet complete, by channel.
        known: channels of which a method or content header was seen. What is out of order on any other may
            be the rest of a content that began before the recording, or in a gap.
        elsewhere: how many contents are open beside those, where somebody else follows frames.
    """

    __slots__ = ("elsewhere", "known", "open")

    def __init__(self) -> None:
        self.elsewhere = 0
        self.open: dict[int, Content] = {}
        self.known: set[int] = set()

    def opened(self) -> list[Content]:
        """The contents that are open, in the order in which they were opened."""
        return sorted(self.open.values(), key=lambda content: content.place.offset)


class MessageSink(Sink):
    """One row a content."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lanes: dict[tuple[Connection, int], Lane] = {}

    def frame(self, place: Place, octets: bytes, dialect: ModuleType) -> None:
        """Add a frame to its content."""
        frame_type, channel, _ = ENVELOPE.unpack_from(octets)
        if frame_type == METHOD:
            self._method(place, channel, octets, dialect)
        elif frame_type == HEADER:
            self._header(place, channel, octets, dialect)
        elif frame_type == BODY:
            self._body(place, channel, octets, dialect)

    def fault(self, fault: Fault) -> None:
        """A break in a direction ends the contents that are open there."""
        if fault.connection is not None and fault.direction is not None and not fault.octets:
            self._end_lane(fault.connection, fault.direction)
        super().fault(fault)

    def close(self, event: Close) -> None:
        """The contents still open will not be completed."""
        self._end_lane(event.connection, event.direction)

    def lane(self, connection: Connection, direction: int) -> Lane:
        """What is known of a direction."""
        lane = self._lanes.get((connection, direction))
        if lane is None:
            lane = self._lanes[connection, direction] = Lane()
        return lane

    def state(self, note: Note) -> list[Any]:
        """See `Sink.state`."""
        return [
            [connection.number, direction, sorted(lane.known), [each.state(note) for each in lane.opened()]]
            for (connection, direction), lane in self._lanes.items()
        ]

    def restore(self, state: Iterable[Fields], flows: Flows) -> None:
        """See `Sink.restore`."""
        for fields in state:
            connection, direction = flow_of(flows, fields).connection, fields.number(0, 1)
            lane = self.lane(connection, direction)
            lane.known.update(_channels(fields.list()))
            for open_content in fields.items():
                content = Content.restored(open_content, connection, direction, self.make.dialects)
                lane.open[content.channel] = content
            fields.end()

    def _end_lane(self, connection: Connection, direction: int) -> None:
        lane = self._lanes.pop((connection, direction), None)
        for content in lane.opened() if lane else ():
            self.give_out(content)

    def give_out(self, content: Content) -> None:
        """Add the row of a content that is whole, or of which nothing more will come."""
        if content.refused:
            return
        row = self.make.message_row(content)
        if row.error is None and not content.complete:
            self._count(INCOMPLETE)
        self._add(row)

    def _method(self, place: Place, channel: int, octets: bytes, dialect: ModuleType) -> None:
        """A method ends the content that is open, and may open another."""
        lane = self.lane(place.connection, place.direction)
        method = dialect.METHODS.get(method_ids(octets)) if len(octets) >= 12 else None
        cut_off = lane.open.pop(channel, None)
        if cut_off is not None:
            name = method.spec.name if method else "that is not known"
            self._cut_off(cut_off, f"method {name} before the end of a content", place, octets, dialect)
        lane.known.add(channel)
        if method is not None and method.spec.content:
            content = Content(place, dialect, channel)
            content.method = octets
            self._open(lane, content, octets)

    def _open(self, lane: Lane, content: Content, octets: bytes) -> bool:
        content.count(content.place, octets)
        if len(lane.open) + lane.elsewhere < self.decoding.limits.open_messages:
            lane.open[content.channel] = content
            return True
        message = f"more than {self.decoding.limits.open_messages} messages open"
        content.blame(_error(RESOURCE_ERROR, message, content.place), octets)
        self.give_out(content)
        return False

    def _header(self, place: Place, channel: int, octets: bytes, dialect: ModuleType) -> None:
        """A content header goes with the method before it, or opens a content that has none."""
        lane = self.lane(place.connection, place.direction)
        content = lane.open.get(channel)
        if content is not None and (message := _misfit(content, octets, dialect)):
            del lane.open[channel]
            self._cut_off(content, message, place, octets, dialect)
            content = None
        if content is not None:
            content.count(place, octets)
        else:
            content = Content(place, dialect, channel)
            if channel in lane.known:
                message = "content header without a method before it"
                content.blame(_unexpected(dialect, message, place), octets)
            lane.known.add(channel)
            if not self._open(lane, content, octets):
                return
        content.header, content.header_offset = octets, place.offset
        self._announce(lane, content, place, octets)

    def _announce(self, lane: Lane, content: Content, place: Place, octets: bytes) -> None:
        """Learn the size of the body; a header too short to tell ends the content."""
        if len(octets) < _HEADER_HEAD.size + 8:
            del lane.open[content.channel]
            self.give_out(content)
            return
        content.body_size = content.left = _HEADER_HEAD.unpack_from(octets, 7)[2]
        if content.body_size > self.decoding.limits.body_size:
            message = f"body of {content.body_size} octets, limit {self.decoding.limits.body_size}"
            content.blame(_error(CONTENT_TOO_LARGE, message, place), octets)
            self.give_out(content)
            content.refused = True
        elif not content.left:
            self._complete(lane, content)

    def _complete(self, lane: Lane, content: Content) -> None:
        del lane.open[content.channel]
        content.complete = content.method is not None
        self.give_out(content)

    def _body(self, place: Place, channel: int, octets: bytes, dialect: ModuleType) -> None:
        """A body frame adds a piece to the content that waits for it; one alone is a row of its own."""
        lane = self.lane(place.connection, place.direction)
        content = lane.open.get(channel)
        if content is not None and content.header is None:
            del lane.open[channel]
            message = "body without a content header before it"
            self._cut_off(content, message, place, octets, dialect)
            content = None
        if content is None:
            self._alone(lane, place, channel, octets, dialect)
            return
        piece = octets[_PAYLOAD]
        if len(piece) > content.left:
            del lane.open[channel]
            size = (content.body_size or 0) - content.left + len(piece)
            message = f"body of {size} octets, {content.body_size} announced"
            content.blame(_error(FRAME_ERROR, message, place), octets)
            self.give_out(content)
            return
        content.left -= len(piece)
        content.count(place, octets)
        if not content.refused:
            content.pieces.append(piece)
        if not content.left:
            self._complete(lane, content)

    def _alone(self, lane: Lane, place: Place, channel: int, octets: bytes, dialect: ModuleType) -> None:
        content = Content(place, dialect, channel)
        content.count(place, octets)
        content.pieces.append(octets[_PAYLOAD])
        error = self.make.payload(place, octets, dialect)[1]
        if error is None and channel in lane.known:
            error = _unexpected(dialect, "body without a content header before it", place)
        if error is not None:
            content.blame(error, octets)
        self.give_out(content)

    def _cut_off(
        self, content: Content, message: str, place: Place, octets: bytes, dialect: ModuleType
    ) -> None:
        """Give out a content that is ended by a frame that should not have come."""
        content.blame(_unexpected(dialect, message, place), octets)
        self.give_out(content)


def _channels(numbers: list[Any]) -> list[int]:
    """Channel numbers in a state."""
    if not all(type(number) is int and 0 <= number <= 0xFFFF for number in numbers):
        raise damaged("there is no such channel")
    return numbers


def _misfit(content: Content, octets: bytes, dialect: ModuleType) -> str:
    """Why a content header does not go with the content that is open; "" if it does."""
    if content.header is not None:
        return "second content header after a method"
    class_id = int.from_bytes(octets[7:9], "big") if len(octets) >= 10 else -1
    known, method = dialect.PROPERTIES, dialect.METHODS[method_ids(content.method or b"")]
    if class_id in known and class_id != method.spec.class_id:
        return f"content header of class {known[class_id].spec.name} after {method.spec.name}"
    return ""


def _unexpected(dialect: Any, message: str, place: Place) -> DecodeError:
    return _error(dialect.DIALECT.unexpected_frame, message, place)


def _error(code: int, message: str, place: Place) -> DecodeError:
    return DecodeError(message, code, place.offset + _CHANNEL_AT, dialect=place.connection.dialect)
