"""How long messages waited: deliveries joined to the publishes that they are of."""

from __future__ import annotations

import io
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import pytest
from support import make_capture as make
from support.make_capture import CLIENT, SERVER
from support.parts import rows_of
from support.queued import Peer, World, shop
from support.tiers import few

from amqpcodec import _backend, arrow
from amqpcodec import rabbitmq as amqp
from amqpcodec._columns.routes import _fits
from amqpcodec._columns.schemas import WAITS

COLUMNS = [column.name for column in WAITS]


def deliveries(batches: Any) -> list[dict[str, Any]]:
    found = [row for row in rows_of(batches) if row["kind"] in ("deliver", "get-ok")]
    return sorted(found, key=lambda row: row["ts_ns"])


def rows(build: str, octets: bytes) -> list[dict[str, Any]]:
    return deliveries(arrow.read_capture(io.BytesIO(octets), "deliveries", _impl=build))


def ways(build: str, world: World) -> list[str | None]:
    """How the publish of each delivery was found; what is claimed is true."""
    found = rows(build, world.capture())
    check([row for row in found if (row["flow"], row["offset"]) in world.of], world)
    return [row["wait_by"] for row in found]


def check(found: list[dict[str, Any]], world: World) -> None:
    for row in found:
        claimed = row["publish_flow"], row["publish_offset"]
        if row["wait_by"] in (None, "dropped"):
            assert (row["wait_us"], *claimed) == (None, None, None)
        else:
            assert claimed == world.of[row["flow"], row["offset"]]
            assert row["wait_us"] == (row["ts_ns"] - world.times[claimed]) // 1000


@pytest.mark.parametrize("seed", few(range(40), 4, "further seeds"))
def test_what_is_joined_is_true(build: str, seed: int) -> None:
    found = Counter(ways(build, shop(seed)))
    assert found["exact"] + found["by id"] + found["by content"] > 5


@pytest.mark.parametrize("seed", few(range(20), 2, "further seeds"))
def test_a_publisher_that_was_not_recorded_makes_no_claim_untrue(build: str, seed: int) -> None:
    world = shop(seed, alike=False)
    for row in rows(build, world.capture(without=0)):
        if row["wait_by"] is not None:
            flow, offset = world.of[row["flow"] + 1, row["offset"]]
            assert (row["publish_flow"] + 1, row["publish_offset"]) == (flow, offset)


def pair() -> tuple[Peer, Peer]:
    """A publisher, and a consumer that has declared the queue `q`."""
    world = World()
    publisher, consumer = Peer(world), Peer(world)
    consumer.declare("q")
    return publisher, consumer


def test_messages_that_are_all_alike_are_told_apart_by_the_order_of_their_queue(build: str) -> None:
    publisher, consumer = pair()
    consumer.consume("q")
    for _ in range(3):
        publisher.publish(["q"], "", "q", b"same")
    while consumer.deliver():
        pass
    assert ways(build, publisher.world) == ["exact"] * 3


@pytest.mark.parametrize(
    ("kind", "pattern", "key"),
    [("direct", "k", "k"), ("fanout", "k", "x"), ("topic", "a.#", "a"), ("topic", "*.b", "a.b")],
)
def test_bindings_say_what_goes_into_a_queue(build: str, kind: str, pattern: str, key: str) -> None:
    publisher, consumer = pair()
    consumer.bind("q", "ex", pattern, kind)
    consumer.consume("q")
    for routing_key in (key, "other.key.x" if kind != "fanout" else key, key):
        publisher.publish(["q"] * (routing_key == key), "ex", routing_key, b"same")
    while consumer.deliver():
        pass
    assert set(ways(build, publisher.world)) == {"exact"}


def _expiring(publisher: Peer, consumer: Peer) -> None:
    publisher.publish([], "", "q", b"same", expiration="1")


def _returned(publisher: Peer, consumer: Peer) -> None:
    publisher.publish([], "", "q", b"same")
    back = amqp.Basic.Return(312, "NO_ROUTE", "", "q")
    publisher.send(
        SERVER, *make.split(amqp.encode_message(1, back, amqp.BasicProperties(), b"same", frame_max=4096))
    )


