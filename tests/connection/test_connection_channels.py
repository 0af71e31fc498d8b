"""Channels, deliveries, confirms, transactions, flow: both sides know the same."""

from __future__ import annotations

from random import Random
from time import process_time
from typing import Any

import pytest
from support.connections import Pair
from support.implementation import Implementation

from amqpcodec import EncodeError, LocalProtocolError, rabbitmq
from amqpcodec._backend import load
from amqpcodec.connection import (
    Blocked,
    ChannelClosed,
    ChannelOpened,
    ConnectionLimits,
    FlowChanged,
    MessageReceived,
    MethodReceived,
    Settled,
    Unblocked,
    Violation,
)


def consuming(impl: Implementation, no_ack: bool = False, **options: Any) -> Pair:
    """A pair with a consumer `ct` on channel 1."""
    pair = Pair(impl, **options).opened()
    pair.client.send(1, pair.amqp.Basic.Consume(queue="q", consumer_tag="ct", no_ack=no_ack))
    pair.talk()
    pair.server.send(1, pair.amqp.Basic.ConsumeOk(consumer_tag="ct"))
    pair.talk()
    for events in pair.events.values():
        events.clear()
    return pair


def deliver(pair: Pair, count: int) -> None:
    for _ in range(count):
        tag = pair.server.next_delivery_tag(1)
        pair.server.send_message(1, pair.amqp.Basic.Deliver("ct", tag, False, "", "q"), None, b"body")
    pair.talk()


def outstanding(pair: Pair) -> tuple[int, ...]:
    pair.talk()
    assert pair.client.unacknowledged(1) == pair.server.unacknowledged(1)
    return tuple(pair.server.unacknowledged(1))


def test_channels_take_the_lowest_free_numbers_in_turn(impl: Implementation) -> None:
    pair = Pair(impl, client={"channel_max": 3}).opened(0)
    assert [pair.client.open_channel() for _ in range(3)] == [1, 2, 3]
    with pytest.raises(LocalProtocolError, match="all 3 channels are in use"):
        pair.client.open_channel()
    pair.talk()
    pair.client.close_channel(2)
    pair.talk()
    assert pair.client.open_channel() == 2


def test_requests_may_follow_channel_open_at_once(impl: Implementation, dialect: str) -> None:
    pair = Pair(impl, dialect, reply=lambda *_: None).opened(0)
    amqp = pair.amqp
    pair.client.open_channel()
    declare = amqp.Queue.Declare(queue="q")
    pair.client.send(1, declare)
    pair.talk()
    assert pair.taken("server") == [MethodReceived(1, amqp.Channel.Open()), MethodReceived(1, declare)]
    assert (pair.client.channel_state(1), pair.server.channel_state(1)) == ("opening", "opening")
    declared = amqp.Queue.DeclareOk("q", 0, 0)
    with pytest.raises(LocalProtocolError, match="answers no request that waits for it"):
        pair.server.send(1, declared)
    pair.server.send(1, amqp.Channel.OpenOk())
    pair.server.send(1, declared)
    pair.talk()
    assert pair.taken("client") == [
        ChannelOpened(1, amqp.Channel.OpenOk()),
        MethodReceived(1, declared, declare),
    ]


