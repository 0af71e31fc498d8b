"""A broker that does what a test says, when it says so: it answers as usual all else that a client asks.

It is the broker for tests, of which a script takes the place of exchanges and queues.

broker.on("basic.publish", hold)                     # for the time being
broker.on("queue.declare", close_channel(405), connection=2)
[*published] = await broker.got("basic.publish", 3)  # wait until they have come
published[1].nack()
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ssl import SSLContext
from types import ModuleType
from typing import Any

from amqpcodec.connection import MessageReceived, MethodReceived, Settled
from amqpcodec.testing import Broker, Faults
from amqpcodec.testing.session import Session

CONNECT = "connect"  # what a reaction to a new connection is listed under: before any octet of the handshake,
END = "end"  # and what one to its end


class Received:
    """A method from a client, and where it came from.

    Attributes:
        peer: the connection.
        channel: channel number.
        connection: the number of the connection, from 1.
        name: of the method.
        method, body, properties: what has come; of a method without content, the method alone.
        number: the sequence number of a publish in confirm mode.
        tags: what an acknowledgement settles.
    """

    def __init__(self, peer: Peer, event: Any) -> None:
        self.peer = peer
        self.connection = peer.number
        self.channel: int = event.channel
        self.method = event.method
        self.name: str = event.method.spec.name
        self.body: bytes = getattr(event, "body", b"")
        self.properties = event.properties.decoded() if hasattr(event, "properties") else None
        self.number: int = getattr(event, "sequence_number", None) or 0
        self.tags: tuple[int, ...] = getattr(event, "tags", ())

    def reply(self, method: Any) -> None:
        self.peer.send(self.channel, method)

    def answer(self) -> None:
        """Answer as usual: a request by its reply, a publish that is to be confirmed by an ack."""
        basic = self.peer.amqp.Basic
        if self.name == "basic.publish":
            if self.number:
                self.ack()
        elif self.method.spec.responses and not getattr(self.method, "no_wait", False):
            self.reply(basic.GetEmpty() if self.name == "basic.get" else self._usual_reply())

    def _usual_reply(self) -> Any:
        classes = {method.spec.name: method for method in self.peer.amqp.METHODS.values()}
        reply = classes[f"{self.name.partition('.')[0]}.{self.method.spec.responses[0]}"]()
        for name in ("queue", "consumer_tag"):
            if hasattr(reply, name):
                setattr(reply, name, getattr(self.method, name))
        return reply

    def ack(self, multiple: bool = False) -> None:
        self.reply(self.peer.amqp.Basic.Ack(self.number, multiple))

    def nack(self, multiple: bool = False) -> None:
        self.reply(self.peer.amqp.Basic.Nack(self.number, multiple))

    def send_back(self, reply_code: int = 312, reply_text: str = "NO_ROUTE") -> None:
        """Return a message that no queue takes."""
        to = self.method
        method = self.peer.amqp.Basic.Return(reply_code, reply_text, to.exchange, to.routing_key)
        self.peer.connection.send_message(self.channel, method, self.properties, self.body)

    def deliver(self, *bodies: bytes, redelivered: bool = False, properties: Any = None) -> None:
        """Deliver to the consumer that has come."""
        for body in bodies:
            tag = self.peer.connection.next_delivery_tag(self.channel)
            method = self.peer.amqp.Basic.Deliver(self.method.consumer_tag, tag, redelivered, "", "q")
            self.peer.connection.send_message(self.channel, method, properties, body)

    def hand_out(self, body: bytes) -> None:
        """Answer basic.get."""
        tag = self.peer.connection.next_delivery_tag(self.channel)
        self.peer.connection.send_message(self.channel, self.peer.amqp.Basic.GetOk(tag), None, body)

    def cancel_consumer(self, no_wait: bool = True) -> None:
        self.reply(self.peer.amqp.Basic.Cancel(self.method.consumer_tag, no_wait))

    def flow(self, active: bool) -> None:
        self.reply(self.peer.amqp.Channel.Flow(active))

    def close_channel(self, reply_code: int, reply_text: str = "as the test says") -> None:
        self.peer.connection.close_channel(self.channel, reply_code, reply_text)


class Peer:
    """The broker's end of a connection.

    Attributes:
        number: which one it is, from 1.
        ended: set once it is over.
    """

    def __init__(self, session: Session) -> None:
        self.connection = session.connection
        self.amqp = session.amqp
        self.number = session.number
        self.ended = asyncio.Event()
        self._session = session

    def send(self, channel: int, method: Any) -> None:
        self.connection.send(channel, method)

    def block(self, reason: str = "low on memory") -> None:
        self.send(0, self.amqp.Connection.Blocked(reason))

    def unblock(self) -> None:
        self.send(0, self.amqp.Connection.Unblocked())

    def close(self, reply_code: int = 320, reply_text: str = "CONNECTION_FORCED") -> None:
        self.connection.close(reply_code, reply_text)

    def abort(self) -> None:
        """Cut the TCP connection."""
        self._session.wire.abort()

    def hang_up(self) -> None:
        """End the TCP connection, once all is written."""
        self._session.wire.close()

    def send_garbage(self, octets: bytes = b"HTTP/1.1 400 Bad Request\r\n\r\n") -> None:
        self._session.wire.put(octets)

    def stop_reading(self) -> None:
        self._session.wire.pause_reading()

    def read_again(self) -> None:
        self._session.wire.resume_reading()

    def fall_silent(self) -> None:
        """Neither read nor write any more: half-open, as after a cable was pulled."""
        self.stop_reading()
        self._session.stream.pause_writing()


class Script(Faults):
    """Does what a test says with each method that comes."""

    def __init__(self, broker: ScriptedBroker, dialect: ModuleType) -> None:
        super().__init__(broker, dialect)
        self._scripted = broker
        self.armed = True

    def met(self, session: Session, event: Any) -> bool:
        """Return whether a method is dealt with; the broker goes on with the others."""
        return isinstance(event, MethodReceived | MessageReceived | Settled) and self._scripted.react(
            session, event
        )


class Unjudged:
    """Hands all octets on: this broker sends what RabbitMQ does not, and so gets answers that it refuses."""

    def __init__(self) -> None:
        self._octets = b""

    def feed(self, octets: Any) -> None:
        self._octets += bytes(octets)

    def next(self) -> bytes:
        octets, self._octets = self._octets, b""
        return octets


class ScriptedBroker(Broker):
    """Listens on a port of its own in ``async with``.

    Attributes:
        peers: its ends of all connections, in order.
        log: what has come, in order.
    """

    def __init__(self, amqp: ModuleType, tls: SSLContext | None = None) -> None:
        super().__init__(dialect=amqp, tls=tls)
        self.faults = Script(self, amqp)
        self.peers: list[Peer] = []
        self.log: list[Received] = []
        self._reactions: dict[tuple[str, int], Callable[[Any], object]] = {}
        self._waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    @property
    def url(self) -> str:
        return f"amqp://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Cut all connections, and listen no more."""
        for peer in self.peers:
            peer.abort()
        await super().stop()

    # -- what a test says

    def on(self, name: str, reaction: Callable[[Any], object], *, connection: int = 0) -> None:
        """React in another way than usual.

        Args:
            name: of a method, or `CONNECT` or `END`.
            reaction: called with `Received`; with the `Peer` for `CONNECT` and `END`.
            connection: its number, from 1; 0 for all others.
        """
        self._reactions[name, connection] = reaction

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until a condition holds of what has come; return what it returns."""
        if result := condition():
            return result
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((condition, future))
        return await future

    async def got(self, name: str, count: int = 1, *, connection: int = 0) -> list[Received]:
        """Wait until so many of a method have come; return them all."""

        def enough() -> list[Received]:
            came = self.received(name, connection=connection)
            return came if len(came) >= count else []

        found: list[Received] = await self.until(enough)
        return found

    async def connected(self, number: int) -> Peer:
        """Wait for a connection, by its number."""
        await self.until(lambda: len(self.peers) >= number)
        return self.peers[number - 1]

    def received(self, name: str, *, connection: int = 0) -> list[Received]:
        """Return what has come of a method: on one connection, by its number, or on all."""
        return [each for each in self.log if each.name == name and connection in (0, each.connection)]

    def bodies(self, *, connection: int = 0) -> list[bytes]:
        """Return the bodies published."""
        return [each.body for each in self.received("basic.publish", connection=connection)]

    # -- what connections bring

    def came(self, session: Session) -> None:
        super().came(session)
        session.stream._reader = Unjudged()
        self.peers.append(Peer(session))
        self.clock.call_soon(self._begun, self.peers[-1])

    def _begun(self, peer: Peer) -> None:
        self._reaction(CONNECT, peer.number, lambda peer: None)(peer)
        self._look()

    def ended(self, session: Session, error: Exception | None) -> None:
        super().ended(session, error)
        peer = self.peers[session.number - 1]
        peer.ended.set()
        self._reaction(END, peer.number, lambda peer: None)(peer)
        self._look()

    def react(self, session: Session, event: Any) -> bool:
        """Note a method, and do what is said of it; return False for what a connection itself needs."""
        received = Received(self.peers[session.number - 1], event)
        self.log.append(received)
        reaction = self._reaction(received.name, received.connection, Received.answer)
        is_the_connections = received.name.startswith("connection.") or received.name == "channel.open"
        is_dealt_with = reaction is not Received.answer or not is_the_connections
        if is_dealt_with:
            reaction(received)
        self._look()
        return is_dealt_with

    def _reaction(self, name: str, number: int, usual: Callable[[Any], object]) -> Callable[[Any], object]:
        return self._reactions.get((name, number)) or self._reactions.get((name, 0)) or usual

    def _look(self) -> None:
        """Tell those whose condition holds by now."""
        for condition, future in list(self._waiting):
            if future.done() or (result := condition()):
                self._waiting.remove((condition, future))
                if not future.done():
                    future.set_result(result)


# -- reactions


def hold(received: Any) -> None:
    """Answer nothing, for the time being."""


def close_channel(reply_code: int) -> Callable[[Received], None]:
    return lambda received: received.close_channel(reply_code)


def send_back(received: Received) -> None:
    """Return a message, and acknowledge it, as RabbitMQ does."""
    received.send_back()
    received.ack()


def deliver(*bodies: bytes) -> Callable[[Received], None]:
    """Begin a consumer, and deliver to it."""

    def begin(received: Received) -> None:
        received.answer()
        received.deliver(*bodies)

    return begin
