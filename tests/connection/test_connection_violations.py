"""What a peer does wrong is closed by the right method, with the right code."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from support import vectors
from support.connections import Pair, make, violations
from support.implementation import Implementation

from amqpcodec import DIALECTS, Limits
from amqpcodec.connection import ChannelClosed, ConnectionClosed, ConnectionLimits, MessageReceived

BAD = {"0-8": "amqp-0-8", "0-9": "amqp-0-9", "0-9-1": "amqp-0-9-1", "rabbitmq": "rabbitmq-0-9-1"}


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return bytes([kind]) + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + b"\xce"


SEQUENCES = [vector for name in DIALECTS for vector in vectors.vectors(name) if vector.get("sequence")]


@pytest.mark.parametrize("vector", SEQUENCES, ids=lambda vector: vector["id"])
def test_each_sequence_of_the_vectors_gives_its_code(impl: Implementation, vector: dict[str, Any]) -> None:
    pair = Pair(impl, vector["dialect"]).opened()
    [violation] = violations(pair.server.receive_data(bytes.fromhex(vector["hex"])))
    assert violation.reply_code == vector["expect"]["error"]
    for seen in vector.get("observed", {}).values():
        kind, code = seen.split()
        assert violation.to_send.spec.name == f"{kind}.close"
        assert int(code) in (violation.reply_code, *vector["expect"]["also_seen"])
    assert pair.server.state == "closing"
    pair.talk()
    assert pair.events["client"][-1].reply_code == violation.reply_code
    assert pair.events["server"][-1] == ConnectionClosed(
        "local", violation.reply_code, violation.reply_text, violation.class_id, violation.method_id
    )


INVALID = [
    vector
    for name in DIALECTS
    for vector in vectors.vectors(name, "invalid")
    if not vector.get("sequence") and not vector.get("strict_only")
]


@pytest.mark.parametrize("vector", INVALID, ids=lambda vector: vector["id"])
def test_each_invalid_frame_of_the_vectors_gives_its_code(
    impl: Implementation, vector: dict[str, Any]
) -> None:
    """Some faults of single frames turn into those of their place; these are allowed as well."""
    options = {"frame_max": max(vector.get("frame_max", 131072), 4096)}
    pair = Pair(impl, vector["dialect"], server=options).opened()
    octets = bytes.fromhex(vector["hex"])
    found = violations(pair.server.receive_data(octets))
    if not found:
        assert len(octets) < 8 or octets[0] == 2
        return
    channel = int.from_bytes(octets[1:3], "big")
    allowed = {vector["expect"]["error"], *vector["expect"].get("also_seen", ())}
    if octets[0] == 2 or channel > 1:
        allowed |= {501, 504, 505}  # there is no method before it, or no such channel
    assert found[0].reply_code in allowed
    assert (pair.server.state == "closed") == vector["expect"].get("fatal", False)


CASES = [case for case in vectors.load("bad-inputs-public") if case["state"] == "channel"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
@pytest.mark.parametrize("side", ["server", "client"])
def test_each_bad_input_gives_its_code(impl: Implementation, case: dict[str, Any], side: str) -> None:
    given = case.get("limits", {})
    options = {
        "limits": Limits(table_depth=given.get("max_depth", 128)),
        "frame_max": given.get("frame_max", 131072),
    }
    pair = Pair(impl, BAD[case["dialect"]], server=options, client=options).opened()
    amqp = pair.amqp
    if side == "client":
        if "hex_s2c" not in case:
            return
        pair.client.send(1, amqp.Basic.Consume(queue="q", consumer_tag="ct"))
        pair.talk()
        pair.server.send(1, amqp.Basic.ConsumeOk(consumer_tag="ct"))
        pair.talk()
    octets = bytes.fromhex(case["hex" if side == "server" else "hex_s2c"])
    connection = pair.server if side == "server" else pair.client
    events = list(connection.receive_data(octets))
    found = violations(events)
    match case["expect"]:
        case "error" if case["layer"] != "session":
            codes = {case["amqp_code"], *case.get("also", ())}
            assert found
            assert found[0].reply_code in codes
        case "need-more":
            assert events == []
        case "ok":
            assert not found
    cut = Pair(impl, BAD[case["dialect"]], server=options, client=options).opened()
    if side == "server":
        one_by_one = [
            event for at in range(len(octets)) for event in cut.server.receive_data(octets[at : at + 1])
        ]
        assert list(map(repr, one_by_one)) == list(map(repr, events))


def opened(impl: Implementation, **options: Any) -> tuple[Any, Any, Any]:
    pair = Pair(impl, **options).opened()
    return pair, pair.server, pair.amqp


HARD: list[tuple[str, Any, int, str]] = [
    ("a reply to nothing", lambda q: (1, q.Queue.DeclareOk("q", 0, 0)), 503, "client"),
    ("open-ok on an open channel", lambda q: (1, q.Channel.OpenOk()), 503, "client"),
    ("close-ok that answers nothing", lambda q: (1, q.Channel.CloseOk()), 503, "client"),
    ("connection.close-ok", lambda q: (0, q.Connection.CloseOk()), 503, "client"),
    ("a request of clients", lambda q: (1, q.Queue.Declare(queue="q")), 503, "client"),
    ("a closed channel", lambda q: (7, q.Basic.CancelOk("ct")), 504, "client"),
    ("a reply of servers", lambda q: (1, q.Queue.DeclareOk("q", 0, 0)), 503, "server"),
    ("a method of servers", lambda q: (0, q.Connection.Start(0, 9, {}, b"", b"")), 503, "server"),
    ("a closed channel", lambda q: (2, q.Queue.Declare(queue="q")), 504, "server"),
    ("a second open", lambda q: (1, q.Channel.Open()), 504, "server"),
    ("a channel too high", lambda q: (2048, q.Channel.Open()), 504, "server"),
    ("a connection method on a channel", lambda q: (1, q.Connection.Close(200, "", 0, 0)), 503, "server"),
    ("a channel method on channel 0", lambda q: (0, q.Channel.Open()), 504, "server"),
    ("a confirmation by a client", lambda q: (1, q.Basic.CancelOk("ct")), 503, "server"),
    ("update-secret-ok unasked", lambda q: (0, q.Connection.UpdateSecretOk()), 503, "client"),
    ("an ack without confirms", lambda q: (1, q.Basic.Ack(1)), 503, "client"),
]


@pytest.mark.parametrize(
    ("made", "code", "side"), [case[1:] for case in HARD], ids=[f"{case[0]}, {case[3]}" for case in HARD]
)
def test_a_method_out_of_place_closes_the_connection(
    impl: Implementation, made: Any, code: int, side: str
) -> None:
    pair, _, amqp = opened(impl)
    connection = pair.server if side == "server" else pair.client
    channel, method = made(amqp)
    [violation] = connection.receive_data(amqp.encode_method(channel, method))
    assert (violation.reply_code, violation.channel) == (code, 0)
    spec = method.spec
    assert (violation.class_id, violation.method_id) == (spec.class_id, spec.method_id)
    assert violation.to_send == amqp.Connection.Close(
        code, violation.reply_text, spec.class_id, spec.method_id
    )
    assert connection.data_to_send() == amqp.encode_method(0, violation.to_send)
    assert connection.state == "closing"


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("kind", ["deliver", "get-ok"])
def test_a_server_that_uses_a_delivery_tag_twice_is_refused_unless_it_is_settled(
    impl: Implementation, kind: str, settled: bool
) -> None:
    pair, _, amqp = opened(impl)
    client = pair.client
    client.send(1, amqp.Basic.Consume(queue="q", consumer_tag="ct", no_wait=True))
    client.send(1, amqp.Basic.Get(queue="q"))
    one = amqp.encode_message(1, amqp.Basic.Deliver("ct", 7, False, "", "q"), None, b"one")
    answer = amqp.Basic.Deliver("ct", 7, False, "", "q") if kind == "deliver" else amqp.Basic.GetOk(7)
    other = amqp.encode_message(1, answer, None, b"other")
    assert [message.body for message in client.receive_data(one)] == [b"one"]
    if settled:
        client.send(1, amqp.Basic.Ack(7))
    [event] = client.receive_data(other)
    if settled:
        assert (event.body, client.unacknowledged(1)) == (b"other", (7,))
    else:
        text = "COMMAND_INVALID - delivery tag 7 comes a second time, and is not settled yet"
        assert (event.reply_code, event.reply_text, event.channel) == (503, text, 0)
        assert client.unacknowledged(1) == (7,)


def test_no_delivery_has_the_tag_that_stands_for_all(impl: Implementation) -> None:
    pair, _, amqp = opened(impl)
    deliver = amqp.encode_method(1, amqp.Basic.Deliver("ct", 0, False, "", "q"))
    [violation] = pair.client.receive_data(deliver)
    assert violation.reply_text == "COMMAND_INVALID - delivery tag 0 is of no delivery"


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda q: q.Basic.Ack(77), "unknown delivery tag 77"),
        (lambda q: q.Basic.Reject(1), "unknown delivery tag 1"),
        (lambda q: q.Basic.Nack(3, multiple=True), "unknown delivery tag 3"),
        (lambda q: q.Tx.Commit(), "channel is not transactional"),
        (lambda q: q.Tx.Rollback(), "channel is not transactional"),
    ],
)
def test_a_failed_precondition_closes_the_channel_alone(impl: Implementation, made: Any, text: str) -> None:
    pair, server, amqp = opened(impl)
    method = made(amqp)
    [violation] = server.receive_data(amqp.encode_method(1, method))
    assert (violation.channel, violation.reply_code) == (1, 406)
    assert violation.reply_text == f"PRECONDITION_FAILED - {text}"
    assert (server.state, server.channel_state(1)) == ("open", "closing")
    ignored = amqp.encode_method(1, amqp.Queue.Declare(queue="q"))
    ignored += amqp.encode_message(1, amqp.Basic.Publish(), None, b"body")
    assert list(server.receive_data(ignored)) == []
    pair.talk()
    told = (406, violation.reply_text, method.spec.class_id, method.spec.method_id)
    assert pair.events["client"] == [ChannelClosed(1, "peer", *told)]
    assert pair.events["server"] == [ChannelClosed(1, "local", *told)]
    assert pair.client.open_channel() == 2
    pair.client.send(1, amqp.Channel.Open())
    pair.talk()
    assert (server.channel_state(1), server.channel_state(2)) == ("open", "open")


def test_modes_of_a_channel_exclude_each_other(impl: Implementation) -> None:
    _, server, amqp = opened(impl)
    tx, confirm = amqp.encode_method(1, amqp.Tx.Select()), amqp.encode_method(1, amqp.Confirm.Select())
    list(server.receive_data(tx))
    [violation] = server.receive_data(confirm)
    assert violation.reply_text.endswith("cannot switch from tx to confirm mode")
    _, server, amqp = opened(impl)
    list(server.receive_data(confirm))
    [violation] = server.receive_data(tx)
    assert (violation.reply_code, violation.channel) == (406, 1)
    assert violation.reply_text.endswith("cannot switch from confirm to tx mode")


def test_a_body_over_the_limit_closes_the_channel_and_its_rest_is_dropped(impl: Implementation) -> None:
    _, server, amqp = opened(impl, server={"limits": Limits(body_size=10)})
    octets = amqp.encode_message(1, amqp.Basic.Publish(), None, b"x" * 11)
    octets += amqp.encode_method(2, amqp.Channel.Open())
    [violation, opening] = server.receive_data(octets)
    assert (violation.reply_code, violation.channel) == (311, 1)
    assert (violation.class_id, violation.method_id) == (60, 40)
    assert violation.error.reply_code == 311
    assert opening.channel == 2


def test_a_content_is_judged_when_its_method_comes(impl: Implementation) -> None:
    _, server, amqp = opened(impl)
    method = amqp.encode_method(5, amqp.Basic.Publish())
    [violation] = server.receive_data(method)
    assert (violation.reply_code, violation.class_id, violation.method_id) == (504, 60, 40)
    pair, _, amqp = opened(impl)
    deliver = amqp.encode_method(1, amqp.Basic.Deliver("ct", 1, False, "", ""))
    [violation] = pair.server.receive_data(deliver)
    assert (violation.reply_code, violation.class_id, violation.method_id) == (503, 60, 60)


@pytest.mark.parametrize("kind", [2, 3])
def test_content_frames_on_a_closed_channel_are_a_channel_error(impl: Implementation, kind: int) -> None:
    _, server, amqp = opened(impl)
    payload = amqp.encode_header(9, amqp.BasicProperties(), 1)[7:-1] if kind == 2 else b"x"
    [violation] = server.receive_data(frame(kind, 9, payload))
    assert violation.reply_code == 504


def test_content_before_the_handshake_is_not_kept(impl: Implementation) -> None:
    server = make(impl, "server")
    amqp = server.dialect
    list(server.receive_data(amqp.protocol_header()))
    server.send(0, amqp.Connection.Start(0, 9, {}, b"PLAIN", b"en_US"))
    [violation] = server.receive_data(amqp.encode_method(1, amqp.Basic.Publish()))
    assert (violation.reply_code, server.state) == (504, "closing")


def test_a_fatal_error_is_the_end_once_the_close_is_sent(impl: Implementation) -> None:
    _, server, amqp = opened(impl)
    violation, closed = server.receive_data(b"\x01\0\1\0\0\0\x04\0\x14\0\x0a\0" + b"\x08\0\0\0\0\0\0\xce")
    assert (violation.reply_code, violation.error.fatal) == (501, True)
    assert closed == ConnectionClosed("local", 501, violation.reply_text)
    assert server.data_to_send() == amqp.encode_method(0, violation.to_send)
    assert list(server.receive_data(b"more")) == list(server.receive_eof()) == []


def test_after_its_close_a_side_ignores_all_but_closes(impl: Implementation) -> None:
    _, server, amqp = opened(impl)
    server.close(320, "enough")
    server.data_to_send()
    octets = amqp.encode_method(1, amqp.Queue.Declare(queue="q")) + frame(3, 1, b"body out of place")
    octets += amqp.encode_method(9, amqp.Basic.Ack(1)) + frame(1, 1, b"\0\x32\xff\xff")
    octets += amqp.encode_message(1, amqp.Basic.Publish(), None, b"x" * 100)
    assert list(server.receive_data(octets)) == []
    assert server.data_to_send() == b""
    [closed] = server.receive_data(amqp.encode_method(0, amqp.Connection.CloseOk()))
    assert closed == ConnectionClosed("local", 320, "enough")


def test_nonsense_after_its_close_ends_the_wait_for_an_answer(impl: Implementation) -> None:
    _, server, _ = opened(impl)
    server.close(320, "enough")
    assert list(server.receive_data(b"nonsense")) == [ConnectionClosed("local", 320, "enough")]


def test_a_peer_that_does_not_read_its_answers_is_closed(impl: Implementation) -> None:
    _, server, amqp = opened(impl, server={"connection_limits": ConnectionLimits(send_buffer=100)})
    octets = amqp.encode_method(1, amqp.Channel.Flow(True)) * 20
    events = list(server.receive_data(octets))
    [violation] = violations(events)
    assert (violation.reply_code, violation.channel, server.state) == (506, 0, "closing")
    assert len(server.data_to_send()) < 250


def test_consumers_beyond_the_limit_are_refused(impl: Implementation) -> None:
    pair, server, amqp = opened(impl, server={"connection_limits": ConnectionLimits(consumers=2)})
    for tag in ("a", "b", "c"):
        pair.client.send(1, amqp.Basic.Consume(queue="q", consumer_tag=tag, no_wait=True))
    [violation] = violations(server.receive_data(pair.client.data_to_send()))
    assert violation.reply_code == 506
    assert "2 consumers on channel 1" in violation.reply_text


def test_a_peer_that_does_not_wait_for_replies_is_closed(impl: Implementation) -> None:
    _, server, amqp = opened(impl, server={"connection_limits": ConnectionLimits(requests=3)})
    octets = amqp.encode_method(1, amqp.Queue.Declare(queue="q")) * 4
    *_, violation = server.receive_data(octets)
    assert (violation.reply_code, server.state) == (506, "closing")
    assert len(server.unanswered(1)) == 3


def test_what_follows_a_violation_on_another_channel_still_arrives(impl: Implementation) -> None:
    pair, server, amqp = opened(impl)
    pair.client.open_channel()
    pair.talk()
    octets = amqp.encode_method(1, amqp.Basic.Ack(5))
    octets += amqp.encode_message(2, amqp.Basic.Publish("x"), None, b"body")
    _, message = server.receive_data(octets)
    assert message == MessageReceived(2, amqp.Basic.Publish("x"), amqp.BasicProperties(), b"body")


def test_closes_without_end_are_not_all_answered(impl: Implementation) -> None:
    _, server, amqp = opened(impl, server={"connection_limits": ConnectionLimits(send_buffer=100)})
    server.close(320, "enough")
    assert list(server.receive_data(amqp.encode_method(0, amqp.Connection.Close()) * 100)) == []
    assert len(server.data_to_send()) < 150
    assert [event.by for event in server.receive_data(amqp.encode_method(0, amqp.Connection.CloseOk()))] == [
        "local"
    ]


def test_replies_to_a_client_may_come_out_of_order(impl: Implementation) -> None:
    pair, _, amqp = opened(impl)
    client = pair.client
    consume, qos = amqp.Basic.Consume(queue="q", consumer_tag="ct"), amqp.Basic.Qos(0, 1, False)
    client.send(1, consume)
    client.send(1, qos)
    replies = [amqp.Basic.QosOk(), amqp.Basic.ConsumeOk("ct")]
    events = list(client.receive_data(b"".join(amqp.encode_method(1, reply) for reply in replies)))
    assert [event.request for event in events] == [qos, consume]
    assert (client.awaited(1), client.consumers(1)) == ((), ("ct",))


def test_nothing_is_answered_before_the_channel_is_open(impl: Implementation) -> None:
    pair, _, amqp = opened(impl)
    client = pair.client
    number = client.open_channel()
    client.send(number, amqp.Basic.Qos(0, 1, False))
    [violation] = client.receive_data(amqp.encode_method(number, amqp.Basic.QosOk()))
    assert violation.reply_code == 503


@pytest.mark.parametrize("name", ["flow", "cancel"])
def test_requests_that_wait_make_nothing_else_slow(impl: Implementation, name: str) -> None:
    def seconds(waiting: int) -> float:
        pair, server, amqp = opened(impl)
        for number in range(waiting):
            pair.client.send(1, amqp.Basic.Consume(queue="q", consumer_tag=f"t{number}"))
        assert len(list(server.receive_data(pair.client.data_to_send()))) == waiting
        cancel = amqp.Basic.Cancel("unknown", no_wait=True)
        octets = amqp.encode_method(1, amqp.Channel.Flow(True) if name == "flow" else cancel) * 1000
        started = process_time()
        assert len(list(server.receive_data(octets))) == 1000
        return process_time() - started

    assert min(seconds(4000) for _ in range(3)) < 6 * min(seconds(1) for _ in range(3))


def test_messages_that_are_not_complete_are_limited_for_all_channels_together(impl: Implementation) -> None:
    """Each is dropped from the sum when it is complete, cut off, or its channel is closed."""
    limits = ConnectionLimits(open_bytes=20000)
    pair = Pair(impl, server={"connection_limits": limits}).opened(20)
    server, amqp = pair.server, pair.amqp
    publish = amqp.encode_method(1, amqp.Basic.Publish())[7:-1]
    whole = b"".join(frame(*part) for part in ((1, 1, publish), (2, 1, header_of(5000))))
    whole += frame(3, 1, bytes(4000)) + frame(3, 1, b"") * 100 + frame(3, 1, bytes(1000))
    for _ in range(20):
        assert violations(server.receive_data(whole)) == []
    for channel in range(1, 5):
        begun = frame(1, channel, publish) + frame(2, channel, header_of(1 << 20))
        assert list(server.receive_data(begun + frame(3, channel, bytes(4900)))) == []
    server.close_channel(4)
    assert violations(server.receive_data(amqp.encode_method(4, amqp.Channel.CloseOk()))) == []
    begun = frame(1, 5, publish) + frame(2, 5, header_of(1 << 20))
    assert list(server.receive_data(begun + frame(3, 5, bytes(4900)))) == []
    [violation] = server.receive_data(frame(3, 5, bytes(1000)))
    assert (violation.channel, violation.reply_code) == (0, 506)
    assert (violation.class_id, violation.method_id) == (60, 40)
    assert violation.reply_text.endswith("more than 20000 octets of messages that are not complete")


def test_headers_of_messages_that_are_not_complete_count(impl: Implementation) -> None:
    limits = ConnectionLimits(open_bytes=20000)
    pair = Pair(impl, server={"connection_limits": limits}).opened(10)
    amqp = pair.amqp
    properties = amqp.BasicProperties(headers={"x": "y" * 3000})
    found = []
    for channel in range(1, 11):
        octets = amqp.encode_message(channel, amqp.Basic.Publish(), properties, b"body")
        found += pair.server.receive_data(octets[:-12])
    assert [event.reply_code for event in found] == [506]
    assert pair.server.state == "closing"


@pytest.mark.parametrize("cut", [1, 1 << 20], ids=["in octets", "at once"])
def test_a_header_that_is_too_much_to_keep_is_refused_however_it_comes(
    impl: Implementation, cut: int
) -> None:
    limits = ConnectionLimits(open_bytes=2000)
    pair = Pair(impl, server={"connection_limits": limits}).opened(1)
    amqp = pair.amqp
    properties = amqp.BasicProperties(headers={"x": "y" * 3000})
    octets = amqp.encode_message(1, amqp.Basic.Publish(), properties, b"body")
    chunks = [octets[at : at + cut] for at in range(0, len(octets), cut)]
    found = [event for chunk in chunks for event in pair.server.receive_data(chunk)]
    assert [event.reply_code for event in violations(found)] == [506]


def header_of(size: int) -> bytes:
    """The payload of a content header that announces a body."""
    return b"\0\x3c\0\0" + size.to_bytes(8, "big") + b"\0\0"
