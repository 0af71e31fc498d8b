"""From the protocol header to an open connection, on both sides."""

from __future__ import annotations

import re
from importlib.metadata import version
from types import ModuleType
from typing import Any

import pytest
from support.connections import Pair, make
from support.implementation import Implementation

from amqpcodec import EncodeError, Limits, LocalProtocolError
from amqpcodec.connection import (
    ClientLogin,
    ConnectionClosed,
    ConnectionLimits,
    MethodReceived,
    Opened,
    ProtocolHeaderReceived,
    ServerLogin,
    Violation,
)
from amqpcodec.connection.login import credentials


def test_every_dialect_opens_a_connection_and_closes_it(impl: Implementation, dialect: str) -> None:
    pair = Pair(impl, dialect)
    pair.talk()
    assert pair.events == {"client": [Opened(2047, 131072, 60)], "server": []}
    assert (pair.client.state, pair.server.state) == ("open", "open")
    pair.client.close(200, "bye")
    pair.talk()
    assert pair.events["server"] == [ConnectionClosed("peer", 200, "bye")]
    assert pair.events["client"][1:] == [ConnectionClosed("local", 200, "bye")]
    assert (pair.client.state, pair.server.state) == ("closed", "closed")
    assert (pair.client.next_deadline(), pair.server.next_deadline()) == (None, None)


def test_a_handshake_may_arrive_octet_by_octet(impl: Implementation, dialect: str) -> None:
    pair = Pair(impl, dialect, cut=lambda octets: [octets[at : at + 1] for at in range(len(octets))])
    pair.talk()
    assert pair.events["client"] == [Opened(2047, 131072, 60)]


def test_the_lower_wish_holds_and_zero_is_none(impl: Implementation) -> None:
    server = {"channel_max": 0, "frame_max": 8192, "heartbeat": 0}
    pair = Pair(impl, client={"channel_max": 9, "frame_max": 0, "heartbeat": 30}, server=server)
    pair.talk()
    assert pair.events["client"] == [Opened(9, 8192, 30)]
    for side in (pair.client, pair.server):
        assert (side.channel_max, side.frame_max, side.heartbeat) == (9, 8192, 30)


@pytest.mark.parametrize(
    ("offer", "answer", "text"),
    [
        ((10, 131072, 60), (11, 131072, 60), "negotiated channel-max 11 is higher than 10"),
        ((10, 131072, 60), (0, 131072, 60), "negotiated channel-max without limit is higher than 10"),
        ((0, 131072, 60), (0, 131073, 60), "negotiated frame-max 131073 is higher than 131072"),
        ((0, 131072, 60), (0, 0, 60), "negotiated frame-max without limit is higher than 131072"),
        ((0, 131072, 60), (0, 4095, 60), "negotiated frame-max 4095 is lower than 4096"),
    ],
)
def test_an_answer_to_tune_beyond_the_offer_is_not_allowed(
    impl: Implementation, offer: Any, answer: Any, text: str
) -> None:
    server, amqp = started(impl)
    server.send(0, amqp.Connection.Tune(*offer))
    client_octets = amqp.encode_method(0, amqp.Connection.TuneOk(*answer))
    [event] = server.receive_data(client_octets)
    close = amqp.Connection.Close(530, f"NOT_ALLOWED - {text}", 10, 31)
    assert event == Violation(0, 530, f"NOT_ALLOWED - {text}", 10, 31, close)
    assert server.data_to_send().endswith(amqp.encode_method(0, close))
    assert server.state == "closing"


def test_an_answer_to_tune_may_be_as_low_as_one_channel_and_the_least_frame(impl: Implementation) -> None:
    server, amqp = started(impl)
    server.send(0, amqp.Connection.Tune(10, 131072, 60))
    assert list(server.receive_data(amqp.encode_method(0, amqp.Connection.TuneOk(1, 4096, 1)))) == [
        MethodReceived(0, amqp.Connection.TuneOk(1, 4096, 1))
    ]
    assert (server.channel_max, server.frame_max, server.heartbeat) == (1, 4096, 1)


