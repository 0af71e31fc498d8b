"""Reads frames before the connection does, and refuses what RabbitMQ's reader refuses, in its words.

What it lets pass is judged by the connection as ever. So it looks no further than RabbitMQ's reader: at
frames, at the numbers of methods, and at what has to follow what.
"""

from __future__ import annotations

from functools import cache
from struct import Struct, error
from typing import TYPE_CHECKING, Any

from .._kernel.framing import MORE, TOO_LARGE, WHOLE, WRONG_END, frame_at
from .._kernel.wire import BODY, ENVELOPE_SIZE, FRAME_END, HEADER, HEARTBEAT, METHOD, OVERHEAD
from .._protocol.codes import (
    CHANNEL_ERROR,
    COMMAND_INVALID,
    FRAME_ERROR,
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    UNEXPECTED_FRAME,
)
from .methods import HANDLERS

if TYPE_CHECKING:
    from .session import Session

_FRAME = Struct(">BHI")  # type, channel, octets of the payload
_HEADER = Struct(">HHQ")  # class, weight, octets of the body
_IDS = Struct(">I")
_METHOD_FRAME = Struct(">BHII")  # type, channel, octets of the payload, ids
_HEADER_FRAME = Struct(">BHIHHQ")  # the same, and the content header
_TUNING = Struct(">HIH")
_ANY_TYPE = -1  # a mask for `frame_at`: RabbitMQ looks at types once the frame is there
_FIRST_FRAME_MAX = 4096  # before connection.tune-ok
_NO_LIMIT = 1 << 32
_SLACK = 8  # octets that RabbitMQ takes beyond frame-max
_GREETING = 8  # octets of the protocol header
_SNIPPET = 16  # octets of a frame in a text
_LEAST = {METHOD: 4, HEADER: _HEADER.size, BODY: 0, HEARTBEAT: 0}  # octets of payloads

# Methods by their ids, of which the class is the upper half.
_HANDSHAKE = 0xA000B, 0xA001F, 0xA0028  # start-ok, tune-ok, open
_TUNE_OK = _HANDSHAKE[1]
_CLOSE, _CLOSE_OK, _UPDATE_SECRET = 0xA0032, 0xA0033, 0xA0046
_OPENING, _RUNNING = 2, 3  # how many of the handshake have come
_OPEN_CHANNEL, _FLOW, _PUBLISH = 0x14000A, 0x140014, 0x3C0028
_CONNECTION = 10
_ACCESS_REQUEST = 0x1E000A  # the dialects that have confirms lack it
_ACCESS_REQUEST_OK = b"\0\x1e\0\x0b\0\x01"
_LAST_CHANGING = 0x1EFFFF  # the methods up to this one change what may follow
_TAKEN = frozenset(
    (*HANDLERS, "basic.publish", "basic.ack", "basic.nack", "basic.reject", "channel.close", "channel.flow")
)

_PRINTABLE = frozenset([*range(8, 14), 27, *range(32, 127), *range(160, 256)])
_ESCAPES = str.maketrans(dict(zip('\b\t\n\v\f\r\x1b"\\', (rf"\{c}" for c in 'btnvfre"\\'), strict=True)))


