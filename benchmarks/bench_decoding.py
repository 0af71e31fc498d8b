"""Decoding of everything but deliveries: small methods, content headers, connection.start, field tables."""

from __future__ import annotations

from typing import Any

import corpus
import pytest
from checks import drain, same_frames, same_table
from peers.interface import Peer

METHODS = {"basic.ack": corpus.acks, "basic.nack": corpus.nacks, "small methods": corpus.small_methods}


@pytest.mark.parametrize("name", METHODS)
def test_methods(peer: Peer, timed: Any, name: str) -> None:
    """Streams of short methods."""
    frames = METHODS[name](1000)
    stream = corpus.method_stream(frames)
    same_frames(peer, peer.decode(stream), frames)
    timed(peer.name, f"decode {name}", len(frames), lambda: drain(peer.decode(stream)))


def test_headers(peer: Peer, timed: Any) -> None:
    """Content headers with all 14 properties."""
    sets = corpus.all_properties(128)
    stream = corpus.header_stream(sets)
    expected = (("header", corpus.CHANNEL, 256, corpus.without_reserved(values)) for values in sets)
    same_frames(peer, peer.decode(stream), expected)
    timed(peer.name, "decode headers, 14 properties", len(sets), lambda: drain(peer.decode(stream)))


def test_start(peer: Peer, timed: Any) -> None:
    """connection.start with its nested table."""
    stream = corpus.start_stream(32)
    same_frames(peer, peer.decode(stream), corpus.start_frames(32))
    timed(peer.name, "decode connection.start", 32, lambda: drain(peer.decode(stream)))


@pytest.mark.parametrize("name", corpus.tables())
def test_table(peer: Peer, timed: Any, name: str) -> None:
    """Field tables on their own."""
    table = corpus.tables()[name]
    octets = corpus.encoded_table(table)
    same_table(peer, peer.decode_table(octets), table)
    timed(peer.name, f"decode table, {name}", 1, lambda: peer.decode_table(octets))


def test_varied_tables(peer: Peer, timed: Any) -> None:
    """Field tables with the same keys and other values."""
    tables = corpus.varied_tables(1000)
    octets = [corpus.encoded_table(table) for table in tables]
    for each, table in zip(octets, tables, strict=True):
        same_table(peer, peer.decode_table(each), table)

    def read_all() -> None:
        read = peer.decode_table
        for each in octets:
            read(each)

    timed(peer.name, "decode table, 10 mixed, varied", len(octets), read_all)
