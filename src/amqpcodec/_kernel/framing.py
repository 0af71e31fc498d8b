"""Where a frame ends. framing.pxd has the same function in C, to be inlined.

Frame (0-9-1 section 4.2.3): type octet, channel short, payload size long, payload, end octet 0xCE. A protocol
header (section 4.2.2) may come before the first frame; it has 8 octets and no envelope.

There are two texts. C code asks about a pointer, without the interpreter lock and without a call. An
interpreter is fastest with `struct`. Tests compare them.
"""

from __future__ import annotations

from struct import Struct

from .._protocol.codes import FRAME_ERROR
from .._typing import TYPE_CHECKING
from ..errors import DecodeError
from .foreign import OPENING, foreign_protocol
from .wire import ENVELOPE_SIZE, FRAME_END, OVERHEAD, PROTOCOL_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable

# What `frame_at` finds. framing.pxd has the same numbers.
WHOLE = 0
MORE = 1
UNKNOWN_TYPE = 2
TOO_LARGE = 3
WRONG_END = 4

_envelope_at = Struct(">BHI").unpack_from


def frame_at(
    data: bytes | bytearray | memoryview, at: int, end: int, types: int, size_limit: int, opens: bool
) -> tuple[int, int]:
    """Look for a whole frame at data[at:end].

    Args:
        data: the octets at hand.
        at: where the frame begins.
        end: where the octets end.
        types: the accepted frame types, see `type_mask`.
        size_limit: octets of the largest payload to accept.
        opens: whether the stream begins here, so that a protocol header may stand in place of a frame.

    Returns:
        WHOLE, MORE, UNKNOWN_TYPE, TOO_LARGE or WRONG_END; and the octets of the whole frame as far as they
        are known. Before the envelope is there, that is the size of the envelope.
    """
    left = end - at
    if left < ENVELOPE_SIZE:
        return MORE, ENVELOPE_SIZE
    frame_type, _, size = _envelope_at(data, at)
    size += OVERHEAD
    if not types >> frame_type & 1:
        if frame_type != PROTOCOL_HEADER or not opens:
            return UNKNOWN_TYPE, size
        return (MORE if left < OVERHEAD else WHOLE), OVERHEAD
    if size > size_limit + OVERHEAD:
        return TOO_LARGE, size
    if size > left:
        return MORE, size
    return (WHOLE if data[at + size - 1] == FRAME_END else WRONG_END), size


def type_mask(types: Iterable[int]) -> int:
    """Frame types as bits, for `frame_at`: bit n stands for type n, up to 31."""
    return sum(1 << frame_type for frame_type in set(types))


def framing_error(
    status: int,
    size: int,
    data: bytes | bytearray | memoryview,
    at: int,
    size_limit: int,
    offset: int,
    limit_name: str = "frame_max",
) -> DecodeError:
    """The error of octets that begin no frame. It is fatal: no later frame can be trusted either.

    Args:
        status, size: what `frame_at` has found: UNKNOWN_TYPE, TOO_LARGE or WRONG_END, and the frame's octets.
        data, at, size_limit: what it was given.
        offset: octets of the stream before data[at].
        limit_name: what the caller of the decoder calls the limit on frames.
    """
    if status == UNKNOWN_TYPE:
        message, ahead = _unknown_type(data[at]), 0
        if offset == 0:
            message += foreign_protocol(bytes(data[at : at + OPENING]))
    elif status == TOO_LARGE:
        message, ahead = f"frame of {size} octets, {limit_name} {size_limit + OVERHEAD}", 3
    else:
        ahead = size - 1
        message = f"frame ends with octet {data[at + ahead]:#04x}, not 0xce"
    return DecodeError(message, FRAME_ERROR, offset + ahead, fatal=True)


def _unknown_type(frame_type: int) -> str:
    if frame_type in (9, 10):
        return f"frame type {frame_type}: the request and response frames of 0-9 are not supported"
    return f"frame type {frame_type} is not known"
