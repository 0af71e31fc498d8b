"""Deliveries as programs meet them: thousands, in chunks of what a socket gives, looped over in Python."""

from __future__ import annotations

from functools import partial
from typing import Any

import corpus
import pytest
from peers.interface import Peer

COUNT = 2000  # too many for the caches of the processor to keep all that is made of them
CHUNK = 65536
KINDS = {
    "256 B, numbered": partial(corpus.numbered, 256),
    "256 B, varied": partial(corpus.varied, 256),
    "602 B, traced": corpus.traced,
}


def _total(contents: list[corpus.Content]) -> int:
    return sum(each.delivery_tag + len(each.message_id) + len(each.body) for each in contents)


@pytest.mark.parametrize("kind", KINDS)
def test_frames(peer: Peer, timed: Any, kind: str) -> None:
    """Three frames a delivery, a field of each read."""
    contents = KINDS[kind](COUNT)
    chunks = corpus.chunks(corpus.delivery_stream(contents), CHUNK)
    assert peer.consume(chunks) == _total(contents)
    timed(peer.name, f"consume deliveries, {kind}", COUNT, lambda: peer.consume(chunks))


@pytest.mark.parametrize("kind", KINDS)
def test_messages(ours: Any, timed: Any, kind: str) -> None:
    """The same deliveries as messages."""
    contents = KINDS[kind](COUNT)
    chunks = corpus.chunks(corpus.delivery_stream(contents), CHUNK)
    assert ours.consume_messages(chunks) == _total(contents)
    timed(ours.name, f"consume messages, {kind}", COUNT, lambda: ours.consume_messages(chunks))
