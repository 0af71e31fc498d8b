"""The table `deliveries`: what became of messages, and the queues and traces that `messages` shows, too."""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from support import make_capture as make
from support.make_capture import CLIENT, SERVER
from support.parts import disturbed, rows_of, size_of
from support.timing import undisturbed, within
from support.troubled import Talk

from amqpcodec import _backend, arrow
from amqpcodec import rabbitmq as amqp
from amqpcodec._columns.origins import NO_TIME
from amqpcodec._columns.requests import request
from amqpcodec._columns.steps import REQUEST, step_of
from amqpcodec._columns.trace import TRACERS
from amqpcodec._protocol.index import DIALECTS
from amqpcodec.capture import Connection
from amqpcodec.capture.dialects import module

US = 100  # microseconds between packets; an answer that is sent next comes two of them later


def message(method: Any, body: bytes = b"body", **properties: Any) -> list[bytes]:
    octets = amqp.encode_message(1, method, amqp.BasicProperties(**properties), body, frame_max=4096)
    return make.split(octets)


def deliver(tag: int, consumer: str = "c", **arguments: Any) -> Any:
    return amqp.Basic.Deliver(
        consumer_tag=consumer, delivery_tag=tag, exchange="shop", routing_key="a.b", **arguments
    )


class Recorded(Talk):
    """A connection that is written to a capture."""

    def __init__(self) -> None:
        super().__init__(make.Truth(), 0)
        self.opened()

    def publish(self, **properties: Any) -> None:
        self.send(CLIENT, *message(amqp.Basic.Publish(exchange="ex", routing_key="rk"), **properties))

    def deliver(self, *arguments: Any, **keywords: Any) -> None:
        self.send(SERVER, *message(deliver(*arguments, **keywords)))

    def consume(self, queue: str, tag: str, **arguments: Any) -> None:
        self.client(amqp.Basic.Consume(queue=queue, consumer_tag=tag, **arguments))
        self.server(amqp.Basic.ConsumeOk(consumer_tag=tag))

    def confirm(self) -> None:
        self.client(amqp.Confirm.Select())
        self.server(amqp.Confirm.SelectOk())

    def capture(self) -> bytes:
        return make.pcap(self.truth.packets, nanos=True)

    def rows(self, build: str, table: str = "deliveries", **options: Any) -> list[dict[str, Any]]:
        return rows_of(arrow.read_capture(io.BytesIO(self.capture()), table, _impl=build, **options))


