"""Octets of a user's own, as streams that decode without an error."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any, NamedTuple

import amqpcodec

from ..capture.model import CapturedFrame, Item
from ..errors import DecodeError


class Stream(NamedTuple):
    """Frames of one direction of a connection, up to one that cannot be decoded.

    Attributes:
        amqp: module of the dialect.
        frames: the octets of each frame.
        octets: all of them.
    """

    amqp: ModuleType
    frames: tuple[bytes, ...]
    octets: bytes


class Recording(NamedTuple):
    """A recording to be timed.

    Attributes:
        streams: the frames, by connection and direction, each of which decodes on its own.
        left_out: frames that cannot be decoded where they stand, and what is missing or damaged.
        is_whole: False when there was more than was asked for.
        first_fault: what was missing or damaged first.
    """

    streams: tuple[Stream, ...]
    left_out: int
    is_whole: bool = True
    first_fault: str | None = None

    @property
    def digest(self) -> str:
        """A name for exactly these octets."""
        made = hashlib.sha256()
        for stream in self.streams:
            made.update(stream.octets)
        return made.hexdigest()


def record(items: Iterable[Item], most: int) -> Recording:
    """Sort the frames of a capture by connection and direction.

    Args:
        items: from `capture.read_frames` or `capture.read_raw_frames`.
        most: bytes of frames that are taken, from the first one on.
    """
    kept: list[tuple[str, list[bytes]]] = []
    ongoing: dict[tuple[int, int, str], tuple[Any, list[bytes]]] = {}  # decoders, and what they have read
    left_out = size = 0
    is_whole, first_fault = True, None
    for item in items:
        if not isinstance(item, CapturedFrame):
            left_out += 1
            first_fault = first_fault or item.message
            continue
        if size + len(item.octets) > most:
            is_whole = False
            break
        key = (item.connection.number, item.direction, item.dialect)
        if key not in ongoing:
            ongoing[key] = message_decoder(amqpcodec.dialect(item.dialect)), []
        decoder, frames = ongoing[key]
        if _fits(decoder, item.octets):
            if not frames:
                kept.append((item.dialect, frames))
            frames.append(item.octets)
            size += len(item.octets)
        else:
            left_out += 1
            del ongoing[key]  # what follows is decoded without what was before, as a stream of its own
    streams = (
        Stream(amqpcodec.dialect(dialect), tuple(frames), b"".join(frames)) for dialect, frames in kept
    )
    return Recording(tuple(streams), left_out, is_whole, first_fault)


def message_decoder(amqp: Any) -> Any:
    """A decoder of messages for octets that may begin or lack some anywhere."""
    return amqp.MessageDecoder(frame_max=0, aborted="keep")


def _fits(decoder: Any, frame: bytes) -> bool:
    """Return whether a frame can be decoded behind those before it: no content without its method can."""
    try:
        for _ in decoder.feed(frame):
            pass
    except DecodeError:
        return False
    return True
