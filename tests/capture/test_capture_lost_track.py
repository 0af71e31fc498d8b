"""Octets that lose track of frames again and again: only a run of frames is believed then, and found."""

from __future__ import annotations

import struct
from contextlib import nullcontext
from typing import Any

import pytest
from support.columns import BUILDS, Table, stream

from amqpcodec import rabbitmq
from amqpcodec._state import pack, unpack
from amqpcodec.capture import CapturedFrame, Connection, Data, Event, Gap, Item
from amqpcodec.capture.frames import ConnectionDecoder, Reading
from amqpcodec.capture.resync import FrameTest, Verdict

HEARTBEAT = rabbitmq.encode_heartbeat()
HEADER = rabbitmq.protocol_header()
SELECT = rabbitmq.encode_method(1, rabbitmq.Tx.Select())
CONTENT_HEADER = rabbitmq.encode_header(1, rabbitmq.BasicProperties(), 9)
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


def test_each_gap_before_the_first_frame_is_reported_with_it() -> None:
    who = Connection(0, None, None)
    gaps = [Gap(who, 0, at, 5, None, None) for at in (0, 5, 10)]
    found = decoded([*gaps, Data(who, 0, 15, HEARTBEAT * 64, None, None)])[:5]
    assert shown(found) == [
        ("Fault", 0, "gap"), ("Fault", 5, "gap"), ("Fault", 10, "gap"),
        ("CapturedFrame", 15, ""), ("CapturedFrame", 23, ""),
    ]  # fmt: skip


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


@pytest.mark.parametrize(
    ("losses", "taken"),
    [
        ([17, 0], True), ([0, 0], True), ([18, 0], False), ([-1, 0], False), ([1, -1], False),
        ([1, 10**9], False), ([True, 0], False), ([1, None], False),
    ],
)  # fmt: skip
def test_a_state_with_losses_that_cannot_be_is_refused(losses: list[Any], taken: bool) -> None:
    decoder = ConnectionDecoder(Connection(0, None, None), Reading("auto"))
    for event in events(OPENING, unended(DAMAGE))[:-1]:  # without the end
        list(decoder.feed(event))
    tree = decoder.snapshot(lambda number: number)
    direction = next(each for each in tree if isinstance(each, list) and each[-2:-1] == [1])
    direction[-2:] = losses
    other = ConnectionDecoder(Connection(0, None, None), Reading("auto"))
    with nullcontext() if taken else pytest.raises(ValueError, match=r"damaged: .* out of range"):
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
        found = test.find(b"\xfe" * 9 + head + b"\xfe" * 9, 0, final=False, doubtful=False)
        assert (found == (Verdict.MORE, 9)) is (verdict is Verdict.MORE)


@pytest.mark.parametrize(
    ("frame", "verdict"),
    [
        (rabbitmq.encode_method(1, rabbitmq.Tx.Select()), Verdict.YES),
        (rabbitmq.encode_method(0, rabbitmq.Tx.Select()), Verdict.NO),
        (rabbitmq.encode_method(1, rabbitmq.Tx.SelectOk()), Verdict.NO),  # a method that nobody knows here
        (struct.pack("!BHI", 1, 1, 3) + b"\0\x5a\0\xce", Verdict.NO),  # too small for the ids of a method
        (struct.pack("!BHI", 1, 1, 4) + b"\0\x5a\0\x0a\xce", Verdict.YES),
        (rabbitmq.encode_method(0, rabbitmq.Connection.TuneOk()), Verdict.YES),
        (rabbitmq.encode_method(1, rabbitmq.Connection.TuneOk()), Verdict.NO),
        (CONTENT_HEADER, Verdict.YES),
        (CONTENT_HEADER.replace(b"\x3c\0\0", b"\x3c\0\1"), Verdict.NO),
        (CONTENT_HEADER.replace(b"\x3c\0\0", b"\x3d\0\0"), Verdict.NO),
        (struct.pack("!BHI", 2, 0, 14) + b"\0\x3c" + bytes(12) + b"\xce", Verdict.NO),  # of no channel
        (struct.pack("!BHI", 2, 1, 13) + b"\0\x3c" + bytes(11) + b"\xce", Verdict.NO),
        (struct.pack("!BHI", 2, 1, 14) + b"\0\x3c" + bytes(12) + b"\xce", Verdict.YES),
        (rabbitmq.encode_body(1, b"x"), Verdict.YES),
        (struct.pack("!BHI", 3, 0, 1) + b"x\xce", Verdict.NO),
        (HEARTBEAT, Verdict.YES),
        (struct.pack("!BHI", 8, 1, 0) + b"\xce", Verdict.NO),
        (struct.pack("!BHI", 8, 0, 1) + b"x\xce", Verdict.NO),
        (struct.pack("!BHI", 5, 1, 0) + b"\xce", Verdict.NO),  # a type that nobody knows
        (struct.pack("!BHI", 4, 0, 1) + b"x\xce", Verdict.YES),  # a type of which nothing more is known
    ],
)
def test_a_frame_is_believed_by_what_its_type_asks_of_it(frame: bytes, verdict: Verdict) -> None:
    test = FrameTest({(90, 10), (10, 31)}, {60}, {1, 2, 3, 4, 8}, 4096)
    assert test.judge(frame, 0, final=False) is verdict
    assert test.judge(b"before" + frame, 6, final=True) is verdict


@pytest.mark.parametrize("frame", [HEARTBEAT, SELECT])
def test_a_run_is_of_so_many_frames_or_of_all_there_are(frame: bytes) -> None:
    test = FrameTest({(90, 10)}, {60}, {1, 2, 3, 8}, 4096)
    assert test.judge_run(frame * 64, 0, final=False) is Verdict.YES
    assert test.judge_run(frame * 63, 0, final=False) is Verdict.MORE
    assert test.judge_run(frame * 63, 0, final=True) is Verdict.YES
    assert test.judge_run(frame * 63 + b"\xff" * 20, 0, final=False) is Verdict.NO


def test_a_run_that_breaks_is_not_looked_at_again() -> None:
    test, refused = FrameTest({(90, 10)}, {60}, {1, 2, 3, 8}, 4096), set[int]()
    assert test.judge_run(HEARTBEAT * 3 + b"\xff" * 20, 0, final=False, refused=refused) is Verdict.NO
    assert refused == {0, 8, 16}


@pytest.mark.parametrize(
    ("size", "opened", "taken"), [(0, 1, True), (-1, 1, False), (0, 0, False), (0, 3, False)]
)
def test_a_state_of_a_connection_has_a_size_and_directions_that_can_be(
    size: int, opened: int, taken: bool
) -> None:
    decoder = ConnectionDecoder(Connection(0, None, None), Reading("auto"))
    tree = decoder.snapshot(lambda number: number)
    at = next(at for at, value in enumerate(tree) if type(value) is int)
    tree[at : at + 2] = size, opened
    with nullcontext() if taken else pytest.raises(ValueError, match="is out of range"):
        decoder.restore(unpack(pack(tree)), [0, 0])


@pytest.mark.parametrize(("losses", "followed", "taken"), [(17, 0, True), (18, 0, False), (1, 1, False)])
def test_a_state_of_a_direction_has_no_more_losses_than_are_counted(
    losses: int, followed: int, taken: bool
) -> None:
    decoder = ConnectionDecoder(Connection(0, None, None), Reading("auto"))
    tree = decoder.snapshot(lambda number: number)
    tree[-1] += [losses, followed]
    with nullcontext() if taken else pytest.raises(ValueError, match="out of range"):
        decoder.restore(unpack(pack(tree)), [0, 0])
