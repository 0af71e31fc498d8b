"""What a peer does differently with acceleration, on purpose; docs/adopting.md lists it.

A difference that stands here has to occur, and no other may: the differential tests check both.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from random import Random
from types import SimpleNamespace
from typing import Any

from .engine import Copy, Outcome, first_difference
from .inputs import enveloped


@dataclass(frozen=True)
class Difference:
    """One difference.

    Attributes:
        peer: the peer's name, as `install` takes it.
        name: what differs, in a few words.
        reason: why it is kept.
        tolerant: it occurs with `install(peer, tolerant=True)` alone.
        scenario: an input on which it occurs.
        stock: what the peer does there, as `engine.brief` describes it.
        accelerated: what it does with acceleration.
        covers: whether two outcomes of any input differ for this reason; None if no random input does.
    """

    peer: str
    name: str
    reason: str
    scenario: Callable[[Copy, Random], tuple[Any, ...]]
    stock: str
    accelerated: str
    covers: Callable[[Outcome, Outcome], bool] | None = None
    tolerant: bool = False


def _refused_by(exception: str, *texts: str) -> Callable[[Outcome, Outcome], bool]:
    """Whether acceleration raised this exception of a peer with one of these texts."""
    return lambda stock, accelerated: accelerated[:2] == ("raised", exception) and accelerated[2] in texts


def _nested() -> bytes:
    """A frame with 5,000 tables, each inside the one before."""
    octets = b""
    for _ in range(5000):
        octets = b"\1kF" + struct.pack(">I", len(octets)) + octets
    return enveloped(b"\0\x32\0\x0a\0\0\0\0" + struct.pack(">I", len(octets)) + octets)


def _pika_tables(peer: Copy, random: Random) -> tuple[Any, ...]:
    return peer.frame.decode_frame, _nested()


def _pika_flags(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A content header with 100 words of property flags."""
    return peer.frame.decode_frame, enveloped(b"\0\x3c\0\0" + bytes(8) + b"\0\1" * 99 + b"\0\0", 2)


