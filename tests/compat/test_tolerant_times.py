"""Timestamps that pamqp refuses, such as those in microseconds: the message is delivered all the same."""

from __future__ import annotations

import copy
import pickle
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.marks import replaces
from support.poison import frame, sized

from amqpcodec import RawProperties, UnreadableTable, UnreadableTime, compat, rabbitmq
from amqpcodec.testing import running_broker

pytest.importorskip("aio_pika")
pamqp_frame = pytest.importorskip("pamqp.frame")
exceptions = pytest.importorskip("pamqp.exceptions")

from support.compat.consumers import CONSUMERS, fill, read_whole  # noqa: E402

pytestmark = replaces

MICROSECONDS = 1_700_000_000_000_000
ODD = {"microseconds": MICROSECONDS, "nanoseconds": 1000 * MICROSECONDS, "no time": (1 << 64) - 1}
OTHERS = {  # in order: their flags, and their octets
    "none": (0, b""),
    "a text": (1 << 15, b"\4text"),
    "all before it": (0xFF80, b"\4text\4gzip" + sized() + b"\2\1" + 4 * b"\2id"),
    "a table that cannot be read": (1 << 13, sized(b"\3badZ\0\0")),
}


def properties(seconds: int, others: str = "a text") -> bytes:
    """Return flags and properties, with a timestamp and a type after it."""
    flags, octets = OTHERS[others]
    return struct.pack(">H", flags | 1 << 6 | 1 << 5) + octets + struct.pack(">Q", seconds) + b"\4kind"


def header(octets: bytes) -> bytes:
    """Return a content header."""
    return frame(2, struct.pack(">HHQ", 60, 0, 0) + octets)


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("name", ODD)
def test_a_timestamp_that_pamqp_refuses_is_delivered_and_written_as_it_came(name: str, others: str) -> None:
    octets = header(properties(ODD[name], others))
    with compat.installed("pamqp", tolerant=True):
        size, channel, found = pamqp_frame.unmarshal(octets)
        read = found.properties
        assert (size, channel, read.message_type) == (len(octets), 1, "kind")
        assert type(read.timestamp) is UnreadableTime
        assert read.timestamp.seconds == ODD[name]
        assert isinstance(read.headers, UnreadableTable) == (others == "a table that cannot be read")
        assert pamqp_frame.marshal(found, 1) == octets
        assert compat.status()["pamqp"].tolerated == 1


def test_a_timestamp_that_pamqp_reads_is_as_ever_beside_a_table_that_it_does_not() -> None:
    """It takes large ones for milliseconds."""
    octets = header(properties(MICROSECONDS // 1000, "a table that cannot be read"))
    with compat.installed("pamqp", tolerant=True):
        _, _, found = pamqp_frame.unmarshal(octets)
        assert found.properties.timestamp == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
        assert compat.status()["pamqp"].tolerated == 1


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(header(properties(1))[:-9], id="cut off"),
        pytest.param(header(b"\x80\x41\0\0"), id="more flags"),
        pytest.param(header(b"\x00\x40\0\0"), id="a timestamp cut off"),
        pytest.param(header(b"\xa0\x40\4text\xff\xff\xff\xff"), id="a table without end"),
        pytest.param(frame(1, b"\0\x3c\0\xff"), id="a method that there is not"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_refused_for_something_else_is_refused_as_ever(octets: bytes) -> None:
    def refusal() -> tuple[type[Exception], str]:
        with pytest.raises(Exception) as caught:  # noqa: PT011, whichever it is
            pamqp_frame.unmarshal(octets)
        return type(caught.value), str(caught.value)

    stock = refusal()
    with compat.installed("pamqp", tolerant=True):
        assert refusal() == stock


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("tolerant", [False, True])
def test_a_consumer_on_aio_pika_gets_the_message_once_and_the_next(tolerant: bool, loops: bool) -> None:
    def rewrite(session: Any, event: Any) -> bool:
        kept = RawProperties(properties(MICROSECONDS), 60, rabbitmq.DIALECT)
        session.connection.send_message(event.channel, event.method, kept, b"poison")
        return True

    with compat.installed("pamqp", tolerant=tolerant, loops=loops), running_broker() as broker:
        fill(broker.url, "poison", "last")
        fault = broker.faults.add(rewrite, method="basic.deliver", routing_key="poison")
        found = CONSUMERS["aio-pika"](broker.url, 10 if tolerant else 0.5)
        assert read_whole(found) == tolerant
        assert fault.fired == 1 or not tolerant


def test_a_time_that_cannot_be_read_is_a_time() -> None:
    time = UnreadableTime.of(MICROSECONDS)
    assert time == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert time.timestamp() == MICROSECONDS
    for again in (copy.copy(time), copy.deepcopy(time), pickle.loads(pickle.dumps(time))):
        assert (type(again), again.seconds) == (UnreadableTime, MICROSECONDS)
    day_before = time - timedelta(days=1)
    assert day_before.timestamp() == datetime(9999, 12, 30, 23, 59, 59, tzinfo=UTC).timestamp()
    assert copy.copy(day_before) == day_before
