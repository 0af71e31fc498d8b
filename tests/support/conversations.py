"""Conversations of a client and a server, chosen by octets: for generated tests and for fuzzing.

Whatever `send` does not refuse is legal, so that random calls of it make random legal conversations. Octets
travel in chunks, in both directions at the same time.
"""

from __future__ import annotations

from typing import Any

from amqpcodec import EncodeError, LocalProtocolError
from amqpcodec.connection import ConnectionClosed, Violation

from .connections import Clock, Pair
from .implementation import Implementation

TEXTS = ("", "a", "ct", "PLAIN", "q\u00e4", "x" * 200, "b", "c")
SIDES = ("client", "server")
CHANNELS = 4
STEP = 4  # octets of the program that one step takes
HEARTBEATS = (60, 1, 2, 3, 5, 7, 65535, 0)  # seconds
# Sent at the end, or not by hand.
_LEFT_OUT = ("connection.close",)
# Without a reply, the sides cannot know which deliveries it has crossed. The same is true of a server that
# cancels a consumer.
_AMBIGUOUS = ("basic.recover", "basic.recover-async")


class BrokenPromiseError(AssertionError):
    """The two sides do not keep what they promise."""


def demand(holds: bool, promise: str, *facts: Any) -> None:
    if not holds:
        raise BrokenPromiseError(promise, *facts)


