"""Works that are timed on a recording: ours, and those of the yardsticks."""

from __future__ import annotations

import platform
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from struct import Struct
from typing import Any, NamedTuple

from .. import IMPL
from .._version import __version__
from ..errors import EncodeError
from .recording import Recording, Stream, message_decoder

OURS = "amqpcodec" if IMPL == "c" else "amqpcodec pure"
LOOP = "struct"  # the yardstick that is always there
DECODE = "decode frames"
_READ_BY_OTHERS = ("amqp-0-9-1", "rabbitmq-0-9-1")
_envelope = Struct(">BHI").unpack_from
_ids = Struct(">HH").unpack_from


class Work(NamedTuple):
    """One thing that is timed.

    Attributes:
        item: what is done.
        peer: who does it.
        version: of the peer.
        operations: frames or messages that one call works on.
        call: does it.
    """

    item: str
    peer: str
    version: str
    operations: int
    call: Callable[[], object]


class WrongResultError(Exception):
    """A work to be timed has a wrong result."""


def our_works(recording: Recording) -> Iterator[Work]:
    """Decoding of frames and of messages, and encoding again of what was decoded.

    Raises:
        WrongResultError: what was encoded is not read back as the same values.
    """
    frames = [(stream, _frames(stream)) for stream in recording.streams]
    joined = [
        (stream, list(message_decoder(stream.amqp).feed(stream.octets))) for stream in recording.streams
    ]
    messages = [(stream, [value for value in values if getattr(value, "complete", False)])
                for stream, values in joined]  # fmt: skip
    for stream, found in frames:
        if len(found) != len(stream.frames):
            raise WrongResultError(f"{DECODE}: {len(found)} of {len(stream.frames)}")
    yield _decoding(DECODE, recording, frames, lambda amqp: amqp.FrameDecoder(frame_max=0))
    if any(found for _, found in messages):
        yield _decoding("decode messages and other frames", recording, joined, message_decoder)
    yield from _encoding("encode frames", frames, lambda amqp, frame: amqp.encode_frame(frame, frame_max=0))
    yield from _encoding(
        "encode messages",
        messages,
        lambda amqp, message: amqp.encode_message(
            message.channel, message.method, message.properties, message.body, frame_max=0
        ),
    )


def yardsticks(recording: Recording) -> tuple[list[Work], dict[str, str]]:
    """Return the works of other libraries, and of Python, for the same frames.

    Returns:
        their works, and for those that are not there or cannot read these octets, the reason.
    """
    # A protocol header is no frame for them.
    streams = [
        (stream, tuple(frame for frame in stream.frames if frame[:4] != b"AMQP"))
        for stream in recording.streams
    ]
    frames = [frame for _, found in streams for frame in found]
    joined = [b"".join(found) for _, found in streams]
    works = [Work(DECODE, LOOP, platform.python_version(), len(frames), lambda: deque(map(_cut, joined), 0))]
    missing: dict[str, str] = {}
    for name, function in (("pamqp", "frame.unmarshal"), ("pika", "frame.decode_frame")):
        try:
            if any(stream.amqp.DIALECT.name not in _READ_BY_OTHERS for stream in recording.streams):
                raise ValueError("it reads 0-9-1 alone")
            library, call = _reader(name, function)
            for frame in frames:
                if call(frame)[0] != len(frame):
                    raise ValueError("it reads less of a frame than there is")
        except Exception as error:  # whatever a library raises on octets that it does not know
            missing[name] = f"{type(error).__name__}: {error}"
        else:
            works.append(Work(DECODE, name, library.__version__, len(frames), _each(call, frames)))
    return works, missing


def versions(works: Iterable[Work]) -> dict[str, str]:
    """The version of everybody who works, by name."""
    return {work.peer: work.version for work in works}


def _decoding(
    item: str, recording: Recording, found: list[tuple[Stream, list[Any]]], decoder: Callable[[Any], Any]
) -> Work:
    def decode() -> None:
        for stream in recording.streams:
            deque(decoder(stream.amqp).feed(stream.octets), 0)

    return Work(item, OURS, __version__, sum(len(values) for _, values in found), decode)


def _encoding(
    item: str, found: list[tuple[Stream, list[Any]]], encode: Callable[[Any, Any], bytes]
) -> Iterator[Work]:
    """Encoding of those values that can be: a peer may have sent what no encoder writes."""
    written = [(stream.amqp, [value for value in values if _encodable(stream.amqp, value, encode)])
               for stream, values in found]  # fmt: skip
    count = sum(len(values) for _, values in written)
    for amqp, values in written:
        for value in values:
            _check(item, amqp, value, encode)

    def write() -> None:
        for amqp, values in written:
            for value in values:
                encode(amqp, value)

    if count:
        yield Work(item, OURS, __version__, count, write)


def _encodable(amqp: Any, value: Any, encode: Callable[[Any, Any], bytes]) -> bool:
    try:
        encode(amqp, value)
    except EncodeError:
        return False
    return True


def _check(item: str, amqp: Any, value: Any, encode: Callable[[Any, Any], bytes]) -> None:
    octets = encode(amqp, value)
    decoder = message_decoder(amqp) if item.endswith("messages") else amqp.FrameDecoder(frame_max=0)
    again = list(decoder.feed(octets))
    # A number that is none differs from itself, but not as text.
    if again != [value] and repr(again) != repr([value]):
        raise WrongResultError(f"{item}: {_named(value)} is read back as something else")


def _named(value: Any) -> str:
    """Name a frame or message without its values, which may be login data."""
    method = getattr(value, "method", None) or getattr(value, "payload", None)
    spec = getattr(method, "spec", None)
    return spec.name if spec else f"a frame of type {getattr(value, 'type', '?')}"


def _frames(stream: Stream) -> list[Any]:
    return list(stream.amqp.FrameDecoder(frame_max=0).feed(stream.octets))


def _reader(name: str, function: str) -> tuple[Any, Callable[[bytes], Any]]:
    module, _, attribute = function.rpartition(".")
    return import_module(name), getattr(import_module(f"{name}.{module}"), attribute)


def _each(call: Callable[[bytes], object], frames: list[bytes]) -> Callable[[], object]:
    return lambda: deque(map(call, frames), 0)


def _cut(octets: bytes) -> dict[tuple[int, int], list[int]]:
    """Cut a stream into frames and count its methods, by the means of the standard library alone."""
    found: dict[tuple[int, int], list[int]] = {}
    at, end = 0, len(octets)
    while at < end:
        kind, channel, size = _envelope(octets, at)
        payload = octets[at + 7 : at + 7 + size]
        if kind == 1:
            found.setdefault(_ids(payload), []).append(channel)
        at += size + 8
    return found