def shown(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


def _settled() -> Recorded:
    """A connection with every outcome but those that concern losses and limits."""
    talk = Recorded()
    talk.publish()
    talk.confirm()
    for tag in (1, 2, 3):
        talk.publish(message_id=f"m{tag}", correlation_id="c", reply_to="r")
    talk.send(SERVER, *message(amqp.Basic.Return(312, "NO_ROUTE", "ex", "rk")))
    talk.server(amqp.Basic.Ack(delivery_tag=2, multiple=True))
    talk.server(amqp.Basic.Nack(delivery_tag=3))
    talk.consume("work", "c")
    talk.consume("quiet", "n", no_ack=True)
    for tag in range(1, 6):
        talk.deliver(tag, redelivered=tag == 1)
    talk.deliver(6, "n")
    talk.client(amqp.Basic.Ack(delivery_tag=1))
    talk.client(amqp.Basic.Nack(delivery_tag=2, requeue=False))
    talk.client(amqp.Basic.Nack(delivery_tag=3, requeue=True))
    talk.client(amqp.Basic.Reject(delivery_tag=4, requeue=False))
    talk.client(amqp.Basic.Reject(delivery_tag=5, requeue=True))
    talk.client(amqp.Basic.Get(queue="polled"))
    talk.send(SERVER, *message(amqp.Basic.GetOk(7, False, "shop", "a.b", 3)))
    talk.client(amqp.Channel.Close(200, "bye", 0, 0))
    talk.server(amqp.Channel.CloseOk())
    talk.client(amqp.Channel.Open())
    talk.server(amqp.Channel.OpenOk())
    talk.consume("work", "c")
    talk.deliver(1)
    return talk


SETTLED = [  # kind, queue, tag, outcome, packets between a message and its answer
    ("publish", None, None, None, None),
    ("return", None, None, "returned", None),
    ("publish", None, 1, "confirmed", 8),
    ("publish", None, 2, "confirmed", 6),
    ("publish", None, 3, "refused", 6),
    ("deliver", "quiet", 6, None, None),
    ("deliver", "work", 1, "ack", 12),
    ("deliver", "work", 2, "nack", 12),
    ("deliver", "work", 3, "requeued", 12),
    ("deliver", "work", 4, "reject", 12),
    ("deliver", "work", 5, "requeued", 12),
    ("get-ok", "polled", 7, "none", None),
    ("deliver", "work", 1, "none", None),
]


def test_every_message_has_a_row_that_says_what_became_of_it(build: str) -> None:
    rows = _settled().rows(build)
    found = shown(rows, "kind", "queue", "delivery_tag", "outcome", "latency_us")
    expected = [(*row, None if packets is None else packets * US) for *row, packets in SETTLED]
    assert found == expected
    for row in rows:
        if row["latency_us"] is not None:
            assert row["ts_outcome_ns"] - row["ts_ns"] == row["latency_us"] * 1000
            assert row["packet_outcome"] > row["packet"]
    closed, waiting = rows[-2:]
    assert closed["ts_outcome"] is not None  # by channel.close-ok
    assert waiting["ts_outcome"] is None  # the recording ended
    first = rows[2]
    assert [first[name] for name in ("exchange", "routing_key", "body_size", "message_id", "reply_to")] == [
        "ex", "rk", 4, "m1", "r",
    ]  # fmt: skip
    assert [row["redelivered"] for row in rows[5:8]] == [False, True, False]


def test_a_channel_that_is_opened_again_has_no_confirms_until_they_are_asked_for(build: str) -> None:
    talk = Recorded()
    talk.confirm()
    talk.publish()
    talk.server(amqp.Basic.Ack(delivery_tag=1))
    talk.client(amqp.Channel.Close(200, "bye", 0, 0))
    talk.server(amqp.Channel.CloseOk())
    talk.client(amqp.Channel.Open())
    talk.server(amqp.Channel.OpenOk())
    talk.publish()
    assert shown(talk.rows(build), "delivery_tag", "outcome") == [(1, "confirmed"), (None, None)]


@pytest.mark.parametrize("table", ["deliveries", "messages"])
def test_a_content_that_the_recording_ends_within_is_counted_as_incomplete_once(
    build: str, table: str
) -> None:
    talk = Recorded()
    talk.send(SERVER, b"".join(message(deliver(1), bytes(100)))[:-50])
    reader = arrow.read_capture(io.BytesIO(talk.capture()), table, _impl=build)
    rows_of(reader)
    assert reader.faults["INCOMPLETE"] == 1


def test_the_messages_have_the_queues_of_the_deliveries(build: str) -> None:
    talk = _settled()
    found = shown(talk.rows(build, "messages"), "kind", "offset", "queue")
    assert sorted(found, key=str) == sorted(shown(talk.rows(build), "kind", "offset", "queue"), key=str)
    few = shown(talk.rows(build, "messages", columns=["queue"]), "queue")
    assert few == [(queue,) for _, _, queue in found]


def test_a_consumer_that_takes_the_tag_of_another_has_its_own_queue(build: str) -> None:
    talk = Recorded()
    for queue in ("first", "second"):
        talk.consume(queue, "c")
        talk.deliver(1)
        talk.deliver(2)
        talk.client(amqp.Basic.Cancel(consumer_tag="c"))
        talk.server(amqp.Basic.CancelOk(consumer_tag="c"))
    talk.deliver(3)
    queues = ["first", "first", "second", "second", None]
    assert [queue for (queue,) in shown(talk.rows(build, "messages"), "queue")] == queues


def test_what_cannot_be_known_is_said_to_be_unknown(build: str) -> None:
    talk = Recorded()
    talk.deliver(1, "its beginning was not recorded")
    talk.consume("work", "c")
    talk.deliver(2)
    talk.client(amqp.Basic.RecoverAsync())
    talk.deliver(3)
    talk.client(amqp.Tx.Select())
    talk.deliver(4)
    outcomes = [("unknown",)] * 4
    assert shown(talk.rows(build), "outcome") == outcomes


def test_octets_that_are_missing_end_the_counting_of_publishes(build: str) -> None:
    talk = Recorded()
    talk.confirm()
    for _ in range(4):
        talk.publish()
    talk.server(amqp.Basic.Ack(delivery_tag=4, multiple=True))
    bodies = [packet for packet in talk.truth.packets if b"body" in packet.octets]
    talk.truth.packets.remove(bodies[1])
    rows = talk.rows(build)
    assert shown(rows, "outcome") == [("confirmed",), ("unknown",), ("unknown",)]
    assert shown(rows, "latency_us")[1:] == [(None,)] * 2


def test_every_request_that_says_something_about_messages_is_taken(build: str) -> None:
    follower = _backend.load("amqpcodec._columns.following", build).Follower()
    followed = follower.connection(Connection(0, None, None))
    taken = set()
    for dialect in map(module, DIALECTS):
        for method in dialect.METHODS.values():
            if step_of(method) == REQUEST:
                request(followed, 1, 0, method(), NO_TIME, NO_TIME)
                taken.add(method.spec.name)
    assert {"basic.get-empty", "tx.select", "confirm.select", "connection.close-ok"} < taken
    assert follower.channels <= 1


def test_a_limit_says_what_it_drops(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    following = _backend.load("amqpcodec._columns.following", build)
    monkeypatch.setattr(following, "MOST_WAITING", 2)
    talk = Recorded()
    talk.consume("work", "c")
    for tag in (1, 2, 3, 4):
        talk.deliver(tag)
    talk.client(amqp.Basic.Ack(delivery_tag=0, multiple=True))
    talk.deliver(5)
    talk.client(amqp.Basic.Ack(delivery_tag=5))
    assert shown(talk.rows(build), "delivery_tag", "outcome") == [
        (3, "dropped"), (4, "dropped"), (1, "ack"), (2, "ack"), (5, "ack"),
    ]  # fmt: skip


@pytest.mark.parametrize("octets", [0, 10, 11])
def test_a_content_header_that_ends_within_the_size_of_the_body_shows_none(build: str, octets: int) -> None:
    method, _, _ = message(deliver(1))
    header = b"\2\0\1" + octets.to_bytes(4, "big") + b"\0\x3c\0\0\0\0\0\0\0\0\0"[:octets] + b"\xce"
    talk = Recorded()
    talk.consume("work", "c")
    talk.send(SERVER, method, header)
    [row] = talk.rows(build)
    assert (row["delivery_tag"], row["body_size"], row["complete"]) == (1, None, False)


def test_messages_that_wait_with_large_headers_are_limited(
    build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_backend.load("amqpcodec._columns.following", build), "MOST_OCTETS", 2000)
    talk = Recorded()
    talk.consume("work", "c")
    for tag in (1, 2, 3):
        talk.send(SERVER, *message(deliver(tag), headers={"much": "x" * 1500}))
    talk.client(amqp.Basic.Ack(delivery_tag=2, multiple=True))
    talk.deliver(4)
    talk.client(amqp.Basic.Ack(delivery_tag=4))
    assert shown(talk.rows(build), "delivery_tag", "outcome") == [
        (3, "dropped"), (1, "ack"), (2, "ack"), (4, "ack"),
    ]  # fmt: skip


def test_channels_beyond_the_limit_are_forgotten_and_that_is_said(
    build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    following = _backend.load("amqpcodec._columns.following", build)
    monkeypatch.setattr(following, "MOST_CHANNELS", 2)
    talk = Recorded()
    for channel in (1, 2, 3):
        talk.client(amqp.Channel.Open(), channel)
        talk.client(amqp.Basic.Consume(queue="work", consumer_tag="c", no_wait=True), channel)
        octets = amqp.encode_message(channel, deliver(channel), amqp.BasicProperties(), b"", frame_max=4096)
        talk.send(SERVER, *make.split(octets))
    assert shown(talk.rows(build), "delivery_tag", "outcome") == [(1, "dropped"), (2, "dropped"), (3, "none")]


def test_an_eighth_of_all_channels_is_forgotten_at_once(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for one channel alone, each further one would go through all connections."""
    monkeypatch.setattr(_backend.load("amqpcodec._columns.following", build), "MOST_CHANNELS", 16)
    truth = make.Truth()
    for number in range(17):
        talk = Talk(truth, number).opened()
        talk.client(amqp.Basic.Consume(queue="work", consumer_tag="c", no_wait=True))
        talk.send(SERVER, *message(deliver(1)))
    rows = rows_of(arrow.read_capture(io.BytesIO(make.pcap(truth.packets)), "deliveries", _impl=build))
    assert Counter(row["outcome"] for row in rows) == {"dropped": 3, "none": 14}


def test_queues_of_channels_that_were_forgotten_are_not_known(
    build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_backend.load("amqpcodec._columns.following", build), "MOST_CHANNELS", 1)
    talk, other = Recorded(), Talk(make.Truth(), 1)
    talk.consume("work", "c")
    talk.deliver(1)
    other.opened()
    talk.deliver(2)
    before, between, behind = talk.truth.packets[:-2], other.truth.packets, talk.truth.packets[-2:]
    octets = make.pcap([*before, *between, *behind])
    rows = rows_of(arrow.read_capture(io.BytesIO(octets), "messages", _impl=build))
    assert shown(rows, "queue") == [("work",), (None,)]


def _parts(octets: bytes, cuts: list[int], builds: Iterator[str]) -> list[dict[str, Any]]:
    """The rows of a capture that is read up to each cut by another session."""
    state, rows = None, []
    for cut in [*cuts, None]:
        session = arrow.CaptureSession("deliveries", state=state, _impl=next(builds))
        rows += rows_of(session.read(io.BytesIO(octets), "file", end=cut))
        state = session.suspend()
    return rows + rows_of(session.finish())


def test_sessions_that_are_cut_anywhere_have_the_rows_of_one(build: str) -> None:
    octets = _settled().capture()
    whole = _parts(octets, [], iter([build]))
    assert len(whole) == len(SETTLED)
    builds = [build, "py"]
    for cut in range(100, size_of(octets), 700):
        assert _parts(octets, [cut, cut + 350], iter([*builds, build])) == whole


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("table", ["messages", "deliveries"])
def test_both_builds_have_the_same_rows_of_captures_that_lack_packets(table: str, seed: int) -> None:
    octets = make.pcapng(disturbed(seed))
    settled = make.pcap(make.disturb(_settled().truth.packets, seed, reorder=0.1, duplicate=0.1, loss=0.1)[0])
    for capture in (octets, settled):
        found = []
        for impl in ("c", "py"):
            reader = arrow.read_capture(io.BytesIO(capture), table, _impl=impl)
            found.append((rows_of(reader), reader.faults))
        assert found[0] == found[1]
        assert found[0][0]


TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACED: dict[str, tuple[dict[str, Any], tuple[str | None, str | None]]] = {
    "w3c": ({"a": 1, "traceparent": f"00-{TRACE}-{SPAN}-01"}, (TRACE, SPAN)),
    "w3c, of no trace": ({"traceparent": f"00-{'0' * 32}-{SPAN}-01"}, (None, None)),
    "w3c, of no version": ({"traceparent": f"ff-{TRACE}-{SPAN}-01"}, (None, None)),
    "w3c, in capitals": ({"traceparent": f"00-{TRACE.upper()}-{SPAN}-01"}, (None, None)),
    "w3c, before others": ({"b3": "0", "traceparent": f"00-{TRACE}-{SPAN}-00", "z": None}, (TRACE, SPAN)),
    "b3": ({"b3": f"{TRACE}-{SPAN}-1-05e3ac9a4f6e3b90"}, (TRACE, SPAN)),
    "b3, not sampled": ({"b3": "0"}, (None, None)),
    "b3, no text": ({"b3": 7}, (None, None)),
    "jaeger": ({"uber-trace-id": f"{TRACE}%3A{SPAN}%3A0%3A1"}, (TRACE, SPAN)),
    "skywalking": ({"sw8": "1-dHJhY2U=-c2VnbWVudA==-3-cw==-aQ==-ZQ==-cA=="}, ("trace", "segment-3")),
    "skywalking, not base64": ({"sw8": "1-a-b-3-cw==-aQ==-ZQ==-cA=="}, (None, None)),
    "none": ({"traceparents": "x", "b": 3}, (None, None)),
}


@pytest.mark.parametrize("name", TRACED)
def test_ids_of_traces_come_from_the_headers_of_tracers(build: str, name: str) -> None:
    headers, ids = TRACED[name]
    talk = Recorded()
    talk.publish(headers=headers)
    for table in ("messages", "deliveries"):
        for columns in (None, ["trace_id", "span_id"]):
            rows = talk.rows(build, table, columns=columns)
            assert shown(rows, "trace_id", "span_id") == [ids]
        assert shown(talk.rows(build, table, columns=["span_id"]), "span_id") == [(ids[1],)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("name", ["b3", "jaeger", "skywalking"])
def test_an_interrupt_while_ids_of_traces_are_read_is_raised(
    build: str, name: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(text: str) -> Any:
        raise error

    headers, _ = TRACED[name]
    talk = Recorded()
    talk.publish(headers=headers)
    values = pa.array([b"".join(message(deliver(1), headers=headers))])
    decoder = arrow.ValueDecoder("messages", _impl=build)
    with monkeypatch.context() as patch:
        for key in headers:
            patch.setitem(TRACERS, key, interrupted)
        for table in ("messages", "deliveries"):
            with pytest.raises(error):
                talk.rows(build, table, columns=["span_id"])
        with pytest.raises(error):
            decoder.decode(values)
    assert decoder.decode(values).num_rows == 1


def test_a_stream_and_a_capture_have_the_same_columns_of_messages() -> None:
    captured = arrow.read_capture(io.BytesIO(_settled().capture())).schema
    assert arrow.decode_messages(b"").schema == captured


def _answered_up_to_each(count: int, build: str) -> Callable[[], float]:
    """So many deliveries wait, then every acknowledgement is for one of them, and all before it."""
    talk = Recorded()
    talk.send(SERVER, *(frame for tag in range(1, count + 1) for frame in message(deliver(tag))))
    for tag in range(1, count + 1):
        talk.client(amqp.Basic.Ack(delivery_tag=tag, multiple=True))
    octets = talk.capture()

    def work() -> float:
        begin = time.process_time()
        reader = arrow.read_capture(io.BytesIO(octets), "deliveries", columns=["outcome"], _impl=build)
        found = Counter(row["outcome"] for row in rows_of(reader))
        seconds = time.process_time() - begin
        assert found == {"ack": count}
        return seconds

    return work


def test_acknowledgements_of_many_that_wait_take_linear_time(build: str) -> None:
    counts = [500, 4000]
    small, large = (_answered_up_to_each(count, build) for count in counts)
    [(few, many)] = pairwise(counts)
    with undisturbed():
        once = min(small() for _ in range(3))
        assert within(2 * many / few * once + 0.02, large, turns=3)


@pytest.mark.parametrize("side", [CLIENT, SERVER])
def test_nothing_is_claimed_about_a_direction_that_was_not_recorded(build: str, side: int) -> None:
    """Where one side alone is recorded, there may have been answers to all of its messages."""
    talk = _settled()
    packets = make.one_side(talk.truth.packets, side)
    reader = arrow.read_capture(io.BytesIO(make.pcap(packets, nanos=True)), "deliveries", _impl=build)
    rows = rows_of(reader)
    assert {row["outcome"] for row in rows if row["kind"] != "return"} == (
        {None, "unknown"} if side == CLIENT else {"unknown"}
    )
    assert reader.faults == {"GAP": 1}
    read = {
        table: arrow.read_capture(io.BytesIO(make.pcap(packets)), table, _impl=build)
        for table in ("errors", "connections")
    }
    [fault], [row] = rows_of(read["errors"]), rows_of(read["connections"])
    truth = sum(len(octets) for _, way, _, octets in talk.truth.frames if way == 1 - side)
    assert (fault["direction"], fault["offset"], fault["length"]) == (1 - side, 0, truth)
    assert fault["message"] == f"{truth} octets were acknowledged, and nothing of this direction was recorded"
    assert (row["gaps"], row["octets_missing"]) == (1, truth)
    assert row["octets_received" if side == CLIENT else "octets_sent"] == 0


@pytest.mark.parametrize("closed", [False, True])
def test_the_end_of_a_direction_that_was_acknowledged_is_missing(build: str, closed: bool) -> None:
    talk = Recorded()
    talk.confirm()
    talk.publish()
    before = len(talk.truth.packets)
    talk.server(amqp.Basic.Ack(delivery_tag=1))
    if closed:
        talk.close()
    packets = talk.truth.packets[:before] + [
        packet for packet in talk.truth.packets[before:] if packet in make.one_side([packet], CLIENT)
    ]
    octets = make.pcap(packets, nanos=True)
    [row] = rows_of(arrow.read_capture(io.BytesIO(octets), "deliveries", _impl=build))
    [fault] = rows_of(arrow.read_capture(io.BytesIO(octets), "errors", _impl=build))
    assert row["outcome"] == "unknown"
    assert (fault["direction"], fault["length"]) == (SERVER, len(amqp.encode_method(1, amqp.Basic.Ack(1))))


def test_an_answer_may_be_in_a_gap_of_the_direction_that_answers_take(build: str) -> None:
    talk = Recorded()
    talk.confirm()
    talk.publish()
    at = len(talk.truth.packets)
    talk.server(amqp.Basic.Ack(delivery_tag=1))
    talk.publish()
    talk.server(amqp.Basic.Ack(delivery_tag=2))
    talk.wait(2)  # what is missing is awaited for a second
    talk.send(SERVER, b"\x08\0\0\0\0\0\0\xce")
    talk.publish()
    lost = talk.truth.packets.pop(at)
    assert lost.stream == (0, SERVER)
    assert shown(talk.rows(build), "delivery_tag", "outcome") == [
        (2, "confirmed"), (1, "unknown"), (3, "none"),
    ]  # fmt: skip
