"""States of what `following` keeps: connections with their channels, and the messages that wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from amqpcodec import DecodeError
from amqpcodec._kernel.wire import HEADER, METHOD
from amqpcodec._state import Fields, Note, damaged
from amqpcodec.capture import Connection
from amqpcodec.capture.envelopes import is_frame, method_ids

from .following_py import LOST_COUNT, Channel, Followed, Follower, Message, Request, Source
from .origins import NO_TIME, FrameOrigin, none_for
from .steps import step_of
from .waits_py import WAYS

_LAST_TAG = 2**64 - 1


def follower_state(follower: Follower, note: Note) -> list[Any]:
    """Return the state of all connections; `note` is called with each packet in it."""
    connections = sorted(follower.connections.items(), key=lambda item: item[0].number)
    return [
        [connection.number, followed.closes, [
            [number, *_channel_state(channel, note)] for number, channel in sorted(followed.channels.items())
        ], followed.heard]
        for connection, followed in connections
    ]  # fmt: skip


def restore_followed(
    followed: Followed, state: Fields, dialects: Mapping[str, ModuleType], make: type[Message]
) -> None:
    """Go on from the state of a connection.

    Args:
        followed: the connection, a new one.
        state: its part of what `follower_state` returned, after its number.
        dialects: their modules, by name.
        make: the class of messages, of the build of `followed`.

    Raises:
        ValueError: the state is damaged.
    """
    followed.closes = state.number(0, 1)
    follower = followed.follower
    for fields in state.items():
        number = fields.number(0, 0xFFFF)
        restored = partial(_restored_message, followed.connection, number, dialects, make)
        for message in _restore_channel(followed.channel(number), fields, restored):
            follower.waiting += 1
            follower.octets += len(message.frames)
    followed.heard |= state.number(0, 3)


def _channel_state(channel: Channel, note: Note) -> list[Any]:
    consumers = channel.consumers or {}
    return [
        channel.next_tag, channel.transacted, channel.queue,
        [[tag, *source] for tag, source in consumers.items()],
        [_stored(each) for each in channel.consumes], [_stored(each) for each in channel.gets],
        [_message_state(each, note) for each in (channel.published or {}).values()],
        [_message_state(each, note) for each in (channel.delivered or {}).values()],
        channel.doubted_published, channel.doubted_delivered,
    ]  # fmt: skip


def _restore_channel(channel: Channel, state: Fields, restored: Callable[[Fields], Message]) -> list[Message]:
    """Go on from the state of a channel; return the messages that wait, which `restored` makes."""
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
    channel.doubted_published, channel.doubted_delivered = (
        state.number(0, _LAST_TAG),
        state.number(0, _LAST_TAG),
    )
    state.end()
    return [*published.values(), *delivered.values()]


def _restored_message(
    connection: Connection,
    channel: int,
    dialects: Mapping[str, ModuleType],
    make: type[Message],
    state: Fields,
) -> Message:
    """Return the message that a state was made of."""
    packet, time_ns, offset, direction = state.packet(), state.time(), state.number(0), state.number(0, 1)
    dialect: Any = dialects.get(state.text())
    step, frames, header_offset = state.number(1), state.octets(), state.number(0)
    if dialect is None or time_ns is None:
        raise damaged("there is a message without a dialect or a time")
    origin = FrameOrigin(connection, direction, packet, time_ns, offset)
    message = make(origin, channel, dialect, step, frames, header_offset)
    method, header = message.method or b"", message.header
    known = dialect.METHODS.get(method_ids(method)) if is_frame(method, METHOD) else None
    if known is None or step_of(known) != step or not known.spec.content:
        raise damaged("there is a message of a method that nobody knows")
    if header is not None and not is_frame(header, HEADER):
        raise damaged("there is a message without a content header")
    message.size, message.complete, message.tag = state.number(0), state.flag(), state.number(1, _LAST_TAG)
    message.queue, message.sure = state.text_or_none(), state.flag()
    message.found = state.text_or_none()
    if message.found not in (None, *WAYS):
        raise damaged("there is a message whose publish was found in a way that nobody knows")
    wait_ns = state.perhaps(0)
    message.wait_ns = NO_TIME if wait_ns is None else wait_ns
    message.publish_flow, message.publish_offset = state.number(0), state.number(0)
    wrong = state.fields()
    if code := wrong.later(0, 0xFFFF):
        message.error = DecodeError(wrong.text(), code, wrong.number(0), dialect=connection.dialect)
        message.culprit = wrong.octets()
    wrong.end()
    state.end()
    return message


def _message_state(message: Message, note: Note) -> list[Any]:
    error = message.error
    wrong = [] if error is None else [error.reply_code, error.message, error.offset, message.culprit]
    return [
        note(none_for(message.packet)), none_for(message.time_ns), message.offset, message.direction,
        message.dialect.DIALECT.name, message.step, message.frames, message.header_offset, message.size,
        message.complete, message.tag, message.queue, message.sure, message.found, none_for(message.wait_ns),
        message.publish_flow, message.publish_offset, wrong,
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
