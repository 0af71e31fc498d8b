"""Streams of deliveries: decoding, feeding in chunks, messages, raw tables, large bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import corpus
import pytest
from checks import drain, same_bodies, same_frames
from peers import FOUND, MISSING
from peers.interface import Peer

# Deliveries in a stream, so that one call takes a library about as long whatever the size.
COUNTS = {64: 128, 256: 128, 4096: 128, 131072: 8}
KINDS: dict[str, Callable[[int, int], list[corpus.Content]]] = {
    "fixed": corpus.fixed,
    "varied": corpus.varied,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", corpus.SIZES)
def test_decode(peer: Peer, timed: Any, size: int, kind: str) -> None:
    """Method, header and body frames of whole deliveries."""
    contents = KINDS[kind](size, COUNTS[size])
    stream = corpus.delivery_stream(contents)
    same_frames(peer, peer.decode(stream), corpus.delivery_frames(contents))
    timed(
        peer.name, f"decode deliveries, {size} B, {kind}", len(contents), lambda: drain(peer.decode(stream))
    )


@pytest.mark.parametrize("size", [1, 1460, 65536])
def test_feed(peer: Peer, timed: Any, size: int) -> None:
    """The same deliveries arriving in chunks."""
    contents = corpus.varied(256, 8 if size == 1 else 128)
    stream = corpus.delivery_stream(contents)
    chunks = corpus.chunks(stream, size)
    same_frames(peer, peer.feed(chunks), corpus.delivery_frames(contents))
    timed(
        peer.name,
        f"feed deliveries, 256 B, in chunks of {size}",
        len(contents),
        lambda: drain(peer.feed(chunks)),
    )


@pytest.mark.parametrize("size", [256, 131072])
def test_messages(peer: Peer, timed: Any, size: int) -> None:
    """Deliveries put together to messages."""
    contents = corpus.varied(size, COUNTS[size])
    stream = corpus.delivery_stream(contents)
    same_bodies(peer, peer.messages(stream), contents)
    timed(peer.name, f"messages, {size} B, varied", len(contents), lambda: drain(peer.messages(stream)))


@pytest.mark.parametrize("kind", KINDS)
def test_raw_tables(ours: Any, timed: Any, kind: str) -> None:
    """Deliveries whose headers stay octets until somebody looks."""
    contents = KINDS[kind](256, COUNTS[256])
    stream = corpus.delivery_stream(contents)
    for frame, content in zip(list(ours.decode_raw(stream))[1::3], contents, strict=True):
        assert dict(frame.payload.properties.headers) == content.headers
    item = f"raw tables, 256 B, {kind}"
    timed(ours.name, item, len(contents), lambda: drain(ours.decode_raw(stream)))


@pytest.mark.parametrize("way", ["memcpy", "amqpcodec", "amqpcodec pure"])
def test_large_body(timed: Any, way: str) -> None:
    """Body frames of 128 KiB beside one copy of the same octets."""
    body = corpus.varied(131072, 1)[0].body
    frame = b"\x03\x00\x01" + len(body).to_bytes(4, "big") + body + b"\xce"
    item = "body frame of 128 KiB"
    if way == "memcpy":
        view = memoryview(body)
        assert bytes(view) == body
        timed(way, item, 1, lambda: bytes(view))
        return
    if way not in FOUND:
        pytest.skip(f"{way}: {MISSING[way]}")
    ours: Any = FOUND[way]
    assert next(ours.decode_unlimited(frame)).payload == body
    decoder = ours.amqp.FrameDecoder(frame_max=0)
    timed(way, item, 1, lambda: drain(decoder.feed(frame)))


@pytest.mark.parametrize("size", [1_000, 100_000, 1_000_000, 10_000_000])
def test_single_octets(ours: Any, timed: Any, size: int) -> None:
    """One body frame arriving octet by octet: the cost of an octet must not grow with the buffered size."""
    if size > 1_000_000 and ours.name != "amqpcodec":
        pytest.skip("for a decoder that needs microseconds for each, minutes")
    body = bytes(size)
    chunks = [b"\x03\x00\x01" + size.to_bytes(4, "big"), *corpus.chunks(body, 1), b"\xce"]

    def feed() -> int:
        decoder = ours.amqp.FrameDecoder(frame_max=0)
        return sum(len(frame.payload) for chunk in chunks for frame in decoder.feed(chunk))

    assert feed() == size
    timed(ours.name, f"octet by octet, {size} buffered", size, feed, rounds=3 if size >= 1_000_000 else 20)
