"""Reads frames before the connection does, and refuses what RabbitMQ's reader refuses, in its words.

What it lets pass is judged by the connection as ever. So it looks no further than RabbitMQ's reader: at
frames, at the numbers of methods, and at what has to follow what.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any

from .._generated.codes import (
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
_TUNE_OK = Struct(">HIH")
_METHOD, _CONTENT_HEADER, _BODY, _HEARTBEAT = 1, 2, 3, 8
_END = 0xCE
_FIRST_FRAME_MAX = 4096  # before connection.tune-ok
_SLACK = 8  # octets that RabbitMQ takes beyond frame-max
_GREETING = 8  # octets of the protocol header
_SNIPPET = 16  # octets of a frame in a text
_LEAST = {_METHOD: 4, _CONTENT_HEADER: _HEADER.size, _BODY: 0, _HEARTBEAT: 0}  # octets of payloads

# Methods by the octets of their ids.
_CHANGING = _CONNECTION, _CHANNEL, _ACCESS = b"\0\x0a", b"\0\x14", b"\0\x1e"  # classes: what may follow
_CLOSE, _CLOSE_OK, _UPDATE_SECRET = (_CONNECTION + ids for ids in (b"\0\x32", b"\0\x33", b"\0\x46"))
_HANDSHAKE = [_CONNECTION + ids for ids in (b"\0\x0b", b"\0\x1f", b"\0\x28")]  # start-ok, tune-ok, open
_TUNING, _OPENING, _RUNNING = 1, 2, 3  # how many of them have come
_OPEN_CHANNEL, _FLOW = _CHANNEL + b"\0\x0a", _CHANNEL + b"\0\x14"
_PUBLISH = b"\0\x3c\0\x28"
_ACCESS_REQUEST, _ACCESS_REQUEST_OK = (
    _ACCESS + b"\0\x0a",
    _ACCESS + b"\0\x0b\0\x01",
)  # of no dialect with confirms
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

    def __init__(self, code: int, text: str, ids: bytes = bytes(4), channel: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.class_id = int.from_bytes(ids[:2], "big")
        self.method_id = int.from_bytes(ids[2:], "big")
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
        self._is_lost = False  # where the next frame begins
        # By channel, the method of a content that is not complete, and what is missing of its body: None
        # before its header.
        self._contents: dict[int, tuple[bytes, int | None]] = {}
        self._too_large: dict[int, int] = {}  # by channel, octets of a body that is not kept
        known = {ids_of(cls.spec): cls.spec.name for cls in session.amqp.METHODS.values()}
        self._known = frozenset((*known, _ACCESS_REQUEST))
        self._taken = frozenset(ids for ids, name in known.items() if name in _TAKEN)

    def feed(self, octets: Any) -> None:
        """Take octets of the client."""
        if not self._is_lost:
            self._octets += octets

    def next(self) -> bytes:
        """Return octets that the connection may have, as its state is now; none where more have to come.

        Raises:
            RefusedError, HungUpError: what comes next.
        """
        at = self._greeting_octets() or self._frames_octets()
        passed = bytes(self._octets[:at])
        del self._octets[:at]
        return passed

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
        while len(octets) - at >= _FRAME.size:
            kind, channel, size = _FRAME.unpack_from(octets, at)
            start = at + _FRAME.size
            end = start + size
            is_alone = (
                octets[start : start + 2] in _CHANGING if kind == _METHOD else channel in self._too_large
            )
            if (at and is_alone) or (end >= len(octets) and not self._is_too_large(size)):
                break
            try:
                passes = self._passes(kind, channel, start, end)
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

    def _is_too_large(self, size: int) -> bool:
        """Return whether a frame has more octets than are read."""
        most = self._connection.frame_max if self._step >= _OPENING else _FIRST_FRAME_MAX
        return 0 < most < size

    # -- what may go on

    def _passes(self, kind: int, channel: int, start: int, end: int) -> bool:
        """Return whether a frame goes on, with its payload between two places."""
        octets, size = self._octets, end - start
        if self._is_too_large(size):
            self._is_lost = True
        if self._connection.state in ("closing", "closed"):
            return not channel and kind == _METHOD and octets[start : start + 4] in (_CLOSE, _CLOSE_OK)
        if self._is_lost:
            fault = f"{{frame_too_large,{size},{self._connection.frame_max - _SLACK}}}"
            raise RefusedError(FRAME_ERROR, f"{_shown(kind, b'')}: {fault}")
        if octets[end] != _END:
            fault = f"{{invalid_frame_end_marker,{octets[end]}}}"
            raise RefusedError(FRAME_ERROR, f"{_shown(kind, octets[start:end])}: {fault}")
        if size < _LEAST.get(kind, size + 1) or (kind == _HEARTBEAT and size):
            raise RefusedError(FRAME_ERROR, f"{_shown(kind, octets[start:end])}: unknown_frame")
        if kind == _METHOD and not channel:
            return self._passes_zero(bytes(octets[start : start + 4]), start)
        if kind == _HEARTBEAT and not channel:
            return True
        if kind == _HEARTBEAT or not channel or self._step < _RUNNING:
            raise RefusedError(UNEXPECTED_FRAME, _shown(kind, octets[start:end]))
        if kind == _METHOD:
            return self._passes_method(channel, bytes(octets[start : start + 4]), start)
        if kind == _BODY:
            return self._passes_body(channel, size)
        return self._passes_header(channel, *_HEADER.unpack_from(octets, start))

    def _passes_zero(self, ids: bytes, start: int) -> bool:
        """Return whether a method on channel 0 goes on."""
        if ids not in self._known:
            raise HungUpError
        if self._step == _RUNNING:
            expected, state = (_CLOSE, _UPDATE_SECRET), "running"
        else:
            expected, state = (_HANDSHAKE[self._step],), "opening"
        if ids not in expected:
            raise RefusedError(CHANNEL_ERROR, f"unexpected method in connection state {state}", ids)
        if self._step == _TUNING:
            self._check_tuning(*_TUNE_OK.unpack_from(self._octets, start + 4))
        self._step = min(self._step + 1, _RUNNING)
        return True

    def _check_tuning(self, channel_max: int, frame_max: int, heartbeat: int) -> None:
        """Refuse more than was offered. 0 stands for no limit, so it is more than any."""
        offered = self._connection
        for answer, offer in ((channel_max, offered.channel_max), (frame_max, offered.frame_max)):
            if offer and not 0 < answer <= offer:
                raise HungUpError
        if 0 < frame_max < _FIRST_FRAME_MAX:
            raise HungUpError

    def _passes_method(self, channel: int, ids: bytes, start: int) -> bool:
        """Return whether a method on another channel goes on."""
        if ids not in self._known:
            raise HungUpError
        content = self._contents.get(channel)
        if content is not None:
            raise _out_of_order(*content)
        state = self._connection.channel_state(channel)
        if (state == "closed") is not (ids == _OPEN_CHANNEL):
            text = "expected 'channel.open'" if state == "closed" else "second 'channel.open' seen"
            raise RefusedError(CHANNEL_ERROR, text, ids)
        if ids == _PUBLISH:
            self._contents[channel] = ids, None
        if state == "closing" or ids in (_PUBLISH, _OPEN_CHANNEL):
            return True
        if ids == _ACCESS_REQUEST:
            answer = _FRAME.pack(_METHOD, channel, len(_ACCESS_REQUEST_OK)) + _ACCESS_REQUEST_OK
            self._session.send_octets(answer + bytes([_END]))
            return False
        if ids not in self._taken:
            raise RefusedError(COMMAND_INVALID, "unimplemented method", ids)
        if ids == _FLOW and not self._octets[start + 4] & 1:
            raise RefusedError(NOT_IMPLEMENTED, "active=false", ids)
        return True

    def _passes_header(self, channel: int, class_id: int, weight: int, size: int) -> bool:
        """Return whether a content header goes on."""
        ids, left = self._contents.get(channel, (b"", None))
        if not ids or left is not None or weight:
            raise _out_of_order(ids, left)
        wanted = int.from_bytes(ids[:2], "big")
        if class_id != wanted:
            text = f"expected content header for class {wanted}, got one for class {class_id} instead"
            raise RefusedError(UNEXPECTED_FRAME, text, ids)
        self._contents[channel] = ids, size
        if not size:
            del self._contents[channel]
        if size > self._most:
            self._too_large[channel] = size
        return size <= self._most

    def _passes_body(self, channel: int, size: int) -> bool:
        """Return whether a part of a body goes on."""
        ids, left = self._contents.get(channel, (b"", None))
        if left is None:
            raise _out_of_order(ids, left)
        self._contents[channel] = ids, left - size
        if left > size:
            return channel not in self._too_large
        del self._contents[channel]
        whole = self._too_large.pop(channel, 0)
        if whole:
            text = f"message size {whole} is larger than configured max size {self._most}"
            raise RefusedError(PRECONDITION_FAILED, text, ids, channel)
        return True


def ids_of(spec: Any) -> bytes:
    """Return the ids of a method as on the wire."""
    return bytes((*spec.class_id.to_bytes(2, "big"), *spec.method_id.to_bytes(2, "big")))


def _out_of_order(ids: bytes, left: int | None) -> RefusedError:
    """Return what is said of a frame that is no part of a content, or of none.

    Args:
        ids: of the content's method; empty for no content.
        left: octets of its body; None where its header has not come.
    """
    if not ids:
        text = "expected method frame, got non method frame instead"
        return RefusedError(UNEXPECTED_FRAME, text)
    text = "expected content body, got non content body frame instead"
    if left is None:
        wanted = int.from_bytes(ids[:2], "big")
        text = f"expected content header for class {wanted}, got non content header frame instead"
    return RefusedError(UNEXPECTED_FRAME, text, ids)


def _shown(kind: int, payload: bytes) -> str:
    """Return a frame as RabbitMQ's texts have it."""
    begin = payload[:_SNIPPET]
    which = "all octets" if len(payload) <= _SNIPPET else f"first {_SNIPPET} octets"
    if begin and _PRINTABLE.issuperset(begin):
        shown = f'"{begin.decode("latin-1").translate(_ESCAPES)}"'
    else:
        shown = ",".join(map(str, begin))
    return f"type {kind}, {which} = <<{shown}>>"


__all__ = ["FrameReader", "HungUpError", "RefusedError", "ids_of"]
