"""The floor of asyncio: prepared octets; 128 tasks that await a future for each message.

Nothing is encoded. Of what comes, no more is decoded than tells what is confirmed, or how much has arrived.
"""

from __future__ import annotations

import asyncio
import socket
from bisect import bisect_right
from itertools import accumulate, takewhile
from typing import Any
from urllib.parse import urlsplit

from amqpcodec import rabbitmq as amqp
from amqpcodec.connection import ClientLogin, Connection, MethodReceived, Opened

from . import PREFETCH, WINDOW, Clock, expected, messages
from .ours import properties

CHANNEL = 1
TAG = "floor"
ACK = 21  # octets of a frame of basic.ack


def logged_in(url: str, request: Any) -> socket.socket:
    """A socket to the broker, with a channel on which a request was answered."""
    place = urlsplit(url)
    sock = socket.create_connection((place.hostname, place.port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = Connection("client", amqp)
    login = ClientLogin()
    while True:
        sock.sendall(connection.data_to_send())
        connection.receive_data(sock.recv(65536))
        for event in connection:
            if isinstance(event, Opened):
                connection.send(connection.open_channel(), request)
            elif isinstance(event, MethodReceived) and event.request is request:
                return sock
            else:
                login.handle(connection, event)


class Publisher(asyncio.Protocol):
    """Writes prepared octets once a turn of the loop, and takes the confirms."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._number = 0
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._out: list[bytes] = []
        self._rest = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def publish(self, octets: bytes) -> asyncio.Future[None]:
        """Write a message; the future of its confirm."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(octets)
        self._number += 1
        future = self._waiting[self._number] = self._loop.create_future()
        return future

    def _flush(self) -> None:
        self._transport.write(b"".join(self._out))
        self._out.clear()

    def data_received(self, data: bytes) -> None:
        tags, self._rest = confirms(self._rest + data)
        for tag, multiple in tags:
            for number in list(takewhile(tag.__ge__, self._waiting)) if multiple else (tag,):
                self._waiting.pop(number).set_result(None)


def confirms(data: bytes) -> tuple[list[tuple[int, int]], bytes]:
    """The tags of whole frames of basic.ack, each with its ``multiple``, and the octets behind them."""
    end = len(data) - len(data) % ACK
    found = []
    for at in range(0, end, ACK):
        if data[at + 7 : at + 11] != b"\0\x3c\0\x50":
            raise AssertionError(f"not basic.ack: {data[at:]!r:.200}")
        found.append((int.from_bytes(data[at + 11 : at + 19], "big"), data[at + 19]))
    return found, data[end:]


def prepared(queue: str, count: int) -> list[bytes]:
    """The octets of all messages."""
    method = amqp.Basic.Publish(routing_key=queue, mandatory=True)
    return [
        amqp.encode_message(CHANNEL, method, properties(headers, message_id, seconds), body)
        for body, headers, message_id, seconds in messages(count)
    ]


def publish(url: str, queue: str, count: int, clock: Clock) -> None:
    asyncio.run(_publish(url, queue, count, clock))


async def _publish(url: str, queue: str, count: int, clock: Clock) -> None:
    sock = logged_in(url, amqp.Confirm.Select())
    _, protocol = await asyncio.get_running_loop().create_connection(Publisher, sock=sock)
    source = iter(prepared(queue, count))

    async def work() -> None:
        for octets in source:
            await protocol.publish(octets)

    with clock:
        await asyncio.gather(*[work() for _ in range(WINDOW)])


class Consumer(asyncio.BufferedProtocol):
    """Reads deliveries of known sizes, and acknowledges those of each read together.

    Args:
        queue: that they come from.
        count: how many.
    """

    def __init__(self, queue: str, count: int) -> None:
        self._buffer = memoryview(bytearray(65536))
        self.received: list[bytes] = []  # for later
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._octets = self._whole = 0
        self._acks = [amqp.encode_method(CHANNEL, amqp.Basic.Ack(tag, True)) for tag in range(1, count + 1)]
        deliver = amqp.Basic.Deliver(TAG, 1, False, "", queue)
        consume = amqp.encode_method(CHANNEL, amqp.Basic.Consume(queue=queue, consumer_tag=TAG))
        ok = len(amqp.encode_method(CHANNEL, amqp.Basic.ConsumeOk(TAG)))
        self.consume = consume
        self._ends = list(
            accumulate(
                (
                    len(amqp.encode_message(CHANNEL, deliver, properties(headers, message_id, seconds), body))
                    for body, headers, message_id, seconds in messages(count)
                ),
                initial=ok,
            )
        )[1:]

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received.append(bytes(self._buffer[:nbytes]))
        self._octets += nbytes
        whole = bisect_right(self._ends, self._octets)
        if whole > self._whole:
            self._whole = whole
            self._transport.write(self._acks[whole - 1])
            if whole == len(self._ends):
                self.done.set_result(None)


def consume(url: str, queue: str, count: int, clock: Clock) -> None:
    asyncio.run(_consume(url, queue, count, clock))


async def _consume(url: str, queue: str, count: int, clock: Clock) -> None:
    sock = logged_in(url, amqp.Basic.Qos(prefetch_count=PREFETCH))
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_connection(lambda: Consumer(queue, count), sock=sock)
    with clock:
        transport.write(protocol.consume)
        await protocol.done
    wanted = expected(count)
    arrived = amqp.MessageDecoder().feed(b"".join(protocol.received))
    for message in list(arrived)[1:]:
        found = message.properties
        if (message.body, found.headers, found.message_id) != next(wanted):
            raise AssertionError(f"not what was published: {message!r:.500}")
    if next(wanted, None) is not None:
        raise AssertionError("messages are missing")