def test_a_client_cannot_answer_tune_beyond_the_offer(impl: Implementation) -> None:
    pair = Pair(impl, reply=lambda *_: None)
    client, amqp = pair.client, pair.amqp
    client.receive_data(amqp.encode_method(0, amqp.Connection.Start(0, 9, {}, b"PLAIN", b"en_US")))
    pair.logins["client"].handle(client, next(client))
    list(client.receive_data(amqp.encode_method(0, amqp.Connection.Tune(10, 8192, 60))))
    client.data_to_send()
    with pytest.raises(LocalProtocolError, match="negotiated frame-max 9000 is higher than 8192") as caught:
        client.send(0, amqp.Connection.TuneOk(10, 9000, 60))
    assert (caught.value.reply_code, client.data_to_send()) == (530, b"")
    client.send(0, client.tune_ok())
    assert client.data_to_send() == amqp.encode_method(0, amqp.Connection.TuneOk(10, 8192, 60))


def started(impl: Implementation, **options: Any) -> tuple[Any, Any]:
    """A server that has got as far as connection.start-ok."""
    server = make(impl, "server", **options)
    amqp = server.dialect
    login = ServerLogin(lambda name, password: True)
    for event in server.receive_data(amqp.protocol_header()):
        login.handle(server, event)
    list(server.receive_data(amqp.encode_method(0, amqp.Connection.StartOk({}, "PLAIN", b"\0a\0b", "en_US"))))
    server.data_to_send()
    return server, amqp


def test_what_follows_tune_ok_at_once_is_judged_by_what_it_agrees_on(impl: Implementation) -> None:
    server, amqp = started(impl)
    server.send(0, server.tune())
    large = amqp.Queue.Declare(queue="q", arguments={"x": "y" * 50000})
    octets = (
        amqp.encode_method(0, amqp.Connection.TuneOk(10, 131072, 60))
        + amqp.encode_method(0, amqp.Connection.Open("/"))
        + amqp.encode_method(1, amqp.Channel.Open())
        + amqp.encode_method(1, large)
    )
    seen = []
    for event in server.receive_data(octets):
        seen.append(event)
        match event:
            case MethodReceived(0, amqp.Connection.Open()):
                server.send(0, amqp.Connection.OpenOk())
            case MethodReceived(1, amqp.Channel.Open()):
                server.send(1, amqp.Channel.OpenOk())
    assert seen[-1] == MethodReceived(1, large)


@pytest.mark.parametrize("asked", [False, True])
def test_channels_may_be_asked_for_before_connection_open_is_answered_and_no_earlier(
    impl: Implementation, asked: bool
) -> None:
    server, amqp = started(impl)
    server.send(0, server.tune())
    octets = amqp.encode_method(0, amqp.Connection.TuneOk(10, 131072, 60))
    octets += amqp.encode_method(0, amqp.Connection.Open("/")) if asked else b""
    events = list(server.receive_data(octets + amqp.encode_method(1, amqp.Channel.Open())))
    if asked:
        assert events[-1] == MethodReceived(1, amqp.Channel.Open())
    else:
        assert events[-1].reply_text == "CHANNEL_ERROR - channel.open before the connection is open"


def test_a_frame_larger_than_tune_ok_agrees_on_is_a_frame_error(impl: Implementation) -> None:
    server, amqp = started(impl)
    server.send(0, server.tune())
    octets = amqp.encode_method(0, amqp.Connection.TuneOk(10, 4096, 60)) + amqp.encode_method(
        0, amqp.Connection.Open("/")
    )
    list(server.receive_data(octets))
    server.send(0, amqp.Connection.OpenOk())
    large = amqp.encode_method(1, amqp.Queue.Declare(queue="q", arguments={"x": "y" * 5000}))
    violation, closed = server.receive_data(large)
    assert (violation.reply_code, violation.error.fatal) == (501, True)
    assert closed == ConnectionClosed("local", 501, violation.reply_text)


def test_a_server_takes_no_large_frames_before_tuning(impl: Implementation) -> None:
    limits = ConnectionLimits(handshake_frame_size=5000)
    server = make(impl, "server", connection_limits=limits)
    amqp = server.dialect
    for event in server.receive_data(amqp.protocol_header()):
        ServerLogin(lambda name, password: True).handle(server, event)
    start_ok = amqp.Connection.StartOk({"x": "y" * 5000}, "PLAIN", b"", "en_US")
    violation, _ = server.receive_data(amqp.encode_method(0, start_ok))
    assert violation.reply_code == 501


