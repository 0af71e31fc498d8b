"""A proxy between clients and a broker: it forwards frames as octets, logs messages, and enforces limits.

    python examples/proxy.py --port 5673 --broker localhost:5672 --largest 1000000 --rate 5000000

A client that publishes a larger message has its channel closed with 311 content-too-large. The broker's
channel is closed as well, and what is on its way meanwhile is dropped. A client that sends faster is read no
faster, so that it has to wait. All other octets pass as they are, whatever the extensions of broker and
client. Only what the log shows is decoded.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from amqpcodec import DecodeError, Frame
from amqpcodec import rabbitmq as amqp

METHOD, HEADER = 1, 2  # types of frames
CHUNK = 65536


def ids(*methods: Any) -> frozenset[bytes]:
    """How the payloads of methods begin: with their numbers."""
    return frozenset(method.spec.index.to_bytes(4, "big") for method in methods)


CLOSE, CLOSE_OK = ids(amqp.Channel.Close), ids(amqp.Channel.CloseOk)
PUBLISH = ids(amqp.Basic.Publish)
WITH_CONTENT = ids(amqp.Basic.Publish, amqp.Basic.Deliver, amqp.Basic.GetOk, amqp.Basic.Return)


class Link:
    """A client and its connection to the broker.

    Args:
        client, broker: where to write to the two.
        largest: octets of the largest message that the client may publish.
    """

    def __init__(self, client: asyncio.StreamWriter, broker: asyncio.StreamWriter, largest: int) -> None:
        self.client, self.broker, self.largest = client, broker, largest
        self.name = "{}:{}".format(*client.get_extra_info("peername"))
        self._published: dict[int, Frame] = {}  # held back until their size is known, by channel
        self._delivered: dict[int, Frame] = {}
        # Channels that were closed here, by who has not answered yet.
        self._client_leaves: set[int] = set()
        self._broker_leaves: set[int] = set()

    def from_client(self, frame: Frame) -> None:
        """Forward a frame of the client, unless it breaks the limit."""
        channel = frame.channel
        if channel in self._client_leaves:
            self._drop(frame, self._client_leaves, self.client)
        elif _is(frame, PUBLISH):
            self._published[channel] = frame
        elif frame.type == HEADER and channel in self._published:
            publish = self._published.pop(channel)
            size = self._log(">", publish, frame)
            if size > self.largest:
                self._refuse(channel, size)
            else:
                self.broker.write(amqp.encode_frame(publish) + amqp.encode_frame(frame))
        else:
            if channel in self._published:  # out of order: that is for the broker to judge
                self.broker.write(amqp.encode_frame(self._published.pop(channel)))
            self.broker.write(amqp.encode_frame(frame))

    def from_broker(self, frame: Frame) -> None:
        """Forward a frame of the broker."""
        channel = frame.channel
        if channel in self._broker_leaves:
            self._drop(frame, self._broker_leaves, self.broker)
            return
        if _is(frame, WITH_CONTENT):
            self._delivered[channel] = frame
        elif frame.type == HEADER and channel in self._delivered:
            self._log("<", self._delivered.pop(channel), frame)
        self.client.write(amqp.encode_frame(frame))

    def _refuse(self, channel: int, size: int) -> None:
        """Close a channel on both sides; neither is told of the other's answer."""
        text = f"CONTENT_TOO_LARGE - {size} octets, at most {self.largest} may be published"
        spec = amqp.Basic.Publish.spec
        close = amqp.encode_method(channel, amqp.Channel.Close(311, text, spec.class_id, spec.method_id))
        self.client.write(close)
        self.broker.write(close)
        self._client_leaves.add(channel)
        self._broker_leaves.add(channel)

    def _drop(self, frame: Frame, leaving: set[int], sender: asyncio.StreamWriter) -> None:
        """A frame on a channel that was closed here: the answer to that counts, and a close of its own."""
        if _is(frame, CLOSE_OK):
            leaving.remove(frame.channel)
        elif _is(frame, CLOSE):
            sender.write(amqp.encode_method(frame.channel, amqp.Channel.CloseOk()))

    def _log(self, arrow: str, method: Frame, header: Frame) -> int:
        """Write a line about a message; the size of its body."""
        payload: Any
        content: Any
        decoder = amqp.FrameDecoder(frame_max=0, tables="raw", expect_header=False)
        payload, content = (
            next(decoder.feed(amqp.encode_frame(frame))).payload for frame in (method, header)
        )
        route = f"exchange={payload.exchange!r} key={payload.routing_key!r}"
        name, size = payload.spec.name, content.body_size
        logging.info("%s %s ch %d %s %s %d octets", self.name, arrow, method.channel, name, route, size)
        return int(size)


def _is(frame: Frame, methods: frozenset[bytes]) -> bool:
    return frame.type == METHOD and bytes(frame.payload[:4]) in methods  # type: ignore[index]


class Pace:
    """How fast a stream is read.

    Args:
        rate: octets a second, after those of a first second at once; 0 for any number.
    """

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.chunk = min(CHUNK, rate) or CHUNK  # so that heartbeats are late by no more than a second
        self._paid_until = 0.0

    async def keep(self, octets: int) -> None:
        """Wait until so many octets more are due."""
        if self.rate:
            now = monotonic()
            self._paid_until = max(self._paid_until, now - 1) + octets / self.rate
            if self._paid_until > now:
                await asyncio.sleep(self._paid_until - now)


async def pump(
    reader: asyncio.StreamReader,
    forward: Callable[[Frame], None],
    writers: list[asyncio.StreamWriter],
    pace: Pace,
) -> None:
    """Read frames and forward them until the stream ends; read no faster than both sides are written to."""
    decoder = amqp.FrameDecoder(payloads="raw", frame_max=0)  # what the two agree on is theirs to enforce
    while octets := await reader.read(pace.chunk):
        await pace.keep(len(octets))
        for frame in decoder.feed(octets):
            forward(frame)
        for writer in writers:
            await writer.drain()


async def serve(
    client: asyncio.StreamReader, client_writer: asyncio.StreamWriter, arguments: argparse.Namespace
) -> None:
    """Connect a client to the broker until one of them ends."""
    host, _, port = arguments.broker.rpartition(":")
    writers = [client_writer]
    try:
        broker, broker_writer = await asyncio.open_connection(host, int(port))
        writers.append(broker_writer)
        link = Link(client_writer, broker_writer, arguments.largest)
        pumps = [
            asyncio.create_task(pump(client, link.from_client, writers, Pace(arguments.rate))),
            asyncio.create_task(pump(broker, link.from_broker, writers, Pace(0))),
        ]
        _, others = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
        for done in await asyncio.gather(*pumps, return_exceptions=True):
            if isinstance(done, DecodeError):  # what comes is not AMQP: both sides are told so
                logging.warning("%s: %s", link.name, done)
                for writer in writers:
                    writer.write(amqp.encode_method(0, done.close_method()))
    except OSError as error:
        logging.warning("no broker: %s", error)
    finally:
        for writer in writers:
            writer.close()


async def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5673, help="0 for any that is free")
    parser.add_argument("--broker", default="localhost:5672", help="host:port")
    parser.add_argument("--largest", type=int, default=16 << 20, help="octets of a message")
    parser.add_argument("--rate", type=int, default=0, help="octets a second of a client, 0 for any number")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    server = await asyncio.start_server(
        lambda reader, writer: serve(reader, writer, arguments), arguments.host, arguments.port
    )
    print("listening on {}:{}".format(*server.sockets[0].getsockname()), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