def _pika_own_encode(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A method that got an `encode` of its own."""
    method = peer.spec.Basic.Ack()
    method.encode = None
    return methodcaller("marshal"), peer.frame.Method(1, method)


def _reads_on(stock: Outcome, accelerated: Outcome) -> bool:
    """Return whether the peer refused what acceleration has read all but a table of."""
    refused = stock[0] == "raised" or "Error" in str(stock[:2])
    return refused and "UnreadableTable" in str(accelerated[:2])


def _reads_on_by_values(stock: Outcome, accelerated: Outcome) -> bool:
    """Return whether py-amqp refused that; or acceleration, too, what comes behind it, by another call."""
    one, other = first_difference(stock, accelerated)
    return _reads_on(stock, accelerated) or all(str(name).lower().endswith("error") for name in (one, other))


def _reads_on_by_times(stock: Outcome, accelerated: Outcome) -> bool:
    """Return whether pamqp refused a timestamp; acceleration may refuse what comes after it."""
    return "year" in str(stock[:3]) and "year" not in str(accelerated[:3])


def _is_method_with(own: str) -> Callable[[Outcome, Outcome], bool]:
    """Whether a frame with a method that has an attribute of this name was written."""
    return lambda stock, accelerated: repr(own) in str(stock[-2:-1])


_UNREADABLE = "it is delivered as octets with the error, and the rest of the frame as ever"
_TOO_MANY_FLAGS = (
    "pamqp.exceptions.UnmarshalingException: "
    "Could not unmarshal ContentHeader frame: Content header has more than 64 words of flags"
)


_NO_YEAR = "pamqp.exceptions.UnmarshalingException: Could not unmarshal ContentHeader frame: " + (
    "year 291132810 is out of range"
    if sys.version_info < (3, 14)
    else "year must be in 1..9999, not 291132810"
)


def _pamqp_tables(peer: Copy, random: Random) -> tuple[Any, ...]:
    return peer.frame.unmarshal, _nested()


def _pamqp_flags(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A content header with 100 words of property flags."""
    return peer.frame.unmarshal, enveloped(b"\0\x3c\0\0" + bytes(8) + b"\0\1" * 99 + b"\0\0", 2)


def _pamqp_timestamp(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A content header whose timestamp is beyond the year 9999."""
    return peer.frame.unmarshal, enveloped(b"\0\x3c\0\0" + bytes(8) + b"\0\x40" + b"\x7f" * 8, 2)


def _pamqp_own_marshal(peer: Copy, random: Random) -> tuple[Any, ...]:
    """A method that got a `marshal` of its own."""
    method = peer.commands.Basic.Ack(1)
    method.marshal = None
    return peer.frame.marshal, method, 1


def _deep_table(depth: int) -> bytes:
    """A table in a table in a table, as `loads` takes it."""
    octets = b"\0\0\0\0"
    for _ in range(depth):
        octets = struct.pack("!I", len(octets) + 2) + b"\0F" + octets
    return octets


def _amqp_view(peer: Copy, random: Random) -> tuple[Any, ...]:
    writes: list[memoryview] = []
    connection = SimpleNamespace(frame_max=131072, bytes_sent=0)
    writer = peer.connection.frame_writer(connection, SimpleNamespace(write=writes.append))

    def read_only() -> bool:
        writer(8, 0, None, None, None)
        return writes[0].readonly

    return (read_only,)


def _amqp_deep(peer: Copy, random: Random) -> tuple[Any, ...]:
    return peer.serialization.loads, "F", _deep_table(3000), 0


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        peer="pika",
        name="an `encode` set on an instance",
        reason="the check would cost more than a tenth of the time; one set on the class is called",
        scenario=_pika_own_encode,
        stock="TypeError: 'NoneType' object is not callable",
        accelerated=(
            "gave b'\\x01\\x00\\x01\\x00\\x00\\x00\\r"
            "\\x00<\\x00P\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\xce'"
        ),
        covers=_is_method_with("encode"),
    ),
    Difference(
        peer="pika",
        name="a table that cannot be read",
        reason=_UNREADABLE,
        tolerant=True,
        scenario=_pika_tables,
        stock="RecursionError: RecursionError",
        accelerated="gave 'builtins.tuple'",
        covers=_reads_on,
    ),
    Difference(
        peer="pika",
        name="more than 64 words of property flags",
        reason="pika takes time that grows with the square of their number, minutes for one frame",
        tolerant=True,
        scenario=_pika_flags,
        stock="gave 'builtins.tuple'",
        accelerated="pika.exceptions.InvalidFrameError: Too many words of property flags",
        covers=_refused_by("pika.exceptions.InvalidFrameError", "Too many words of property flags"),
    ),
    Difference(
        peer="pamqp",
        name="a `marshal` set on an instance",
        reason="the check would cost a tenth of the time; one set on the class is called",
        scenario=_pamqp_own_marshal,
        stock="TypeError: 'NoneType' object is not callable",
        accelerated=(
            "gave b'\\x01\\x00\\x01\\x00\\x00\\x00\\r"
            "\\x00<\\x00P\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x00\\xce'"
        ),
        covers=_is_method_with("marshal"),
    ),
    Difference(
        peer="pamqp",
        name="a table that cannot be read",
        reason=_UNREADABLE,
        tolerant=True,
        scenario=_pamqp_tables,
        stock="RecursionError: RecursionError",
        accelerated="gave 'builtins.tuple'",
        covers=_reads_on,
    ),
    Difference(
        peer="pamqp",
        name="a timestamp of a message that pamqp refuses",
        reason="it is delivered as `UnreadableTime`",
        tolerant=True,
        scenario=_pamqp_timestamp,
        stock=_NO_YEAR,
        accelerated="gave 'builtins.tuple'",
        covers=_reads_on_by_times,
    ),
    Difference(
        peer="pamqp",
        name="more than 64 words of property flags",
        reason="pamqp 3.3 never ends, and 4.0 takes time that grows with the square of their number",
        tolerant=True,
        scenario=_pamqp_flags,
        stock="gave 'builtins.tuple'",
        accelerated=_TOO_MANY_FLAGS,
        covers=_refused_by(*_TOO_MANY_FLAGS.split(": ", 1)),
    ),
    Difference(
        peer="amqp",
        name="read-only octets for `transport.write`",
        reason="py-amqp passes a view of a buffer that it fills again; here each view has its own octets",
        scenario=_amqp_view,
        stock="gave False",
        accelerated="gave True",
    ),
    Difference(
        peer="amqp",
        name="a table that cannot be read",
        reason=_UNREADABLE,
        scenario=_amqp_deep,
        stock="RecursionError: RecursionError",
        accelerated="gave 'builtins.tuple'",
        covers=_reads_on_by_values,
        tolerant=True,
    ),
)


def kept(peer: str, tolerant: bool = False) -> tuple[Difference, ...]:
    """The differences to be expected of one peer."""
    return tuple(known for known in DIFFERENCES if known.peer == peer and known.tolerant <= tolerant)