@pytest.mark.parametrize(
    "octets", [b"AMQP\0\1\0\0", b"AMQQ\0\0\x09\x01", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0\1\0\1"]
)
@pytest.mark.parametrize("size", [1, 5, 100])
def test_a_server_answers_an_unknown_header_with_its_own(
    impl: Implementation, octets: bytes, size: int
) -> None:
    server = make(impl, "server")
    events = []
    for at in range(0, len(octets), size):
        events += server.receive_data(octets[at : at + size])
    header, closed = events
    assert header == ProtocolHeaderReceived(octets[:8], False)
    assert (closed.by, server.state) == ("version", "closed")
    assert server.data_to_send() == b"AMQP\0\0\x09\x01"
    assert list(server.receive_data(octets)) == []


@pytest.mark.parametrize(
    ("octets", "name"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"\x16\x03\x01\x00\xf4\x01\x00\x00\xf0", "TLS"),
        (b"AMQP\x00\x01\x00\x00", "AMQP 1.0"),
    ],
)
def test_a_server_says_what_else_its_client_speaks(impl: Implementation, octets: bytes, name: str) -> None:
    *_, closed = make(impl, "server").receive_data(octets)
    assert closed.by == "version"
    assert f": looks like {name}" in closed.reply_text.replace("like an ", "like ").replace(
        "like a ", "like "
    )


def test_a_server_takes_every_header_of_its_dialect(codec: ModuleType, impl: Implementation) -> None:
    for octets in codec.DIALECT.accepted_headers:
        server = make(impl, "server", codec)
        assert list(server.receive_data(octets)) == [ProtocolHeaderReceived(octets, True)]


@pytest.mark.parametrize("size", [1, 100])
def test_a_client_is_told_of_another_version(impl: Implementation, size: int) -> None:
    client = make(impl, "client")
    assert client.data_to_send() == b"AMQP\0\0\x09\x01"
    octets = b"AMQP\1\1\x08\0"
    events = [event for at in range(0, 8, size) for event in client.receive_data(octets[at : at + size])]
    assert events[0] == ProtocolHeaderReceived(octets, False)
    assert (events[1].by, client.state, client.data_to_send()) == ("version", "closed", b"")


@pytest.mark.parametrize("mechanisms", ["PLAIN", "AMQPLAIN", "EXTERNAL AMQPLAIN"])
def test_both_login_mechanisms_carry_name_and_password(
    impl: Implementation, dialect: str, mechanisms: str
) -> None:
    seen = []
    pair = Pair(impl, dialect)
    pair.logins["client"] = ClientLogin("näme", "pass wörd")
    login = ServerLogin(lambda *known: bool(seen.append(known)) or True, mechanisms=mechanisms)
    pair.logins["server"] = login
    pair.talk()
    assert seen == [("näme", "pass wörd")]


@pytest.mark.parametrize("own", [{}, {"product": "shop", "version": 7}], ids=["nothing", "own"])
def test_each_side_tells_of_itself_what_it_is_given_to_tell(
    impl: Implementation, dialect: str, own: dict[str, Any]
) -> None:
    assert told(
        impl,
        dialect,
        ClientLogin("user", "secret", client_properties=own),
        ServerLogin(lambda *known: True, server_properties=own),
    ) == [own, own]


def test_each_side_tells_product_and_capabilities_unless_it_is_given_others(
    impl: Implementation, dialect: str
) -> None:
    product = {"product": "amqpcodec", "version": version("amqpcodec"), "platform": "Python"}
    capabilities = {
        "publisher_confirms": True,
        "exchange_exchange_bindings": True,
        "basic.nack": True,
        "consumer_cancel_notify": True,
        "connection.blocked": True,
        "authentication_failure_close": True,
    }
    nested = dialect in ("amqp-0-9-1", "rabbitmq-0-9-1")  # earlier tables carry no booleans
    expected = {**product, "capabilities": capabilities} if nested else product
    logins = ClientLogin("user", "secret"), ServerLogin(lambda *known: True)
    assert told(impl, dialect, *logins) == [expected, expected]


