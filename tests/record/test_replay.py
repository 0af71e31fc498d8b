"""A replay publishes what the clients of a capture have published: the same octets, in the same order."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from support.rotations import records, rotated

from amqpcodec import rabbitmq as amqp
from amqpcodec import replay
from amqpcodec.aio import Client
from amqpcodec.capture import Endpoint, read_frames
from amqpcodec.capture.writing import Conversation, PacketWriter
from amqpcodec.cli import main
from amqpcodec.record import Recorder
from amqpcodec.replay import CapturedPublish, PublishReader, Replayer, ReplayReport, read_publishes
from amqpcodec.testing import Broker, faults, running_broker

SECOND = 1_000_000_000
# Headers with tags that our encoder does not choose, and a key that is not UTF-8.
HEADERS = b"".join(
    (b"\x05count", b"b", b"\x07", b"\x02\xff\xfe", b"S", b"\x00\x00\x00\x02hi", b"\x01f", b"B\x09")
)


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return bytes((kind,)) + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + b"\xce"


def message(
    key: str, body: bytes, channel: int = 1, exchange: str = "", properties: bytes = b"\x00\x00"
) -> bytes:
    """The frames of a message with properties of any octets, and two body frames."""
    header = frame(2, channel, b"\x00\x3c\x00\x00" + len(body).to_bytes(8, "big") + properties)
    half = len(body) // 2
    bodies = b"".join(frame(3, channel, part) for part in (body[:half], body[half:]) if part)
    return amqp.encode_method(channel, amqp.Basic.Publish(exchange, key)) + header + bodies


def table(octets: bytes) -> bytes:
    """Properties with headers alone."""
    return b"\x20\x00" + len(octets).to_bytes(4, "big") + octets


def user(name: str) -> bytes:
    """Properties with headers and a user."""
    flags = 1 << 13 | 1 << 4
    return flags.to_bytes(2, "big") + table(HEADERS)[2:] + bytes((len(name),)) + name.encode()


@contextmanager
def capture_of(path: Path) -> Iterator[Conversation]:
    with path.open("wb") as file:
        ends = Endpoint(bytes((10, 0, 0, 1)), 40001), Endpoint(bytes((10, 0, 0, 9)), 5672)
        conversation = Conversation(PacketWriter(file), *ends, 0, 1)
        conversation.send(0, amqp.protocol_header(), 0)
        yield conversation
        conversation.close(9 * SECOND)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.pcap"


def written(publishes: list[CapturedPublish]) -> list[tuple[Any, ...]]:
    """Messages in their order, as octets."""
    return [
        (each.exchange, each.routing_key, each.mandatory, each.properties.octets, each.body)
        for each in publishes
    ]


def by_place(publishes: list[CapturedPublish]) -> list[list[tuple[Any, ...]]]:
    """The messages of each channel in their order, whichever its number is."""
    places: dict[tuple[int, int], list[CapturedPublish]] = {}
    for each in publishes:
        places.setdefault(each.place, []).append(each)
    return sorted(written(each) for each in places.values())


async def replayed(
    source: Path, url: str, folder: Path, **options: Any
) -> tuple[Replayer, list[CapturedPublish]]:
    """Replay a capture, and record that."""
    with Recorder(folder / "replayed.pcap") as recorder:
        replayer = Replayer(url, record=recorder, **options)
        await replayer.run(read_publishes(str(source)))
    return replayer, list(read_publishes(str(folder / "replayed.pcap")))


async def declare(url: str, *queues: str) -> None:
    async with Client(url) as client:
        for queue in queues:
            await client.call(amqp.Queue.Declare(queue))
            await client.call(amqp.Queue.Purge(queue))


async def drained(url: str, queue: str) -> list[bytes]:
    """The bodies in a queue, which is removed."""
    bodies = []
    async with Client(url) as client:
        count = (await client.call(amqp.Queue.Declare(queue, passive=True))).message_count
        channel = await client.channel()
        if count:
            async with channel.consume(queue) as deliveries:
                async for delivery in deliveries:
                    delivery.ack()
                    bodies.append(bytes(delivery.body))
                    if len(bodies) == count:
                        break
        await client.call(amqp.Queue.Delete(queue))
    return bodies


def record_many(path: Path) -> None:
    """Three channels in turn, with messages of many sizes and odd properties."""
    with capture_of(path) as conversation:
        for number in range(120):
            channel = number % 3 + 1
            properties = table(HEADERS) if number % 2 else b"\x00\x00"
            body = b"%d " % number + os.urandom(number * 50)
            octets = message("replay-orders", body, channel, "", properties)
            conversation.send(0, octets, number * SECOND // 1000)


async def check_messages_out_equal_messages_in(path: Path, url: str) -> None:
    record_many(path)
    await declare(url, "replay-orders")
    replayer, again = await replayed(path, url, path.parent)
    given = list(read_publishes(str(path)))
    assert len(given) == 120
    assert by_place(again) == by_place(given)
    assert replayer.report.confirmed == 120
    assert (replayer.report.unknown, replayer.report.error) == ([], None)
    assert sorted(await drained(url, "replay-orders")) == sorted(each.body for each in given)


async def test_messages_out_equal_messages_in(path: Path) -> None:
    async with Broker() as broker:
        await check_messages_out_equal_messages_in(path, broker.url)


async def test_messages_out_equal_messages_in_at_a_rabbitmq(path: Path, rabbitmq: str) -> None:
    await check_messages_out_equal_messages_in(path, rabbitmq)


async def test_a_message_with_missing_octets_is_left_out_and_takes_nothing_of_another(path: Path) -> None:
    with capture_of(path) as conversation:
        first, second, third = (message("q", body * 5000) for body in (b"a", b"b", b"c"))
        conversation.send(0, first[:-2000], 1)
        conversation.skip(0, 2000 + len(second) - 3000, 2)
        conversation.send(0, second[-3000:], 3)
        conversation.send(0, third, 4)
        conversation.send(0, third[:-10], 5)
    assert [each.body for each in read_publishes(str(path))] == [b"c" * 5000]


async def test_a_frame_in_error_costs_the_message_of_its_channel_alone(path: Path) -> None:
    broken = message("q", b"broken", 2, properties=table(b"\x01xQ"))  # a tag that nobody knows
    with capture_of(path) as conversation:
        other = message("q", b"other", 1)
        conversation.send(0, other[:-11] + broken + other[-11:], 1)
    reader = PublishReader()
    found = list(filter(None, map(reader.feed, read_frames(str(path)))))
    assert ([each.body for each in found], reader.incomplete) == ([b"other"], 1)


async def test_bodies_that_are_never_complete_are_not_kept_without_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "_OPEN_OCTETS", 6000)
    with capture_of(path) as conversation:
        for channel in range(1, 5):
            conversation.send(0, message("q", bytes(5000), channel)[:-2508], channel)
        conversation.send(0, message("q", bytes(5000), 4)[-2508:], 5)
    reader = PublishReader()
    found = list(filter(None, map(reader.feed, read_frames(str(path)))))
    assert ([each.place[2] for each in found], reader.incomplete) == ([4], 2)
    reader.finish()
    assert (reader.incomplete, reader._octets) == (3, 0)


@pytest.mark.parametrize(("dropped", "expected"), [(False, 2), (True, 0)])
async def test_the_name_of_another_user_is_left_out_if_asked_for(
    dropped: bool, expected: int, path: Path
) -> None:
    with capture_of(path) as conversation:
        for name in ("guest", "alice", "bob"):
            conversation.send(0, message("q", b"body", properties=user(name)), 1)
    async with Broker() as broker:
        await declare(broker.url, "q")
        replayer, again = await replayed(path, broker.url, path.parent, drop_user_id=dropped)
    assert len(replayer.report.unknown) == expected
    if dropped:
        assert [each.properties.octets for each in again] == [user("guest"), table(HEADERS), table(HEADERS)]


async def test_what_was_sent_and_not_confirmed_is_unknown(path: Path) -> None:
    with capture_of(path) as conversation:
        for number in range(30):
            conversation.send(0, message("q", b"%d" % number), number)
    async with Broker() as broker:
        await declare(broker.url, "q")
        broker.faults.add(faults.drop(), method="basic.publish", skip=10)
        replayer, _ = await replayed(path, broker.url, path.parent)
        report = replayer.report
        assert report.error is not None
        assert report.confirmed + len(report.unknown) == report.last
        broker.faults.clear()
        in_queue = [int(body) + 1 for body in await drained(broker.url, "q")]
        assert set(in_queue) <= set(range(1, report.last + 1))
        assert set(range(1, report.last + 1)) - set(in_queue) <= set(report.unknown)


async def test_messages_of_which_one_was_returned_are_unknown(path: Path) -> None:
    """They differ in BCC alone, which a broker leaves out of what it returns."""
    with capture_of(path) as conversation:
        for queue in ("q", "none", "none"):
            properties = amqp.BasicProperties(headers={"BCC": [queue]})
            publish = amqp.Basic.Publish("", "nowhere", mandatory=True)
            conversation.send(0, amqp.encode_message(1, publish, properties, b"same"), 0)
        conversation.send(0, amqp.encode_message(1, publish, None, b"another"), 0)
    async with Broker() as broker:
        await declare(broker.url, "q")
        replayer, _ = await replayed(path, broker.url, path.parent)
        report = replayer.report
        assert await drained(broker.url, "q") == [b"same"]
    assert (report.error, report.confirmed, report.returned) == (None, 0, [4])
    assert sorted(report.unknown) == [1, 2, 3]


async def test_a_replay_goes_at_the_pace_of_the_capture(path: Path) -> None:
    with capture_of(path) as conversation:
        for number in range(3):
            conversation.send(0, message("q", b"body"), number * SECOND)
    async with Broker() as broker:
        await declare(broker.url, "q")
        for speed, least, most in ((10.0, 0.2, 1.5), (None, 0, 0.15)):
            began = monotonic()
            await replayed(path, broker.url, path.parent, speed=speed)
            assert least <= monotonic() - began < most


async def test_what_cannot_be_read_or_is_empty_needs_no_broker(tmp_path: Path) -> None:
    replayer = Replayer("amqp://127.0.0.1:1")
    await replayer.run(())
    assert replayer.report == ReplayReport()
    await replayer.run(read_publishes(str(tmp_path / "none.pcap")))
    assert isinstance(replayer.report.error, FileNotFoundError)


async def test_a_cancelled_replay_says_what_is_unknown(path: Path) -> None:
    with capture_of(path) as conversation:
        for number in range(3):
            conversation.send(0, message("q", b"body"), number * 100 * SECOND)
    async with Broker() as broker:
        await declare(broker.url, "q")
        replayer = Replayer(broker.url, speed=1)
        task = asyncio.create_task(replayer.run(read_publishes(str(path))))
        while not replayer.report.confirmed:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (replayer.report.last, replayer.report.unknown) == (1, [])


# -- the command


@pytest.fixture
def orders(path: Path) -> Path:
    with capture_of(path) as conversation:
        for number in range(6):
            exchange = "" if number % 2 else "amq.fanout"
            conversation.send(0, message(f"q{number // 3}", b"%d" % number, 1, exchange), number * SECOND)
        conversation.send(0, message("q0", b"cut off")[:-3], 7 * SECOND)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> tuple[str, str]:
    assert main(["replay", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    return out, err


def test_a_dry_run_says_what_would_be_published(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = run(capsys, "--dry-run", orders, "amqp://nowhere.invalid", code=1)
    assert out.splitlines() == [
        "would publish 6 messages, 6 bytes, of 1 channels; the capture has 5.000 s of them",
        "  exchange 'amq.fanout': 3 messages",
        "  exchange '': 3 messages",
    ]
    assert err == "amqpcodec: left out: 1 messages of which the capture lacks frames\n"


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["--exchange", "amq.*"], 3), (["--exchange", ""], 3), (["--queue", "q0"], 1), (["--queue", "q*"], 3),
        (["--queue", "q1", "--exchange", "amq.*"], 0), (["--from", "5"], 2),
    ],
)  # fmt: skip
def test_messages_are_chosen(
    arguments: list[str], count: int, orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = run(capsys, "--dry-run", *arguments, orders, "amqp://nowhere.invalid", code=1)
    assert out.startswith(f"would publish {count} messages")


def test_a_replay_says_what_was_published_and_where_it_goes_on(
    orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_broker() as broker:
        asyncio.run(declare(broker.url, "q0", "q1"))
        out, err = run(capsys, "--speed", "max", orders, broker.url, code=1)
        assert out == "6 messages, 6 bytes published and confirmed\n"
        assert sorted(asyncio.run(drained(broker.url, "q1"))) == [b"3", b"5"]
        broker.faults.add(faults.close_channel(404, "NOT_FOUND"), method="basic.publish", skip=1)
        out, err = run(capsys, "--speed", "max", "--exchange", "amq.*", orders, broker.url, code=1)
        assert out == "1 messages, 1 bytes published and confirmed\n"
        assert "unknown, sent and not confirmed: 2, messages 3, 5" in err
        assert "--from 6 goes on" in err
        broker.faults.clear()
        broker.faults.add(faults.refuse(), method="basic.publish", times=1)
        out, err = run(capsys, "--speed", "max", "--exchange", "amq.*", orders, broker.url, code=1)
        assert "refused by the broker: 1, messages 1" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--speed", "0", "{path}", "amqp://localhost"], "--speed 0: it is a positive number, or max"),
        (["{path}", "http://localhost"], "a URL of a broker begins with amqp:// or amqps://"),
        (["--dry-run", "{path}.none", "amqp://localhost"], "No such file or directory"),
        (["{path}.none", "amqp://127.0.0.1:1"], "No such file or directory"),
        (["{path}", "amqp://127.0.0.1:1"], "Connect call failed"),
    ],
)
def test_what_cannot_be_used_is_said(
    arguments: list[str], message: str, orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, err = run(capsys, *(each.format(path=orders) for each in arguments), code=2)
    assert message in err


# -- a recording in several files


def rotate(folder: Path, connections: int = 3, messages: int = 4) -> tuple[list[Path], list[CapturedPublish]]:
    """Write a recording whose files end within messages, and begin with other connections each.

    Returns the files in their order, and the messages of the recording as a single file.
    """
    file = BytesIO()
    writer = PacketWriter(file)
    ends = [Endpoint(bytes((10, 0, 0, 1)), 40001 + each) for each in range(connections)]
    server = Endpoint(bytes((10, 0, 0, 9)), 5672)
    talks = [Conversation(writer, end, server, at, at + 1) for at, end in enumerate(ends)]
    for talk in talks:
        talk.send(0, amqp.protocol_header(), 10)
    time_ns = SECOND
    for number in range(messages):
        turn = talks[number % connections :] + talks[: number % connections]
        parts = [message("q", b"%d of %d" % (number, talks.index(talk))) for talk in turn]
        for half in (slice(0, 40), slice(40, None)):
            for talk, octets in zip(turn, parts, strict=True):
                time_ns += SECOND // 1000
                talk.send(0, octets[half], time_ns)
    whole = list(read_publishes(BytesIO(file.getvalue())))
    half_round = 2 * connections  # packets: octets and their acknowledgement
    end = len(records(file.getvalue()))
    cuts = [end - (2 * each + 1) * half_round for each in range(messages - 1, -1, -1)]
    paths = [folder / f"trace_{at:05d}_20261127101500.pcap" for at in range(1, len(cuts) + 2)]
    for path, octets in zip(paths, rotated(file.getvalue(), cuts), strict=True):
        path.write_bytes(octets)
    return paths, whole


def test_the_files_of_a_recording_are_one(tmp_path: Path) -> None:
    paths, whole = rotate(tmp_path)
    assert len(whole) == 12
    assert list(read_publishes(map(str, paths))) == whole
    assert [list(read_publishes(str(path))) for path in paths] == [[]] * 5  # each has halves alone


def test_a_replay_of_a_rotated_recording_keeps_the_order_of_each_channel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths, whole = rotate(tmp_path)
    with running_broker() as broker:
        asyncio.run(declare(broker.url, "q"))
        with Recorder(tmp_path / "again.pcap") as recorder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(replay, "Client", partial(Client, record=recorder))
            run(capsys, "--speed", "max", *reversed(paths), broker.url)
    assert by_place(list(read_publishes(str(tmp_path / "again.pcap")))) == by_place(whole)


@pytest.mark.parametrize(
    ("arguments", "names", "count"),
    [
        ([], "", 12), (["--rotated", "false"], "", 0), ([], "abcde", 0), (["--rotated", "true"], "abcde", 12),
        (["--series-pattern", "[a-z]"], "abcde", 12),
    ],
)  # fmt: skip
def test_names_and_options_say_which_files_are_one_recording(
    arguments: list[str], names: str, count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths, _ = rotate(tmp_path)
    if names:
        paths = [path.rename(tmp_path / f"{name}.pcap") for path, name in zip(paths, names, strict=True)]
    out, err = run(capsys, "--dry-run", *arguments, *paths, "amqp://nowhere.invalid", code=0 if count else 1)
    assert out.startswith(f"would publish {count} messages")
    assert ("left out: 12 messages" in err) == (not count)


def test_files_of_frames_are_replayed_as_well(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_bytes(message("q", b"first") + message("q", b"second", 2))
    out, _ = run(capsys, "--dry-run", "--input", "stream", path, path, "amqp://nowhere.invalid")
    assert out.startswith("would publish 4 messages, 22 bytes, of 2 channels")


def test_a_file_that_is_named_twice_is_published_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths, _ = rotate(tmp_path)
    out, _ = run(capsys, "--dry-run", *paths, *paths, "amqp://nowhere.invalid")
    assert out.startswith("would publish 24 messages, ")
    assert " of 3 channels" in out


def test_a_file_that_cannot_be_read_ends_a_replay_that_says_where_it_was(
    orders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.pcap"
    other.write_bytes(b"no capture")
    with running_broker() as broker:
        asyncio.run(declare(broker.url, "q0", "q1"))
        out, err = run(capsys, "--speed", "max", orders, other, broker.url, code=2)
    assert out == "6 messages, 6 bytes published and confirmed\n"
    assert f"{str(other)!r}: neither pcap nor pcapng" in err
    assert "without it, --from 7 goes on" in err
