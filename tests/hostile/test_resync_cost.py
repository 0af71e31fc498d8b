"""Finding frames again costs so much an octet, however often it has to be done.

The cost is counted, not timed: octets that are copied, passed on or searched, and calls.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import share
from support.columns import BUILDS, Table, stream

from amqpcodec import rabbitmq
from amqpcodec.capture import Connection, Event, direction, envelopes
from amqpcodec.capture.direction import DirectionDecoder
from amqpcodec.capture.frames import ConnectionDecoder, Reading
from amqpcodec.capture.resync import FrameTest

HEARTBEAT = rabbitmq.encode_heartbeat()
TUNE_OK = rabbitmq.encode_method(0, rabbitmq.Connection.TuneOk(1, 0, 0))
SIZES = (0, 1, 9, 1000, (16 << 20) - 8)
PER_OCTET = 150
PER_EVENT = 6000


class Meter:
    """Counts while it is in use."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.cost = 0
        for module in (direction, envelopes):
            patch.setattr(module, "bytes", self._bytes, raising=False)
        take, find = DirectionDecoder.take, FrameTest.find

        def taken(decoder: DirectionDecoder, octets: bytes, *position: Any) -> None:
            self.cost += len(octets)
            take(decoder, octets, *position)

        def found(test: FrameTest, octets: bytearray, start: int, *how: bool) -> Any:
            verdict, position = find(test, octets, start, *how)
            self.cost += position - start
            return verdict, position

        patch.setattr(DirectionDecoder, "take", taken)
        patch.setattr(FrameTest, "find", found)

    def _bytes(self, octets: Any) -> bytes:
        self.cost += octets if isinstance(octets, int) else len(octets)
        return bytes(octets)

    def _call(self, frame: Any, event: str, arg: Any) -> None:
        self.cost += event in ("call", "c_call")

    def of(self, work: Any) -> int:
        """What it costs to call something."""
        self.cost = 0
        sys.setprofile(self._call)
        try:
            work()
        finally:
            sys.setprofile(None)
        return self.cost


@pytest.fixture(scope="module")
def meter() -> Iterator[Meter]:
    with pytest.MonkeyPatch.context() as patch:
        yield Meter(patch)


def head(kind: int, channel: int, size: int) -> bytes:
    return struct.pack("!BHI", kind, channel, size)


def cut(octets: bytes, chunk: int) -> list[Event]:
    return list(stream(*(octets[at : at + chunk] for at in range(0, len(octets), chunk))))


def objects(events: list[Event]) -> None:
    decoder = ConnectionDecoder(Connection(0, None, None), Reading("auto"))
    for event in events:
        for _ in decoder.feed(event):
            pass


def check(meter: Meter, octets: bytes, chunk: int) -> None:
    events = cut(octets, chunk)
    most = PER_OCTET * len(octets) + PER_EVENT * len(events)
    assert meter.of(lambda: objects(events)) < most
    for build in BUILDS:
        table = Table(build, "messages", columns=["offset"], dialect="auto")
        assert meter.of(lambda table=table: table.batches(events)) < most, build


# A body of which the end is wrong, with this in it from end to end.
FILLINGS = {
    "frames and a wrong octet": HEARTBEAT * 2 + b"\xff",
    "frames and a body": HEARTBEAT * 2 + head(3, 1, 1000),
    "frames and a body beyond the frames to trust": HEARTBEAT * 2 + head(3, 1, SIZES[-1]),
    "frames and a protocol header": HEARTBEAT * 2 + rabbitmq.protocol_header(),
    "heads of bodies": head(3, 1, 1000),
    "heads of methods": head(1, 1, 1000) + b"\0\x3c\0\x28",
    "methods that teach": HEARTBEAT + TUNE_OK + b"\xff",
}


@pytest.mark.parametrize("chunk", [100, 2**30])
@pytest.mark.parametrize("filling", FILLINGS)
def test_of_bodies_without_an_end(meter: Meter, filling: str, chunk: int) -> None:
    inside = FILLINGS[filling] * (6000 // len(FILLINGS[filling]))
    for announced in (len(inside), len(inside) // 2):
        check(meter, HEARTBEAT + head(3, 1, announced) + inside + b"\0", chunk)


PIECES = st.one_of(
    st.sampled_from([HEARTBEAT, TUNE_OK, b"\xff", b"\0", b"\xce", b"\x01", b"A", rabbitmq.protocol_header()]),
    st.builds(head, st.sampled_from([1, 2, 3, 8, 9]), st.integers(0, 2), st.sampled_from(SIZES)),
    st.just(rabbitmq.encode_method(1, rabbitmq.Basic.Publish())),
    st.just(rabbitmq.encode_header(1, rabbitmq.BasicProperties(), 2)),
    st.just(rabbitmq.encode_body(1, b"x")),
    st.binary(max_size=4),
)


@settings(max_examples=share(8))
@given(
    unit=st.lists(PIECES, min_size=1, max_size=6).map(b"".join).filter(len),
    lead=st.sampled_from([b"", HEARTBEAT, HEARTBEAT + head(3, 1, 9500)]),
    chunk=st.sampled_from([40, 2**30]),
)
def test_of_anything_over_and_over(meter: Meter, unit: bytes, lead: bytes, chunk: int) -> None:
    check(meter, lead + unit * (10_000 // len(unit)), chunk)
