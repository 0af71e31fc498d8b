"""States of what `following` keeps: of a channel, and of a message that waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from amqpcodec import DecodeError
from amqpcodec._kernel.wire import FRAME_END, HEADER, METHOD, OVERHEAD
from amqpcodec._state import Fields, Note, damaged
from amqpcodec.capture import Connection
from amqpcodec.capture.envelopes import method_ids

from .requests import Request, Source, step_of
from .rows import NO_TIME, FrameOrigin

if TYPE_CHECKING:
    from .following_py import Channel, Message

LOST_COUNT = -1  # in place of the number of the next publish
_LEAST_METHOD = 12  # octets of a frame with the ids of a method


def channel_state(channel: Channel, note: Note) -> list[Any]:
    """Return the state of a channel; `note` is called with each packet in it."""
    consumers = channel.consumers or {}
    return [
        channel.next_tag, channel.transacted, channel.queue,
        [[tag, *source] for tag, source in consumers.items()],
        [_stored(each) for each in channel.consumes], [_stored(each) for each in channel.gets],
        [_message_state(each, note) for each in (channel.published or {}).values()],
        [_message_state(each, note) for each in (channel.delivered or {}).values()],
    ]  # fmt: skip


def restore_channel(channel: Channel, state: Fields, restored: Callable[[Fields], Message]) -> list[Message]:
    """Go on from the state of a channel; return the messages that wait.

    Args:
        channel: a new one.
        state: what `channel_state` returned.
        restored: makes a message from its state.

    Raises:
        ValueError: it is damaged.
    """
    channel.next_tag = state.number(LOST_COUNT)
    channel.transacted = state.flag()
    channel.queue = state.text_or_none()
    channel.consumers = {each.octets(): _source(each) for each in state.items()} or None
    channel.consumes = tuple(map(_request, state.items()))
    channel.gets = tuple(map(_request, state.items()))
    published = {message.tag: message for message in map(restored, state.items())}
    delivered = {message.tag: message for message in map(restored, state.items())}
    channel.published, channel.first_published = published or None, min(published, default=0)
    channel.delivered, channel.first_delivered = delivered or None, min(delivered, default=0)
    state.end()
    return [*published.values(), *delivered.values()]


def restored_message(
    state: Fields,
    connection: Connection,
    channel: int,
    dialects: Mapping[str, ModuleType],
    make: Callable[..., Message],
) -> Message:
    """Return the message that a state was made of.

    Args:
        state: of the message.
        connection, channel: where it was seen.
        dialects: their modules, by name.
        make: the class of messages.

    Raises:
        ValueError: the state is damaged.
    """
    packet, time_ns, offset, direction = state.packet(), state.time(), state.number(0), state.number(0, 1)
    dialect: Any = dialects.get(state.text())
    step, frames, header_offset = state.number(1), state.octets(), state.number(0)
    if dialect is None or time_ns is None:
        raise damaged("there is a message without a dialect or a time")
    origin = FrameOrigin(connection, direction, packet, time_ns, offset)
    message = make(origin, channel, dialect, step, frames, header_offset)
    method, header = message.method or b"", message.header
    known = dialect.METHODS.get(method_ids(method)) if _is_frame(method, METHOD, _LEAST_METHOD) else None
    if known is None or step_of(known) != step or not known.spec.content:
        raise damaged("there is a message of a method that nobody knows")
    if header is not None and not _is_frame(header, HEADER, OVERHEAD):
        raise damaged("there is a message without a content header")
    message.size, message.complete, message.tag = state.number(0), state.flag(), state.number(1, 2**64 - 1)
    message.queue, message.sure = state.text_or_none(), state.flag()
    wrong = state.fields()
    if code := wrong.later(0, 0xFFFF):
        message.error = DecodeError(wrong.text(), code, wrong.number(0), dialect=connection.dialect)
        message.culprit = wrong.octets()
    wrong.end()
    state.end()
    return message


def none_for(number: int) -> int | None:
    """Return a number; None for NO_TIME."""
    return None if number == NO_TIME else number


def _message_state(message: Message, note: Note) -> list[Any]:
    error = message.error
    wrong = [] if error is None else [error.reply_code, error.message, error.offset, message.culprit]
    return [
        note(none_for(message.packet)), none_for(message.time_ns), message.offset, message.direction,
        message.dialect.DIALECT.name, message.step, message.frames, message.header_offset, message.size,
        message.complete, message.tag, message.queue, message.sure, wrong,
    ]  # fmt: skip


def _stored(request: Request) -> list[Any]:
    tag, queue, silent = request
    return [tag.encode("utf-8", "surrogateescape"), queue, silent]


def _source(state: Fields) -> Source:
    source = state.text_or_none(), state.flag()
    state.end()
    return source


def _request(state: Fields) -> Request:
    return (state.octets().decode("utf-8", "surrogateescape"), *_source(state))


def _is_frame(octets: bytes, kind: int, least: int) -> bool:
    """Return whether octets are one frame of a type, with so many of them at least."""
    whole = len(octets) >= least and octets[0] == kind and octets[-1] == FRAME_END
    return whole and int.from_bytes(octets[3:7], "big") + OVERHEAD == len(octets)
