"""What a build reads out of a capture, in a form that can be compared with the other's."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

from amqpcodec._backend import load
from amqpcodec._columns.buffers_py import values
from amqpcodec._columns.build import open_feeder
from amqpcodec._columns.decoding import Decoding
from amqpcodec._columns.schemas import table_columns
from amqpcodec._options import resolve
from amqpcodec.capture import ByteSource, CaptureError, Connection
from amqpcodec.options import AllCaptureOptions

from .implementation import Implementation

# Rules that captures of a few hundred packets would not reach with the limits that serve everybody.
TIGHT: tuple[dict[str, Any], ...] = (
    {},
    {"port": None},
    {"out_of_order_bytes": 2000, "out_of_order_segments": 5},
    {"max_connections": 2, "max_waiting_bytes": 3000},
    {"flow_timeout": 0.5},
)


def comparable(items: Iterable[Any]) -> Iterator[Any]:
    """Items whose connections, which compare by identity, are replaced by their fields."""
    for item in items:
        parts = (
            (part.number, part.client, part.server) if isinstance(part, Connection) else part for part in item
        )
        yield type(item), *parts


def events(impl: Implementation, octets: bytes, **options: Any) -> list[Any]:
    """The events of a capture, and the error that ended them."""
    tracker = impl.capture("streams").StreamTracker(**options)
    found: list[Any] = []
    try:
        found.extend(comparable(impl.capture("events").read_events(ByteSource(io.BytesIO(octets)), tracker)))
    except CaptureError as error:
        found.append((error.message, error.offset))
    return found


def packets(impl: Implementation, octets: bytes, **options: Any) -> Any:
    """The values of each column of the table `packets`, the faults counted, and the error that ended them."""
    columns, faults, error = table_columns("packets"), dict[str, int](), None
    decoding = Decoding.of(resolve(AllCaptureOptions, {"include_credentials": True, "_impl": impl.name}))
    sink, feeder = open_feeder("packets", columns, decoding, faults=faults)
    feed = load("amqpcodec._columns.feeder", impl.name).feed_capture
    try:
        for _ in feed(ByteSource(io.BytesIO(octets)), feeder, **options):
            pass
    except CaptureError as raised:
        error = (raised.message, raised.offset)
    batches = sink.batches(final=True)
    return [list(map(values, columns, batch.columns)) for batch in batches], faults, error
