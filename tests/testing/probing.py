"""Does what a probe lists at a broker, and tells what has come back.

A probe is a list of steps. A method is sent on channel 1; its reply or a close is waited for, if it has one.
`On` is another channel, `Publish` a message, a number seconds to wait, `Reply` a step that needs an address
for replies. A function takes the connection and returns the step, or None for none.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import AmqpStream, Credentials, connect
from amqpcodec.connection import ChannelClosed, ConnectionClosed, MessageReceived, MethodReceived, Settled
from amqpcodec.errors import DecodeError, LocalProtocolError

VERSIONS = ("3.10", "4.0", "4.3")
FOLDER = Path(__file__).resolve().parents[1] / "data" / "broker"
# What probes use, and what is cleaned away after each.
QUEUES = ("q", "q1", "q2", "q3", "dead", "ab", "none")
EXCHANGES = ("e", "e1", "e2", "e3", "ae", "dlx")
Wait = Callable[[float], Awaitable[object]]
REPLY_SECONDS = 5.0
OPEN_CHANNELS = 3
QUIET_SECONDS = 0.1
LAST_CHANNEL = 9  # opened after octets, so that there is an answer to wait for
ANSWERS = {(LAST_CHANNEL, "channel.open-ok"), (0, "connection.close"), (0, "connection.close-ok")}
TO_ALL = ("connection.start", "connection.tune", "connection.open-ok", "channel.open-ok")
REPLY_ADDRESS = re.compile(r"(?<=amq\.rabbitmq\.reply-to\.)[^'\"]+")  # each is another one


@dataclass
class Publish:
    """A message to publish."""

    exchange: str
    routing_key: str
    body: bytes = b""
    mandatory: bool = False
    immediate: bool = False
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass
class On:
    """A step on another channel than 1."""

    channel: int
    step: Any


@dataclass
class Late:
    """Seconds that pass: of a node's own time, or of the clock of a broker for tests."""

    seconds: float


@dataclass
class Raw:
    """A method that the client's own side would refuse to send."""

    method: Any


@dataclass
class Reply:
    """A step about the address for replies that the message has which was fetched last."""

    make: Callable[[str], Any]


@dataclass
class As:
    """Who does the steps of a probe that follow."""

    name: str
    password: str


@dataclass
class Octets:
    """All that a probe sends, on a connection without a client.

    Attributes:
        octets: what.
        ends: whether the broker then ends the connection, which is waited for.
    """

    octets: bytes
    ends: bool = False


def publish(exchange: str, routing_key: str, body: bytes = b"", **properties: Any) -> Publish:
    """Return a message to publish; `mandatory` and `immediate` are not of its properties."""
    flags = {name: properties.pop(name, False) for name in ("mandatory", "immediate")}
    return Publish(exchange, routing_key, body, **flags, properties=properties)


