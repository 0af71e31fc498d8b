"""Where in a stretch of octets does a frame begin that can be trusted?

One frame's envelope is met by chance in random octets about once in 10**9; two in a row, or one that ends
exactly where the octets at hand end, do not happen. What is inside a message body may look like frames
too, so the place where the next frame must begin is tried first when it is known.

Octets may be made so that each place found is lost again at once. After some such losses only a run of frames
is believed, so what is made to look like frames is passed over as one.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from enum import Enum

from amqpcodec._kernel.framing import MORE, TOO_LARGE, UNKNOWN_TYPE, WHOLE, frame_at, type_mask
from amqpcodec._kernel.wire import BODY, ENVELOPE_SIZE, HEADER, HEARTBEAT, METHOD, OVERHEAD

Octets = bytes | bytearray | memoryview
_CHANNEL = struct.Struct("!H")
_IDS = struct.Struct("!HH")
_CONNECTION_CLASS = 10
RUN_OCTETS = 4096  # that frames follow one another for, to be believed where track was lost again and again
_RUN_FRAMES = 64  # or so many of them
_LARGEST_BLIND_TAIL = 7  # octets at the end too few to tell whether a frame begins there


class Verdict(Enum):
    """The answer to whether a frame begins at a place: yes, no, or unknown before more octets are there."""

    YES = 1
    NO = 2
    MORE = 3


class FrameTest:
    """Looks for frames of one dialect.

    Args:
        methods: the (class id, method id) pairs it knows.
        content_classes: the class ids whose content headers it knows.
        types: the frame types it knows.
        frame_max: octets of the largest frame to believe in, envelope included.
    """

    def __init__(
        self,
        methods: Iterable[tuple[int, int]],
        content_classes: Iterable[int],
        types: Iterable[int],
        frame_max: int,
    ) -> None:
        self._methods = frozenset(methods)
        self._content_classes = frozenset(content_classes)
        known = frozenset(types)
        self._types = type_mask(known)
        self._size_limit = frame_max - OVERHEAD
        head = _head_pattern(known, frame_max)
        self._candidate = re.compile(b"(?=" + head + b")", re.DOTALL)
        self._run_candidate = re.compile(_run_pattern(known, head), re.DOTALL)

    def find(self, octets: Octets, start: int, final: bool, doubtful: bool) -> tuple[Verdict, int]:
        """The first place at or after `start` where a frame may begin.

        Args:
            octets: what is at hand.
            start: index of the first octet to consider.
            final: nothing contiguous will follow these octets.
            doubtful: ask for a run of frames, as `judge_run` does.

        Returns:
            YES and the place; MORE and the place up to which the octets are of no use; with `final`, NO
            and the end.
        """
        refused: set[int] = set()
        candidate = self._run_candidate if doubtful else self._candidate
        for match in candidate.finditer(octets, start):
            place = match.start()
            if place in refused:
                continue
            if doubtful:
                verdict = self.judge_run(octets, place, final, refused)
            else:
                verdict = self.judge(octets, place, final)
            if verdict is not Verdict.NO:
                return verdict, place
        if final:
            return Verdict.NO, len(octets)
        return Verdict.MORE, max(start, len(octets) - _LARGEST_BLIND_TAIL)

    def judge(self, octets: Octets, position: int, final: bool) -> Verdict:
        """Return whether a frame that can be trusted begins at a place."""
        verdict, following = self._envelope(octets, position)
        if verdict is not Verdict.YES:
            return Verdict.NO if final else verdict
        if following == len(octets):
            return Verdict.YES
        verdict, _ = self._envelope(octets, following, strict=False)
        # A frame followed by the beginning of another, with nothing to come, is all the proof there will be.
        return Verdict.YES if final and verdict is Verdict.MORE else verdict

    def judge_run(
        self, octets: Octets, position: int, final: bool, refused: set[int] | None = None
    ) -> Verdict:
        """Return whether a run of frames that can be trusted begins at a place: many of them, or many octets.

        Args:
            octets: what is at hand.
            position: index of the place.
            final: nothing contiguous will follow these octets.
            refused: places from which no such run leads on; those of this run are added if it breaks. Each
                place is so looked at once, however runs overlap.
        """
        at, run = position, list[int]()
        refused = set() if refused is None else refused
        while at not in refused:
            verdict, following = self._envelope(octets, at, strict=not run)
            if verdict is Verdict.MORE:
                return (Verdict.YES if run else Verdict.NO) if final else Verdict.MORE
            if verdict is Verdict.NO:
                break
            run.append(at)
            if len(run) == _RUN_FRAMES or following - position >= RUN_OCTETS:
                return Verdict.YES
            at = following
        refused.update(run)
        return Verdict.NO

    def _envelope(self, octets: Octets, position: int, strict: bool = True) -> tuple[Verdict, int]:
        """Check one frame; with YES comes the place behind it. Behind a frame that passed the strict test,
        one with a method nobody knows may still be a frame."""
        end = len(octets)
        status, size = frame_at(octets, position, end, self._types, self._size_limit, opens=False)
        if status == MORE and size == ENVELOPE_SIZE:  # which is not there yet
            known = position >= end or self._types >> octets[position] & 1
            return (Verdict.MORE if known else Verdict.NO), 0
        if status in (UNKNOWN_TYPE, TOO_LARGE) or (strict and not self._payload_fits(octets, position, size)):
            return Verdict.NO, 0
        if status == MORE:
            return Verdict.MORE, 0
        return (Verdict.YES if status == WHOLE else Verdict.NO), position + size

    def _payload_fits(self, octets: Octets, position: int, frame_size: int) -> bool:
        """Return whether the first octets of a payload, as far as they are there, suit the frame's type."""
        kind, size = octets[position], frame_size - OVERHEAD
        [channel] = _CHANNEL.unpack_from(octets, position + 1)
        if kind == HEARTBEAT:
            return size == 0 and channel == 0
        if kind == BODY:
            return bool(channel != 0)
        if kind not in (METHOD, HEADER):
            return True
        if size < (14 if kind == HEADER else 4) or (kind == HEADER and channel == 0):
            return False
        start = position + ENVELOPE_SIZE
        if len(octets) - start < _IDS.size:
            return True
        first, second = _IDS.unpack_from(octets, start)
        if kind == HEADER:
            return first in self._content_classes and second == 0
        return (first, second) in self._methods and (first == _CONNECTION_CLASS) == (channel == 0)


def _head_pattern(types: frozenset[int], frame_max: int) -> bytes:
    """A pattern for the first five octets of a frame, for `re` to pass over most places quickly."""
    highest = min(frame_max, 0xFFFFFFFF)
    first = b"[\\x00-\\x%02x]" % (highest >> 24)
    second = b"[\\x00-\\x%02x]" % (highest >> 16 & 0xFF if highest < 1 << 24 else 0xFF)
    return _any_of(types) + b".." + first + second


def _run_pattern(types: frozenset[int], head: bytes) -> bytes:
    """A pattern for where a run of frames may begin. Heartbeats are the frames of which most fit into octets
    that are made to cost time: `re` goes through those by itself."""
    heartbeats = b"(?:\\x08\\0{6}\\xce)"
    run = heartbeats + b"{%d}|" % _RUN_FRAMES + heartbeats + b"++(?:" + _any_of(types) + b"|\\Z)"
    return b"(?=" + run + b"|(?!\\x08)" + head + b")"


def _any_of(types: frozenset[int]) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % kind for kind in sorted(types)) + b"]"
