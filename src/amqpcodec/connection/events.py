"""Events of a connection, as `Connection.receive_data` and `Connection.on_time` report them.

An event is a small immutable record. Programs tell events apart by class, best with ``match``:

    match event:
        case MessageReceived(channel, method, properties, body):
            ...
        case ConnectionClosed(reply_code=code):
            ...

Both builds share these classes.
"""

from __future__ import annotations

from .._typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from typing import Literal, TypeVar

    from .._kernel.records_py import Frame, Method
    from ..errors import DecodeError

    _E = TypeVar("_E")


def _equal(self: Any, other: object) -> bool:
    return type(other) is type(self) and tuple(self) == tuple(other)  # type: ignore[arg-type]


def _unequal(self: Any, other: object) -> bool:
    return not _equal(self, other)


def _hashed(self: Any) -> int:
    return hash((type(self).__name__, *self))


def _event(cls: type[_E]) -> type[_E]:
    """Events of different classes are different, whatever their values."""
    cls.__eq__ = _equal  # type: ignore[method-assign]
    cls.__ne__ = _unequal  # type: ignore[method-assign]
    cls.__hash__ = _hashed  # type: ignore[method-assign]
    return cls


@_event
class ProtocolHeaderReceived(NamedTuple):
    """The eight octets with which the peer names its version.

    A server receives it first, and answers with connection.start. A client receives it only from a server
    that refuses the version asked for.

    Attributes:
        octets: the octets as they came.
        accepted: False if the versions differ: the connection is over. A server has then queued its own
            header as the answer.
    """

    octets: bytes
    accepted: bool


@_event
class Opened(NamedTuple):
    """The server has opened the connection: connection.open-ok has come. Only clients see this event.

    Attributes:
        channel_max: the highest channel number, 0 for no limit.
        frame_max: octets of the largest frame, 0 for no limit.
        heartbeat: seconds, 0 for none.
    """

    channel_max: int
    frame_max: int
    heartbeat: int


@_event
class ChannelOpened(NamedTuple):
    """The server has opened a channel that this client asked for.

    Attributes:
        channel: channel number.
        method: channel.open-ok, or channel.ok after a channel.resume of 0-9.
    """

    channel: int
    method: Method


@_event
class MethodReceived(NamedTuple):
    """A method without content that none of the other events stands for.

    Attributes:
        channel: channel number; 0 for a method of the connection.
        method: the method.
        request: the method that it answers, of those that this side sent; None if it answers none.
    """

    channel: int
    method: Method
    request: Method | None = None


@_event
class MessageReceived(NamedTuple):
    """A method with its whole content.

    Attributes:
        channel: channel number.
        method: the method, such as basic.deliver.
        properties: the properties of the content's class.
        body: the body.
        request: the method that it answers, such as basic.get; None if it answers none.
        sequence_number: the number that confirms it: basic.publish on a channel in confirm mode. Else None.
    """

    channel: int
    method: Method
    properties: Any
    body: bytes
    request: Method | None = None
    sequence_number: int | None = None


@_event
class Settled(NamedTuple):
    """The peer acknowledges or rejects what was sent: basic.ack, basic.nack, basic.reject.

    Attributes:
        channel: channel number.
        method: the method.
        tags: every number that it settles, in order; ``multiple`` is resolved. For a server these are
            delivery tags, for a client the sequence numbers of its publishes.
    """

    channel: int
    method: Method
    tags: tuple[int, ...]


@_event
class FlowChanged(NamedTuple):
    """The peer has sent channel.flow. The answer is queued.

    Attributes:
        channel: channel number.
        active: False if no content may be sent on this channel until further notice.
    """

    channel: int
    active: bool


@_event
class Blocked(NamedTuple):
    """The server reads no more publishes for now.

    Attributes:
        reason: as the server says it, with question marks for what is not UTF-8.
    """

    reason: str


@_event
class Unblocked(NamedTuple):
    """The server reads publishes again."""