class RefusedError(Exception):
    """A frame for which RabbitMQ closes the connection, or the channel where there is one.

    Attributes:
        code, class_id, method_id: as in connection.close; its text begins with the name of the code.
        channel: which is closed; 0 for the connection.
    """

    def __init__(self, code: int, text: str, ids: int = 0, channel: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.class_id, self.method_id = divmod(ids, 1 << 16)
        self.channel = channel


class HungUpError(Exception):
    """A frame for which RabbitMQ ends the connection without a word."""


class FrameReader:
    """Holds the octets of a client until the connection may have them.

    Args:
        session: of the connection.
        most: octets of the largest body.
    """

    def __init__(self, session: Session, most: int) -> None:
        self._session = session
        self._connection = session.connection
        self._most = most
        self._octets = bytearray()
        self._greeting = _GREETING  # octets that are missing of it
        self._step = 0  # of the handshake
        self._largest = _FIRST_FRAME_MAX  # octets of a payload
        self._is_lost = False  # where the next frame begins
        self._state = ""  # of the connection, and a channel that is open: while nothing goes on they stay so
        self._open = 0
        self._passed = b""  # what went on last, and how much before
        self._before = 0
        # By channel, the method of a content that is not complete, and what is missing of its body: None
        # before its header.
        self._contents: dict[int, tuple[int, int | None]] = {}
        self._refused: dict[int, RefusedError] = {}  # of those, what is said once they have come
        self._known, self._taken, self._carrying = _methods_of(session.amqp)
        self._plain = self._taken - {_OPEN_CHANNEL, _FLOW}  # that may always come where a channel is open

    def feed(self, octets: Any) -> None:
        """Take octets of the client."""
        if not self._is_lost:
            self._octets += octets

    def next(self) -> bytes:
        """Return octets that the connection may have, as its state is now; none where more have to come.

        Raises:
            RefusedError, HungUpError: what comes next.
        """
        greeting = self._greeting_octets()
        at = greeting or self._frames_octets()
        passed = bytes(self._octets[:at])
        del self._octets[:at]
        if not greeting:
            self._before += len(self._passed)
            self._passed = passed
        return passed

    def arguments_at(self, offset: int) -> bytes:
        """Return the arguments of the method that has an octet of the stream, and has passed last."""
        at, place = 0, offset - self._before
        while True:
            begin, at = at, at + self._frame_at(self._passed, at)[1]
            if place < at:
                return self._passed[begin + ENVELOPE_SIZE + _IDS.size : at - 1]

    def _frame_at(self, octets: bytes | bytearray, at: int) -> tuple[int, int]:
        """Return what RabbitMQ makes of the next frame, and the octets of it; see `framing.frame_at`."""
        return frame_at(octets, at, len(octets), _ANY_TYPE, self._largest, False)

    def _greeting_octets(self) -> int:
        """Return how many octets may go on that are of the protocol header."""
        there = min(self._greeting, len(self._octets))
        self._greeting -= there
        return there

    def _frames_octets(self) -> int:
        """Return how many octets of whole frames may go on. Those that may not are dropped.

        What may follow depends on what has become of some: those go on alone.
        """
        octets, at = self._octets, 0
        self._open = 0
        self._state = self._connection.state
        while True:
            if self._open and (end := self._message_end(at)):
                at = end
                continue
            status, size = self._frame_at(octets, at)
            if status == MORE:
                break
            kind, channel, _ = _FRAME.unpack_from(octets, at)
            start = at + ENVELOPE_SIZE
            end = at + size - 1
            if kind == METHOD and status != TOO_LARGE and size >= OVERHEAD + _IDS.size:
                [ids] = _IDS.unpack_from(octets, start)
                is_alone = ids <= _LAST_CHANGING
            else:
                ids, is_alone = 0, bool(self._refused)
            if at and is_alone:
                break
            try:
                passes = self._passes(status, kind, channel, ids, start, end)
            except (RefusedError, HungUpError):
                if at:  # it may pass once what is before it has closed its channel
                    break
                del octets[: None if self._is_lost else end + 1]
                if self._step < _OPENING:
                    raise HungUpError from None
                raise
            if not passes:
                del octets[at : end + 1]
                continue
            at = end + 1
            if is_alone:
                break
        return at

    def _message_end(self, at: int) -> int:
        """Return where a whole message ends that is published on the open channel; 0 to have frames judged.

        Most of what a busy client sends is such messages, with the body in one frame. Three calls of
        `frame_at` would take longer than all of this; what it declines goes through them.
        """
        octets, channel, largest = self._octets, self._open, self._largest
        try:
            kind, number, size, ids = _METHOD_FRAME.unpack_from(octets, at)
            if ids != _PUBLISH or (kind, number) != (METHOD, channel) or self._refused or self._contents:
                return 0
            header = at + ENVELOPE_SIZE + size + 1
            kind, number, header_size, class_id, weight, length = _HEADER_FRAME.unpack_from(octets, header)
            body = header + ENVELOPE_SIZE + header_size + 1
            if (kind, number, class_id, weight) != (HEADER, channel, _PUBLISH >> 16, 0):
                return 0
            end = body + ENVELOPE_SIZE + length + 1
            is_whole = (
                _FRAME.unpack_from(octets, body) == (BODY, channel, length)
                and header_size >= _HEADER.size
                and max(size, header_size, length) <= largest
                and octets[header - 1] == octets[body - 1] == octets[end - 1] == FRAME_END
            )
        except (error, IndexError):  # more has to come
            return 0
        return end if is_whole and length <= self._most else 0

    # -- what may go on

    def _passes(self, status: int, kind: int, channel: int, ids: int, start: int, end: int) -> bool:
        """Return whether a frame goes on, with its payload between two places, and the ids of its method."""
        size = end - start
        self._is_lost = status == TOO_LARGE
        if self._state in ("closing", "closed"):
            return not channel and ids in (_CLOSE, _CLOSE_OK)
        if status != WHOLE or size < _LEAST.get(kind, size + 1):
            raise self._broken(status, kind, start, end)
        if channel and self._step == _RUNNING:
            if kind == BODY:
                return self._passes_body(channel, size)
            if kind == METHOD:
                return self._passes_method(channel, ids, start)
            if kind == HEADER:
                return self._passes_header(channel, *_HEADER.unpack_from(self._octets, start))
        if kind == HEARTBEAT and size:
            raise self._broken(status, kind, start, end)
        if channel or kind not in (METHOD, HEARTBEAT):
            raise RefusedError(UNEXPECTED_FRAME, _shown(kind, self._octets[start:end]))
        return kind == HEARTBEAT or self._passes_zero(ids, start, end)

    def _broken(self, status: int, kind: int, start: int, end: int) -> RefusedError:
        """Return what is said of a frame that is none."""
        payload = self._octets[start:end]
        if status == TOO_LARGE:
            payload.clear()
            fault = f"{{frame_too_large,{end - start},{self._largest - _SLACK}}}"
        elif status == WRONG_END:
            fault = f"{{invalid_frame_end_marker,{self._octets[end]}}}"
        else:
            fault = "unknown_frame"
        return RefusedError(FRAME_ERROR, f"{_shown(kind, payload)}: {fault}")

    def _passes_zero(self, ids: int, start: int, end: int) -> bool:
        """Return whether a method on channel 0 goes on."""
        if ids not in self._known:
            raise HungUpError
        is_running = self._step == _RUNNING
        if ids not in ((_CLOSE, _UPDATE_SECRET) if is_running else (_HANDSHAKE[self._step],)):
            state = "running" if is_running else "opening"
            raise RefusedError(CHANNEL_ERROR, f"unexpected method in connection state {state}", ids)
        if ids == _TUNE_OK:
            self._tune(self._octets[start + _IDS.size : end])
        self._step = min(self._step + 1, _RUNNING)
        return True

    def _tune(self, arguments: bytearray) -> None:
        """Take a tune-ok, unless it is more than was offered. 0 stands for no limit: it is more than any."""
        if len(arguments) != _TUNING.size:
            raise HungUpError
        channel_max, frame_max, _ = _TUNING.unpack(arguments)
        offered = self._connection
        for answer, offer in ((channel_max, offered.channel_max), (frame_max, offered.frame_max)):
            if offer and not 0 < answer <= offer:
                raise HungUpError
        if 0 < frame_max < self._session.broker.version.least_frame_max:
            raise HungUpError
        self._largest = frame_max or _NO_LIMIT

    def _passes_method(self, channel: int, ids: int, start: int) -> bool:
        """Return whether a method on another channel goes on."""
        if ids not in self._known:
            raise HungUpError
        content = self._contents.get(channel)
        if content is not None:
            raise _out_of_order(*content)
        state = "open" if channel == self._open else self._connection.channel_state(channel)
        self._open = channel if state == "open" else 0
        refusal = None if state == "open" and ids in self._plain else self._refusal(ids, state, start)
        if ids in self._carrying:
            self._contents[channel] = ids, None
            if refusal is not None:
                self._refused[channel] = refusal
        elif refusal is not None:
            raise refusal
        elif ids == _ACCESS_REQUEST and state == "open":
            answer = _FRAME.pack(METHOD, channel, len(_ACCESS_REQUEST_OK)) + _ACCESS_REQUEST_OK
            self._session.send_octets(answer + bytes([FRAME_END]))
            return False
        return refusal is None and ids >> 16 != _CONNECTION  # which comes to a channel that is being closed

    def _refusal(self, ids: int, state: str, start: int) -> RefusedError | None:
        """Return what is said of a method on a channel in a state; None where it may come."""
        if (state == "closed") is not (ids == _OPEN_CHANNEL):
            text = "expected 'channel.open'" if state == "closed" else "second 'channel.open' seen"
            return RefusedError(CHANNEL_ERROR, text, ids)
        if state == "open" and ids not in self._taken:
            return RefusedError(COMMAND_INVALID, "unimplemented method", ids)
        first = self._octets[start + _IDS.size]  # of the arguments; the end of the frame where there are none
        if state == "open" and ids == _FLOW and first != FRAME_END and not first & 1:
            return RefusedError(NOT_IMPLEMENTED, "active=false", ids)
        return None

    def _passes_header(self, channel: int, class_id: int, weight: int, size: int) -> bool:
        """Return whether a content header goes on."""
        ids, left = self._contents.get(channel, (0, None))
        if not ids or left is not None or weight:
            raise _out_of_order(ids, left)
        if class_id != ids >> 16:
            text = f"expected content header for class {ids >> 16}, got one for class {class_id} instead"
            raise RefusedError(UNEXPECTED_FRAME, text, ids)
        self._contents[channel] = ids, size
        if size > self._most:
            text = f"message size {size} is larger than configured max size {self._most}"
            self._refused.setdefault(channel, RefusedError(PRECONDITION_FAILED, text, ids, channel))
        return channel not in self._refused if size else self._completes(channel)

    def _passes_body(self, channel: int, size: int) -> bool:
        """Return whether a part of a body goes on."""
        ids, left = self._contents.get(channel, (0, None))
        if left is None:
            raise _out_of_order(ids, left)
        if left == size:
            return self._completes(channel)
        if left < size and self._session.broker.version.measures_bodies:
            raise RefusedError(FRAME_ERROR, "content body frame exceeds remaining content size", ids)
        self._contents[channel] = ids, left - size  # of more than was announced, the end never comes
        return left > size and channel not in self._refused

    def _completes(self, channel: int) -> bool:
        """Return True for the end of a content that is taken."""
        del self._contents[channel]
        refusal = self._refused.pop(channel, None)
        if refusal is not None:
            raise refusal
        return True


@cache
def _methods_of(amqp: Any) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
    """Return the ids of all methods, of those that clients may send, and of those that carry a content."""
    specs = [cls.spec for cls in amqp.METHODS.values()]
    taken = [ids_of(spec) for spec in specs if spec.name in _TAKEN]
    carrying = frozenset(ids_of(spec) for spec in specs if spec.content)
    return frozenset((_ACCESS_REQUEST, *map(ids_of, specs))), frozenset((_ACCESS_REQUEST, *taken)), carrying


def ids_of(spec: Any) -> int:
    """Return the ids of a method in one number."""
    return int(spec.class_id << 16 | spec.method_id)


def _out_of_order(ids: int, left: int | None) -> RefusedError:
    """Return what is said of a frame that is no part of a content, or of none.

    Args:
        ids: of the content's method; 0 for no content.
        left: octets of its body; None where its header has not come.
    """
    if not ids:
        text = "expected method frame, got non method frame instead"
        return RefusedError(UNEXPECTED_FRAME, text)
    text = "expected content body, got non content body frame instead"
    if left is None:
        text = f"expected content header for class {ids >> 16}, got non content header frame instead"
    return RefusedError(UNEXPECTED_FRAME, text, ids)


def _shown(kind: int, payload: bytes | bytearray) -> str:
    """Return a frame as RabbitMQ's texts have it."""
    begin = payload[:_SNIPPET]
    which = "all octets" if len(payload) <= _SNIPPET else f"first {_SNIPPET} octets"
    if begin and _PRINTABLE.issuperset(begin):
        shown = f'"{begin.decode("latin-1").translate(_ESCAPES)}"'
    else:
        shown = ",".join(map(str, begin))
    return f"type {kind}, {which} = <<{shown}>>"


__all__ = ["FrameReader", "HungUpError", "RefusedError", "ids_of"]
