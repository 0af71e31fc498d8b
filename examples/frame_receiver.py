"""How a client library uses amqpcodec where it is installed, and the codec that it has always had otherwise.

The library asks one function, `receiver()`, and is given an object with `feed`: octets in as they come from
the socket, events out. Both receivers make the same events, so nothing else in the library knows which one it
has.

    python examples/frame_receiver.py     # feeds both the same octets, and prints the time of each
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from struct import Struct
from time import process_time
from typing import Any, NamedTuple, Protocol

import pamqp.body
import pamqp.commands
import pamqp.exceptions
import pamqp.frame
import pamqp.header

try:
    from amqpcodec import AmqpError, Message, rabbitmq
except ImportError:  # it is an extra of this library: pip install 'our-client[fast]'
    rabbitmq = None  # type: ignore[assignment]


class Delivery(NamedTuple):
    """A message for a consumer."""

    channel: int
    consumer_tag: str
    delivery_tag: int
    redelivered: bool
    exchange: str
    routing_key: str
    headers: dict[str, Any] | None
    message_id: str | None
    body: bytes


class Reply(NamedTuple):
    """Any other method, by its name in the specification, such as ``basic.qos-ok``."""

    channel: int
    name: str


Event = Delivery | Reply


class ProtocolError(Exception):
    """The peer sent what is not AMQP."""


class Receiver(Protocol):
    """What the library reads from its socket by."""

    def feed(self, data: bytes) -> Iterable[Event]:
        """Take octets, cut anywhere, and give what is complete.

        Raises:
            ProtocolError: the connection cannot go on.
        """


def receiver(own: bool = bool(os.environ.get("OUR_CLIENT_OWN_CODEC"))) -> Receiver:
    """The fastest receiver there is.

    Args:
        own: do without amqpcodec; the environment variable is for those who look for a fault.
    """
    return OwnReceiver() if own or rabbitmq is None else NativeReceiver()


class NativeReceiver:
    """The codec finds the frames, and puts method, header and bodies together."""

    def __init__(self) -> None:
        self._decoder = rabbitmq.MessageDecoder()

    def feed(self, data: bytes) -> Iterator[Event]:
        """As `Receiver.feed`."""
        deliver = rabbitmq.Basic.Deliver
        try:
            for item in self._decoder.feed(data):
                if type(item) is Message and type(method := item.method) is deliver:
                    properties = item.properties
                    yield Delivery(
                        item.channel,
                        method.consumer_tag,
                        method.delivery_tag,
                        method.redelivered,
                        method.exchange,
                        method.routing_key,
                        properties.headers,
                        properties.message_id,
                        item.body,
                    )
                elif type(item) is not Message and item.type == 1:
                    yield Reply(item.channel, item.payload.spec.name)
        except AmqpError as error:
            raise ProtocolError(str(error)) from error


class OwnReceiver:
    """The same by pamqp, frame after frame."""

    _size = Struct(">I").unpack_from

    def __init__(self) -> None:
        self._buffer = b""
        self._open: dict[int, list[Any]] = {}  # by channel: method, header, bodies

    def feed(self, data: bytes) -> Iterator[Event]:
        """As `Receiver.feed`."""
        self._buffer += data
        begin = 0
        try:
            while len(self._buffer) - begin >= 8:
                end = begin + 8 + self._size(self._buffer, begin + 3)[0]
                if end > len(self._buffer):
                    break
                _, channel, frame = pamqp.frame.unmarshal(self._buffer[begin:end])
                begin = end
                event = self._event(channel, frame)
                if event is not None:
                    yield event
        except (pamqp.exceptions.UnmarshalingException, ValueError) as error:
            raise ProtocolError(str(error)) from error
        finally:
            self._buffer = self._buffer[begin:]

    def _event(self, channel: int, frame: Any) -> Event | None:
        if isinstance(frame, pamqp.commands.Basic.Deliver):
            self._open[channel] = [frame, None, []]
            return None
        if isinstance(frame, pamqp.header.ContentHeader):
            self._open[channel][1] = frame
            return self._delivery(channel)
        if isinstance(frame, pamqp.body.ContentBody):
            self._open[channel][2].append(frame.value)
            return self._delivery(channel)
        if isinstance(frame, pamqp.commands.base.Frame):
            return Reply(channel, _specified(frame.name))
        return None

    def _delivery(self, channel: int) -> Delivery | None:
        method, header, bodies = self._open[channel]
        body = b"".join(bodies)
        if len(body) < header.body_size:
            return None
        del self._open[channel]
        return Delivery(
            channel,
            method.consumer_tag,
            method.delivery_tag,
            method.redelivered,
            method.exchange,
            method.routing_key,
            header.properties.headers,
            header.properties.message_id,
            body,
        )


def _specified(name: str) -> str:
    """``Basic.QosOk`` as the specification has it: ``basic.qos-ok``."""
    first, second = name.split(".")
    return first.lower() + "." + "".join(f"-{c.lower()}" if c.isupper() else c for c in second).lstrip("-")


def session(count: int) -> bytes:
    """What a broker sends to a consumer: replies, and so many messages."""
    commands, marshal = pamqp.commands, pamqp.frame.marshal
    octets = [marshal(commands.Basic.QosOk(), 1), marshal(commands.Basic.ConsumeOk("c1"), 1)]
    for number in range(count):
        properties = commands.Basic.Properties(
            content_type="application/json", headers={"attempt": 1, "customer": f"c-{number % 97}"},
            message_id=f"m-{number}",
        )  # fmt: skip
        body = b"%08d" % number * 32
        octets += [
            marshal(commands.Basic.Deliver("c1", number + 1, False, "orders", "eu.created"), 1),
            marshal(pamqp.header.ContentHeader(0, len(body), properties), 1),
            marshal(pamqp.body.ContentBody(body), 1),
        ]
    return b"".join(octets)


def events(source: Receiver, octets: bytes, size: int) -> list[Event]:
    """All events of octets that come in chunks of one size."""
    found: list[Event] = []
    for begin in range(0, len(octets), size):
        found.extend(source.feed(octets[begin : begin + size]))
    return found


def main(count: int = 5000) -> None:
    """Compare, measure by turns, print."""
    octets = session(count)
    assert events(receiver(), octets, 65536) == events(receiver(own=True), octets, 65536)
    times: dict[bool, list[float]] = {False: [], True: []}
    for own in (False, True) * 5:
        begin = process_time()
        events(receiver(own=own), octets, 65536)
        times[own].append((process_time() - begin) * 1e6 / count)
    native, ours = min(times[False]), min(times[True])
    print(f"amqpcodec {native:.2f} us a message, pamqp {ours:.2f} us: {ours / native:.1f} times as fast")


if __name__ == "__main__":
    main()