def told(impl: Implementation, dialect: str, client: ClientLogin, server: ServerLogin) -> list[Any]:
    """The properties in connection.start and connection.start-ok."""
    sent: list[bytes] = []
    pair = Pair(impl, dialect, cut=lambda octets: [sent.append(octets) or octets])
    pair.logins = {"client": client, "server": server}
    pair.talk()
    start, start_ok = (next(pair.amqp.FrameDecoder().feed(octets)).payload for octets in sent[1:3])
    return [start.server_properties, start_ok.client_properties]


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_a_name_of_octets_that_are_no_text_is_sent_as_they_are(impl: Implementation, mechanism: str) -> None:
    sent = bytearray()
    pair = Pair(impl, cut=lambda octets: [sent.extend(octets) or octets])
    pair.logins["client"] = ClientLogin("n\udce4me", "pass", mechanism=mechanism)
    pair.logins["server"] = ServerLogin(lambda *known: True)
    pair.talk()
    assert b"n\xe4me" in sent


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_a_name_that_no_octets_stand_for_is_refused(impl: Implementation, mechanism: str) -> None:
    for wrong in (ClientLogin("\ud800", "x"), ClientLogin("x", "\ud800")):
        pair = Pair(impl)
        wrong.mechanism = mechanism
        pair.logins["client"] = wrong
        with pytest.raises(EncodeError, match="lone surrogate"):
            pair.talk()


@pytest.mark.parametrize("wrong", [{"mechanisms": "\ud800"}, {"locales": "\ud800"}], ids=list)
def test_an_offer_that_no_octets_stand_for_is_refused(impl: Implementation, wrong: dict[str, str]) -> None:
    pair = Pair(impl)
    pair.logins["server"] = ServerLogin(lambda *known: True, **wrong)  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="lone surrogate"):
        pair.talk()


def test_a_login_that_is_refused_closes_the_connection(impl: Implementation) -> None:
    pair = Pair(impl)
    pair.logins["client"] = ClientLogin("user", "wrong")
    pair.talk()
    assert pair.events["client"] == [ConnectionClosed("peer", 403, "ACCESS_REFUSED - login was refused")]


def test_a_virtual_host_that_is_not_there_closes_the_connection(impl: Implementation) -> None:
    pair = Pair(impl)
    pair.logins["client"] = ClientLogin("user", "secret", "/other")
    pair.logins["server"] = ServerLogin(lambda *known: True, virtual_hosts=frozenset({"/"}))
    pair.talk()
    assert pair.events["client"] == [ConnectionClosed("peer", 530, "NOT_ALLOWED - no virtual host /other")]


@pytest.mark.parametrize("name", ["\u20ac" * 85, "\0" * 255, "x" * 255], ids=["wide", "zeros", "long"])
def test_a_virtual_host_of_any_name_is_refused(impl: Implementation, name: str) -> None:
    pair = Pair(impl)
    pair.logins["client"] = ClientLogin("user", "secret", name)
    pair.logins["server"] = ServerLogin(lambda *known: True, virtual_hosts=frozenset({"/"}))
    pair.talk()
    [closed] = pair.events["client"]
    assert (closed.by, closed.reply_code) == ("peer", 530)


def test_a_client_that_cannot_log_in_says_so(impl: Implementation) -> None:
    pair = Pair(impl)
    pair.logins["server"] = ServerLogin(lambda *known: True, mechanisms="EXTERNAL")
    with pytest.raises(LocalProtocolError, match="offers the mechanisms"):
        pair.talk()


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [("PLAIN", b"\0a"), ("AMQPLAIN", b"\xff\xff"), ("AMQPLAIN", b""), ("EXTERNAL", b"")],
)
def test_login_data_that_cannot_be_read_is_none(
    impl: Implementation, mechanism: str, response: bytes
) -> None:
    server = make(impl, "server")
    start_ok = server.dialect.Connection.StartOk({}, mechanism, response, "en_US")
    assert credentials(server, start_ok) is None


@pytest.mark.parametrize("frame_max", [1, 2048, 4095])
def test_a_server_that_allows_no_frame_of_the_least_size_is_to_blame(
    impl: Implementation, frame_max: int
) -> None:
    client = make(impl, "client")
    amqp, login = client.dialect, ClientLogin()
    text = f"NOT_ALLOWED - connection.tune of the server has frame-max {frame_max}, lower than 4096"
    found = []
    for method in (
        amqp.Connection.Start(0, 9, {}, b"PLAIN", b"en_US"),
        amqp.Connection.Tune(0, frame_max, 0),
    ):
        found += client.receive_data(amqp.encode_method(0, method))
        login.handle(client, found[-1])
    [_, violation] = found
    assert (violation.reply_text, violation.class_id, violation.method_id) == (text, 10, 30)
    assert client.data_to_send().endswith(amqp.encode_method(0, amqp.Connection.Close(530, text, 10, 30)))
    with pytest.raises(LocalProtocolError, match=f"frame-max {frame_max}, lower than 4096"):
        started(impl)[0].send(0, amqp.Connection.Tune(0, frame_max, 0))


