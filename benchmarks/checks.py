"""The comparisons made before anything is timed. Messages stay short: the values may be megabytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from corpus import CHANNEL, Content, FrameValues, property_values
from peers.interface import Peer, shared_values


def same_frames(peer: Peer, frames: Iterable[Any], expected: Iterable[FrameValues]) -> None:
    """The frames a library made are the ones that went into the stream."""
    for number, (frame, values) in enumerate(zip_longest(frames, expected)):
        if frame is None or peer.values(frame) != values:
            raise AssertionError(f"{peer.name}: frame {number} is not {values!r:.200}")


def same_bodies(peer: Peer, messages: Iterable[Any], contents: Iterable[Content]) -> None:
    """The messages a library put together carry the bodies that went into the stream."""
    for number, (message, content) in enumerate(zip_longest(messages, contents)):
        if message is None or peer.body(message) != content.body:
            raise AssertionError(f"{peer.name}: message {number} has not the body it was sent with")


def same_table(peer: Peer, table: dict[str, Any], expected: dict[str, Any]) -> None:
    """A decoded table has the entries it was made of, times taken as seconds."""
    if shared_values(table) != shared_values(expected):
        raise AssertionError(f"{peer.name}: table differs: {table!r:.300}")


def same_publish(reader: Peer, peer: Peer, content: Content) -> None:
    """What a library wrote for a message is read back as that message."""
    method, header, *bodies = map(reader.values, reader.decode(peer.publish(content)))
    written = (
        method[2] == "basic.publish"
        and (content.exchange, content.routing_key) == method[3][1:3]
        and header[1:] == (CHANNEL, len(content.body), property_values(content))
        and b"".join(body[2] for body in bodies) == content.body
    )
    if not written:
        raise AssertionError(f"{peer.name}: a publish was not written as it should be: {method!r} {header!r}")


def same_octets(peer: Peer, octets: bytes, expected: bytes) -> None:
    """What a library wrote is what amqpcodec writes."""
    if octets != expected:
        raise AssertionError(f"{peer.name}: wrote {octets!r:.200}, not {expected!r:.200}")


def drain(values: Iterable[Any]) -> None:
    """Ask for every value and keep none."""
    deque(values, maxlen=0)
