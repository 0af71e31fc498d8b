"""Connections in either build, and what drives two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from amqpcodec._backend import load
from amqpcodec.capture import CapturedFrame
from amqpcodec.connection import ClientLogin, ConnectionLimits, LocalProtocolError, ServerLogin, Violation

from .implementation import Implementation

ROLES = ("client", "server")
# What a connection sends of its own accord.
AUTOMATIC = ("connection.close-ok", "channel.close-ok", "channel.flow-ok")


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def make(
    impl: Implementation, role: str, dialect: str | ModuleType = "rabbitmq-0-9-1", **options: Any
) -> Any:
    """A connection of a build."""
    module = impl.dialect(dialect) if isinstance(dialect, str) else dialect
    return load("amqpcodec.connection.machine", impl.name).Connection(role, module, **options)


class Pair:
    """A client and a server, connected.

    Attributes:
        client, server: the connections.
        events: by role, the events that the logins have left over.
        reply: called with a role and an event of it; may send on that connection.
    """

    def __init__(
        self,
        impl: Implementation,
        dialect: str = "rabbitmq-0-9-1",
        *,
        reply: Callable[[Pair, str, Any], None] | None = None,
        cut: Callable[[bytes], Iterable[bytes]] = lambda octets: [octets],
        clock: Callable[[], float] | None = None,
        client: dict[str, Any] | None = None,
        server: dict[str, Any] | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.client = make(impl, "client", dialect, clock=self.clock, **client or {})
        self.server = make(impl, "server", dialect, clock=self.clock, **server or {})
        self.amqp = self.client.dialect
        self.logins: dict[str, Any] = {
            "client": ClientLogin("user", "secret"),
            "server": ServerLogin(lambda name, password: (name, password) == ("user", "secret")),
        }
        self.events: dict[str, list[Any]] = {"client": [], "server": []}
        self._reply = reply or self.open_channels
        self._cut = cut

    def open_channels(self, pair: Pair, role: str, event: Any) -> None:
        """The server opens every channel that it is asked for."""
        method = getattr(event, "method", None)
        if role == "server" and method is not None and method.spec.name == "channel.open":
            self.server.send(event.channel, self.amqp.Channel.OpenOk())

    def carry(self, role: str) -> bool:
        """Bring what one side has to send to the other; whether there was anything."""
        sender = self.client if role == "client" else self.server
        octets = sender.data_to_send()
        for chunk in self._cut(octets) if octets else ():
            self.deliver("server" if role == "client" else "client", chunk)
        return bool(octets)

    def deliver(self, role: str, chunk: bytes) -> None:
        """Give octets to one side, and have its events answered."""
        connection = self.client if role == "client" else self.server
        for event in connection.receive_data(chunk):
            if not self.logins[role].handle(connection, event):
                self.events[role].append(event)
                self._reply(self, role, event)

    def talk(self) -> None:
        """Until neither side has anything to send."""
        while self.carry("client") | self.carry("server"):
            pass

    def opened(self, channels: int = 1) -> Pair:
        """The pair after the handshake, with channels open and nothing reported."""
        self.talk()
        for _ in range(channels):
            self.client.open_channel()
        self.talk()
        for events in self.events.values():
            events.clear()
        return self

    def taken(self, role: str) -> list[Any]:
        """The events of a side since the last call."""
        events = self.events[role]
        self.events[role] = []
        return events


class Replay:
    """One side of a recorded connection: it receives what that side received, and sends what it sent.

    Attributes:
        connection: the connection.
        events: all of its events.
        refused: what it would not send, as the errors say.
    """

    def __init__(self, impl: Implementation, role: str, items: Iterable[CapturedFrame]) -> None:
        self.events: list[Any] = []
        self.refused: list[LocalProtocolError] = []
        self.connection: Any = None
        decoder: Any = None
        for item in items:
            if decoder is None:
                module = impl.dialect(item.dialect)
                limits = ConnectionLimits(handshake_frame_size=1 << 20)
                wishes = {"frame_max": 0, "channel_max": 0, "heartbeat": 0}
                self.connection = make(impl, role, module, connection_limits=limits, **wishes)
                decoder = module.MessageDecoder(frame_max=0)
            if item.direction != ROLES.index(role):
                self.events.extend(self.connection.receive_data(item.octets))
                continue
            for value in decoder.feed(item.octets):
                self._send(value)
            self.connection.data_to_send()

    def _send(self, value: Any) -> None:
        """Send what was sent, unless the connection has done so itself."""
        connection = self.connection
        try:
            if hasattr(value, "properties"):
                connection.send_message(value.channel, value.method, value.properties, value.body)
            elif hasattr(value.payload, "spec") and not self._sent(value.channel, value.payload.spec.name):
                connection.send(value.channel, value.payload)
        except LocalProtocolError as error:
            self.refused.append(error)

    def _sent(self, channel: int, name: str) -> bool:
        """Whether the connection sends it of its own accord."""
        closing = name == "channel.close" and self.connection.channel_state(channel) == "closing"
        return closing or name in AUTOMATIC


def violations(events: Iterable[Any]) -> list[Violation]:
    return [event for event in events if isinstance(event, Violation)]
