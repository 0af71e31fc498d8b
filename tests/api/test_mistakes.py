"""Mistakes of people who begin: each is refused where it is made, and the text says what to do.

A table has what is written and what is said; ``...`` stands for anything.
"""

from __future__ import annotations

import ast
import asyncio
import re
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation

import amqpcodec
from amqpcodec import Limits, _backend, arrow, capture, compat
from amqpcodec.aio import Backoff, Client, connecting
from amqpcodec.cli import main
from amqpcodec.connection import Address, ClientLogin, ConnectionLimits, ServerLogin
from amqpcodec.testing import Broker, broker

PCAP = Path(__file__).parents[2] / "examples/real-bunny.pcap"


def table(text: str) -> dict[str, str]:
    """Return what is said by what is written: its line, and after it those that are indented."""
    found: dict[str, str] = {}
    written = ""
    for line in text.strip().splitlines():
        if line.startswith(" "):
            found[written] = f"{found[written]} {line.strip()}".strip()
        else:
            written = line
            found[written] = ""
    return found


CODEC = table(r"""
amqpcodec.dialect("rabbitmq")
    ValueError: no dialect 'rabbitmq'; there are ...rabbitmq-0-9-1: the module amqpcodec.rabbitmq has
    'rabbitmq-0-9-1'
amqp.Basic.Publish(routingkey="q")
    TypeError: Basic.Publish() got an unexpected keyword argument 'routingkey'...
amqp.BasicProperties(persistent=True)
    TypeError: BasicProperties() got an unexpected keyword argument 'persistent'...
encoder.encode_method(1, "queue.declare")
    EncodeError: expected a method, such as Queue.Declare(), not str
encoder.encode_method(1, amqp.Queue.Declare)
    EncodeError: expected a method, such as Queue.Declare(), not the class QueueDeclare
encoder.encode_method(1, amqp.Queue.Declare(None))
    EncodeError: queue.declare.queue: shortstr must be a str, not NoneType
encoder.encode_method(1, amqp.Queue.Declare("q" * 256))
    EncodeError: queue.declare.queue: shortstr must have at most 255 octets, not 256
encoder.encode_method(1, amqp.Queue.Declare(arguments={"x": {"y": [1, {2}]}}))
    EncodeError: queue.declare.arguments['x']['y'][1]: no table tag carries set
encoder.encode_method(1, amqp.Queue.Declare(arguments={1: 2}))
    EncodeError: queue.declare.arguments[1]: shortstr must be a str, not int
encoder.encode_message(1, amqp.Basic.Publish(), None, "text")
    EncodeError: body: a body must be bytes-like, not str
encoder.encode_message(1, amqp.Basic.Publish(), {"delivery_mode": 2}, b"")
    EncodeError: expected properties, such as BasicProperties(), not dict
encoder.encode_message(1, amqp.Basic.Publish(), amqp.BasicProperties(expiration=60000), b'')
    EncodeError: basic.expiration: shortstr must be a str, not int
encoder.encode_message(1, amqp.Queue.Declare(), None, b'')
    EncodeError: queue.declare: carries no content
amqp.FrameDecoder(tables="Raw")
    ValueError: tables must be "dict" or "raw", not 'Raw'
amqp.FrameDecoder(limits={'body_size': 5})
    TypeError: limits must be Limits, not dict
list(amqp.FrameDecoder().feed(b"HTTP/1.1 400 Bad Request"))
    DecodeError: ...looks like an HTTP response: the peer speaks HTTP on this port; connect to its port
    for AMQP...
list(amqp.FrameDecoder().feed(b"\x15\3\3\0\2\2\x28 "))
    DecodeError: ...the peer speaks TLS on this port; connect with TLS...
list(amqp.FrameDecoder().feed(b"AMQP\0\1\0\0"))
    DecodeError: ...looks like AMQP 1.0, another protocol...
""")
CONNECTION = table("""
Connection("Client")
    ValueError: role must be "client" or "server", not 'Client'
Connection("client", "0-9-1")
    ValueError: no dialect '0-9-1'; there are ...amqp-0-9-1, rabbitmq-0-9-1
Connection("client", amqp.Basic)
    TypeError: dialect must be a name, or the module of a dialect, not ...Basic...
Connection("client", heartbeat="60")
    ValueError: heartbeat must be 0 to 65535, not '60'
Connection("client", limits=ConnectionLimits())
    TypeError: limits must be Limits, not ConnectionLimits
Connection("client", connection_limits=Limits())
    TypeError: connection_limits must be ConnectionLimits, not Limits
Connection("client").open_channel()
    LocalProtocolError: channel.open before the connection is open
opened.send(1, amqp.Queue.Declare)
    EncodeError: expected a method, such as Queue.Declare(), not the class QueueDeclare
opened.send(1, amqp.Basic.Publish())
    LocalProtocolError: basic.publish carries a content: use send_message
opened.send_message(1, amqp.Queue.Declare(), None, b'')
    LocalProtocolError: queue.declare carries no content: use send
opened.send(1, amqp.Queue.DeclareOk())
    LocalProtocolError: queue.declare-ok is not for a client to send
opened.send(0, amqp.Queue.Declare())
    LocalProtocolError: channel 0 takes connection methods only
opened.send(7, amqp.Queue.Declare())
    LocalProtocolError: channel 7 is not open
opened.send(1, amqp.Basic.Ack(5))
    LocalProtocolError: unknown delivery tag 5
""")
URLS = table("""
Address.parse("localhost")
    ValueError: a URL of a broker begins with amqp:// or amqps://
Address.parse(b"amqp://localhost")
    TypeError: a URL must be a str, not bytes
Address.parse("http://localhost:15672")
    ValueError: a URL of a broker begins with amqp:// or amqps://
Address.parse("amqp://me:p/ss@host")
    ValueError: the URL cannot be taken apart; what a URL gives a meaning (/ ? # @ : %) is
    percent-escaped in names and passwords
Address.parse("amqp://host/a/b")
    ValueError: a slash in the name of a virtual host is written %2F
Address.parse("amqp://host?heartbeats=5")
    ValueError: unknown parameter 'heartbeats' in the URL; known are heartbeat, ...
Address.parse("amqp://host?cacertfile=ca.pem&verify=verify_none")
    ValueError: a URL that begins with amqps:// has the parameters of TLS, not amqp://: cacertfile,
    verify
Address.parse("amqps://host?keyfile=key.pem")
    ValueError: keyfile in the URL is that of a certificate, which certfile names
Address.parse("amqp://host?connection_timeout=5s")
    ValueError: parameter 'connection_timeout' in the URL: must be a number of milliseconds from 1 to
    1000000000
Address.parse("amqps://host?verify=false")
    ValueError: parameter 'verify' in the URL: must be verify_peer or verify_none
Address.parse(f'amqps://host?cacertfile={empty}').tls_context()
    SSLError: ...no certificate or crl found...: ...empty
Client("localhost:5672")
    ValueError: a host has no port in it: write amqp://localhost:5672, or give the port by itself
Client(5672)
    TypeError: a host or URL must be a str, or several in a list, not 5672
Client([])
    ValueError: name one server, or several
""")
# Of a client, before it is entered.
OPTIONS = table("""
Client(url, heartbeats=5)
    TypeError: Client() got an unexpected keyword argument 'heartbeats'; the nearest option is
    'heartbeat'
Client(url, on_conect=print)
    TypeError: Client() got an unexpected keyword argument 'on_conect'; the nearest option is
    'on_connect'
Client(url, timeouts=5)
    TypeError: Client() got an unexpected keyword argument 'timeouts'; the nearest option is 'timeout'
Client(url, role="server")
    TypeError: Client() got an unexpected keyword argument 'role'...
Client(url, login=("guest", "guest"))
    TypeError: login must be a ClientLogin or Credentials, not tuple
Client(url, ssl="yes")
    TypeError: ssl must be an SSLContext, True, False or None, not str
Client(url, record="a.pcap")
    TypeError: record must be a Recorder, not str
Client(url, timeout="5")
    ValueError: timeout must be a number of seconds, not '5'
Client(url, close_seconds=-1)
    ValueError: close_seconds must be a number of seconds, not -1
Client(url, backoff=5)
    TypeError: backoff must be a Backoff, not int
Client(url, backoff=Backoff(first="1"))
    ValueError: Backoff.first must be a number of seconds, not '1'
Client(url, backoff=Backoff(attempts=0))
    ValueError: Backoff.attempts must be a number from 1, or None, not 0
Client(url, on_connect=5)
    TypeError: on_connect must be a function, not int
Client(url, on_connect=declare(None))
    TypeError: on_connect must be a function: give it without calling it
Client(url, before_publish=declare)
    TypeError: before_publish is not awaited: it must be an ordinary function, without async
Client(url, heartbeat='60')
    ValueError: heartbeat must be 0 to 65535, not '60'
""")
CLIENT = table("""
await Client(url).channel()
    LocalProtocolError: the client is not entered: use it inside of `async with Client(...)`
await client.__aenter__()
    LocalProtocolError: a client is entered once: make another one
await Client(url, on_connect=lambda client: None).__aenter__()
    TypeError: on_connect must be a coroutine function, defined by async def: it has returned None
await Client(url.replace('amqp:', 'amqps:')).__aenter__()
    SSLError: ...: the server does not speak TLS on this port: use amqp:// and no ssl, or its port for
    TLS, which mostly is 5671
await Client(url.replace('guest:guest', 'guest:wrong')).__aenter__()
    AmqpAccessRefused: ACCESS_REFUSED - Login was refused...
await Client(url + 'elsewhere').__aenter__()
    AmqpNotAllowed: NOT_ALLOWED - vhost elsewhere not found...
await client.channel(window=None)
    ValueError: window must be a number from 1, not None
await client.channel(prefetch="10")
    ValueError: prefetch must be 0 to 65535, not '10'
await client.call("queue.declare")
    EncodeError: expected a method, such as Queue.Declare(), not str
await client.call(amqp.Queue.Declare)
    EncodeError: expected a method, such as Queue.Declare(), not the class QueueDeclare
await client.call(amqp.Basic.Publish())
    LocalProtocolError: basic.publish is sent by Channel.publish
await client.call(amqp.Basic.Ack(1))
    LocalProtocolError: basic.ack is sent by Delivery.ack
await client.call(amqp.Queue.DeclareOk())
    LocalProtocolError: queue.declare-ok has no reply: `call` sends requests, and waits for their
    replies
await client.call(amqp.Basic.Qos(prefetch_count=5))
    LocalProtocolError: basic.qos is of one channel: send it by Channel.call
await channel.publish("text", routing_key="q")
    EncodeError: body: a body must be bytes-like, not str
await channel.publish(b"", routing_key=None)
    EncodeError: basic.publish.routing-key: shortstr must be a str, not NoneType
await channel.publish(b"", routing_key="q", properties={"delivery_mode": 2})
    EncodeError: expected properties, such as BasicProperties(), not dict
await channel.publish(b"", routing_key="nowhere")
    ReturnedError: returned: 312 NO_ROUTE: there is no queue 'nowhere', which the default exchange
    routes to; publish with mandatory=False what may be lost
await channel.publish(b"", exchange="amq.topic", routing_key="a.b")
    ReturnedError: returned: 312 NO_ROUTE: exchange 'amq.topic' has no queue for routing key 'a.b';
    publish with mandatory=False what may be lost
await channel.publish(b"", exchange="nowhere", routing_key="q")
    AmqpNotFound: NOT_FOUND - no exchange 'nowhere' in vhost '/'
await anext(channel.consume("q"))
    LocalProtocolError: enter the consumer by async with, to iterate over it
await reading(url, lambda delivery: None)
    TypeError: around_delivery must return a context manager, for `with`: it has returned None
await channel.consume("nowhere").__aenter__()
    AmqpNotFound: NOT_FOUND - no queue 'nowhere' in vhost '/'
(delivery.ack(), delivery.ack())
    AlreadySettledError: delivery 1 is settled already, or needs no acknowledgement
(await channel.close(), await channel.get('q'))
    LocalProtocolError: the channel is closed
""")
BROKER = table("""
Broker().url
    RuntimeError: the broker does not run: enter it by `async with`, or use running_broker
Broker(users=["guest"])
    TypeError: users must be passwords by user name, not list
Broker(virtual_hosts="/test")
    TypeError: virtual_hosts must be several names, as in ['/test']
Broker(heartbeat="60")
    ValueError: heartbeat must be 0 to 65535, not '60'
Broker().url_of("nobody")
    ValueError: no user 'nobody'; there are guest
""")
LIBRARIES = table("""
compat.install("aio-pika")
    ValueError: no fast path for 'aio-pika'; there are pamqp, pika, amqp: aio-pika is built on pamqp
compat.install("Pika")
    ValueError: no fast path for 'Pika'; there are pamqp, pika, amqp: the name is 'pika'
compat.install(compat)
    ValueError: no fast path for <module 'amqpcodec.compat'...>; there are pamqp, pika, amqp...
next(capture.read_frames(PCAP, prot=1))
    TypeError: read_frames() got an unexpected keyword argument 'prot'; the nearest option is 'port'
next(capture.read_frames(PCAP, dialect="rabbitmq"))
    ValueError: dialect: no dialect 'rabbitmq'; there are auto, ...rabbitmq-0-9-1
next(capture.read_frames(empty))
    CaptureError: the file is empty (at octet 0 of the file)
arrow.read_capture(PCAP, "message")
    ValueError: no table 'message'; there are ...messages...
arrow.read_capture(PCAP, columns="routing_key")
    TypeError: columns: must be several names, not str
arrow.read_capture(PCAP, columns=["routingkey"])
    ValueError: no column 'routingkey'; there are ...; the nearest name is 'routing_key'
arrow.read_capture(PCAP, max_body_bytes="1m")
    TypeError: max_body_bytes: must be a whole number, not str
""")
COMMANDS = table("""
decod x.pcap
    ...; the nearest name is 'decode'...
decode missing.pcap
    amqpcodec: 'missing.pcap': No such file or directory...
decode x.pcap --prot 1
    ...unrecognized arguments: --prot 1; the nearest name is '--port'...
decode --method publish x.pcap
    ...no method fits 'publish'; the nearest name is 'basic.publish'...
decode --dialect rabbitmq x.pcap
    ...; the nearest name is 'rabbitmq-0-9-1'...
convert x.pcap out.csv
    amqpcodec: 'out.csv': its ending should be one of .parquet, .arrow, .ipc, .feather...
replay x.pcap http://localhost
    amqpcodec: a URL of a broker begins with amqp:// or amqps://...
""")


