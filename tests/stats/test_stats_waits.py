"""How long messages waited, how large they are, and which were refused, in a summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.queued import Peer, World, shop

from amqpcodec import _backend, stats
from amqpcodec import rabbitmq as amqp
from amqpcodec.cli import main


def _summary(world: World, folder: Path, **options: int) -> stats.Summary:
    path = folder / "made.pcap"
    path.write_bytes(world.capture())
    collector = stats.Collector(**options)  # type: ignore[arg-type]
    collector.add(path, path.name)
    return collector.summary()


def _waiting(world: World) -> tuple[Peer, Peer]:
    """A queue in which three messages, all alike, wait for 1, 2 and 3 seconds."""
    publisher, consumer = Peer(world), Peer(world)
    consumer.declare("q")
    consumer.consume("q")
    for _ in range(3):
        publisher.publish(["q"], "", "q", b"same")
    for _ in range(3):
        world.now += 1_000_000_000
        consumer.deliver()
    return publisher, consumer


def test_waits_are_added_up_by_queue_and_routing_key(tmp_path: Path) -> None:
    world = World()
    _waiting(world)
    summary = _summary(world, tmp_path)
    [wait] = summary.waits
    assert (wait.queue, wait.exchange, wait.routing_key) == ("q", "", "q")
    assert (wait.messages, wait.exact, wait.by_id, wait.by_content, wait.dropped) == (3, 3, 0, 0, 0)
    assert wait.p50_ns is not None
    assert wait.p99_ns is not None
    assert [round(ns / 1e9) for ns in (wait.p50_ns, wait.p99_ns)] == [2, 3]
    [queue] = summary.by_queue
    assert (queue.wait_p50_ns, queue.wait_p99_ns) == (wait.p50_ns, wait.p99_ns)


def test_waits_that_are_not_shown_are_added_up(tmp_path: Path) -> None:
    whole, short = (_summary(shop(7), tmp_path, top=top).waits for top in (50, 1))
    assert len(whole) > 2
    assert short[0] == whole[0]
    assert short[1].others == len(whole) - 1
    for count in ("messages", "exact", "by_id", "by_content"):
        assert sum(getattr(wait, count) for wait in short) == sum(getattr(wait, count) for wait in whole)


def test_publishes_that_were_forgotten_are_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_backend.load("amqpcodec._columns.waits"), "MOST_PUBLISHES", 1)
    world = World()
    publisher, consumer = Peer(world), Peer(world)
    for number in range(3):
        publisher.publish([], "ex", "k", b"%d" % number)
    consumer.declare("q", passive=True)
    back = amqp.Basic.GetOk(1, False, "ex", "k", 0)
    consumer.client(amqp.Basic.Get(queue="q"))
    consumer.send(1, amqp.encode_message(1, back, amqp.BasicProperties(), b"0", frame_max=4096))
    [finding] = [each for each in _summary(world, tmp_path).findings if each.code == "waits-dropped"]
    assert finding.text.startswith("1 delivery of publishes that may be forgotten")


def test_sizes_of_bodies_are_those_published(tmp_path: Path) -> None:
    world = World()
    publisher = Peer(world)
    for size in (10, 20, 3000):
        publisher.publish([], "ex", "k", bytes(size))
    summary = _summary(world, tmp_path)
    [party], [exchange] = summary.by_publisher, summary.published_by
    for found in (party, exchange):
        assert (found.size_p50, found.size_p99, found.size_most) == (20, 3000, 3000)


def test_one_message_that_is_refused_again_and_again_is_one(tmp_path: Path) -> None:
    world = World()
    _, consumer = _waiting(world)
    consumer.settle(1, requeue=True)
    for tag in range(4, 9):
        consumer.deliver()
        consumer.settle(tag, requeue=True)
    text = {each.code: each.text for each in _summary(world, tmp_path).findings}["rejected"]
    assert (
        text
        == "6 refusals by consumers (basic.nack, basic.reject), of 1 message whose answer could be followed."
    )


def test_the_command_shows_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    _waiting(world)
    path = tmp_path / "made.pcap"
    path.write_bytes(world.capture())
    assert main(["stats", str(path)]) == 0
    text = capsys.readouterr().out
    columns, row, note = text.partition("Publish to delivery\n")[2].splitlines()[:3]
    assert row.split() == ["q", "(default)", "q", "3", "3", "0", "0", "0", "2", "s", "3", "s", "3", "s"]
    assert columns.index("delivered") + len("delivered") == row.index(" 3 ") + 2
    assert note.strip().startswith("Messages are joined to their publish")
    assert main(["stats", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["waits"][0]["exact"] == 3