def _refused(publisher: Peer, consumer: Peer) -> None:
    publisher.client(amqp.Confirm.Select())
    publisher.server(amqp.Confirm.SelectOk())
    publisher.publish([], "", "q", b"same")
    publisher.server(amqp.Basic.Nack(1))


def _transacted(publisher: Peer, consumer: Peer) -> None:
    publisher.client(amqp.Tx.Select())
    publisher.server(amqp.Tx.SelectOk())
    publisher.publish([], "", "q", b"same")


def _purged(publisher: Peer, consumer: Peer) -> None:
    publisher.publish([], "", "q", b"same")
    consumer.client(amqp.Queue.Purge(queue="q"))
    consumer.server(amqp.Queue.PurgeOk(1))


def _closed(publisher: Peer, consumer: Peer) -> None:
    publisher.publish([], "", "q", b"same")
    publisher.server(amqp.Channel.Close(404, "NOT_FOUND", 60, 40))
    publisher.client(amqp.Channel.CloseOk())
    publisher.client(amqp.Channel.Open())
    publisher.server(amqp.Channel.OpenOk())


def _unbound(publisher: Peer, consumer: Peer) -> None:
    consumer.bind("q", "ex", "k", "direct")
    consumer.client(amqp.Queue.Unbind(queue="q", exchange="ex", routing_key="k"))
    consumer.server(amqp.Queue.UnbindOk())


def _headers(publisher: Peer, consumer: Peer) -> None:
    consumer.bind("q", "ex", "", "headers")


def _late_binding(publisher: Peer, consumer: Peer) -> None:
    publisher.publish([], "ex", "k", b"same")
    consumer.bind("q", "ex", "k", "direct")


def _lost(publisher: Peer, consumer: Peer) -> None:
    """An answer is missing, and with it anything else that the broker may have said."""
    publisher.client(amqp.Basic.Qos())
    publisher.packet(CLIENT, make.ACK)
    publisher.next[SERVER] += 50
    publisher.client(amqp.Basic.Qos())
    publisher.wait(2)
    publisher.server(amqp.Basic.QosOk())
    publisher.wait(2)  # what is missing is awaited for a second
    publisher.server(amqp.Basic.QosOk())


def _unseen_consumer(publisher: Peer, consumer: Peer) -> None:
    consumer.client(amqp.Queue.Declare(queue="q", passive=True))
    consumer.server(amqp.Queue.DeclareOk("q", 0, 1))


DOUBTS: list[Callable[[Peer, Peer], None]] = [
    _expiring, _returned, _refused, _transacted, _purged, _closed, _unbound, _headers, _late_binding, _lost,
    _unseen_consumer,
]  # fmt: skip


@pytest.mark.parametrize("doubt", DOUBTS, ids=lambda doubt: doubt.__name__[1:])
def test_the_order_of_a_queue_says_nothing_once_there_is_a_doubt(
    build: str, doubt: Callable[[Peer, Peer], None]
) -> None:
    publisher, consumer = pair()
    doubt(publisher, consumer)
    consumer.consume("q")
    for _ in range(2):
        publisher.publish(["q"], "", "q", b"same")
    while consumer.deliver():
        pass
    assert ways(build, publisher.world) == [None, None]


@pytest.mark.parametrize(
    "declared",
    [{"passive": True}, {"arguments": {"x-message-ttl": 1}}, {"arguments": {"x-queue-type": "stream"}}],
)
def test_a_queue_that_may_drop_messages_or_is_not_known_is_not_followed(
    build: str, declared: dict[str, Any]
) -> None:
    world = World()
    publisher, consumer = Peer(world), Peer(world)
    consumer.declare("q", **declared)
    consumer.consume("q")
    for _ in range(2):
        publisher.publish(["q"], "", "q", b"same")
    while consumer.deliver():
        pass
    assert ways(build, world) == [None, None]