def test_replies_answer_in_order(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    amqp = pair.amqp
    requests = [amqp.Queue.Declare(queue="a"), amqp.Basic.Qos(0, 1, False), amqp.Queue.Purge(queue="b")]
    for request in requests:
        pair.client.send(1, request)
    pair.client.send(1, amqp.Queue.Purge(queue="c", no_wait=True))
    pair.talk()
    assert pair.client.awaited(1) == pair.server.unanswered(1) == tuple(requests)
    with pytest.raises(LocalProtocolError):
        pair.server.send(1, amqp.Queue.PurgeOk(0))
    for reply in (amqp.Queue.DeclareOk("a", 0, 0), amqp.Basic.QosOk(), amqp.Queue.PurgeOk(0)):
        pair.server.send(1, reply)
    pair.talk()
    assert [event.request for event in pair.taken("client")] == requests
    assert pair.client.awaited(1) == pair.server.unanswered(1) == ()


def test_update_secret_is_for_clients_to_send(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    amqp = pair.amqp
    update = amqp.Connection.UpdateSecret(b"new", "old one expires")
    with pytest.raises(LocalProtocolError, match="not for a server to send"):
        pair.server.send(0, update)
    pair.client.send(0, update)
    pair.talk()
    pair.server.send(0, amqp.Connection.UpdateSecretOk())
    pair.talk()
    assert pair.taken("client") == [MethodReceived(0, amqp.Connection.UpdateSecretOk(), update)]


def test_acknowledgements_settle_what_they_say(impl: Implementation) -> None:
    pair = consuming(impl)
    basic = pair.amqp.Basic
    deliver(pair, 6)
    assert outstanding(pair) == (1, 2, 3, 4, 5, 6)
    for method, tags, left in [
        (basic.Ack(2), (2,), (1, 3, 4, 5, 6)),
        (basic.Ack(4, multiple=True), (1, 3, 4), (5, 6)),
        (basic.Reject(5, requeue=True), (5,), (6,)),
        (basic.Nack(0, multiple=True, requeue=False), (6,), ()),
    ]:
        pair.client.send(1, method)
        assert outstanding(pair) == left
        assert pair.taken("server") == [Settled(1, method, tags)]
    with pytest.raises(LocalProtocolError, match="unknown delivery tag 6") as caught:
        pair.client.send(1, basic.Ack(6))
    assert (caught.value.reply_code, caught.value.channel) == (406, 1)
    deliver(pair, 1)
    assert outstanding(pair) == (7,)


def test_what_needs_no_acknowledgement_waits_for_none(impl: Implementation) -> None:
    pair = consuming(impl, no_ack=True)
    basic = pair.amqp.Basic
    deliver(pair, 2)
    assert outstanding(pair) == ()
    for no_ack, left in [(True, ()), (False, (4,))]:
        pair.client.send(1, basic.Get(queue="q", no_ack=no_ack))
        pair.talk()
        tag = pair.server.next_delivery_tag(1)
        pair.server.send_message(1, basic.GetOk(tag, False, "", "q", 0), None, b"got")
        assert outstanding(pair) == left
    assert pair.taken("client")[-1].request == basic.Get(queue="q", no_ack=False)


def test_a_server_delivers_to_consumers_only(impl: Implementation) -> None:
    pair = consuming(impl)
    amqp = pair.amqp
    assert pair.server.consumers(1) == pair.client.consumers(1) == ("ct",)
    with pytest.raises(LocalProtocolError, match="to no consumer: 'other'"):
        pair.server.send_message(1, amqp.Basic.Deliver("other", 1, False, "", ""), None, b"")
    with pytest.raises(LocalProtocolError, match="delivery tag 0 after 0"):
        pair.server.send_message(1, amqp.Basic.Deliver("ct", 0, False, "", ""), None, b"")
    with pytest.raises(LocalProtocolError, match="attempt to reuse consumer tag 'ct'"):
        pair.client.send(1, amqp.Basic.Consume(queue="q", consumer_tag="ct"))
    pair.client.send(1, amqp.Basic.Cancel("ct"))
    pair.talk()
    pair.server.send(1, amqp.Basic.CancelOk("ct"))
    pair.talk()
    assert pair.server.consumers(1) == pair.client.consumers(1) == ()


def test_a_server_may_cancel_a_consumer(impl: Implementation) -> None:
    pair = consuming(impl)
    amqp = pair.amqp
    pair.server.send(1, amqp.Basic.Cancel("ct", no_wait=True))
    pair.talk()
    assert pair.taken("client") == [MethodReceived(1, amqp.Basic.Cancel("ct", no_wait=True))]
    assert pair.server.consumers(1) == pair.client.consumers(1) == ()


def test_a_client_that_let_the_server_choose_the_tag_gets_deliveries(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    amqp = pair.amqp
    pair.client.send(1, amqp.Basic.Consume(queue="q", no_ack=True, no_wait=True))
    pair.talk()
    pair.server.send_message(1, amqp.Basic.Deliver("chosen", 1, False, "", ""), None, b"")
    assert outstanding(pair) == ()
    assert isinstance(pair.taken("client")[0], MessageReceived)


@pytest.mark.parametrize("dialect_name", ["rabbitmq-0-9-1", "amqp-0-8"])
def test_recover_takes_all_deliveries_back(impl: Implementation, dialect_name: str) -> None:
    pair = consuming(impl, dialect=dialect_name)
    amqp = pair.amqp
    deliver(pair, 3)
    pair.client.send(1, amqp.Basic.Recover(True))
    pair.talk()
    if dialect_name == "rabbitmq-0-9-1":
        assert outstanding(pair) == (1, 2, 3)
        pair.server.send(1, amqp.Basic.RecoverOk())
        late = amqp.encode_method(1, amqp.Basic.Ack(3))  # sent before recover-ok has come
        assert list(pair.server.receive_data(late)) == [Settled(1, amqp.Basic.Ack(3), ())]
    assert outstanding(pair) == ()


def test_a_rollback_restores_what_was_settled_in_the_transaction(impl: Implementation) -> None:
    pair = consuming(impl)
    amqp = pair.amqp
    deliver(pair, 4)
    pair.client.send(1, amqp.Tx.Select())
    pair.client.send(1, amqp.Basic.Ack(3))
    pair.client.send(1, amqp.Tx.Commit())
    pair.client.send(1, amqp.Basic.Ack(1))
    pair.client.send(1, amqp.Basic.Ack(4))
    assert outstanding(pair) == (2,)
    pair.client.send(1, amqp.Tx.Rollback())
    assert outstanding(pair) == (1, 2, 4)


def test_what_an_acknowledgement_of_a_derived_class_says_is_what_is_settled(impl: Implementation) -> None:
    pair = consuming(impl)

    class Counted(pair.amqp.BasicAck):  # type: ignore[name-defined,misc]
        delivery_tag = property(lambda self: 2, lambda self, value: None)
        multiple = property(lambda self: True, lambda self, value: None)

    deliver(pair, 3)
    pair.client.send(1, Counted(9))
    assert outstanding(pair) == (3,)


def test_publishes_are_numbered_and_confirmed(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    amqp = pair.amqp
    publish = amqp.Basic.Publish(exchange="x")
    assert pair.client.send_message(1, publish, None, b"before") is None
    with pytest.raises(LocalProtocolError, match="not in confirm mode"):
        pair.server.send(1, amqp.Basic.Ack(1))
    pair.client.send(1, amqp.Confirm.Select())
    assert [pair.client.send_message(1, publish, None, b"x") for _ in range(5)] == [1, 2, 3, 4, 5]
    pair.talk()
    numbers = [e.sequence_number for e in pair.taken("server") if isinstance(e, MessageReceived)]
    assert numbers == [None, 1, 2, 3, 4, 5]
    pair.server.send(1, amqp.Confirm.SelectOk())
    for method, tags, left in [
        (amqp.Basic.Ack(3), (3,), (1, 2, 4, 5)),
        (amqp.Basic.Nack(2, multiple=True), (1, 2), (4, 5)),
        (amqp.Basic.Ack(3), (), (4, 5)),
        (amqp.Basic.Ack(0, multiple=True), (4, 5), ()),
    ]:
        pair.server.send(1, method)
        pair.talk()
        assert pair.taken("client")[-1] == Settled(1, method, tags)
        assert pair.client.unconfirmed(1) == pair.server.unconfirmed(1) == left
    with pytest.raises(LocalProtocolError, match="unknown delivery tag 6"):
        pair.server.send(1, amqp.Basic.Ack(6))


def test_flow_is_answered_and_heeded(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    amqp = pair.amqp
    publish = amqp.Basic.Publish()
    for active in (False, True):
        pair.server.send(1, amqp.Channel.Flow(active))
        pair.client.send(1, amqp.Queue.Declare(queue="q", no_wait=True))
        pair.talk()
        assert pair.taken("client") == [FlowChanged(1, active)]
        answer = MethodReceived(1, amqp.Channel.FlowOk(active), amqp.Channel.Flow(active))
        assert answer in pair.taken("server")
        if active:
            pair.client.send_message(1, publish, None, b"")
        else:
            with pytest.raises(LocalProtocolError, match="wants no content"):
                pair.client.send_message(1, publish, None, b"")


def test_flow_is_answered_before_requests_that_wait(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    amqp = pair.amqp
    pair.client.send(1, amqp.Queue.Declare(queue="q"))
    pair.client.send(1, amqp.Channel.Flow(False))
    pair.talk()
    flowed = pair.taken("client")
    assert flowed == [MethodReceived(1, amqp.Channel.FlowOk(False), amqp.Channel.Flow(False))]


def test_a_server_says_when_it_is_blocked(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    amqp = pair.amqp
    pair.server.send(0, amqp.Connection.Blocked("low on mem\udcc3"))
    pair.talk()
    assert (pair.client.blocked, pair.taken("client")) == (True, [Blocked("low on mem?")])
    pair.server.send(0, amqp.Connection.Unblocked())
    pair.talk()
    assert (pair.client.blocked, pair.taken("client")) == (False, [Unblocked()])


def test_both_sides_may_close_a_channel_at_once(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    pair.client.close_channel(1, 200, "client")
    pair.server.close_channel(1, 406, "server")
    for side in (pair.client, pair.server):
        assert side.channel_state(1) == "closing"
        with pytest.raises(LocalProtocolError, match="is being closed"):
            side.send(1, pair.amqp.Channel.Flow(True))
    pair.talk()
    close = pair.amqp.Channel.Close
    theirs, ours = close(406, "server", 0, 0), close(200, "client", 0, 0)
    assert pair.taken("client") == [ChannelClosed(1, "local", 200, "client", crossed=theirs)]
    assert pair.taken("server") == [ChannelClosed(1, "local", 406, "server", crossed=ours)]
    assert pair.client.channels == pair.server.channels == ()


def test_deliveries_that_do_not_ascend_are_settled_by_their_tags(impl: Implementation) -> None:
    """A tag up to that of a `multiple` is settled, whenever it came."""
    pair = Pair(impl).opened()
    amqp, client = pair.amqp, pair.client
    client.send(1, amqp.Basic.Consume(queue="q", consumer_tag="ct", no_wait=True))
    for tag in (5, 3, 9, 1, 4, 8):
        deliver = amqp.Basic.Deliver("ct", tag, False, "", "q")
        [_] = client.receive_data(amqp.encode_message(1, deliver, None, b""))
    assert client.unacknowledged(1) == (1, 3, 4, 5, 8, 9)
    for method, left in [
        (amqp.Basic.Ack(3, multiple=True), (4, 5, 8, 9)),
        (amqp.Basic.Ack(5), (4, 8, 9)),
        (amqp.Basic.Nack(8, multiple=True), (9,)),
        (amqp.Basic.Ack(0, multiple=True), ()),
    ]:
        client.send(1, method)
        assert client.unacknowledged(1) == left


def test_messages_for_a_channel_that_is_being_closed_are_dropped(impl: Implementation) -> None:
    limits = ConnectionLimits(open_bytes=5000)
    pair = Pair(impl, client={"connection_limits": limits}).opened(2)
    amqp, client = pair.amqp, pair.client
    for channel in (1, 2):
        client.send(channel, amqp.Basic.Consume(queue="q", consumer_tag="ct", no_wait=True))
    client.close_channel(1)
    deliver = amqp.Basic.Deliver("ct", 1, False, "", "q")
    for size in (0, 1, 200_000):
        octets = amqp.encode_message(1, deliver, None, bytes(size), frame_max=4096)
        chunks = [octets[at : at + 999] for at in range(0, len(octets), 999)]
        assert [event for chunk in chunks for event in client.receive_data(chunk)] == []
    # What is dropped is not kept until it is complete: others may have all the room.
    last = 4500 - 4088 + 8  # octets of the last frame
    unfinished, whole = (
        amqp.encode_message(channel, deliver, None, bytes(4500), frame_max=4096) for channel in (1, 2)
    )
    assert list(client.receive_data(unfinished[:-last])) == []
    [event] = client.receive_data(whole)
    assert (event.channel, event.body, client.state) == (2, bytes(4500), "open")
    assert list(client.receive_data(unfinished[-last:])) == []
    [closed] = client.receive_data(amqp.encode_method(1, amqp.Channel.CloseOk()))
    assert (closed.channel, closed.unacknowledged) == (1, ())


def test_an_answer_goes_before_the_close_that_came_behind_its_request(impl: Implementation) -> None:
    """Events come one by one: what follows has not happened yet."""
    pair = Pair(impl).opened()
    amqp, server = pair.amqp, pair.server
    octets = amqp.encode_method(1, amqp.Queue.Declare(queue="q"))
    octets += amqp.encode_method(1, amqp.Channel.Close(200, "", 0, 0))
    events = server.receive_data(octets)
    next(events)
    server.send(1, amqp.Queue.DeclareOk("q", 0, 0))
    assert next(events) == ChannelClosed(1, "peer", 200, "")
    declared = amqp.encode_method(1, amqp.Queue.DeclareOk("q", 0, 0))
    assert server.data_to_send() == declared + amqp.encode_method(1, amqp.Channel.CloseOk())


def test_a_value_that_cannot_be_sent_changes_nothing(impl: Implementation) -> None:
    pair = consuming(impl)
    amqp = pair.amqp
    with pytest.raises(EncodeError):
        pair.server.send_message(1, amqp.Basic.Deliver("ct", None, False, "", ""), None, b"")
    with pytest.raises(EncodeError):
        pair.client.send(1, amqp.Queue.Declare(queue="q" * 256))
    with pytest.raises(EncodeError):
        pair.client.send("1", amqp.Queue.Declare(queue="q"))
    with pytest.raises(EncodeError):
        pair.client.send(1, "queue.declare")
    with pytest.raises(EncodeError):
        pair.client.send(1, impl.dialect("amqp-0-8").Queue.Declare(queue="q"))
    for connection in (pair.client, pair.server):
        assert connection.data_to_send() == b""
    assert (pair.client.awaited(1), pair.server.unacknowledged(1)) == ((), ())


def test_contents_go_with_send_message_and_others_with_send(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    amqp = pair.amqp
    with pytest.raises(LocalProtocolError, match="use send_message"):
        pair.client.send(1, amqp.Basic.Publish())
    with pytest.raises(LocalProtocolError, match="use send"):
        pair.client.send_message(1, amqp.Basic.Ack(1), None, b"")


@pytest.mark.parametrize("size", [0, 1, 5000, 65536, 300000])
def test_bodies_are_cut_to_the_size_agreed_on(impl: Implementation, size: int) -> None:
    pair = Pair(impl, client={"frame_max": 4096}).opened()
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    pair.client.send_message(1, pair.amqp.Basic.Publish(), None, body)
    buffers = pair.client.buffers_to_send()
    assert pair.client.bytes_to_send == 0
    [message] = pair.server.receive_data(b"".join(buffers))
    assert message.body == body


def test_deliveries_beyond_the_limit_are_refused_to_the_server(impl: Implementation) -> None:
    pair = consuming(impl, server={"connection_limits": ConnectionLimits(unacknowledged=2)})
    deliver(pair, 2)
    with pytest.raises(LocalProtocolError, match="2 deliveries are not acknowledged") as caught:
        deliver(pair, 1)
    assert caught.value.reply_code == 406


@pytest.mark.parametrize("room", [0, 1])
def test_what_the_protocol_demands_is_answered_while_there_is_room(impl: Implementation, room: int) -> None:
    waits = rabbitmq.encode_method(1, rabbitmq.Basic.Qos()) * 100
    limits = ConnectionLimits(send_buffer=len(waits) + room)
    pair = Pair(impl, client={"connection_limits": limits}).opened()
    amqp, client = pair.amqp, pair.client
    for _ in range(100):
        client.send(1, amqp.Basic.Qos())
    events = list(client.receive_data(amqp.encode_method(1, amqp.Channel.Flow(True))))
    assert [type(event) is Violation for event in events][-1] is not bool(room)


def test_what_is_not_written_limits_what_can_be_sent(impl: Implementation) -> None:
    pair = Pair(impl, client={"connection_limits": ConnectionLimits(send_buffer=1000)}).opened()
    publish = pair.amqp.Basic.Publish()
    pair.client.send_message(1, publish, None, b"x" * 5000)
    with pytest.raises(LocalProtocolError, match="octets wait to be sent") as caught:
        pair.client.send_message(1, publish, None, b"")
    assert caught.value.reply_code == 506
    assert len(pair.client.data_to_send()) > 5000
    pair.client.send_message(1, publish, None, b"")


@pytest.mark.parametrize("dialect_name", ["amqp-0-8", "amqp-0-9"])
def test_old_classes_are_paired_by_the_same_tables(impl: Implementation, dialect_name: str) -> None:
    pair = Pair(impl, dialect_name).opened()
    amqp = pair.amqp
    request = amqp.Access.Request("/data", read=True)
    pair.client.send(1, request)
    pair.client.send(1, amqp.File.Open("name", 3))
    pair.talk()
    pair.server.send(1, amqp.Access.RequestOk(7))
    pair.server.send(1, amqp.File.OpenOk(0))
    pair.talk()
    answer, opened = pair.taken("client")
    assert (answer.request, opened.request) == (request, amqp.File.Open("name", 3))
    pair.client.send_message(1, amqp.File.Stage(), None, b"abc")
    pair.client.send_message(1, amqp.Tunnel.Request({}), None, b"inner")
    pair.talk()
    stage, tunnel = pair.taken("server")[-2:]
    assert (stage.request, stage.body, tunnel.body) == (amqp.File.OpenOk(0), b"abc", b"inner")


def test_a_closed_channel_of_0_9_may_be_resumed(impl: Implementation) -> None:
    pair = Pair(impl, "amqp-0-9", reply=lambda *_: None).opened(0)
    amqp = pair.amqp
    pair.client.send(1, amqp.Channel.Resume(b"id"))
    pair.talk()
    pair.server.send(1, amqp.Channel.Ok())
    pair.talk()
    assert pair.taken("client") == [ChannelOpened(1, amqp.Channel.Ok())]


def test_a_question_of_qpid_has_its_answer(impl: Implementation) -> None:
    pair = Pair(impl, "qpid-0-8").opened()
    amqp = pair.amqp
    question = amqp.Exchange.Bound("x", "k", "q")
    pair.client.send(1, question)
    pair.talk()
    pair.server.send(1, amqp.Exchange.BoundOk(0, ""))
    pair.talk()
    assert pair.taken("client") == [MethodReceived(1, amqp.Exchange.BoundOk(0, ""), question)]


def test_a_derived_method_is_judged_as_its_base(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    derived = type("Mine", (pair.amqp.Queue.Declare,), {})
    pair.client.send(1, derived(queue="q"))
    pair.talk()
    assert pair.taken("server") == [MethodReceived(1, pair.amqp.Queue.Declare(queue="q"))]


@pytest.mark.parametrize("reach", [1, 0], ids=["one at a time", "nothing left"])
def test_acknowledging_the_oldest_costs_the_same_however_many_wait(impl: Implementation, reach: int) -> None:
    def seconds(count: int) -> float:
        tags = load("amqpcodec.connection.channel", impl.name).Tags()
        for _ in range(count):
            tags.count()
        if not reach:
            tags.settle(0, True)
        started = process_time()
        for number in range(1, count + 1):
            tags.settle(number * reach, True)
        return process_time() - started

    few, many = min(seconds(3000) for _ in range(3)), min(seconds(48000) for _ in range(3))
    assert many < 16 * 6 * few


def test_numbers_settled_in_any_order_and_taken_back_stay_in_order(impl: Implementation) -> None:
    tags = load("amqpcodec.connection.channel", impl.name).Tags()
    waiting: list[int] = []
    random = Random(1)
    for _ in range(3000):
        if random.random() < 0.6:
            waiting.append(tags.count())
        tag = random.choice(waiting or [0])
        multiple = random.random() < 0.1
        if multiple and random.random() < 0.2:
            tag = 0
        settled = [each for each in waiting if each == tag or (multiple and (each < tag or tag == 0))]
        assert tags.settle(tag, multiple) == tuple(settled)
        waiting = [each for each in waiting if each not in settled]
        if random.random() < 0.5:
            tags.restore(settled)
            waiting = sorted(waiting + settled)
        assert tags.waiting() == tuple(waiting)
        assert len(tags) == len(waiting)


def test_a_tag_cancelled_twice_is_free_for_a_new_consumer(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    basic = pair.amqp.Basic
    pair.client.send(1, basic.Cancel("ct"))
    pair.client.send(1, basic.Cancel("ct", no_wait=True))
    pair.talk()
    pair.server.send(1, basic.CancelOk("ct"))
    pair.talk()
    pair.client.send(1, basic.Consume(queue="q", consumer_tag="ct"))
    pair.talk()
    pair.server.send(1, basic.ConsumeOk("ct"))
    pair.talk()
    assert pair.client.consumers(1) == pair.server.consumers(1) == ("ct",)
    deliver(pair, 1)
    assert outstanding(pair) == (1,)
