"""This package as a client of Apache Qpid Broker-J, in every dialect that it speaks."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from datetime import UTC, datetime

import brokerj
import pytest
from support.implementation import Implementation

from amqpcodec import profiles
from amqpcodec.connection import (
    ChannelClosed,
    ClientLogin,
    ConnectionClosed,
    MessageReceived,
    Opened,
    Settled,
)

from .differences import ALL, BROKERJ, Difference, soon
from .talk import NoAnswerError, Talk

Open = Callable[..., Talk]

# A table value of each kind: the octets after the tag.
VALUES = {
    profiles.BOOL: b"\1",
    profiles.INT8: b"\xfe",
    profiles.UINT8: b"\xfe",
    profiles.INT16: b"\xff\xfe",
    profiles.UINT16: b"\xff\xfe",
    profiles.INT32: struct.pack(">i", -5),
    profiles.UINT32: struct.pack(">I", 4_000_000_000),
    profiles.INT64: struct.pack(">q", -(1 << 40)),
    profiles.FLOAT: struct.pack(">f", 1.5),
    profiles.DOUBLE: struct.pack(">d", -2.5),
    profiles.DECIMAL: b"\2" + struct.pack(">i", 12345),
    profiles.LONGSTR: b"\0\0\0\5h\xc3\xa9ll",
    profiles.OCTETS: b"\0\0\0\3\0\xff\1",
    profiles.ARRAY: b"\0\0\0\5I\0\0\0\7",
    profiles.TIMESTAMP: struct.pack(">Q", 1_700_000_000),
    profiles.TABLE: b"\0\0\0\7\1kI\0\0\0\7",
    profiles.VOID: b"",
    profiles.CHARACTER: b"A",
}


def entries(talk: Talk) -> bytes:
    """A table with a value of each tag that the dialect writes."""
    tags = talk.amqp.DIALECT.profile.tags
    return b"".join(
        b"\1" + tag.encode() + tag.encode() + VALUES[kind] for tag, kind in tags.items() if tag != "L"
    )


# -- negotiation and login


def test_the_header_of_a_dialect_opens_a_connection(talk: Open) -> None:
    client = talk(heartbeat=30)
    opened = client.event(Opened)
    assert (opened.channel_max, opened.frame_max, opened.heartbeat) == (256, 131072, 30)


@pytest.mark.parametrize(
    "header", [b"AMQP\1\1\x09\1", b"AMQP\0\0\x09\0", b"AMQP\1\1\0\x0a", b"AMQP\3\1\0\0", b"GET / HTTP"]
)
def test_a_header_of_another_version_is_answered_with_one_that_a_client_understands(
    header: bytes, broker: brokerj.BrokerJ, impl: Implementation
) -> None:
    with socket.create_connection(("127.0.0.1", broker.port), 20) as connection:
        connection.sendall(header)
        answer = connection.makefile("rb").read()
    assert answer == impl.dialect("amqp-0-9-1").DIALECT.protocol_header
    client = Talk(impl, "amqp-0-8", broker.url)
    events = list(client.connection.receive_data(answer))
    assert (events[0].octets, events[0].accepted, events[1].by) == (answer, False, "version")
    client.connection.receive_eof()
    client.socket.close()


def test_a_client_without_a_name_may_enter_where_that_is_offered(talk: Open, broker: brokerj.BrokerJ) -> None:
    assert talk(broker.anonymous_url).event(Opened)


@pytest.mark.parametrize(
    ("login", "code"),
    [(ClientLogin("guest", "wrong"), 530), (ClientLogin(virtual_host="/nonesuch"), 404)],
    ids=["password", "virtual host"],
)
def test_a_login_that_is_refused_ends_with_the_code_of_the_broker(
    talk: Open, login: ClientLogin, code: int
) -> None:
    client = talk(login=login)
    closed = client.event(ConnectionClosed)
    assert (closed.by, closed.reply_code) == ("peer", code)


# -- queues, exchanges, messages


def test_queues_and_exchanges_are_declared_bound_emptied_and_deleted(talk: Open) -> None:
    client = talk()
    channel, amqp = client.channel(), client.amqp
    queue = client.queue(channel)
    client.call(channel, amqp.Exchange.Declare(exchange="interop.topic", type="topic"))
    client.call(channel, amqp.Queue.Bind(queue=queue, exchange="interop.topic", routing_key="a.#"))
    for key in ("a.b", "b.a", "a.c"):
        client.publish(channel, b"body", exchange="interop.topic", routing_key=key)
    assert client.call(channel, amqp.Queue.Purge(queue=queue)).method.message_count == 2
    if hasattr(amqp.Queue, "Unbind"):
        client.call(channel, amqp.Queue.Unbind(queue=queue, exchange="interop.topic", routing_key="a.#"))
    if hasattr(amqp.Exchange, "Bound"):
        bound = amqp.Exchange.Bound(exchange="interop.topic", routing_key="a.#", queue=queue)
        assert client.call(channel, bound).method.reply_code == 0
    client.call(channel, amqp.Exchange.Delete(exchange="interop.topic"))
    assert client.call(channel, amqp.Queue.Delete(queue=queue)).method.message_count == 0


def test_names_may_have_any_letters(talk: Open) -> None:
    client = talk()
    channel = client.channel()
    queue = client.queue(channel, queue="ké€😀" * 11)
    client.publish(channel, b"body", routing_key=queue)
    assert client.get(channel, queue).method.routing_key == queue == "ké€😀" * 11


def frames(client: Talk, channel: int, queue: str, body: bytes) -> list[bytes]:
    """A message in the smallest frames."""
    publish = client.amqp.Basic.Publish(routing_key=queue)
    octets = client.amqp.encode_message(channel, publish, None, body, frame_max=4096)
    found = []
    while octets:
        end = 8 + int.from_bytes(octets[3:7], "big")
        found.append(octets[:end])
        octets = octets[end:]
    return found


def test_bodies_of_two_channels_take_turns(talk: Open) -> None:
    client = talk(frame_max=4096)
    one, other = client.channel(), client.channel()
    queue = client.queue(one)
    sent = [frames(client, channel, queue, bytes([channel]) * 9000) for channel in (one, other)]
    client.write(b"".join(frame for pair in zip(*sent, strict=True) for frame in pair))
    assert {client.get(one, queue).body for _ in sent} == {bytes([one]) * 9000, bytes([other]) * 9000}


@pytest.mark.parametrize("closes_all", [True, False], ids=["connection", "channel"])
def test_half_a_body_is_given_up_by_a_close(talk: Open, closes_all: bool) -> None:
    client = talk()
    channel = client.channel()
    queue = client.queue(channel)
    client.write(b"".join(frames(client, channel, queue, bytes(9000))[:3]))
    if closes_all:
        client.connection.close()
        assert client.event(ConnectionClosed).by == "local"
    else:
        client.connection.close_channel(channel)
        assert client.event(ChannelClosed).by == "local"
        assert client.get(client.channel(), queue).method == client.amqp.Basic.GetEmpty()


@pytest.mark.parametrize("size", [0, 1, 131064, 131065, 3 << 20])
def test_a_body_comes_back_as_it_was(talk: Open, size: int) -> None:
    client = talk()
    channel = client.channel()
    queue = client.queue(channel)
    body = bytes(index % 251 for index in range(size % 5000)) * (size // max(size % 5000, 1)) if size else b""
    client.publish(channel, body, routing_key=queue)
    message = client.get(channel, queue, no_ack=True)
    assert message.body == body
    assert message.method.routing_key == queue


def test_all_properties_come_back_as_they_were(talk: Open) -> None:
    client = talk()
    channel = client.channel()
    queue = client.queue(channel)
    properties = client.amqp.BasicProperties(
        content_type="text/plain", content_encoding="utf-8", headers={"a": "b"}, delivery_mode=2, priority=7,
        correlation_id="1", reply_to="direct://amq.direct//there", expiration=soon(), message_id="2",
        timestamp=datetime.fromtimestamp(1_700_000_000, UTC), type="order", user_id="guest", app_id="test",
    )  # fmt: skip
    client.connection.send_message(channel, client.amqp.Basic.Publish(routing_key=queue), properties, b"body")
    assert client.get(channel, queue, no_ack=True).properties == properties


def test_headers_of_every_tag_come_back_octet_by_octet(talk: Open, impl: Implementation) -> None:
    client = talk(tables="raw")
    channel = client.channel()
    queue = client.queue(channel)
    octets = entries(client)
    profile = client.amqp.DIALECT.profile.name
    client.publish(channel, b"", headers=impl.raw_table(octets, profile), routing_key=queue)
    headers = client.get(channel, queue, no_ack=True).properties.headers
    assert headers.octets == octets
    assert headers.error is None


def test_the_broker_reads_a_table_with_every_tag(talk: Open, impl: Implementation) -> None:
    # It compares the arguments of a binding with the headers of each message, so that it decodes both.
    client = talk(tables="raw")
    channel = client.channel()
    for tag, kind in client.amqp.DIALECT.profile.tags.items():
        if tag == "L":
            continue  # `differences` has it
        queue = client.queue(channel)
        entry = b"\3key" + tag.encode() + VALUES[kind]
        wanted = b"\7x-matchS\0\0\0\3all" + entry
        bind = client.amqp.Queue.Bind(queue=queue, exchange="amq.match", arguments=impl.raw_table(wanted))
        client.call(channel, bind)
        client.publish(channel, b"", headers=impl.raw_table(entry), exchange="amq.match", routing_key="")
        arrived = isinstance(client.get(channel, queue, no_ack=True), MessageReceived)
        # Tables, arrays and octets are never equal there.
        assert arrived == (kind not in (profiles.TABLE, profiles.ARRAY, profiles.OCTETS)), tag


def test_a_message_that_nobody_gets_is_returned(talk: Open) -> None:
    client = talk()
    channel = client.channel()
    queue = client.queue(channel)
    client.publish(channel, b"one", routing_key="nowhere", mandatory=True)
    assert client.event(MessageReceived).method.reply_code == 312
    client.publish(channel, b"two", routing_key=queue, immediate=True)
    returned = client.event(MessageReceived)
    assert (returned.method.reply_code, returned.body) == (313, b"two")


# -- consumers


def consume(client: Talk, channel: int, queue: str) -> str:
    """Begin to consume; returns the tag."""
    return str(client.call(channel, client.amqp.Basic.Consume(queue=queue)).method.consumer_tag)


def deliveries(client: Talk, count: int) -> list[tuple[int, bool, bytes]]:
    """The next deliveries: tag, whether they come again, and body."""
    events = [client.event(MessageReceived) for _ in range(count)]
    return [(event.method.delivery_tag, event.method.redelivered, event.body) for event in events]


# The broker reads basic.consume with arguments, which that of amqp-0-8 has not: see the differences.
consuming = pytest.mark.parametrize("dialect", [name for name in ALL if name != "amqp-0-8"], indirect=True)


@consuming
def test_messages_are_consumed_acknowledged_rejected_and_asked_for_again(talk: Open) -> None:
    client = talk()
    channel, amqp = client.channel(), client.amqp
    queue = client.queue(channel)
    client.call(channel, amqp.Basic.Qos(prefetch_count=10))
    tag = consume(client, channel, queue)
    for body in (b"a", b"b", b"c"):
        client.publish(channel, body, routing_key=queue)
    assert deliveries(client, 3) == [(1, False, b"a"), (2, False, b"b"), (3, False, b"c")]
    client.connection.send(channel, amqp.Basic.Reject(delivery_tag=2, requeue=True))
    assert deliveries(client, 1) == [(4, True, b"b")]
    client.connection.send(channel, amqp.Basic.Ack(delivery_tag=3, multiple=True))
    assert client.connection.unacknowledged(channel) == (4,)
    client.connection.send(channel, amqp.Basic.Recover(requeue=True))
    assert deliveries(client, 1) == [(5, True, b"b")]
    assert client.connection.unacknowledged(channel) == (5,)
    client.connection.send(channel, amqp.Basic.Ack(delivery_tag=5))
    client.call(channel, amqp.Basic.Cancel(consumer_tag=tag))
    assert client.get(channel, queue).method.spec.name == "basic.get-empty"
    assert client.connection.unacknowledged(channel) == ()


@consuming
def test_many_messages_arrive_in_order(talk: Open) -> None:
    client = talk()
    channel = client.channel()
    queue = client.queue(channel)
    client.call(channel, client.amqp.Basic.Qos(prefetch_count=50))
    consume(client, channel, queue)
    for number in range(500):
        client.publish(channel, b"%d" % number, routing_key=queue)
    for number in range(500):
        ((tag, again, body),) = deliveries(client, 1)
        assert (tag, again, body) == (number + 1, False, b"%d" % number)
        client.connection.send(channel, client.amqp.Basic.Ack(delivery_tag=tag))


@consuming
def test_flow_stops_deliveries_until_it_is_on_again(talk: Open) -> None:
    client = talk()
    channel = client.channel()
    queue = client.queue(channel)
    client.call(channel, client.amqp.Channel.Flow(active=False))
    consume(client, channel, queue)
    client.publish(channel, b"late", routing_key=queue)
    client.call(channel, client.amqp.Queue.Declare(queue=queue, passive=True))
    assert not client.seen
    client.call(channel, client.amqp.Channel.Flow(active=True))
    assert deliveries(client, 1) == [(1, False, b"late")]


@pytest.mark.parametrize("dialect", ["rabbitmq-0-9-1"], indirect=True)
def test_a_publish_is_confirmed(talk: Open) -> None:
    client = talk()
    channel = client.channel()
    queue = client.queue(channel)
    client.call(channel, client.amqp.Confirm.Select())
    for number in (1, 2, 3):
        client.publish(channel, b"body", routing_key=queue)
        assert client.event(Settled).tags == (number,)
    assert client.connection.unconfirmed(channel) == ()


def test_what_is_done_in_a_transaction_counts_once_it_is_committed(talk: Open) -> None:
    client = talk()
    channel, amqp = client.channel(), client.amqp
    queue = client.queue(channel)
    client.call(channel, amqp.Tx.Select())
    client.publish(channel, b"body", routing_key=queue)
    assert client.get(channel, queue).method.spec.name == "basic.get-empty"
    client.call(channel, amqp.Tx.Commit())
    first = client.get(channel, queue)
    client.connection.send(channel, amqp.Basic.Ack(delivery_tag=first.method.delivery_tag))
    client.call(channel, amqp.Tx.Commit())
    assert client.get(channel, queue).method.spec.name == "basic.get-empty"
    assert client.connection.unacknowledged(channel) == ()
    client.publish(channel, b"undone", routing_key=queue)
    client.call(channel, amqp.Tx.Rollback())
    assert client.get(channel, queue).method.spec.name == "basic.get-empty"


# -- the end, and time


def test_a_channel_that_was_closed_is_opened_again(talk: Open) -> None:
    client = talk()
    channel = client.channel()
    client.connection.close_channel(channel, 404, "x" * 255)
    assert client.event(ChannelClosed).by == "local"
    client.connection.send(channel, client.amqp.Channel.Open())
    assert client.queue(channel)


def test_a_quiet_connection_stays_open_by_heartbeats(talk: Open) -> None:
    client = talk(heartbeat=1)
    channel = client.channel()
    with pytest.raises(NoAnswerError):
        client.event(ConnectionClosed, seconds=2.5)
    assert client.queue(channel)
    beat = b"\x08\0\0\0\0\0\0\xce"
    assert min(octets.count(beat) for octets in client.wire) >= 2


def test_a_client_that_is_silent_is_cut_off(talk: Open) -> None:
    client = talk(heartbeat=1)
    client.event(Opened)
    while octets := client.socket.recv(4096):  # its heartbeats, none of which is answered
        assert octets.strip(b"\x08\0\xce") == b""
    client.connection.receive_eof()
    client.damaged = True  # those octets are not noted


# -- what differs


@pytest.mark.parametrize(
    ("dialect", "difference"),
    [pytest.param(name, each, id=f"{name}-{each.topic}") for each in BROKERJ for name in each.dialects],
    indirect=["dialect"],
)
def test_a_difference_is_as_the_page_says(talk: Open, difference: Difference) -> None:
    difference.check(talk())


FAULTS = {
    "a queue that there is not": (
        "Queue.Declare",
        {"queue": "nonesuch", "passive": True},
        ChannelClosed,
        404,
    ),
    "an exchange that there is not": (
        "Exchange.Declare",
        {"exchange": "no", "passive": True},
        ChannelClosed,
        404,
    ),
    "a binding of nothing": (
        "Queue.Bind",
        {"queue": "nonesuch", "exchange": "amq.direct"},
        ChannelClosed,
        404,
    ),
    "a get from nothing": ("Basic.Get", {"queue": "nonesuch"}, ConnectionClosed, 404),
    "an exchange of the broker": ("Exchange.Delete", {"exchange": "amq.direct"}, ChannelClosed, 530),
    "a reserved name": (
        "Exchange.Declare",
        {"exchange": "amq.mine", "type": "direct"},
        ConnectionClosed,
        530,
    ),
    "a type that there is not": (
        "Exchange.Declare",
        {"exchange": "odd", "type": "odd"},
        ConnectionClosed,
        503,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_refusal_names_the_method_that_it_answers(talk: Open, fault: str) -> None:
    name, fields, kind, code = FAULTS[fault]
    client = talk()
    channel = client.channel()
    owner, method = name.split(".")
    sent = getattr(getattr(client.amqp, owner), method)(**fields)
    closed = client.call(channel, sent, ChannelClosed, ConnectionClosed)
    assert (type(closed), closed.by, closed.reply_code) == (kind, "peer", code)
    assert (closed.class_id, closed.method_id) == (sent.spec.class_id, sent.spec.method_id)


def test_a_queue_with_messages_is_not_deleted_by_one_who_wants_it_empty(talk: Open) -> None:
    client = talk()
    channel = client.channel()
    queue = client.queue(channel)
    client.publish(channel, b"", routing_key=queue)
    closed = client.call(channel, client.amqp.Queue.Delete(queue=queue, if_empty=True), ChannelClosed)
    assert (closed.by, closed.reply_code) == ("peer", 406)


def test_a_queue_of_another_connection_is_refused(talk: Open) -> None:
    first, second = talk(), talk()
    queue = first.queue(first.channel())
    declare = second.amqp.Queue.Declare(queue=queue, exclusive=True)
    closed = second.call(second.channel(), declare, ConnectionClosed)
    assert (closed.by, closed.reply_code) == ("peer", 530)


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (b"\1\0\x09\0\0\0\5\0\x14\0\x14\1\xce", 504),
        (b"\3\0\1\0\0\0\1x\xce", 503),
        (b"\2\0\1\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\0\1\0\0\xce", 503),
    ],
    ids=["no such channel", "body without a method", "header without a method"],
)
def test_frames_out_of_order_end_the_connection_with_the_code_of_the_standard(
    talk: Open, octets: bytes, code: int
) -> None:
    client = talk()
    client.channel()
    client.write(octets)
    closed = client.event(ConnectionClosed)
    assert (closed.by, closed.reply_code) == ("peer", code)