def test_of_several_publishers_the_order_is_not_known_until_nothing_waits(build: str) -> None:
    publisher, consumer = pair()
    consumer.consume("q")
    other = Peer(publisher.world)
    for each in (publisher, other):
        each.publish(["q"], "", "q", b"same")
    while consumer.deliver():
        pass
    for each in (other, publisher):  # one after the other
        each.publish(["q"], "", "q", b"same")
        consumer.deliver()
    assert ways(build, publisher.world) == [None, "exact", "exact", "exact"]


def test_of_several_consumers_the_order_is_not_known_while_several_messages_wait(build: str) -> None:
    publisher, consumer = pair()
    other = Peer(publisher.world)
    for each in (consumer, other):
        each.consume("q")
    for _ in range(3):
        publisher.publish(["q"], "", "q", b"same")
    for each in (consumer, other, consumer):
        each.deliver()
    assert ways(build, publisher.world) == [None, None, "exact"]


def test_what_was_in_a_queue_before_comes_first(build: str) -> None:
    world = World()
    publisher, consumer = Peer(world), Peer(world)
    early = Peer(World())  # a recording of its own
    world.queues = early.world.queues = {"q": deque()}
    early.publish(["q"], "", "q", b"same")
    consumer.declare("q")
    consumer.consume("q")
    publisher.publish(["q"], "", "q", b"same")
    while consumer.deliver():
        pass
    assert [row["wait_by"] for row in rows(build, world.capture())] == [None, "exact"]


def test_what_comes_again_is_joined_by_its_id_and_disturbs_no_order(build: str) -> None:
    publisher, consumer = pair()
    consumer.consume("q")
    publisher.publish(["q"], "", "q", b"same", message_id="m")
    publisher.publish(["q"], "", "q", b"same")
    consumer.deliver()
    consumer.settle(1, requeue=True)
    while consumer.deliver():
        pass
    publisher.publish(["q"], "", "q", b"same")
    consumer.deliver()
    assert ways(build, publisher.world) == ["exact", "by id", "exact", "exact"]


@pytest.mark.parametrize(
    ("first", "second", "way"),
    [
        ({"message_id": "1"}, {"message_id": "2"}, "by id"),
        ({"correlation_id": "1"}, {"correlation_id": "2"}, "by id"),
        ({"headers": {"n": 1}}, {"headers": {"n": 2}}, "by content"),
        ({"message_id": "1", "headers": {"n": 1}}, {"message_id": "1", "headers": {"n": 2}}, "by content"),
        ({"message_id": "1"}, {"message_id": "1"}, None),
        ({}, {}, None),
    ],
)
def test_ids_and_contents_tell_messages_apart(
    build: str, first: dict[str, Any], second: dict[str, Any], way: str | None
) -> None:
    world = World()
    publisher, consumer = Peer(world), Peer(world)
    consumer.declare("q", passive=True)
    for properties in (first, second):
        publisher.publish(["q"], "", "q", b"body" * 200, **properties)
    for _ in range(2):
        consumer.get("q")
    assert ways(build, world) == [way, way]


def test_contents_that_come_twice_out_of_a_queue_are_of_two_publishes(build: str) -> None:
    """One of them was published before the recording: only the first may be claimed, wrongly perhaps."""
    world, early = World(), World()
    publisher, consumer, before = Peer(world), Peer(world), Peer(early)
    world.queues = early.queues = {"q": deque()}
    before.publish(["q"], "", "q", b"same")
    consumer.declare("q", passive=True)
    publisher.publish(["q"], "", "q", b"same")
    for _ in range(2):
        consumer.get("q")
    assert [row["wait_by"] for row in rows(build, world.capture())] == ["by content", None]


def test_publishes_beyond_the_limit_are_forgotten_and_that_is_said(
    build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_backend.load("amqpcodec._columns.waits", build), "MOST_PUBLISHES", 2)
    world = World()
    publisher, consumer = Peer(world), Peer(world)
    consumer.declare("q", passive=True)
    for number in range(4):
        publisher.publish(["q"], "", "q", b"%d" % number, message_id=str(number))
    for _ in range(4):
        consumer.get("q")
    assert ways(build, world) == ["dropped", "dropped", "by id", "by id"]


