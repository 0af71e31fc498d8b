"""How a client library uses amqpcodec where it is installed, and the codec that it has always had otherwise.

It asks `receiver()` for an object with `feed`: octets in, cut anywhere, events out. Both receivers make the
same events, so nothing else in the library knows which one it has.

Change first: `OwnReceiver`, which is your codec as it is, here pamqp; then what your events are.
"""

import os
from collections import namedtuple
from collections.abc import Iterator

from pamqp import body, commands, exceptions, frame, header

try:
    from amqpcodec import AmqpError, Message, rabbitmq
except ImportError:  # it is an extra of this library: pip install 'our-client[fast]'
    rabbitmq = None

# A message; one that was returned has no tag. Of other methods, the event is the name, such as "BasicQosOk".
Delivery = namedtuple("Delivery", "channel delivery_tag headers body")


class ProtocolError(Exception):
    """The peer sent what is not AMQP."""


class NativeReceiver:
    """Uses the codec, which finds the frames, and puts method, header and bodies together."""

    def __init__(self) -> None:
        self._decoder = rabbitmq.MessageDecoder()

    def feed(self, data: bytes) -> Iterator[Delivery | str]:
        """Take octets, and yield the events that are complete."""
        try:
            for item in self._decoder.feed(data):
                if type(item) is Message:
                    tag = getattr(item.method, "delivery_tag", None)
                    yield Delivery(item.channel, tag, item.properties.headers, item.body)
                elif item.type == 1:  # a method; not a heartbeat
                    yield type(item.payload).__name__
        except AmqpError as error:
            raise ProtocolError(str(error)) from error


class OwnReceiver:
    """Takes frame after frame, and puts messages together by channel."""

    def __init__(self) -> None:
        self._octets, self._open = b"", dict[int, list]()  # of a message: tag, size, headers, body

    def feed(self, data: bytes) -> Iterator[Delivery | str]:
        """Take octets, and yield the events that are complete."""
        self._octets += data
        while (end := 8 + int.from_bytes(self._octets[3:7])) <= len(self._octets):
            try:
                _, channel, item = frame.unmarshal(self._octets[:end])
            except (exceptions.UnmarshalingException, ValueError) as error:
                raise ProtocolError(str(error)) from error
            self._octets = self._octets[end:]
            match item:
                case commands.Basic.Deliver() | commands.Basic.GetOk() | commands.Basic.Return():
                    self._open[channel] = [getattr(item, "delivery_tag", None), None, None, b""]
                case header.ContentHeader():
                    self._open[channel][1:3] = item.body_size, item.properties.headers
                case body.ContentBody():
                    self._open[channel][3] += item.value
                case commands.base.Frame():
                    yield item.name.replace(".", "")
            tag, size, headers, octets = self._open.get(channel, (0, None, None, b""))
            if len(octets) == size:
                del self._open[channel]
                yield Delivery(channel, tag, headers, octets)


def receiver(own: bool = "OUR_CLIENT_OWN_CODEC" in os.environ) -> NativeReceiver | OwnReceiver:
    """Return the fastest receiver there is, or the library's own, for those who look for a fault."""
    return OwnReceiver() if own or rabbitmq is None else NativeReceiver()
