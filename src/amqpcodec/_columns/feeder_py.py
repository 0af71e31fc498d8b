"""From the ordered octets of connections to a column sink. The pure build."""

from __future__ import annotations

from typing import Any

import amqpcodec
from amqpcodec._state import Fields, Note
from amqpcodec.capture import CapturedFrame, Close, Connection, Event, Fault, Item, Segment
from amqpcodec.capture.frames import ConnectionDecoder
from amqpcodec.capture.streams_py import StreamTracker

from .rows import Place
from .sink_base import Flows, Sink, flow_of


class Feeder:
    """Finds the frames in the events of connections and gives them to a sink.

    Args:
        sink: where they go.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._decoders: dict[Connection, ConnectionDecoder] = {}

    def feed(self, event: Event | Fault) -> None:
        """Take what comes next in a direction of a connection, or a fault of the file.

        Raises:
            DecodeError: what the sink raises.
        """
        if isinstance(event, Fault):
            self._sink.fault(event)
            return
        decoder = self._decoders.get(event.connection) or self._open(event.connection)
        for item in decoder.feed(event):
            dispatch(item, decoder, self._sink)
        if isinstance(event, Close):
            self._sink.close(event)
            if decoder.ended:
                del self._decoders[event.connection]

    def segment(self, segment: Segment, tracker: StreamTracker) -> None:
        """Feed a tracker with a segment, and take what comes of that; raises what `feed` does."""
        for event in tracker.feed(segment):
            self.feed(event)

    def begin_file(self, before: int, name: str | None) -> None:
        """Packets behind the first `before` ones of the recording are of the file of this name."""
        self._sink.make.files.begin(before, name)

    def snapshot(self, note: Note) -> list[Any]:
        """What `restore` makes the same of, beside rows; `note` is told of each packet in it."""
        decoders = [[each.number, decoder.snapshot(note)] for each, decoder in self._decoders.items()]
        return [decoders, self._sink.snapshot(note)]

    def restore(self, state: Fields, flows: Flows) -> None:
        """Go on from a state, with nothing fed so far.

        Args:
            state: what `snapshot` gave.
            flows: the connections still known, by their numbers.

        Raises:
            ValueError: it is damaged.
        """
        for fields in state.items():
            flow = flow_of(flows, fields)
            self._open(flow.connection).restore(fields.fields(), flow.positions)
            fields.end()
        self._sink.restore(state.items(), flows)
        state.end()

    def _open(self, connection: Connection) -> ConnectionDecoder:
        decoder = self._decoders[connection] = self._sink.decoding.decoder(connection, self._sink.payloads)
        return decoder


def dispatch(item: Item, decoder: ConnectionDecoder, sink: Sink) -> None:
    """Give a sink what a connection's decoder has found."""
    if item.octets:
        reader = decoder.reader.of(item.octets)
        if (
            isinstance(item, CapturedFrame) and item.dialect != reader.dialect
        ):  # its method has just changed that
            dialect = amqpcodec.dialect(item.dialect)
        else:
            dialect = reader.module
        assert item.connection is not None  # both are there for all that has octets
        assert item.direction is not None
        place = Place(item.connection, item.direction, item.packet, item.time_ns, item.offset)
        sink.frame(place, item.octets, dialect)
    if isinstance(item, Fault):
        sink.fault(item)
