"""Writes examples/trouble.pcap: half a minute of a broker in trouble, always the same octets.

    python tools/trouble_capture.py examples/trouble.pcap

docs/cookbook.md asks it what goes wrong with brokers and their clients. All that is in it is made up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO

from amqpcodec import rabbitmq as amqp
from amqpcodec.capture.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Endpoint
from amqpcodec.capture.writing import Conversation, PacketWriter

SECOND = 1_000_000_000
START_NS = 1_795_601_700 * SECOND  # 2026-11-25 10:15:00 UTC
BROKER = Endpoint(bytes((10, 0, 0, 200)), 5672)
TRACE = 0x4BF92F3577B34DA6A3CE929D0E0E4700
HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"
BAD_END = amqp.encode_method(1, amqp.Queue.Declare(queue="old"))[:-1] + b"\0"
ORDERS = 10
UNROUTABLE, REFUSED, POISON, LATE = 5, 7, 3, 9  # numbers of orders
Content = tuple[Any, Any, bytes]  # method, properties, body


class Script:
    """Collects what is said on all connections, to write it in the order of its times."""

    def __init__(self) -> None:
        self._steps: list[tuple[float, Callable[[int], None]]] = []
        self.packets: PacketWriter | None = None

    def at(self, seconds: float, step: Callable[[int], None]) -> None:
        """Have something happen so long after the start; it gets the time in nanoseconds."""
        self._steps.append((seconds, step))

    def write(self, file: BinaryIO) -> None:
        """Write the capture."""
        self.packets = PacketWriter(file)
        for seconds, step in sorted(self._steps, key=lambda each: each[0]):
            step(START_NS + round(seconds * SECOND))


class Talk:
    """One connection.

    Args:
        script: where it is written.
        host: the last part of the client's address.
        name: what the client calls itself.
        begin: when it opens.
        heartbeat: what both agree on.
        port: of the client.
    """

    def __init__(
        self, script: Script, host: int, name: str, begin: float, *, heartbeat: int = 60, port: int = 0
    ) -> None:
        self._script = script
        self._end = Endpoint(bytes((10, 0, 0, host)), port or 40_000 + host)
        self._tcp: Conversation | None = None
        self.tags = 0  # of deliveries
        self.now = begin
        script.at(begin, self._open)
        self.client(0.001, amqp.protocol_header(), channel=0)
        start = amqp.Connection.Start(0, 9, {"product": "RabbitMQ", "version": "4.1.0"})
        self.server(0.001, start, channel=0)
        properties = {"product": "shop", "connection_name": name}
        login = amqp.Connection.StartOk(properties, "PLAIN", b"\0shop\0********", "en_US")
        self.client(0.001, login, channel=0)
        self._heartbeat = heartbeat

    def opened(self, *methods: Any) -> Talk:
        """Let the client in, with a channel; requests follow, each with its reply."""
        agreed = 2047, 131072, self._heartbeat
        self.server(0.001, amqp.Connection.Tune(*agreed), channel=0)
        open_shop = amqp.Connection.Open(virtual_host="/shop")
        self.client(0.001, amqp.Connection.TuneOk(*agreed), open_shop, channel=0)
        self.server(0.001, amqp.Connection.OpenOk(), channel=0)
        self.client(0.001, amqp.Channel.Open(), *methods[::2])
        self.server(0.001, amqp.Channel.OpenOk(), *methods[1::2])
        return self

    def client(self, after: float, *said: Any, channel: int = 1) -> None:
        """Have the client send methods, messages or octets, so long after what was said last."""
        self._say(after, CLIENT_TO_SERVER, said, channel)

    def server(self, after: float, *said: Any, channel: int = 1) -> None:
        """Have the broker do so."""
        self._say(after, SERVER_TO_CLIENT, said, channel)

    def deliver(self, after: float, tag: str, message: Content, redelivered: bool = False) -> int:
        """Have the broker deliver what was published; return the delivery tag."""
        self.tags += 1
        publish, properties, body = message
        method = amqp.Basic.Deliver(tag, self.tags, redelivered, publish.exchange, publish.routing_key)
        self.server(after, (method, properties, body))
        return self.tags

    def reset(self, after: float, end: int) -> None:
        """Have one end break off."""
        self.now += after
        self._script.at(self.now, lambda time_ns: self._conversation.reset(end, time_ns))

    def close(self, after: float) -> None:
        """Say goodbye."""
        self.client(after, amqp.Connection.Close(reply_code=200, reply_text="bye"), channel=0)
        self.server(0.001, amqp.Connection.CloseOk(), channel=0)
        self.finish(0.001)

    def finish(self, after: float) -> None:
        """End the connection of TCP."""
        self.now += after
        self._script.at(self.now, lambda time_ns: self._conversation.close(time_ns))

    def lose(self, after: float, *said: Any) -> None:
        """Have the broker send what the recording does not have."""
        self.now += after
        length = len(_octets(said, 1))
        self._script.at(self.now, lambda time_ns: self._conversation.skip(SERVER_TO_CLIENT, length, time_ns))

    @property
    def _conversation(self) -> Conversation:
        assert self._tcp is not None
        return self._tcp

    def _open(self, time_ns: int) -> None:
        assert self._script.packets is not None
        number = self._end.address[3] * 100 + self._end.port % 100
        self._tcp = Conversation(self._script.packets, self._end, BROKER, time_ns, number)

    def _say(self, after: float, direction: int, said: Iterable[Any], channel: int) -> None:
        self.now += after
        octets = _octets(said, channel)
        self._script.at(self.now, lambda time_ns: self._conversation.send(direction, octets, time_ns))

    def until(self, seconds: float) -> Talk:
        """Wait for a time."""
        self.now = max(self.now, seconds)
        return self


def _octets(said: Iterable[Any], channel: int) -> bytes:
    parts = []
    for each in said:
        if isinstance(each, bytes):
            parts.append(each)
        elif isinstance(each, tuple) and not hasattr(each, "spec"):
            method, properties, body = each
            parts.append(amqp.encode_message(channel, method, properties, body, frame_max=131072))
        else:
            parts.append(amqp.encode_method(channel, each))
    return b"".join(parts)


def _order(number: int) -> Content:
    """Return the message of an order."""
    key = "order.archived" if number == UNROUTABLE else "order.created"
    headers = {"traceparent": f"00-{TRACE + number:032x}-{number:016x}-01"}
    properties = amqp.BasicProperties(
        content_type="application/json", message_id=f"order-{number}", delivery_mode=2, headers=headers
    )
    return amqp.Basic.Publish("shop", key, mandatory=True), properties, b'{"order": %d}' % number


def _consume(queue: str, tag: str, prefetch: int) -> tuple[Any, ...]:
    """Return the requests of a consumer and their replies."""
    return (
        amqp.Basic.Qos(prefetch_count=prefetch), amqp.Basic.QosOk(),
        amqp.Basic.Consume(queue=queue, consumer_tag=tag), amqp.Basic.ConsumeOk(tag),
    )  # fmt: skip


def _publisher(script: Script) -> dict[int, float]:
    """Publish the orders; return when the broker had those that went on to queues."""
    web = Talk(script, 1, "web", 0).opened(amqp.Confirm.Select(), amqp.Confirm.SelectOk())
    taken = {}
    for number in range(1, ORDERS + 1):
        order = _order(number)
        web.until(0.1 + (number - 1) * 3)
        if number == LATE:
            web.server(-0.5, amqp.Connection.Blocked("low on memory"), channel=0)
            web.client(0.5, order)
            web.server(2.2, amqp.Connection.Unblocked(), channel=0)
            web.server(0.05, amqp.Basic.Ack(number + 1))
            taken[number] = web.now
            continue
        web.client(0, order)
        tag = number + (number > POISON)  # the report is between the orders
        if number == REFUSED:
            web.server(0.004, amqp.Basic.Nack(tag, requeue=False))
        elif number == UNROUTABLE:
            publish, properties, body = order
            back = amqp.Basic.Return(312, "NO_ROUTE", publish.exchange, publish.routing_key)
            web.server(0.003, (back, properties, body), amqp.Basic.Ack(tag))
        else:
            web.server(0.004, amqp.Basic.Ack(tag))
            taken[number] = web.now
        if number == POISON:
            properties = amqp.BasicProperties(content_type="application/pdf", message_id="report-1")
            web.client(0.7, (amqp.Basic.Publish("shop", "report.daily"), properties, b"%PDF" * 3000))
            web.server(0.03, amqp.Basic.Ack(number + 1))
        if number == UNROUTABLE:
            _mistyped(web)
    web.close(1)
    return taken


def _mistyped(web: Talk) -> None:
    """Publish to an exchange that there is not, on a channel of its own."""
    web.client(0.2, amqp.Channel.Open(), channel=2)
    web.server(0.001, amqp.Channel.OpenOk(), channel=2)
    publish, properties, body = _order(UNROUTABLE)
    web.client(0.001, (amqp.Basic.Publish("shp", publish.routing_key), properties, body), channel=2)
    text = "NOT_FOUND - no exchange 'shp' in vhost '/shop'"
    web.server(0.002, amqp.Channel.Close(404, text, 60, 40), channel=2)
    web.client(0.001, amqp.Channel.CloseOk(), channel=2)


def _consumers(script: Script, taken: dict[int, float]) -> None:
    """A consumer that keeps up, one that is slow, and one that returns a message again and again."""
    mail = Talk(script, 3, "mail", 0.02).opened(*_consume("mail", "mail-1", 50))
    for number, time in taken.items():
        tag = mail.until(time).deliver(0.001, "mail-1", _order(number))
        mail.client(0.006, amqp.Basic.Ack(tag))
    billing = Talk(script, 2, "billing", 0.03).opened(*_consume("billing", "billing-1", 2))
    waiting: list[int] = []
    for number, time in taken.items():
        if len(waiting) == 2:
            billing.until(billing.now + 4.5).client(0, amqp.Basic.Ack(waiting.pop(0)))
        waiting.append(billing.until(time).deliver(0.001, "billing-1", _order(number)))
    stock = Talk(script, 4, "stock", 0.04).opened(*_consume("stock", "stock-1", 1))
    for number, time in taken.items():
        tag = stock.until(time).deliver(0.001, "stock-1", _order(number))
        for _ in range(4 if number == POISON else 0):
            stock.client(0.02, amqp.Basic.Nack(tag, requeue=True))
            tag = stock.deliver(0.5, "stock-1", _order(number), redelivered=True)
        answer = amqp.Basic.Reject(tag, requeue=False) if number == POISON else amqp.Basic.Ack(tag)
        stock.client(0.02, answer)
    for talk in (mail, stock):
        talk.until(30).close(0.1)


def _operator(script: Script) -> None:
    """Look how full a queue is, and what is in the queue of dead letters."""
    ops = Talk(script, 5, "ops", 9).opened()
    _look(ops.until(10), 1)
    publish, properties, body = _order(POISON)
    death = {"count": 1, "reason": "rejected", "queue": "stock", "exchange": "shop"}
    death["routing-keys"] = [publish.routing_key]
    headers = {**properties.headers, "x-death": [death]}
    properties = amqp.BasicProperties(message_id=properties.message_id, headers=headers)
    ops.until(14).client(0, amqp.Basic.Get(queue="dead"))
    ops.server(0.001, (amqp.Basic.GetOk(1, False, "dlx", publish.routing_key, 0), properties, body))
    ops.client(1, amqp.Basic.Reject(1, requeue=True))
    _look(ops.until(28), 4)
    ops.close(0.5)


def _look(ops: Talk, count: int) -> None:
    """Ask how many messages wait for the slow consumer."""
    ops.client(0, amqp.Queue.Declare(queue="billing", passive=True))
    ops.server(0.001, amqp.Queue.DeclareOk("billing", count, 1))


def _calls(script: Script) -> None:
    """Three requests with their replies, the last one late."""
    front = Talk(script, 6, "front", 0.05).opened(*_consume("replies", "replies-1", 10))
    pricing = Talk(script, 7, "pricing", 0.06).opened(*_consume("pricing", "pricing-1", 1))
    for number, (time, work) in enumerate(((4.0, 0.05), (11.0, 0.08), (18.0, 2.4)), 1):
        key = f"price-{number}"
        properties = amqp.BasicProperties(correlation_id=key, reply_to="replies")
        request = amqp.Basic.Publish("", "pricing"), properties, b'{"item": %d}' % number
        front.until(time).client(0, request)
        tag = pricing.until(time).deliver(0.001, "pricing-1", request)
        answer = amqp.Basic.Publish("", "replies"), amqp.BasicProperties(correlation_id=key), b"9.50"
        pricing.client(work, answer, amqp.Basic.Ack(tag))
        reply = front.until(pricing.now).deliver(0.001, "replies-1", answer)
        front.client(0.001, amqp.Basic.Ack(reply))
    front.close(2)
    pricing.close(2)


def _outsiders(script: Script) -> None:
    """Clients that come and go, that fall silent, and that are shown the door."""
    for number, time in enumerate((1, 7, 13, 19, 25)):
        cron = Talk(script, 8, "cron", time, port=50_000 + number).opened()
        cron.reset(0.4, CLIENT_TO_SERVER)
    report = Talk(script, 9, "report", 3)
    text = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN"
    report.server(0.01, amqp.Connection.Close(403, text), channel=0)
    report.client(0.001, amqp.Connection.CloseOk(), channel=0)
    report.finish(0.001)
    sensor = Talk(script, 10, "sensor", 2, heartbeat=2).opened()
    sensor.client(0.5, (amqp.Basic.Publish("amq.topic", "sensor.1"), amqp.BasicProperties(), b"21.5"))
    for _ in range(3):
        sensor.server(2, HEARTBEAT)
    sensor.reset(1, SERVER_TO_CLIENT)
    legacy = Talk(script, 11, "legacy", 6).opened()
    legacy.client(0.2, BAD_END)
    legacy.server(0.001, amqp.Connection.Close(501, "FRAME_ERROR - bad frame end octet", 0, 0), channel=0)
    legacy.client(0.001, amqp.Connection.CloseOk(), channel=0)
    legacy.finish(0.001)
    audit = Talk(script, 12, "audit", 16).opened(*_consume("audit", "audit-1", 10))
    audit.client(0.1, amqp.Basic.Ack(audit.deliver(0.1, "audit-1", _order(1))))
    audit.tags += 1
    lost = amqp.Basic.Deliver("audit-1", audit.tags, False, "shop", "order.created")
    audit.lose(0.5, (lost, *_order(2)[1:]))
    audit.client(0.1, amqp.Basic.Ack(audit.deliver(0.5, "audit-1", _order(3))))
    audit.server(1, amqp.Basic.Cancel("audit-1", no_wait=True))
    audit.close(1)


def record(file: BinaryIO) -> None:
    """Write the capture to a binary file."""
    script = Script()
    taken = _publisher(script)
    _consumers(script, taken)
    _operator(script)
    _calls(script)
    _outsiders(script)
    script.write(file)


if __name__ == "__main__":
    with Path(sys.argv[1]).open("wb") as out:
        record(out)