class Probing:
    """One connection of a probe, and what came on it."""

    def __init__(self, stream: AmqpStream, wait: Wait = asyncio.sleep) -> None:
        self.stream = stream
        self.wait = wait
        self.answers: list[Any] = []
        self.deliveries: list[Any] = []
        self.last = 0
        self.came = asyncio.Event()
        self.over = False

    async def read(self) -> None:
        """Keep what comes."""
        async for event in self.stream:
            self.last += 1
            self._keep(event)
            self.came.set()
        self.over = True
        self.came.set()

    def _keep(self, event: Any) -> None:
        match event:
            case MessageReceived(number, method, properties, body):
                kept = (number, *shown(method), shown_properties(properties), body)
                is_delivery = isinstance(method, amqp.Basic.Deliver)
                (self.deliveries if is_delivery else self.answers).append(kept)
            case MethodReceived(number, method):
                self.answers.append((number, *shown(method)))
            case Settled(number, method, tags):
                self.answers += [(number, method.spec.name, tag) for tag in tags]  # cumulative or not
            case ChannelClosed(number, "peer", code, text, class_id, method_id):
                self.answers.append((number, "channel.close", code, text, class_id, method_id))
            case ConnectionClosed(by, code, text, class_id, method_id):
                if by == "peer":
                    self.answers.append((0, "connection.close", code, text, class_id, method_id))
                elif by != "local":
                    self.answers.append((0, by))

    async def do(self, channel: int, step: Any) -> None:
        """Do a step, and wait for its answer."""
        if isinstance(step, On):
            await self.do(step.channel, step.step)
        elif isinstance(step, Reply):
            fetched = [answer for answer in self.answers if answer[1] == "basic.get-ok"]
            await self.do(channel, step.make(fetched[-1][-2]["reply_to"]))
        elif isinstance(step, Raw):
            await self.stream.drain()
            self.stream._transport.write(amqp.encode_method(channel, step.method))
        elif isinstance(step, Late):
            await self.wait(step.seconds)
        elif isinstance(step, (int, float)):
            await asyncio.sleep(step)
        elif callable(step):
            if found := step(self.stream.connection):
                await self.do(channel, found)
        elif self.stream.connection.channel_state(channel) == "open" or (
            channel == 0 or isinstance(step, amqp.Channel.Open)
        ):
            before = len(self.answers)
            try:
                self._send(channel, step)
            except LocalProtocolError as error:
                self.answers.append((channel, f"the client refuses: {error}"))
            else:
                await self._answered(step, before)

    def _send(self, channel: int, step: Any) -> None:
        connection = self.stream.connection
        if connection.state != "open":
            return
        if isinstance(step, Publish):
            method = amqp.Basic.Publish(step.exchange, step.routing_key, step.mandatory, step.immediate)
            connection.send_message(channel, method, amqp.BasicProperties(**step.properties), step.body)
        else:
            connection.send(channel, step)

    async def _answered(self, step: Any, before: int) -> None:
        responses = () if isinstance(step, Publish) else step.spec.responses
        if not responses or getattr(step, "no_wait", False) or getattr(step, "nowait", False):
            await asyncio.sleep(0)
            return
        async with asyncio.timeout(REPLY_SECONDS):
            while not self._has_answer(step, before) and not self.over:
                self.came.clear()
                await self.came.wait()

    def _has_answer(self, step: Any, before: int) -> bool:
        prefix = step.spec.name.partition(".")[0]
        wanted = {f"{prefix}.{name}" for name in step.spec.responses} | {"channel.close", "connection.close"}
        if isinstance(step, amqp.Channel.Open):
            return bool(self.stream.connection.channel_state(1) == "open" or self.over)
        if isinstance(step, amqp.Channel.Close):
            return self.over or not any(
                self.stream.connection.channel_state(n) == "closing" for n in (1, 2, 3)
            )
        return any(answer[1] in wanted for answer in self.answers[before:])

    async def open_channels(self) -> None:
        """Open the channels that steps may use."""
        for channel in range(1, OPEN_CHANNELS + 1):
            self.stream.connection.send(channel, amqp.Channel.Open())
        while not self.over and self.stream.connection.channel_state(OPEN_CHANNELS) != "open":
            self.came.clear()
            await self.came.wait()

    async def quiet(self, seconds: float) -> None:
        """Wait until nothing has come for so long."""
        seen = -1
        while seen != self.last:
            seen = self.last
            await asyncio.sleep(seconds)


def shown(method: Any) -> tuple[Any, ...]:
    """Return a method's name and values."""
    return (method.spec.name, *(getattr(method, field.attribute) for field in method.spec.fields))


def shown_properties(properties: Any) -> dict[str, Any]:
    """Return the properties that are there; of deaths, the time is left out."""
    names = [field.attribute for field in properties.spec.fields]
    found = {name: getattr(properties, name) for name in names}
    found = {name: value for name, value in found.items() if value is not None}
    deaths = (found.get("headers") or {}).get("x-death")
    for death in deaths if isinstance(deaths, list) else ():
        if isinstance(death, dict):
            death.pop("time", None)
    return found