@pytest.mark.parametrize(
    ("wanted", "offered", "agreed"), [(0, 60, 0), (0, 0, 0), (60, 0, 60), (30, 60, 30), (60, 30, 30)]
)
def test_a_client_that_wants_no_heartbeats_has_none(
    impl: Implementation, wanted: int, offered: int, agreed: int
) -> None:
    pair = Pair(impl, client={"heartbeat": wanted}, server={"heartbeat": offered}).opened(0)
    assert (pair.client.heartbeat, pair.server.heartbeat) == (agreed, agreed)
    assert pair.client.next_deadline() == (pair.clock() + agreed / 2 if agreed else None)


@pytest.mark.parametrize(
    ("size", "options", "most"),
    [
        (8192, {}, None),
        (8193, {}, 8192),
        (9000, {"connection_limits": ConnectionLimits(handshake_frame_size=9000)}, None),
        (4097, {"connection_limits": ConnectionLimits(handshake_frame_size=1)}, 4096),
    ],
)
@pytest.mark.parametrize("method", ["start-ok", "secure-ok"])
def test_a_token_that_is_too_large_for_a_frame_is_refused_before_it_is_sent(
    impl: Implementation, method: str, size: int, options: dict[str, Any], most: int | None
) -> None:
    client = make(impl, "client", **options)
    amqp = client.dialect
    list(client.receive_data(amqp.encode_method(0, amqp.Connection.Start(0, 9, {}, b"PLAIN", b"en_US"))))
    if method == "secure-ok":
        client.send(0, amqp.Connection.StartOk({}, "PLAIN", b"", "en_US"))
        list(client.receive_data(amqp.encode_method(0, amqp.Connection.Secure(b"token?"))))
        answer = amqp.Connection.SecureOk(bytes(size - 16))
    else:
        answer = amqp.Connection.StartOk({}, "PLAIN", bytes(size - 32), "en_US")
    client.data_to_send()
    if most is None:
        client.send(0, answer)
        assert client.data_to_send() == amqp.encode_method(0, answer)
    else:
        said = f"^connection.{method} of {size} octets, handshake_frame_size {most}$"
        with pytest.raises(LocalProtocolError, match=said) as caught:
            client.send(0, answer)
        assert (caught.value.reply_code, client.data_to_send()) == (501, b"")


@pytest.mark.parametrize("frame_max", [4096, 8191, 8192, 0])
def test_a_server_that_ends_after_tuning_may_have_ended_for_small_frames(
    impl: Implementation, frame_max: int
) -> None:
    client = make(impl, "client", frame_max=frame_max)
    amqp = client.dialect
    list(client.receive_data(amqp.encode_method(0, amqp.Connection.Start(0, 9, {}, b"PLAIN", b"en_US"))))
    client.send(0, amqp.Connection.StartOk({}, "PLAIN", b"", "en_US"))
    list(client.receive_data(amqp.encode_method(0, amqp.Connection.Tune(0, 0, 0))))
    client.send(0, client.tune_ok())
    client.send(0, amqp.Connection.Open("/"))
    [closed] = client.receive_eof()
    told = f", after frame-max {frame_max} was agreed: RabbitMQ takes none below 8192 from 4.1 on"
    text = "the peer has ended the stream without connection.close"
    assert closed.reply_text == text + told * (0 < frame_max < 8192)


@pytest.mark.parametrize("size", [4096, 4097])
def test_a_server_that_ends_after_a_large_token_may_have_ended_for_it(
    impl: Implementation, size: int
) -> None:
    text = "the peer has ended the stream without connection.close"
    told = ", after a frame of 4097 octets: before tuning it may take no more than 4096"
    client = make(impl, "client")
    amqp = client.dialect
    list(client.receive_data(amqp.encode_method(0, amqp.Connection.Start(0, 9, {}, b"PLAIN", b"en_US"))))
    client.send(0, amqp.Connection.StartOk({}, "PLAIN", bytes(size - 32), "en_US"))
    [closed] = client.receive_eof()
    assert (closed.by, closed.reply_text) == ("eof", text + (told if size > 4096 else ""))


