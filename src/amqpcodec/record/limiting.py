"""Limits of a proxy: how large a message may be, and how fast a client may send."""

from __future__ import annotations

from typing import Any

from .. import Frame, Limits
from .. import rabbitmq as amqp
from .._kernel.wire import HEADER, METHOD
from .._protocol.codes import CONTENT_TOO_LARGE


def _ids(*methods: Any) -> frozenset[bytes]:
    """Return how the payloads of methods begin: with their numbers."""
    return frozenset(method.spec.index.to_bytes(4, "big") for method in methods)


_CLOSE, _CLOSE_OK = _ids(amqp.Channel.Close), _ids(amqp.Channel.CloseOk)
_PUBLISH = _ids(amqp.Basic.Publish)
_PUBLISH_OCTETS = 519  # with the longest names; what is longer is not kept until its content comes
_FRAME_SIZE = 16 << 20  # of the largest frame, which is kept until all of it has come


class MessageLimit:
    """Closes channels on which a client publishes too large a message, and passes on all other frames.

    The channel is closed on both sides with 311 content-too-large. What is on its way meanwhile is dropped.

    Args:
        largest: octets of the largest body.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        # What the two agree on is theirs to enforce, as far as it can be kept.
        limits = Limits(frame_size=_FRAME_SIZE)
        self._decoders = tuple(
            amqp.FrameDecoder(payloads="raw", frame_max=0, limits=limits) for _ in range(2)
        )
        self._published: dict[int, Frame] = {}  # held back until their size is known, by channel
        # Channels that were closed here, by who has not answered yet.
        self._client_leaves: set[int] = set()
        self._broker_leaves: set[int] = set()
        self._to_client = bytearray()
        self._to_broker = bytearray()

    def feed(self, direction: int, octets: bytes) -> None:
        """Take what one side sends; `take` has what becomes of it.

        Args:
            direction: 0 from the client, 1 from the broker.
            octets: cut anywhere.

        Raises:
            DecodeError: it is no AMQP.
        """
        forward = self._from_broker if direction else self._from_client
        for frame in self._decoders[direction].feed(octets):
            forward(frame)

    def take(self) -> tuple[bytes, bytes]:
        """Return what is to be sent to the client, and to the broker."""
        taken = bytes(self._to_client), bytes(self._to_broker)
        self._to_client.clear()
        self._to_broker.clear()
        return taken

    def _from_client(self, frame: Frame) -> None:
        channel = frame.channel
        if channel in self._client_leaves:
            self._drop(frame, self._client_leaves, self._to_client)
        elif _is(frame, _PUBLISH):
            if len(frame.payload) > _PUBLISH_OCTETS:  # type: ignore[arg-type]
                self._refuse(channel, len(frame.payload))  # type: ignore[arg-type]
            else:
                self._published[channel] = frame
        elif frame.type == HEADER and channel in self._published:
            publish = self._published.pop(channel)
            size = int.from_bytes(frame.payload[4:12], "big")  # type: ignore[index]
            if size > self._largest:
                self._refuse(channel, size)
            else:
                self._to_broker += amqp.encode_frame(publish) + amqp.encode_frame(frame)
        else:
            if channel in self._published:  # out of order: that is for the broker to judge
                self._to_broker += amqp.encode_frame(self._published.pop(channel))
            self._to_broker += amqp.encode_frame(frame)

    def _from_broker(self, frame: Frame) -> None:
        if frame.channel in self._broker_leaves:
            self._drop(frame, self._broker_leaves, self._to_broker)
        else:
            self._to_client += amqp.encode_frame(frame)

    def _refuse(self, channel: int, size: int) -> None:
        """Close a channel on both sides; neither is told of the other's answer."""
        text = f"CONTENT_TOO_LARGE - {size} octets, at most {self._largest} may be published"
        spec = amqp.Basic.Publish.spec
        method = amqp.Channel.Close(CONTENT_TOO_LARGE, text, spec.class_id, spec.method_id)
        close = amqp.encode_method(channel, method)
        self._to_client += close
        self._to_broker += close
        self._client_leaves.add(channel)
        self._broker_leaves.add(channel)

    def _drop(self, frame: Frame, leaving: set[int], sender: bytearray) -> None:
        """Drop a frame on a channel that was closed here, but for its answer, and a close of its own."""
        if _is(frame, _CLOSE_OK):
            leaving.remove(frame.channel)
        elif _is(frame, _CLOSE):
            sender += amqp.encode_method(frame.channel, amqp.Channel.CloseOk())


def _is(frame: Frame, methods: frozenset[bytes]) -> bool:
    return frame.type == METHOD and bytes(frame.payload[:4]) in methods  # type: ignore[index]


class Pace:
    """How fast a stream is read.

    Args:
        rate: octets a second, after those of a first second at once.
    """

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._paid_until = 0.0

    def wait(self, octets: int, now: float) -> float:
        """Return how many seconds to wait until more may be read than so many octets.

        Args:
            octets: that were read.
            now: the time in seconds.
        """
        self._paid_until = max(self._paid_until, now - 1) + octets / self.rate
        return self._paid_until - now


__all__ = ["MessageLimit", "Pace"]
