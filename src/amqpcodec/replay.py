"""Publishes again what the clients of a capture have published.

    replayer = Replayer("amqp://localhost")
    await replayer.run(read_publishes("trace.pcap"))
    print(replayer.report)

Properties and bodies are the octets that they were. Messages of a channel keep their order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Unpack

from . import RawProperties
from . import rabbitmq as amqp
from ._kernel.wire import BODY, ENVELOPE_SIZE, HEADER, METHOD
from ._options import takes
from .aio import Backoff, Client, NackedError, ReturnedError, UncertainReturnError
from .capture import CLIENT_TO_SERVER, CapturedFrame, Endpoint, Fault, read_frames
from .connection import Address
from .errors import AmqpError
from .options import FrameOptions

if TYPE_CHECKING:
    from .aio import Channel
    from .capture.source import Source

_PREFIX = 12  # octets of a content header before the property flags: class, weight, body size
_CHANNELS = 100  # opened at most; further ones of a capture share them
_OPEN_OCTETS = 1 << 30  # of bodies that are not complete: of more, the oldest are given up
_WINDOW = 500  # messages of a channel that may wait for their confirms
_BASIC = amqp.BasicProperties.spec.class_id

# The two ends of a connection, and a channel. Numbers of connections begin again with each recording.
Place = tuple[Endpoint | None, Endpoint | None, int]


@dataclass(frozen=True, slots=True)
class CapturedPublish:
    """One message that a client of a capture has published.

    Attributes:
        number: which one of all that are read, from 1.
        place: the client, the server and the channel.
        time_ns: when the client had sent all of it; nanoseconds since 1970, None where that is not known.
        exchange, routing_key, mandatory: as in basic.publish.
        properties: as octets.
        body: the body.
    """

    number: int
    place: Place
    time_ns: int | None
    exchange: str
    routing_key: str
    mandatory: bool
    properties: Any
    body: bytes


class _Open:
    """A message that is not complete."""

    def __init__(self, method: Any) -> None:
        self.method = method
        self.properties: Any = None
        self.pieces: list[bytes] = []
        self.octets = 0  # in the pieces
        self.left = -1  # octets of the body to come; before the header, none is known


class PublishReader:
    """Puts together what clients publish, in one recording or several.

    Attributes:
        incomplete: messages so far of which the capture has not all frames.
    """

    def __init__(self) -> None:
        self.incomplete = 0
        self._open: dict[tuple[int, int], _Open] = {}
        self._octets = 0  # of bodies that are not complete
        self._count = 0

    def feed(self, item: CapturedFrame | Fault) -> CapturedPublish | None:
        """Take a frame or fault of a capture; return the message that it completes."""
        if isinstance(item, Fault):
            self._miss(item)
            return None
        place = item.connection.number, item.frame.channel
        if item.direction != CLIENT_TO_SERVER:
            return None
        if item.frame.type == METHOD:
            self._drop(place)
            if item.frame.payload.spec.name == "basic.publish":
                self._open[place] = _Open(item.frame.payload)
            return None
        found = self._open.get(place)
        if found is None or item.frame.type not in (HEADER, BODY):
            return None
        before = found.octets
        fits = _adds(found, item)
        self._octets += found.octets - before
        if not fits:
            self._drop(place)
        elif found.left == 0:
            del self._open[place]
            self._octets -= found.octets
            return self._complete(found, item)
        while self._octets > _OPEN_OCTETS:
            self._drop(next(iter(self._open)))
        return None

    def finish(self) -> None:
        """Take the end of a recording; another one may follow."""
        for place in list(self._open):
            self._drop(place)

    def _complete(self, found: _Open, last: CapturedFrame) -> CapturedPublish:
        self._count += 1
        method, body = found.method, b"".join(found.pieces)
        place = last.connection.client, last.connection.server, last.frame.channel
        return CapturedPublish(
            self._count, place, last.time_ns, method.exchange, method.routing_key, bool(method.mandatory),
            found.properties, body,
        )  # fmt: skip

    def _miss(self, fault: Fault) -> None:
        """Drop what is open where octets are missing: what comes next may belong to another message."""
        if fault.connection is None or fault.direction not in (CLIENT_TO_SERVER, None):
            return
        number, bad = fault.connection.number, fault.octets  # of a frame in error, the channel is known
        channel = int.from_bytes(bad[1:3], "big") if bad else None
        for place in [each for each in self._open if each[0] == number and channel in (None, each[1])]:
            self._drop(place)

    def _drop(self, place: tuple[int, int]) -> None:
        found = self._open.pop(place, None)
        if found is not None:
            self._octets -= found.octets
            self.incomplete += 1


def _adds(found: _Open, item: CapturedFrame) -> bool:
    """Add a content header or body frame to a message; return False where it is none of it."""
    payload = item.octets[ENVELOPE_SIZE:-1]
    if item.frame.type == HEADER:
        if found.left >= 0 or int.from_bytes(payload[:2], "big") != _BASIC:
            return False
        found.left = int.from_bytes(payload[4:_PREFIX], "big")
        found.properties = RawProperties(payload[_PREFIX:], _BASIC, amqp.DIALECT)
        return True
    found.left -= len(payload)
    found.octets += len(payload)
    found.pieces.append(payload)
    return found.left >= 0 and found.properties is not None


@takes(FrameOptions)
def read_publishes(
    files: Source | Iterable[Source], **options: Unpack[FrameOptions]
) -> Iterator[CapturedPublish]:
    """Return what the clients of a recording have published, in the order in which it was complete.

    Messages of which frames are missing are left out; `PublishReader` counts them.

    Args:
        files: as for `capture.read_frames`.
        options: those of `FrameOptions`.

    Raises:
        CaptureError, OSError: as `capture.read_frames`.
    """
    reader = PublishReader()
    for item in read_frames(files, **options):
        publish = reader.feed(item)
        if publish is not None:
            yield publish


@dataclass
class ReplayReport:
    """Counts of a replay, and the numbers of messages that were not simply taken.

    Attributes:
        confirmed: messages that the broker has.
        octets: of their bodies.
        returned: numbers of those that no queue took.
        refused: numbers of those that the broker has not taken.
        unknown: numbers of those sent and not confirmed, or perhaps returned: the broker may have them.
        last: the number of the last message that was sent; 0 for none.
        error: why the replay has ended early.
    """

    confirmed: int = 0
    octets: int = 0
    returned: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    last: int = 0
    error: AmqpError | OSError | None = None


class Replayer:
    """Publishes messages of captures, with confirms. A message is sent once, whatever happens.

    The first error of a channel or of the connection ends the replay, since order would be lost.

    Args:
        url: the broker, as `Address` describes it.
        speed: how fast, in times of the capture's own pace; None for as fast as the broker confirms.
        drop_user_id: whether the property `user_id` is left out where it is not the user of `url`, which
            RabbitMQ refuses.
        options: as for `aio.Client`.

    Attributes:
        report: what was done so far.

    Raises:
        ValueError: a URL that cannot be read, or a speed that is none.
    """

    def __init__(
        self, url: str, *, speed: float | None = None, drop_user_id: bool = False, **options: Any
    ) -> None:
        if speed is not None and not speed > 0:
            raise ValueError(f"speed must be positive, not {speed!r}")
        self._user = Address.parse(url).username if drop_user_id else None
        self._client = Client(url, backoff=Backoff(attempts=1), **options)
        self._speed = speed
        self.report = ReplayReport()
        self._channels: list[Channel] = []
        self._places: dict[Place, int] = {}
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._begun: tuple[int, float] | None = None

    async def run(self, publishes: Iterable[CapturedPublish]) -> None:
        """Publish messages, and wait until the broker has confirmed them. For none, nothing is connected.

        What goes wrong is in `report`. A task that is cancelled leaves there what is known by then.

        Raises:
            OSError, AmqpError: there is no connection at the start.
        """
        messages = iter(publishes)
        try:
            first = next(messages, None)  # a capture that cannot be read needs no connection
        except (AmqpError, OSError) as error:
            self.report.error = error
            return
        if first is None:
            return
        async with self._client:
            try:
                for publish in chain((first,), messages):
                    await self._until_due(publish.time_ns)
                    await self._publish(publish)
                    if self.report.error is not None:
                        break
                if self._waiting:
                    await asyncio.wait(list(self._waiting.values()))
            except (AmqpError, OSError) as error:
                self.report.error = self.report.error or error
            finally:
                await asyncio.sleep(0)  # what is confirmed by now is taken note of
                self.report.unknown = sorted({*self.report.unknown, *self._waiting})
                self._waiting.clear()

    async def _until_due(self, time_ns: int | None) -> None:
        """Wait until a message is due."""
        if self._speed is None or time_ns is None:
            return
        first, began = self._begun = self._begun or (time_ns, time.monotonic())
        seconds = (time_ns - first) / 1e9 / self._speed - (time.monotonic() - began)
        if seconds > 0:
            await asyncio.sleep(seconds)

    async def _publish(self, publish: CapturedPublish) -> None:
        channel = await self._channel(publish.place)
        confirmed = await channel.publish_soon(
            publish.body,
            exchange=publish.exchange,
            routing_key=publish.routing_key,
            properties=self._properties(publish.properties),
            mandatory=publish.mandatory,
        )
        self.report.last = publish.number
        self._waiting[publish.number] = confirmed
        confirmed.add_done_callback(partial(self._settled, publish.number, len(publish.body)))

    async def _channel(self, place: Place) -> Channel:
        """Return the channel for messages of a channel of the capture: always the same."""
        at = self._places.setdefault(place, len(self._places) % _CHANNELS)
        if at == len(self._channels):
            self._channels.append(await self._client.channel(window=_WINDOW, republish=False))
        return self._channels[at]

    def _properties(self, properties: Any) -> Any:
        """Return the properties of a message, without the name of another user."""
        if self._user is None or properties.user_id in (None, self._user):
            return properties
        octets = amqp.encode_message(1, amqp.Basic.Publish(), properties, b"")
        message: Any
        [message] = amqp.MessageDecoder(properties="raw", tables="raw", frame_max=0).feed(octets)
        ours = message.properties.decoded()  # headers stay the octets that they are
        ours.user_id = None
        return ours

    def _settled(self, number: int, octets: int, confirmed: asyncio.Future[None]) -> None:
        """Take note of what has become of a message."""
        if self._waiting.pop(number, None) is None:
            return
        error = None if confirmed.cancelled() else confirmed.exception()
        if confirmed.cancelled() or isinstance(error, UncertainReturnError):
            self.report.unknown.append(number)
        elif error is None:
            self.report.confirmed += 1
            self.report.octets += octets
        elif isinstance(error, ReturnedError):
            self.report.returned.append(number)
        elif isinstance(error, NackedError):
            self.report.refused.append(number)
        else:
            self.report.unknown.append(number)
            if isinstance(error, (AmqpError, OSError)):
                self.report.error = self.report.error or error


__all__ = ["CapturedPublish", "PublishReader", "ReplayReport", "Replayer", "read_publishes"]