AT_ONCE = CODEC | CONNECTION | URLS | OPTIONS | BROKER | LIBRARIES


def fits(said: str, expected: str) -> bool:
    return re.fullmatch(re.escape(expected).replace(r"\.\.\.", ".*"), said, re.DOTALL) is not None


async def declare(client: Client | None) -> None:
    """Set nothing up."""


async def reading(url: str, hook: Any) -> None:
    async with Client(url, around_delivery=hook) as client:
        channel = await client.channel()
        await channel.publish(b"", routing_key="q")
        async with channel.consume("q") as deliveries:
            await anext(deliveries)


@pytest.fixture
def names(
    impl: Implementation, amqp: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> dict[str, Any]:
    """Return the objects that the tables speak of, of each build in turn."""
    made = _backend.load("amqpcodec.connection.machine", impl.name).Connection
    for module in (connecting, broker):
        monkeypatch.setattr(module, "Connection", made)
    monkeypatch.chdir(tmp_path)
    empty = tmp_path / "empty"
    empty.touch()
    return {
        "Address": Address, "Backoff": Backoff, "Broker": Broker, "Client": Client, "Connection": made,
        "ConnectionLimits": ConnectionLimits, "Limits": Limits, "PCAP": PCAP, "amqpcodec": amqpcodec,
        "arrow": arrow, "capture": capture, "compat": compat, "declare": declare, "amqp": amqp,
        "empty": empty, "encoder": amqp.Encoder(), "opened": opened(made, amqp), "reading": reading,
        "url": "amqp://localhost/",
    }  # fmt: skip


def opened(made: Any, amqp: ModuleType) -> Any:
    """Return a client's connection with channel 1."""
    client, server = made("client", amqp), made("server", amqp)
    logins = {client: ClientLogin(), server: ServerLogin(lambda user, password: True)}
    while client.state != "open":
        for here, there in ((client, server), (server, client)):
            for event in there.receive_data(here.data_to_send()):
                logins[there].handle(there, event)
    client.open_channel()
    client.data_to_send()
    return client


@pytest.mark.parametrize("mistake", AT_ONCE)
def test_a_mistake_is_refused_where_it_is_made(
    mistake: str, names: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # the text is what is compared
        eval(mistake, names)
    said = f"{type(caught.value).__name__}: {caught.value}"
    assert fits(said, AT_ONCE[mistake]), said
    assert caplog.records == []


@pytest.mark.parametrize("mistake", CLIENT)
def test_a_mistake_with_the_client_is_told_to_the_program(mistake: str, names: dict[str, Any]) -> None:
    amqp = names["amqp"]
    code = compile(mistake, "mistake", "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def make() -> str:
        async with Broker(dialect=amqp) as running, Client(running.url, dialect=amqp) as client:
            await client.call(amqp.Queue.Declare("q"))
            channel = await client.channel()
            await channel.publish(b"", routing_key="q")
            delivery = await channel.get("q")
            given = {"url": running.url, "client": client, "channel": channel, "delivery": delivery}
            try:
                await eval(code, {**names, **given})
            except Exception as error:
                return f"{type(error).__name__}: {error}"
        return "nothing"

    said = asyncio.run(make())
    assert fits(said, CLIENT[mistake]), said


@pytest.mark.parametrize("mistake", COMMANDS)
def test_a_mistake_with_the_command_is_told_in_a_line_or_two(
    mistake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pcap").write_bytes(PCAP.read_bytes())
    with suppress(SystemExit):
        assert main(mistake.split()) == 2
    printed, said = capsys.readouterr()
    assert printed == ""
    assert fits(said, COMMANDS[mistake]), said
    assert len(said.splitlines()) <= 2
