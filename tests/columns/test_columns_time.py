"""The time that columns take grows with the octets, whatever is in them."""

from __future__ import annotations

import time

import pytest
from support.columns import BUILDS, Table, stream
from support.tiers import few
from support.timing import undisturbed, within

from amqpcodec import rabbitmq

HEARTBEAT = rabbitmq.encode_heartbeat()
BODY = rabbitmq.encode_body(1, b"")


def publishes(count: int) -> bytes:
    return b"".join(
        rabbitmq.encode_method(channel % 65535 + 1, rabbitmq.Basic.Publish()) for channel in range(count)
    )


def unended(count: int) -> bytes:
    """A body with a wrong octet for its end, and frames in it."""
    inside = (HEARTBEAT * 2 + b"\xff") * count
    return HEARTBEAT + b"\3\0\1" + len(inside).to_bytes(4, "big") + inside + b"\0"


SHAPES = {
    "contents that stay open": publishes,
    "bodies of nothing": lambda count: BODY * count,
    "contents cut by contents": lambda count: rabbitmq.encode_method(1, rabbitmq.Basic.Publish()) * count,
    "open contents and unexpected frames": lambda count: publishes(count) + BODY * count,
    "damage": lambda count: (HEARTBEAT * 2 + b"\7") * count,
    "frames in error": lambda count: HEARTBEAT * 2 + b"\1\0\1\0\0\0\4\0\x14\x03\xe7\xce" * count,
    "frames in a body that has no end": unended,
    "heads of frames that are not there": lambda count: b"\1\0\0\0\0\xff\xff\0\x0a\0\x0a" * count,
}


COLUMNS = {"messages": ["body_size", "_error"], "connections": ["frames_sent", "errors"]}


def seconds(build: str, table: str, octets: bytes, chunk: int) -> float:
    """CPU time."""
    events = list(stream(*(octets[at : at + chunk] for at in range(0, len(octets), chunk))))
    made = Table(build, table, columns=COLUMNS[table])
    begin = time.process_time()
    made.batches(events)
    return time.process_time() - begin


@pytest.mark.parametrize("chunk", few([1000, 2**30], 1, "the same at once"))
@pytest.mark.parametrize("shape", few(SHAPES, 5, "further shapes"))
@pytest.mark.parametrize("table", COLUMNS)
@pytest.mark.parametrize("build", BUILDS)
def test_time_is_linear(build: str, table: str, shape: str, chunk: int) -> None:
    few, many = (SHAPES[shape](count) for count in (800, 6400))
    with undisturbed():
        once = min(seconds(build, table, few, chunk) for _ in range(2))
        # Eight times the octets, by the faster of two: quadratic work would take 64 times as long.
        assert within(24 * max(once, 0.002), lambda: seconds(build, table, many, chunk), turns=2)


@pytest.mark.parametrize("build", BUILDS)
def test_channels_that_were_seen_cost_nothing_where_frames_are_found_again(build: str) -> None:
    acks = (rabbitmq.encode_method(channel, rabbitmq.Basic.Ack(1)) for channel in range(1, 15_001))
    damage = [HEARTBEAT * 2 + b"\xff"] * 500

    def work(*lead: bytes) -> float:
        events = list(stream(HEARTBEAT, *lead, *damage))
        made = Table(build, "messages", columns=["_error"])
        begin = time.process_time()
        made.batches(events)
        return time.process_time() - begin

    many = b"".join(acks)
    with undisturbed():
        alone = min(work() for _ in range(2))
        seen = min(seconds(build, "messages", HEARTBEAT + many, 2**30) for _ in range(2))
        # Looking at every channel for every packet would take many times as long as both together.
        assert within(3 * (alone + seen) + 0.05, lambda: work(many), turns=3)


@pytest.mark.parametrize("build", BUILDS)
def test_channels_that_were_seen_cost_nothing_at_the_limit_of_open_contents(build: str) -> None:
    publish, ack = rabbitmq.Basic.Publish(), rabbitmq.Basic.Ack(1)
    opened = publishes(50)
    acks = b"".join(rabbitmq.encode_method(channel, ack) for channel in range(51, 15_001))
    unit = b"".join(
        rabbitmq.encode_method(channel, method)
        for channel, method in ((1, ack), (1, publish), (65000, publish))
    )

    def work(lead: bytes) -> float:
        events = list(stream(HEARTBEAT + lead, unit * 500))
        made = Table(build, "messages", columns=["_error"], max_open_messages=50)
        begin = time.process_time()
        made.batches(events)
        return time.process_time() - begin

    with undisturbed():
        alone = min(work(opened) for _ in range(2))
        seen = min(seconds(build, "messages", HEARTBEAT + acks, 2**30) for _ in range(2))
        assert within(3 * (alone + seen) + 0.05, lambda: work(acks + opened), turns=3)