async def probe(url: str, steps: list[Any], quiet: float, wait: Wait = asyncio.sleep) -> list[str]:
    """Do the steps on a connection of their own; return what has come, a line each, of each channel in order.

    Deliveries stand last: they come from queues, and answers to requests may pass them.

    Args:
        url: of the broker.
        steps: of the probe.
        quiet: seconds in which nothing comes at the end.
        wait: lets time pass for `Late`.
    """
    if isinstance(steps[0], Octets):
        return in_order(await said(url, steps[0], quiet))
    login = None
    if isinstance(steps[0], As):
        login, steps = Credentials(steps[0].password, steps[0].name), steps[1:]
    async with await connect(url, login=login) as stream:
        probing = Probing(stream, wait)
        reader = asyncio.create_task(probing.read())
        await probing.open_channels()
        for step in steps:
            await probing.do(1, step)
        await probing.quiet(quiet)
        await stream.close()
        await reader
    return [f"{line}" for came in (probing.answers, probing.deliveries) for line in in_order(came)]


async def said(url: str, sent: Octets, quiet: float) -> list[Any]:
    """Send octets; return the methods that come, but those that come to all, and whether it ends."""
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    came = bytearray()

    async def read() -> None:
        with suppress(ConnectionError):
            while octets := await reader.read(65536):
                came.extend(octets)

    reading = asyncio.create_task(read())
    writer.write(sent.octets + (b"" if sent.ends else amqp.encode_method(LAST_CHANNEL, amqp.Channel.Open())))
    async with asyncio.timeout(REPLY_SECONDS):
        while not reading.done() and (
            sent.ends or not ANSWERS.intersection(each[:2] for each in methods_in(came))
        ):
            await asyncio.sleep(0.01)
    await asyncio.sleep(0 if sent.ends else quiet)  # channels answer each on its own
    ended = [(0, "ended")] if sent.ends else []
    reading.cancel()
    writer.close()
    return [each for each in methods_in(came) if each[1] not in TO_ALL] + ended


def methods_in(octets: bytes | bytearray) -> list[Any]:
    """Return the methods in octets, those that the dialect does not have as they are."""
    found: list[Any] = []
    at = len(amqp.protocol_header()) if octets.startswith(b"AMQP") else 0
    while len(octets) - at >= 8:
        end = at + 8 + int.from_bytes(octets[at + 3 : at + 7], "big")
        frame = bytes(octets[at:end])
        try:
            found += [
                (each.channel, *shown(each.payload))
                for each in amqp.FrameDecoder().feed(frame)
                if each.type == 1
            ]
        except DecodeError:
            found.append((frame[2], "octets", frame[7:-1]))
        at = end
    return found


def in_order(came: list[Any]) -> list[str]:
    """Return lines, by channels; what dicts have in them is sorted."""
    lines = [repr(plain(each)) for each in sorted(came, key=lambda each: each[0])]
    return [REPLY_ADDRESS.sub("...", line) for line in lines]


def plain(value: Any) -> Any:
    """Return a value with its dicts sorted."""
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    return type(value)(map(plain, value)) if isinstance(value, (list, tuple)) else value


async def clean(url: str) -> None:
    """Delete all that probes declare."""
    async with await connect(url) as stream:
        stream.connection.send(1, amqp.Channel.Open())
        for name in QUEUES:
            stream.connection.send(1, amqp.Queue.Delete(queue=name))
        for name in EXCHANGES:
            stream.connection.send(1, amqp.Exchange.Delete(exchange=name))
        deleted = 0
        async for event in stream:
            deleted += isinstance(event, MethodReceived)
            if deleted == len(QUEUES) + len(EXCHANGES):
                break


def stored(like: str, kind: str = "rabbitmq") -> dict[str, list[str]]:
    """Return the lines of each probe that a version has answered, in files of `record_answers.py` of a kind.

    Each file has the probes to which a version answers in another way than the one before it.
    """
    found: dict[str, list[str]] = {}
    for version in VERSIONS[: VERSIONS.index(like) + 1]:
        for line in (FOLDER / f"{kind}-{version}.txt").read_text(encoding="utf-8").splitlines():
            if line.startswith("== "):
                lines = found[line[3:]] = []
            elif not line.startswith("#"):
                lines.append(line)
    return found