class Conversation:
    """A client and a server of a build, after their handshake.

    Args:
        impl: the build.
        dialect: name of the dialect.
        at_once: bring all octets over after each step, so that nothing crosses on the way.
        legal: leave out the steps that put octets on the way which nobody has sent.
        heartbeat: seconds between heartbeats.

    Attributes:
        events: every event, as text, in order, and every deadline.
        violations: those of them that are violations, by side.
    """

    def __init__(
        self, impl: Implementation, dialect: str, *, at_once: bool, legal: bool, heartbeat: int = 60
    ) -> None:
        self.clock = Clock()
        server = {"channel_max": CHANNELS, "heartbeat": heartbeat}
        client = {"heartbeat": heartbeat}
        self.pair = Pair(impl, dialect, clock=self.clock, client=client, server=server).opened()
        self.heartbeat = heartbeat
        self.at_once = at_once
        self.legal = legal
        self.sides = {"client": self.pair.client, "server": self.pair.server}
        self.way: dict[str, bytearray] = {"client": bytearray(), "server": bytearray()}  # by who sent it
        self.made_tags = 0
        self.events: list[str] = []
        self.violations: list[tuple[str, Violation]] = []
        self.classes = list(self.pair.amqp.METHODS.values())
        self.names = {cls.spec.name: cls for cls in self.classes}

    def run(self, program: bytes) -> None:
        """Make the steps of a program, then let everything arrive."""
        for at in range(0, len(program) - STEP + 1, STEP):
            self.step(*program[at : at + STEP])
            if self.at_once:
                self.settle()
        self.settle()

    def step(self, op: int, number: int, place: int, seed: int) -> None:
        side = SIDES[op >> 4 & 1]
        channel = place % (CHANNELS + 1)
        match op % 16:
            case 0 | 1 | 2:
                self.send(
                    side, channel, self.made(self.classes[number % len(self.classes)], side, channel, seed)
                )
            case 3 | 4:
                self.open(channel)
            case 5 | 6 | 7:
                self.reply(side, channel, seed)
            case 8 | 9:
                name = "basic.publish" if side == "client" else "basic.deliver"
                self.send(side, channel, self.made(self.names[name], side, channel, seed), b"x" * number)
            case 10:
                self.send(side, channel, self.made(self.names["basic.ack"], side, channel, seed))
            case 11:
                name = ("basic.consume", "confirm.select", "tx.select", "basic.get")[number % 4]
                if name in self.names:
                    self.send("client", channel, self.made(self.names[name], "client", channel, seed))
            case 12:
                self.settle()
            case 13 if not self.legal:
                self.inject(side, op, number, place, seed)
            case 14:
                self.clock.now += number / 253 * (self.heartbeat or 60)  # no round numbers
                for role, connection in self.sides.items():
                    self.keep_time(role, connection)
            case _:
                self.carry(side, seed + 1)

    # -- what the sides do

    def send(self, side: str, channel: int, method: Any, body: bytes = b"") -> None:
        """Send a method, or find that nothing has changed."""
        connection = self.sides[side]
        spec = method.spec
        if spec.name in _LEFT_OUT or (not self.at_once and spec.name in _AMBIGUOUS and not spec.responses):
            return
        if side == "server" and spec.name in ("basic.cancel", "file.cancel") and not self.at_once:
            return
        before = snapshot(connection)
        try:
            if method.spec.content:
                connection.send_message(channel, method, None, body)
            else:
                connection.send(channel, method)
        except (LocalProtocolError, EncodeError) as error:
            demand(snapshot(connection) == before, "what is refused changes nothing", error)
            self.events.append(f"{side} refused {type(error).__name__} {error}")

    def open(self, channel: int) -> None:
        if channel:
            self.send("client", channel, self.pair.amqp.Channel.Open())

    def reply(self, side: str, channel: int, seed: int) -> None:
        """Answer the oldest request of the peer on a channel."""
        waiting = self.sides[side].unanswered(channel)
        if waiting:
            spec = waiting[0].spec
            names = spec.responses
            name = f"{spec.name.partition('.')[0]}.{names[seed % len(names)]}"
            self.send(side, channel, self.made(self.names[name], side, channel, seed), b"content")

    def made(self, cls: Any, side: str, channel: int, seed: int) -> Any:
        """A method with arguments that fit their fields."""
        values = {}
        connection = self.sides[side]
        for place, field in enumerate(cls.spec.fields):
            value: Any = (seed >> place % 5) % 8
            match field.type:
                case "bit":
                    value = bool(value & 1)
                case "shortstr":
                    value = TEXTS[value]
                case "longstr":
                    value = TEXTS[value].encode()
                case "table":
                    value = {"k": value} if value else {}
                case "timestamp":
                    value = 1000 + value
                case "content":
                    continue
            if field.attribute == "delivery_tag":
                value = self.tag(connection, cls.spec, channel, seed)
            if field.attribute == "consumer_tag" and side == "server":
                value = self.consumer(connection, cls.spec, channel, seed)
            values[field.attribute] = value
        return cls(**values)

    def consumer(self, connection: Any, spec: Any, channel: int, seed: int) -> str:
        """The consumer tag that a server sends: the one that it was asked for, or one that it makes."""
        if spec.name.endswith("-ok"):
            asked = [each for each in connection.unanswered(channel) if f"{each.spec.name}-ok" == spec.name]
            self.made_tags += 1
            return asked[0].consumer_tag or f"made-{self.made_tags}" if asked else "none"
        tags = connection.consumers(channel)
        return str(tags[seed % len(tags)]) if tags else "none"

    def tag(self, connection: Any, spec: Any, channel: int, seed: int) -> int:
        if spec.name.endswith((".deliver", ".get-ok")):
            try:
                return int(connection.next_delivery_tag(channel)) + (seed == 7)
            except LocalProtocolError:
                return 1
        known = connection.unacknowledged(channel)
        if connection.role == "server":
            known = connection.unconfirmed(channel)
        # 0 for all is ambiguous as well where deliveries are on the way.
        return int(known[seed % len(known)]) if known else max(seed % 3, int(not self.at_once))

    def keep_time(self, role: str, connection: Any) -> None:
        """Have a side do what is due."""
        self.note(role, connection.on_time())
        deadline = connection.next_deadline()
        self.events.append(f"{role} has a deadline at {deadline}")
        demand(deadline is None or deadline > self.clock.now, "what is due is done", deadline)

    # -- what is on the way

    def carry(self, side: str, size: int) -> None:
        """Bring some octets of a side to the other."""
        way = self.way[side]
        way += self.sides[side].data_to_send()
        chunk, other = bytes(way[:size]), SIDES[side == "client"]
        del way[:size]
        if chunk:
            self.note(other, self.sides[other].receive_data(chunk))

    def settle(self) -> None:
        """Bring over everything that is on the way."""
        while any(self.way[side] or self.sides[side].bytes_to_send for side in SIDES):
            for side in SIDES:
                self.carry(side, 1 << 20)

    def inject(self, side: str, op: int, number: int, place: int, seed: int) -> None:
        """Put on the way what the side did not send."""
        way = self.way[side]
        way += self.sides[side].data_to_send()
        channel = place % (CHANNELS + 2)
        amqp = self.pair.amqp
        match place >> 5:
            case 0:
                way += bytes([op, number, place, seed]) * 3
            case 1:
                way += frame(2, channel, amqp.encode_header(1, self.properties(number), seed % 4)[7:-1])
            case 2:
                way += frame(3, channel, b"x" * (seed % 5))
            case 3:
                way += frame(1, channel, bytes([0, number % 100, 0, seed]) + bytes(place % 9))
            case _:
                cls = self.classes[number % len(self.classes)]
                way += amqp.encode_method(channel, self.made(cls, side, channel, seed))

    def properties(self, number: int) -> Any:
        classes = list(self.pair.amqp.PROPERTIES.values())
        return classes[number % len(classes)]()

    def note(self, role: str, events: Any) -> None:
        for event in events:
            self.events.append(f"{role} {event!r}")
            if isinstance(event, Violation):
                self.violations.append((role, event))
            if isinstance(event, ConnectionClosed):
                demand(self.sides[role].state == "closed", "the last event is the last")


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return bytes([kind]) + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + b"\xce"


def snapshot(connection: Any) -> Any:
    """All that a program can ask a connection."""
    channels = {
        number: (
            connection.channel_state(number), connection.unacknowledged(number),
            connection.unconfirmed(number), connection.awaited(number), connection.unanswered(number),
            connection.consumers(number),
        )
        for number in (0, *connection.channels)
    }  # fmt: skip
    return connection.state, connection.bytes_to_send, connection.blocked, channels


def agreed(client: Any, server: Any) -> bool:
    """Whether the two sides know the same, once nothing is on the way."""
    if client.channels != server.channels and set(client.channels) != set(server.channels):
        return False
    return all(
        client.channel_state(number) == server.channel_state(number)
        and client.unacknowledged(number) == server.unacknowledged(number)
        and client.unconfirmed(number) == server.unconfirmed(number)
        and set(client.consumers(number)) == set(server.consumers(number))
        and strict(client.awaited(number)) == strict(server.unanswered(number))
        and strict(server.awaited(number)) == strict(client.unanswered(number))
        for number in (0, *client.channels)
    )


def strict(requests: Any) -> list[Any]:
    """The requests whose replies are in order: of the others, a reply may cross the request."""
    return [request for request in requests if request.spec.synchronous]