@_event
class FrameReceived(NamedTuple):
    """A trace or out-of-band frame of 0-8 and 0-9, which the protocol leaves undefined.

    Attributes:
        frame: the frame, with an `OpaquePayload`.
    """

    frame: Frame


@_event
class Violation(NamedTuple):
    """The peer has broken the protocol. The right close method is queued.

    Attributes:
        channel: the channel at fault, 0 if it is the connection.
        reply_code: the reply code of the fault.
        reply_text: what is wrong, as sent to the peer.
        class_id: class of the method at fault, else 0.
        method_id: the method at fault, else 0.
        to_send: channel.close or connection.close, already queued; None if the peer cannot be told.
        error: the error of the decoder, if the octets themselves were wrong.
    """

    channel: int
    reply_code: int
    reply_text: str
    class_id: int
    method_id: int
    to_send: Method | None
    error: DecodeError | None = None


class Outstanding(NamedTuple):
    """Holds what was open on a channel when the connection ended.

    Attributes:
        channel: channel number; 0 for requests of the connection itself.
        unconfirmed, unacknowledged, awaited: as `ChannelClosed` has them.
    """

    channel: int
    unconfirmed: tuple[int, ...] = ()
    unacknowledged: tuple[int, ...] = ()
    awaited: tuple[Method, ...] = ()


@_event
class ChannelClosed(NamedTuple):
    """A channel is closed; its number may be used again. The text has question marks for what is not UTF-8.

    Attributes:
        channel: channel number.
        by: ``"peer"`` if the peer closed it, ``"local"`` if this side did.
        reply_code, reply_text, class_id, method_id: as in channel.close.
        unconfirmed: sequence numbers of publishes that were not confirmed, in order.
        unacknowledged: delivery tags that were not settled, in order. Settling them in a transaction that was
            not committed does not count.
        awaited: the requests of this side that were not answered, oldest first.
        crossed: the channel.close of the peer, if this side had sent one as well; else None.
    """

    channel: int
    by: Literal["peer", "local"]
    reply_code: int
    reply_text: str
    class_id: int = 0
    method_id: int = 0
    unconfirmed: tuple[int, ...] = ()
    unacknowledged: tuple[int, ...] = ()
    awaited: tuple[Method, ...] = ()
    crossed: Method | None = None


@_event
class ConnectionClosed(NamedTuple):
    """The connection is over: the last event. What is still queued may be sent, then the socket closed.

    Attributes:
        by: who ended it.

            =============  ===================================================================
            ``"peer"``     the peer sent connection.close
            ``"local"``    this side did, also after a `Violation`
            ``"version"``  the two sides speak different versions
            ``"eof"``      the octets ended without a close
            ``"timeout"``  the peer was silent, or took too long for the handshake or the close
            =============  ===================================================================
        reply_code: as in connection.close; 0 if there was none.
        reply_text: as in connection.close, with question marks for what is not UTF-8; or what happened.
        class_id: class of the method at fault, else 0.
        method_id: the method at fault, else 0.
        outstanding: what was open on each channel where something was, by their numbers.
        crossed: the connection.close of the peer, if this side had sent one as well; else None.
    """

    by: Literal["peer", "local", "version", "eof", "timeout"]
    reply_code: int = 0
    reply_text: str = ""
    class_id: int = 0
    method_id: int = 0
    outstanding: tuple[Outstanding, ...] = ()
    crossed: Method | None = None


Event: TypeAlias = (
    ProtocolHeaderReceived
    | Opened
    | ChannelOpened
    | MethodReceived
    | MessageReceived
    | Settled
    | FlowChanged
    | Blocked
    | Unblocked
    | FrameReceived
    | Violation
    | ChannelClosed
    | ConnectionClosed
)

__all__ = [
    "Blocked",
    "ChannelClosed",
    "ChannelOpened",
    "ConnectionClosed",
    "Event",
    "FlowChanged",
    "FrameReceived",
    "MessageReceived",
    "MethodReceived",
    "Opened",
    "Outstanding",
    "ProtocolHeaderReceived",
    "Settled",
    "Unblocked",
    "Violation",
]
