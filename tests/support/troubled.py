"""A capture in which most goes wrong that can: what `amqpcodec stats` has to find in it."""

from __future__ import annotations

import random
from typing import Any

from amqpcodec import rabbitmq as amqp
from support import make_capture as make
from support.make_capture import ACK, CLIENT, RST, SERVER

SECOND = 1_000_000_000
HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"
UNKNOWN_METHOD = b"\x01\0\1\0\0\0\4garb\xce"


def _method(channel: int, method: Any) -> bytes:
    octets: bytes = amqp.encode_method(channel, method)
    return octets


def _message(method: Any, body: bytes) -> list[bytes]:
    return make.split(amqp.encode_message(1, method, amqp.BasicProperties(), body, frame_max=4096))


class Talk(make.Talk):
    """A connection whose handshake has come up to the client's connection.open."""

    def __init__(self, truth: make.Truth, number: int, *, heartbeat: int = 60) -> None:
        rng = random.Random(number)
        super().__init__(truth, number, (rng.getrandbits(32), rng.getrandbits(32)), mss=1400)
        self.open()
        self.send(CLIENT, amqp.protocol_header())
        self.server(amqp.Connection.Start(0, 9, {"product": "RabbitMQ"}, b"PLAIN", b"en_US"), 0)
        self.client(amqp.Connection.StartOk({"product": "pika"}, "PLAIN", b"\0guest\0secret", "en_US"), 0)
        self.server(amqp.Connection.Tune(10, 4096, heartbeat), 0)
        self.client(amqp.Connection.TuneOk(10, 4096, heartbeat), 0)
        self.client(amqp.Connection.Open(virtual_host="/shop"), 0)

    def opened(self) -> Talk:
        """The same with a channel."""
        self.server(amqp.Connection.OpenOk(), 0)
        self.client(amqp.Channel.Open())
        self.server(amqp.Channel.OpenOk())
        return self

    def client(self, method: Any, channel: int = 1) -> None:
        """Send a method from the client."""
        self.send(CLIENT, _method(channel, method))

    def server(self, method: Any, channel: int = 1) -> None:
        """Send a method from the server."""
        self.send(SERVER, _method(channel, method))

    def declare(self, queue: str, messages: int) -> None:
        """The broker says how many messages are in a queue."""
        self.client(amqp.Queue.Declare(queue=queue, passive=True))
        self.server(amqp.Queue.DeclareOk(queue=queue, message_count=messages, consumer_count=1))

    def wait(self, seconds: float) -> None:
        """Nothing is sent for a while."""
        self.time_ns += int(seconds * SECOND)

    def goodbye(self) -> None:
        """Close as it should be."""
        self.client(amqp.Connection.Close(reply_code=200, reply_text="bye"), 0)
        self.server(amqp.Connection.CloseOk(), 0)
        self.close()


def calm() -> make.Truth:
    """One message published and confirmed, one delivered and acknowledged; nothing is wrong."""
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    talk.client(amqp.Confirm.Select())
    talk.server(amqp.Confirm.SelectOk())
    talk.send(CLIENT, *_message(amqp.Basic.Publish(exchange="shop", routing_key="a"), b"yes"))
    talk.server(amqp.Basic.Ack(1))
    talk.client(amqp.Basic.Consume(queue="orders", consumer_tag="c"))
    talk.server(amqp.Basic.ConsumeOk(consumer_tag="c"))
    talk.send(
        SERVER, *_message(amqp.Basic.Deliver(consumer_tag="c", delivery_tag=1, exchange="shop"), b"yes")
    )
    talk.client(amqp.Basic.Ack(1))
    talk.goodbye()
    return truth


def troubled() -> make.Truth:
    """A publisher, a consumer that dies, two connections that never open, and one that falls silent."""
    truth = make.Truth()
    _publisher(Talk(truth, 1).opened())
    _consumer(Talk(truth, 2).opened())
    refused = Talk(truth, 3)
    refused.server(amqp.Connection.Close(reply_code=530, reply_text="NOT_ALLOWED - vhost"), 0)
    refused.client(amqp.Connection.CloseOk(), 0)
    refused.close()
    Talk(truth, 4).packet(SERVER, RST | ACK)
    _silent(Talk(truth, 5, heartbeat=1).opened())
    truth.packets.sort(key=lambda packet: packet.time_ns)
    return truth


def _publisher(talk: Talk) -> None:
    """Forty messages, confirmed late, ten of them refused, two returned; it is blocked for four seconds."""
    talk.client(amqp.Confirm.Select())
    talk.server(amqp.Confirm.SelectOk())
    for number in range(4):
        talk.declare("orders", 10 * number)
        for _ in range(10):
            talk.send(CLIENT, *_message(amqp.Basic.Publish(exchange="", routing_key="orders"), b"x" * 300))
        talk.wait(0.7)
        answer = amqp.Basic.Nack if number == 2 else amqp.Basic.Ack
        talk.server(answer(delivery_tag=10 * number + 10, multiple=True))
    for _ in range(2):
        back = amqp.Basic.Return(reply_code=312, reply_text="NO_ROUTE", exchange="shop", routing_key="z")
        talk.send(SERVER, *_message(back, b"back"))
    talk.server(amqp.Connection.Blocked(reason="low on memory"), 0)
    talk.wait(4)
    talk.server(amqp.Connection.Unblocked(), 0)
    talk.goodbye()


def _consumer(talk: Talk) -> None:
    """Thirty deliveries, the last five again, of which it acknowledges one and rejects one before it dies."""
    talk.client(amqp.Basic.Consume(queue="work", consumer_tag="slow"))
    talk.server(amqp.Basic.ConsumeOk(consumer_tag="slow"))
    for tag in range(1, 31):
        deliver = amqp.Basic.Deliver(
            consumer_tag="slow", delivery_tag=tag, redelivered=tag > 25, exchange="shop", routing_key="a"
        )
        talk.send(SERVER, *_message(deliver, b"y" * 200))
    talk.wait(11)
    talk.client(amqp.Basic.Ack(1))
    talk.client(amqp.Basic.Reject(delivery_tag=2, requeue=False))
    talk.packet(CLIENT, RST | ACK)


def _silent(talk: Talk) -> None:
    """Six seconds without a heartbeat of the one second agreed on; then a method that there is not."""
    talk.wait(6)
    talk.send(CLIENT, HEARTBEAT)
    talk.wait(20)
    talk.send(CLIENT, UNKNOWN_METHOD)
