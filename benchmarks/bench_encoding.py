"""Encoding; making the method and properties objects is part of the work, for every library."""

from __future__ import annotations

from typing import Any

import corpus
import pytest
from bench_deliveries import KINDS
from checks import same_octets, same_publish, same_table
from peers import FOUND
from peers.interface import Peer

COUNTS = {64: 64, 256: 64, 4096: 64, 131072: 4}
TAGS = [(tag, tag % 8 == 0) for tag in range(1, 257)]
READER = FOUND["amqpcodec pure"]  # reads back what each library wrote


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", corpus.SIZES)
def test_publish(peer: Peer, timed: Any, size: int, kind: str) -> None:
    """Whole publishes, as one bytes object each."""
    contents = KINDS[kind](size, COUNTS[size])
    for content in contents:
        same_publish(READER, peer, content)

    def publish() -> None:
        write = peer.publish
        for content in contents:
            write(content)

    timed(peer.name, f"encode publishes, {size} B, {kind}", len(contents), publish)


def test_publish_built(ours: Any, timed: Any) -> None:
    """Publishes whose method and properties are there already."""
    built = [ours.built(content) for content in corpus.varied(256, COUNTS[256])]

    def publish() -> None:
        encode = ours.amqp.encode_message
        for arguments in built:
            encode(*arguments)

    timed(ours.name, "encode publishes, 256 B, varied, built before", len(built), publish)


def test_publishes_in_pieces(ours: Any, timed: Any) -> None:
    """Encode the same publishes into pieces of 64 KiB."""
    built = [ours.built(content) for content in corpus.varied(256, 10 * COUNTS[256])]
    whole = b"".join(ours.amqp.encode_message(*arguments) for arguments in built)
    assert b"".join(ours.amqp.encode_messages(built)) == whole

    def publish() -> None:
        for _ in ours.amqp.encode_messages(built):
            pass

    timed(ours.name, "encode publishes, 256 B, varied, in pieces", len(built), publish)


def test_publish_prepared(ours: Any, timed: Any) -> None:
    """Publishes by a prepared message: all but exchange, content type and delivery mode differs."""
    contents = corpus.of_one_publisher(256, COUNTS[256])
    write = ours.prepared(contents[0])
    for content in contents:
        assert write(content) == ours.publish(content)

    def publish() -> None:
        for content in contents:
            write(content)

    timed(ours.name, "encode publishes, 256 B, varied, prepared", len(contents), publish)


def test_publish_parts(ours: Any, timed: Any) -> None:
    """A publish of 128 KiB in buffers that leave the body where it is."""
    content = corpus.varied(131072, 1)[0]
    parts = ours.publish_parts(content)
    assert b"".join(parts) == ours.publish(content)
    views = [part for part in parts if isinstance(part, memoryview)]
    assert views
    assert all(view.obj is content.body for view in views)
    timed(ours.name, "publish parts, 131072 B", 1, lambda: ours.publish_parts(content))


def test_publish_parts_copy(timed: Any) -> None:
    """What one copy of that body costs."""
    view = memoryview(corpus.varied(131072, 1)[0].body)
    timed("memcpy", "publish parts, 131072 B", 1, lambda: bytes(view))


def test_ack(peer: Peer, timed: Any) -> None:
    """basic.ack."""
    for tag, multiple in TAGS:
        same_octets(peer, peer.ack(tag, multiple), READER.ack(tag, multiple))

    def write_all() -> None:
        write = peer.ack
        for tag, multiple in TAGS:
            write(tag, multiple)

    timed(peer.name, "encode basic.ack", len(TAGS), write_all)


def test_nack(peer: Peer, timed: Any) -> None:
    """basic.nack."""
    for tag, multiple in TAGS:
        same_octets(peer, peer.nack(tag, multiple, True), READER.nack(tag, multiple, True))

    def write_all() -> None:
        write = peer.nack
        for tag, multiple in TAGS:
            write(tag, multiple, True)

    timed(peer.name, "encode basic.nack", len(TAGS), write_all)


def test_setup(peer: Peer, timed: Any) -> None:
    """What a client sends to start consuming, four methods."""
    queues = [f"queue-{number}" for number in range(32)]
    for queue in queues:
        same_octets(peer, peer.setup(queue), READER.setup(queue))

    def write_all() -> None:
        write = peer.setup
        for queue in queues:
            write(queue)

    timed(peer.name, "encode small methods", 4 * len(queues), write_all)


def test_header(peer: Peer, timed: Any) -> None:
    """Content headers with all 14 properties."""
    sets = corpus.all_properties(32)
    writers = [peer.header_writer(values) for values in sets]
    for write, values in zip(writers, sets, strict=True):
        header = READER.values(next(READER.decode(write())))
        assert header == ("header", corpus.CHANNEL, 256, corpus.without_reserved(values))

    def write_all() -> None:
        for write in writers:
            write()

    timed(peer.name, "encode headers, 14 properties", len(writers), write_all)


def test_start(peer: Peer, timed: Any) -> None:
    """connection.start with its nested table."""
    arguments = (corpus.SERVER_PROPERTIES, corpus.MECHANISMS, corpus.LOCALES)
    assert READER.values(next(READER.decode(peer.start(*arguments)))) == corpus.start_frames(1)[0]
    timed(peer.name, "encode connection.start", 1, lambda: peer.start(*arguments))


@pytest.mark.parametrize("name", corpus.tables())
def test_table(peer: Peer, timed: Any, name: str) -> None:
    """Field tables on their own."""
    table = corpus.tables()[name]
    same_table(peer, READER.decode_table(peer.encode_table(table)), table)
    timed(peer.name, f"encode table, {name}", 1, lambda: peer.encode_table(table))