@pytest.mark.parametrize("seed", few(range(8), 1, "further seeds"))
def test_a_session_that_is_suspended_joins_the_same(build: str, seed: int) -> None:
    world = shop(seed, rounds=20)
    octets = world.capture()
    whole = rows(build, octets)
    other = "py" if build == "c" else "c"
    for cuts in ([len(octets) // 2], list(range(2000, len(octets), 1500))):
        session, found = arrow.CaptureSession("deliveries", _impl=build), []
        for turn, cut in enumerate(cuts):
            found += list(session.read(io.BytesIO(octets), end=cut))
            impl = (other, build)[turn % 2]
            session = arrow.CaptureSession("deliveries", _impl=impl, state=session.suspend())
        found += [*session.read(io.BytesIO(octets)), *session.finish()]
        assert deliveries(found) == whole


def test_states_found_without_rows_join_if_a_column_asks_for_it(build: str) -> None:
    world = shop(1, rounds=20)
    octets = world.capture()
    for columns, joins in ((None, True), (["kind", "wait_us"], True), (["kind"], False)):
        parts = [[(io.BytesIO(octets), None, len(octets) // 2)], [(io.BytesIO(octets),)]]
        _, second, _ = arrow.scan_capture(parts, "deliveries", columns=columns, _impl=build)
        session = arrow.CaptureSession("deliveries", columns=["kind"], state=second, _impl=build)
        session.suspend()
        if joins:
            arrow.CaptureSession("deliveries", state=second, _impl=build)
        else:
            with pytest.raises(ValueError, match="for columns that do not say how long messages waited"):
                arrow.CaptureSession("deliveries", state=second, _impl=build)


@pytest.mark.parametrize(
    ("pattern", "key", "fits"),
    [
        ("#", "", True), ("#", "a.b", True), ("a.#", "a", True), ("a.#.b", "a.b", True),
        ("a.#.b", "a.x.y.b", True),
        ("a.#.b", "a.x", False), ("*", "", False), ("*", "a", True), ("a.*", "a", False), ("#.#", "x", True),
        ("*.#", "", False), ("", "", True), ("", "a", False), ("#." * 20 + "z", "a." * 200 + "y", False),
    ],
)  # fmt: skip
def test_patterns_fit_as_topic_exchanges_say(pattern: str, key: str, fits: bool) -> None:
    assert _fits(pattern.split(".") if pattern else [], key.split(".") if key else []) is fits


@pytest.mark.parametrize("step", ["publish", "deliver", "get-ok", "return"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 9, 12])
def test_a_method_that_is_damaged_is_joined_to_nothing(build: str, step: str, size: int) -> None:
    ids = {"publish": 40, "deliver": 60, "get-ok": 71, "return": 50}
    publisher, consumer = pair()
    consumer.consume("q")
    publisher.client(amqp.Confirm.Select())
    payload = b"\0\x3c\0" + bytes([ids[step]]) + b"\x07" * size
    method = b"\x01\0\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce"
    _, header, body = make.split(
        amqp.encode_message(1, amqp.Basic.Publish(), amqp.BasicProperties(), b"same", frame_max=4096)
    )
    publisher.send(CLIENT if step == "publish" else SERVER, method, header, body)
    publisher.publish(["q"], "", "q", b"same")
    consumer.deliver()
    assert "exact" not in ways(build, publisher.world)[-1:]


def test_a_queue_whose_arguments_cannot_be_read_is_not_followed(build: str) -> None:
    publisher, consumer = pair()
    payload = b"\0\x32\0\x0a\0\0\x01r\0" + b"\0\0\0\x04\x02x-?"
    consumer.send(CLIENT, b"\x01\0\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce")
    consumer.server(amqp.Queue.DeclareOk("r", 0, 0))
    publisher.world.queues["r"] = deque()
    consumer.consume("r")
    for _ in range(2):
        publisher.publish(["r"], "", "r", b"same")
    while consumer.deliver():
        pass
    assert ways(build, publisher.world) == [None, None]
