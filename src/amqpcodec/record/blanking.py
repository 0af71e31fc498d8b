"""Login data in a stream of frames, blanked at its length, however the stream is cut.

Nothing waits for more octets: each call gives what it was given, with the same length.
"""

from __future__ import annotations

from collections.abc import Generator
from struct import Struct

from .. import rabbitmq
from .._kernel.wire import ENVELOPE_SIZE, FRAME_END, METHOD, OVERHEAD, PROTOCOL_HEADER
from ..spec import CREDENTIALS

BLANK = b"*"
_IDS_SIZE = 4
_FRAME_TYPES = frozenset(range(1, 9))  # of all dialects
_envelope_at = Struct(">BHI").unpack_from
_LENGTH_SIZES = {"shortstr": 1, "longstr": 4, "table": 4}
# The methods with login data, by the first octets of their payload: for each field up to the last one that is
# blanked, how many octets its length has, and whether it is. They are the same in every dialect.
_LAYOUTS = {
    cls.spec.index.to_bytes(_IDS_SIZE, "big"): [
        (_LENGTH_SIZES[field.type], (cls.spec.name, field.name) in CREDENTIALS) for field in cls.spec.fields
    ]
    for cls in rabbitmq.METHODS.values()
    if any((cls.spec.name, field.name) in CREDENTIALS for field in cls.spec.fields)
}

# What the reader of a stream asks for: so many octets to look at, to pass over, or to blank.
_LOOK, _PASS, _BLANK = range(3)
_Reader = Generator[tuple[int, int], bytes, None]


class Blanker:
    """One direction of a connection, from its start on."""

    def __init__(self) -> None:
        self._reader = _stream()
        self._wish, self._left = next(self._reader)
        self._seen = b""  # of what is looked at
        self._is_lost = False

    def feed(self, octets: bytes) -> tuple[bytes, int]:
        """Take the next octets.

        Args:
            octets: as they come.

        Returns:
            The octets with login data blanked, as far as they are AMQP; and the number of those behind, which
            are not: what is in them is not known, so it may be login data.
        """
        if self._is_lost:
            return b"", len(octets)
        at, end = 0, len(octets)
        blanked: bytearray | None = None
        while at < end:
            if self._wish == _LOOK and self._left == ENVELOPE_SIZE:  # a frame begins
                at = _pass_frames(octets, at, end)
            size = min(self._left, end - at)
            if self._wish == _LOOK:
                self._seen += octets[at : at + size]
            elif self._wish == _BLANK:
                blanked = bytearray(octets) if blanked is None else blanked
                blanked[at : at + size] = BLANK * size
            self._left -= size
            if not self._left and not self._ask():
                self._is_lost = True
                return bytes(octets[:at] if blanked is None else blanked[:at]), end - at
            at += size
        return octets if blanked is None else bytes(blanked), 0

    def _ask(self) -> bool:
        """Have the reader say what comes next; return whether it can."""
        seen, self._seen = self._seen, b""
        try:
            self._wish, self._left = self._reader.send(seen)
            while not self._left:
                self._wish, self._left = self._reader.send(b"")
        except StopIteration:
            return False
        return True


def _pass_frames(octets: bytes, at: int, end: int) -> int:
    """Return where the whole frames end that are there and have no login data: what is most of a stream."""
    while end - at >= OVERHEAD:
        frame_type, _, size = _envelope_at(octets, at)
        behind = at + size + OVERHEAD
        if behind > end or frame_type not in _FRAME_TYPES or octets[behind - 1] != FRAME_END:
            break
        if frame_type == METHOD and octets[at + ENVELOPE_SIZE : at + ENVELOPE_SIZE + _IDS_SIZE] in _LAYOUTS:
            break
        at = behind
    return at


def _stream() -> _Reader:
    """Read a stream; it ends where the last octets looked at are no AMQP."""
    envelope = yield _LOOK, ENVELOPE_SIZE
    if envelope[0] == PROTOCOL_HEADER:
        yield _PASS, OVERHEAD - ENVELOPE_SIZE
        envelope = yield _LOOK, ENVELOPE_SIZE
    while True:
        frame_type, _, size = _envelope_at(envelope)
        if frame_type not in _FRAME_TYPES:
            return
        if frame_type == METHOD and size >= _IDS_SIZE:
            ids = yield _LOOK, _IDS_SIZE
            size -= _IDS_SIZE
            if ids in _LAYOUTS:
                size = yield from _fields(_LAYOUTS[ids], size)
        yield _PASS, size
        end = yield _LOOK, 1
        if end[0] != FRAME_END:
            return
        envelope = yield _LOOK, ENVELOPE_SIZE


def _fields(layout: list[tuple[int, bool]], size: int) -> Generator[tuple[int, int], bytes, int]:
    """Read the fields of a method with login data; return how many octets of the payload are left."""
    for length_size, is_secret in layout:
        if size < length_size:
            break
        length = int.from_bytes((yield _LOOK, length_size), "big")
        size -= length_size
        taken = min(length, size)
        yield (_BLANK if is_secret else _PASS), taken
        size -= taken
    return size