def test_redirect_leaves_a_client_to_close(impl: Implementation) -> None:
    pair = Pair(impl, "amqp-0-9", reply=lambda *_: None)
    amqp = pair.amqp

    class Elsewhere(ServerLogin):
        def handle(self, connection: Any, event: Any) -> bool:
            if isinstance(event, MethodReceived) and event.method.spec.name == "connection.open":
                connection.send(0, amqp.Connection.Redirect("there", ""))
                return True
            return super().handle(connection, event)

    pair.logins["server"] = Elsewhere(lambda *known: True)
    pair.talk()
    [event] = pair.events["client"]
    assert event.method.spec.name == "connection.redirect"
    pair.client.close()
    pair.talk()
    assert pair.events["client"][-1].by == "local"


def test_methods_of_the_handshake_out_of_place_are_invalid(impl: Implementation) -> None:
    pair = Pair(impl).opened()
    amqp = pair.amqp
    [violation] = pair.server.receive_data(amqp.encode_method(0, amqp.Connection.Open("/")))
    assert (violation.reply_code, violation.class_id, violation.method_id) == (503, 10, 40)
    with pytest.raises(LocalProtocolError, match="does not belong here"):
        pair.client.send(0, amqp.Connection.Open("/"))


@pytest.mark.parametrize("role", ["peer", "", None])
def test_a_connection_is_of_a_client_or_of_a_server(impl: Implementation, role: Any) -> None:
    with pytest.raises(ValueError, match=f'^role must be "client" or "server", not {role!r}$'):
        make(impl, role)


def test_nothing_can_be_sent_before_the_handshake(impl: Implementation) -> None:
    client = make(impl, "client")
    amqp = client.dialect
    client.data_to_send()
    for channel, method in [(0, amqp.Connection.Close(200, "", 0, 0)), (1, amqp.Channel.Open())]:
        with pytest.raises(LocalProtocolError, match="before"):
            client.send(channel, method)
    with pytest.raises(LocalProtocolError):
        client.tune_ok()
    assert client.data_to_send() == b""


def test_a_server_that_begins_with_nonsense_is_told_nothing(impl: Implementation) -> None:
    client = make(impl, "client")
    client.data_to_send()
    violation, closed = client.receive_data(b"HELLO\0\0\0")
    assert (violation.reply_code, violation.to_send, closed.by) == (501, None, "local")
    assert client.data_to_send() == b""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"role": "broker"}, 'role must be "client" or "server", not \'broker\''),
        (
            {"dialect": "amqp-1-0"},
            "no dialect 'amqp-1-0'; there are amqp-0-8, qpid-0-8, amqp-0-9, amqp-0-9-1, rabbitmq-0-9-1",
        ),
        ({"channel_max": 65536}, "channel_max must be 0 to 65535, not 65536"),
        ({"channel_max": -1}, "channel_max must be 0 to 65535, not -1"),
        ({"heartbeat": 1.5}, "heartbeat must be 0 to 65535, not 1.5"),
        ({"frame_max": 4095}, "frame_max must be 0 or 4096 and more, not 4095"),
        ({"frame_max": 1 << 32}, "frame_max must be 0 or 4096 and more, not 4294967296"),
        ({"tables": "other"}, 'tables must be "dict" or "raw", not \'other\''),
    ],
)
def test_wrong_options_are_refused(impl: Implementation, options: dict[str, Any], said: str) -> None:
    given = {"role": "client", "dialect": "rabbitmq-0-9-1"} | options
    cls = type(make(impl, "client"))
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        cls(**given)


@pytest.mark.parametrize(
    "options",
    [{"channel_max": 65535}, {"heartbeat": 65535}, {"frame_max": 4096}, {"frame_max": (1 << 32) - 1}],
)
def test_the_largest_and_smallest_wishes_are_taken(impl: Implementation, options: dict[str, int]) -> None:
    assert make(impl, "client", **options).state == "handshake"


def test_limits_are_of_their_classes_and_positive(impl: Implementation) -> None:
    with pytest.raises(TypeError, match="limits must be Limits, not ConnectionLimits"):
        make(impl, "client", limits=ConnectionLimits())
    with pytest.raises(TypeError, match="connection_limits must be ConnectionLimits, not Limits"):
        make(impl, "client", connection_limits=Limits())
    with pytest.raises(ValueError, match=r"ConnectionLimits\.requests must be positive, not 0"):
        make(impl, "client", connection_limits=ConnectionLimits(requests=0))
    assert make(impl, "client", limits=Limits(body_size=1)).state == "handshake"
