"""What peers do otherwise than the standard: rows of docs/interoperability.md, each with its proof."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from amqpcodec.connection import ChannelClosed, ConnectionClosed, Violation

from .talk import Talk

ALL = ("amqp-0-8", "qpid-0-8", "amqp-0-9", "amqp-0-9-1", "rabbitmq-0-9-1")
HISTORIC = ("amqp-0-8", "qpid-0-8", "amqp-0-9")


class Difference(NamedTuple):
    """One of them.

    Attributes:
        topic: the method or thing.
        dialects: those that it concerns.
        standard: what the specification says.
        peer: what the peer does.
        check: fails if the peer does otherwise.
    """

    topic: str
    dialects: tuple[str, ...]
    standard: str
    peer: str
    check: Callable[[Talk], None]


def _sent(client: Talk, name: str, **fields: object) -> None:
    """Open a channel, and send a method on it."""
    owner, method = name.split(".")
    client.connection.send(client.channel(), getattr(getattr(client.amqp, owner), method)(**fields))


def _cuts_off(name: str, **fields: object) -> Callable[[Talk], None]:
    """The broker ends the stream without connection.close."""

    def check(client: Talk) -> None:
        _sent(client, name, **fields)
        assert client.event(ConnectionClosed).by == "eof"

    return check


def _closes(kind: type, code: int, name: str, **fields: object) -> Callable[[Talk], None]:
    """The broker closes the connection or the channel by that code."""

    def check(client: Talk) -> None:
        _sent(client, name, **fields)
        assert client.event(kind).reply_code == code

    return check


def _after(octets: bytes) -> Callable[[Talk], None]:
    """The broker ends the stream after these octets."""

    def check(client: Talk) -> None:
        client.channel()
        client.write(octets)
        assert client.event(ConnectionClosed).by == "eof"

    return check


def _login(code: int, **wishes: str) -> Callable[[Talk], None]:
    def check(client: Talk) -> None:
        vars(client.login).update(wishes)
        closed = client.event(ConnectionClosed)
        assert (closed.by, closed.reply_code) == ("peer", code)

    return check


def soon() -> str:
    """Return the time in a minute, as the broker reads an expiration."""
    return str(int((time.time() + 60) * 1000))


def _expiration(client: Talk) -> None:
    channel = client.channel()
    queue = client.queue(channel)
    for text in ("60000", soon()):
        properties = client.amqp.BasicProperties(expiration=text)
        client.connection.send_message(
            channel, client.amqp.Basic.Publish(routing_key=queue), properties, text.encode()
        )
    assert client.get(channel, queue, no_ack=True).body == text.encode()


def _consume(client: Talk) -> None:
    client.damaged = True  # captures are read as the broker reads them
    _cuts_off("Basic.Consume", queue="q")(client)


def _recover(client: Talk) -> None:
    client.damaged = True  # what it answers cannot be read
    _sent(client, "Basic.Recover", requeue=True)
    violation = client.event(Violation)
    assert (violation.class_id, violation.method_id) == (60, 101)


def _got(client: Talk) -> tuple[int, str, Any]:
    """A channel, a queue, and a message that was got from it."""
    channel = client.channel()
    queue = client.queue(channel)
    client.publish(channel, b"body", routing_key=queue)
    return channel, queue, client.get(channel, queue)


def _reject(client: Talk) -> None:
    channel, queue, _ = _got(client)
    client.connection.send(channel, client.amqp.Basic.Reject(delivery_tag=1, requeue=False))
    assert client.get(channel, queue).method.redelivered


def _message_count(client: Talk) -> None:
    _, _, message = _got(client)
    assert message.method.message_count == 1


def _ack(client: Talk) -> None:
    channel = client.channel()
    client.write(
        client.amqp.encode_method(channel, client.amqp.Basic.Ack(77))
    )  # which the connection refuses
    client.queue(channel)


def _rollback(client: Talk) -> None:
    channel, queue, _ = _got(client)
    client.call(channel, client.amqp.Tx.Select())
    client.connection.send(channel, client.amqp.Basic.Ack(delivery_tag=1))
    client.call(channel, client.amqp.Tx.Rollback())
    assert client.get(channel, queue).body == b"body"


def _exclusive(client: Talk) -> None:
    channel = client.channel()
    with Talk(*client.made) as other:
        queue = other.queue(other.channel())
        client.connection.send(channel, client.amqp.Queue.Declare(queue=queue))
        assert client.event(ConnectionClosed).reply_code == 530


def _tag(entry: bytes) -> Callable[[Talk], None]:
    """The broker ends the stream after a table with this entry."""

    def check(client: Talk) -> None:
        client.damaged = True  # not every dialect can read it
        _cuts_off("Queue.Declare", queue="q", arguments=client.made[0].raw_table(entry))(client)

    return check


UNKNOWN_METHOD = b"\1\0\1\0\0\0\4\0\x3c\3\xe7\xce"
BROKERJ = [
    Difference(
        "basic.consume", ("amqp-0-8",), "ends with its bits",
        "reads a table `arguments` after them, as in `qpid-0-8`; else it cuts off",
        _consume,
    ),
    Difference(
        "basic.recover", ("amqp-0-8",), "has no answer", "answers with recover-ok of `qpid-0-8`", _recover
    ),
    Difference(
        "basic.reject", ALL, "without `requeue`, the message is discarded or dead-lettered",
        "puts it back, unless the queue has a limit of deliveries", _reject,
    ),
    Difference(
        "basic.get-ok", ALL, "`message_count` is of the messages left", "counts the message itself, too",
        _message_count,
    ),
    Difference(
        "expiration", ALL, "is left to the broker; RabbitMQ takes milliseconds from now",
        "takes milliseconds since 1970", _expiration,
    ),
    Difference(
        "tx.rollback", ALL, "undoes acknowledgements; the messages stay with the channel", "puts them back",
        _rollback,
    ),
    Difference(
        "basic.ack of no delivery", ALL, "406 precondition-failed closes the channel", "is ignored", _ack
    ),
    Difference(
        "wrong password", ALL, "403 access-refused", "530 not-allowed", _login(530, password="wrong")
    ),
    Difference(
        "unknown virtual host", ALL, "402 invalid-path; in 0-9-1 530 not-allowed", "404 not-found",
        _login(404, virtual_host="/nonesuch"),
    ),
    Difference(
        "exclusive queue of another", ALL, "405 resource-locked closes the channel",
        "530 not-allowed closes the connection", _exclusive,
    ),
    Difference(
        "reserved name", ALL, "403 access-refused closes the channel",
        "530 not-allowed closes the connection",
        _closes(ConnectionClosed, 530, "Exchange.Declare", exchange="amq.mine", type="direct"),
    ),
    Difference(
        "exchange of the broker, deleted", ALL, "403 access-refused closes the channel",
        "530 not-allowed, which is of connections, closes the channel",
        _closes(ChannelClosed, 530, "Exchange.Delete", exchange="amq.direct"),
    ),
    Difference(
        "basic.get of no queue", ALL, "404 not-found closes the channel", "404 closes the connection",
        _closes(ConnectionClosed, 404, "Basic.Get", queue="nonesuch"),
    ),
    Difference(
        "message.*", ("amqp-0-9",), "a class of 0-9", "has none, and cuts off",
        _cuts_off("Message.Qos", prefetch_count=1),
    ),
    Difference(
        "channel.ping", ("amqp-0-9",), "is answered by pong", "has none, and cuts off",
        _cuts_off("Channel.Ping"),
    ),
    Difference("file.*", HISTORIC, "a class of 0-8 and 0-9", "has none, and cuts off", _cuts_off("File.Qos")),
    Difference(
        "stream.*", HISTORIC, "a class of 0-8 and 0-9", "has none, and cuts off", _cuts_off("Stream.Qos")
    ),
    Difference(
        "dtx.*", HISTORIC, "a class of 0-8 and 0-9", "has none, and cuts off", _cuts_off("Dtx.Select")
    ),
    Difference("tag `U`", ALL, "a 16-bit integer in the text of 0-9-1", "cuts off", _tag(b"\1aU\0\1")),
    Difference("tag `L`", ALL, "a 64-bit integer in the text of 0-9-1", "cuts off", _tag(b"\1aL" + bytes(8))),
    Difference(
        "unknown method", ALL, "503 command-invalid or 540 not-implemented", "cuts off",
        _after(UNKNOWN_METHOD),
    ),
    Difference(
        "frame without its end octet", ALL, "501 frame-error", "cuts off",
        _after(UNKNOWN_METHOD[:-1] + b"\0"),
    ),
]  # fmt: skip


def table() -> str:
    """Return the differences as a table of the page."""
    rows = ["| topic | dialects | the standard | Broker-J |", "| --- | --- | --- | --- |"]
    for each in BROKERJ:
        dialects = "all" if each.dialects == ALL else ", ".join(each.dialects)
        rows.append(f"| {each.topic} | {dialects} | {each.standard} | {each.peer} |")
    return "\n".join(rows)
