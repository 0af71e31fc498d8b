"""Octets that lose track of frames again and again: only a run of frames is believed then, and found."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from support.columns import BUILDS, Table, stream

from amqpcodec import rabbitmq
from amqpcodec._state import pack, unpack
from amqpcodec.capture import CapturedFrame, Connection, Event, Item
from amqpcodec.capture.frames import ConnectionDecoder, Reading
from amqpcodec.capture.resync import FrameTest, Verdict

HEARTBEAT = rabbitmq.encode_heartbeat()
HEADER = rabbitmq.protocol_header()
SELECT = rabbitmq.encode_method(1, rabbitmq.Tx.Select())
DAMAGE = HEARTBEAT * 2 + b"\xff"
OPENING = HEADER + HEARTBEAT


def unended(inside: bytes) -> bytes:
    """A body frame of which the end is wrong."""
    return struct.pack("!BHI", 3, 1, len(inside)) + inside + b"\0"


def events(*chunks: bytes) -> list[Event]:
    return list(stream(*chunks))


def decoded(given: list[Event]) -> list[Item]:
    decoder = ConnectionDecoder(Connection(0, None, None), Reading("auto"))
    return [item for event in given for item in decoder.feed(event)]


def shown(items: list[Item]) -> list[tuple[Any, ...]]:
    return [(type(item).__name__, item.offset, getattr(item, "kind", "")) for item in items]


def frames_at(items: list[Item]) -> set[int]:
    return {item.offset for item in items if isinstance(item, CapturedFrame)}


def test_what_is_made_to_look_like_frames_gives_few_faults() -> None:
    items = decoded(events(OPENING, unended(DAMAGE * 5000)))
    assert len(items) < 100


@pytest.mark.parametrize(
    "damage", [DAMAGE, HEARTBEAT + struct.pack("!BHI", 1, 0, 0) + b"\0", SELECT + b"\xff"]
)
def test_a_run_of_frames_behind_it_is_found_whatever_they_are(damage: bytes) -> None:
    for run in (HEARTBEAT * 64, SELECT * 64, rabbitmq.encode_body(1, b"x" * 4096)):
        lead = OPENING + unended(damage * 200)
        items = decoded(events(lead, run, SELECT))
        assert {len(lead), len(lead) + len(run)} <= frames_at(items)


def test_a_few_frames_behind_it_are_found_where_nothing_follows() -> None:
    lead = OPENING + unended(DAMAGE * 200)
    items = decoded(events(lead, SELECT * 2))
    assert len(lead) in frames_at(items)


def test_a_few_losses_of_track_ask_for_no_run() -> None:
    lead = OPENING + unended(DAMAGE * 8)
    # The stream is not at its end, where less is asked for.
    items = decoded(events(lead + SELECT * 2 + HEARTBEAT)[:1])
    assert len(lead) in frames_at(items)


def test_a_long_stretch_without_a_loss_restores_trust() -> None:
    lead = OPENING + unended(DAMAGE * 200)
    stretch = rabbitmq.encode_body(1, b"x" * 5000)
    items = decoded(events(lead, stretch, DAMAGE, SELECT * 2, HEARTBEAT))
    assert len(lead) + len(stretch) + len(DAMAGE) in frames_at(items)


@pytest.mark.parametrize("size", [1, 7, 100, 4096])
def test_however_the_octets_are_cut_the_frames_are_the_same(size: int) -> None:
    octets = OPENING + unended(DAMAGE * 60) + SELECT * 70 + DAMAGE * 3 + SELECT * 3
    chunks = [octets[at : at + size] for at in range(0, len(octets), size)]
    assert frames_at(decoded(events(*chunks))) == frames_at(decoded(events(octets)))


def test_who_goes_on_from_a_state_finds_the_same() -> None:
    octets = OPENING + unended(DAMAGE * 60) + SELECT * 70 + DAMAGE * 3 + SELECT * 3
    given = events(*(octets[at : at + 50] for at in range(0, len(octets), 50)))
    whole = shown(decoded(given))
    for cut in range(1, len(given), 3):
        decoder = ConnectionDecoder(Connection(0, None, None), Reading("auto"))
        items = [item for event in given[:cut] for item in decoder.feed(event)]
        state = pack(decoder.snapshot(lambda number: number))
        ends = [direction.state.end for direction in decoder.directions]
        decoder = ConnectionDecoder(Connection(0, None, None), Reading("auto"))
        decoder.restore(unpack(state), ends)
        items += [item for event in given[cut:] for item in decoder.feed(event)]
        assert shown(items) == whole


@pytest.mark.parametrize("losses", [[18, 0], [-1, 0], [1, 10**9], [True, 0], [1, None]])
def test_a_state_with_losses_that_cannot_be_is_refused(losses: list[Any]) -> None:
    decoder = ConnectionDecoder(Connection(0, None, None), Reading("auto"))
    for event in events(OPENING, unended(DAMAGE)):
        list(decoder.feed(event))
    tree = decoder.snapshot(lambda number: number)
    direction = next(each for each in tree if isinstance(each, list) and each[-2:-1] == [1])
    direction[-2:] = losses
    other = ConnectionDecoder(Connection(0, None, None), Reading("auto"))
    with pytest.raises(ValueError, match="damaged"):
        other.restore(unpack(pack(tree)), [direction.state.end for direction in decoder.directions])


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("table", ["frames", "messages", "errors"])
def test_columns_show_the_same_as_the_object_path(build: str, table: str) -> None:
    octets = OPENING + unended(DAMAGE * 60) + SELECT * 70 + DAMAGE * 3 + SELECT * 3
    given = events(*(octets[at : at + 300] for at in range(0, len(octets), 300)))
    offsets = [row["offset"] for row in Table(build, table, columns=["offset"], dialect="auto").rows(given)]
    pure = [row["offset"] for row in Table("py", table, columns=["offset"], dialect="auto").rows(given)]
    assert offsets == pure
    if table == "frames":
        assert set(offsets) >= frames_at(decoded(given))


# Each octet of the size of a frame counts: the third one is 1 from 64 KiB on, the second one from 16 MiB on.
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("size", [255, 256, 65535, 65536, 70_000, 131_072])
def test_track_is_found_again_at_a_frame_of_any_size_agreed_on(build: str, size: int) -> None:
    damage, body = b"\xfe" * 50, rabbitmq.encode_body(1, b"x" * size)
    given = events(OPENING + damage, body, SELECT)
    places = [0, len(HEADER), len(OPENING + damage), len(OPENING + damage + body)]
    assert sorted(frames_at(decoded(given))) == places
    rows = Table(build, "frames", columns=["offset"], dialect="auto").rows(given)
    assert [row["offset"] for row in rows] == [*places[:2], len(OPENING), *places[2:]]  # and what was lost


@pytest.mark.parametrize("limit", [255, 65_535, 65_536, 131_080, 2**24 - 1, 2**24, 2**32 - 1])
def test_a_frame_is_looked_for_up_to_the_largest_and_no_further(limit: int) -> None:
    test = FrameTest({(90, 10)}, {60}, {1, 2, 3, 8}, limit)
    for size, verdict in ((limit - 8, Verdict.MORE), (limit - 7, Verdict.NO)):
        head = struct.pack("!BHI", 3, 1, size)
        assert test.judge(head, 0, final=False) is verdict
        found = test.find(b"\xfe" * 9 + head + b"\xfe" * 9, 0, final=False)
        assert (found == (Verdict.MORE, 9)) is (verdict is Verdict.MORE)
