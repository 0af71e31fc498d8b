"""Both builds make the same batches of the same octets, however damaged, and however they came."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import share
from support.columns import Table
from support.implementation import wanted
from support.peers import Peer, columns_of, damaged

import amqpcodec
from amqpcodec._columns.schemas import STREAM_TABLES
from amqpcodec._protocol.index import DIALECTS
from amqpcodec.capture import Close, Connection, Data, Endpoint, Event, Gap

pytestmark = pytest.mark.skipif(len(wanted()) < 2, reason="one build has nothing to be compared with")

_LEAD = ["direction", "offset", "packet", "ts"]


def events(source: random.Random, streams: tuple[bytes, bytes], endpoints: bool) -> Iterator[Event]:
    """Both directions of a connection in packets, some later ones first, with a gap now and then."""
    ends = (Endpoint(b"\x7f\0\0\1", 40000), Endpoint(b"\x7f\0\0\1", 5672)) if endpoints else (None, None)
    connection = Connection(3, *ends)
    # Of long streams the smallest chunks would be too many.
    largest = max(source.choice((1, 7, 100, 1460, 10**6)), sum(map(len, streams)) // 500)
    offsets, packet = [0, 0], 0
    lost = source.choice((0.0, 0.0, 0.02))
    left = list(streams)
    while any(left):
        direction = source.randrange(2)
        if not left[direction]:
            continue
        size = min(source.randrange(largest) + 1, len(left[direction]))
        octets, left[direction] = left[direction][:size], left[direction][size:]
        packet += source.choice((1, 1, 2, -1))
        time_ns = packet * 1_000_000_001 if endpoints else None
        packet_and_time = (packet if endpoints else None, time_ns)
        if source.random() < lost:
            yield Gap(connection, direction, offsets[direction], size, *packet_and_time)
        else:
            yield Data(connection, direction, offsets[direction], octets, *packet_and_time)
        offsets[direction] += size
    for direction in (1, 0):
        yield Close(connection, direction, offsets[direction], packet, packet * 1000)


def case(seed: int, table: str, dialect: str) -> tuple[list[Event], dict[str, Any]]:
    """What comes from the network, and how it is to be read."""
    source = random.Random(seed)
    peer = Peer(source, dialect)
    clean = [b"".join(peer.frames(source.randrange(1, 6))) for _ in range(2)]
    if source.random() < 0.3:
        clean[0] = peer.codec.DIALECT.protocol_header + clean[0]
    streams = damaged(source, clean[0]), damaged(source, clean[1])
    auto = dialect == "rabbitmq-0-9-1" and source.random() < 0.3
    options = {
        "columns": columns_of(source, table, dialect),
        "dialect": "auto" if auto else dialect,
        "max_body_bytes": 2000 if source.random() < 0.1 else 512 << 20,
        "max_open_messages": 1 if source.random() < 0.1 else 65535,
        "batch_rows": source.choice((1, 3, 10_000)),
        "_batch_bytes": source.choice((100, 4 << 20)),
        "file": source.choice((None, "a")),
    }
    return list(events(source, streams, source.random() < 0.5)), options


def outcome(impl: str, table: str, given: list[Event], **options: Any) -> tuple[list[Any], str]:
    """The batches of a build, and the error that ended them."""
    try:
        return Table(impl, table, **options).batches(given), ""
    except amqpcodec.DecodeError as error:
        return [], f"{error!r} {error}"


@pytest.mark.parametrize("table", STREAM_TABLES)
@settings(max_examples=share(20))
@given(
    seed=st.integers(0, 2**32),
    dialect=st.sampled_from(tuple(DIALECTS)),
    mode=st.sampled_from(("permissive", "permissive", "drop", "fail")),
)
def test_the_builds_give_equal_batches(table: str, seed: int, dialect: str, mode: str) -> None:
    given, options = case(seed, table, dialect)
    pure, pure_error = outcome("py", table, given, mode=mode, **options)
    compiled, error = outcome("c", table, given, mode=mode, **options)
    assert error == pure_error
    assert [batch.to_pylist() for batch in compiled] == [batch.to_pylist() for batch in pure]
    assert all(map(lambda one, other: one.equals(other), compiled, pure))
