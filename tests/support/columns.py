"""Tables from octets in either build, and what the object path says should be in them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import ModuleType
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")  # what imports this is skipped with it

from amqpcodec import DecodeError, InlineContent, capture  # noqa: E402
from amqpcodec._columns.build import open_feeder  # noqa: E402
from amqpcodec._columns.decoding import Decoding  # noqa: E402
from amqpcodec._options import resolve  # noqa: E402
from amqpcodec.arrow.arrays import record_batch, schema_of  # noqa: E402
from amqpcodec.capture import Close, Connection, Data, Event, Fault  # noqa: E402
from amqpcodec.options import AMQP_PORT, AllStreamOptions  # noqa: E402
from support.implementation import wanted  # noqa: E402

BUILDS = wanted()
MOST = 2**63 - 1
_HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"


class Table:
    """One table in one build, fed event by event; arguments as for `BatchDecoder`."""

    def __init__(
        self,
        impl: str,
        table: str,
        *,
        columns: Iterable[str] | None = None,
        dialect: str | ModuleType = "rabbitmq-0-9-1",
        file: str | None = None,
        **options: Any,
    ) -> None:
        known = {name: options.pop(name) for name in ("report_foreign", "from_start") if name in options}
        options |= {"_impl": impl, "dialect": dialect}
        decoding = Decoding.of(resolve(AllStreamOptions, options), **known)
        self.columns = decoding.columns(table, columns)
        self.schema = schema_of(self.columns)
        self._sink, self._feeder = open_feeder(table, self.columns, decoding, file=file)

    def batches(self, events: Iterable[Event | Fault]) -> list[pa.RecordBatch]:
        """The batches of all these events, each checked by Arrow."""
        found = []
        for event in events:
            self._feeder.feed(event)
            found += self._sink.batches()
        found += self._sink.batches(final=True)
        made = [record_batch(self.schema, batch) for batch in found]
        for batch in made:
            batch.validate(full=True)
        return made

    def rows(self, events: Iterable[Event | Fault]) -> list[dict[str, Any]]:
        return [row for batch in self.batches(events) for row in batch.to_pylist()]


def stream(*chunks: bytes, direction: int = 0) -> Iterator[Event]:
    """The events of a stream that comes in these chunks."""
    connection, offset = Connection(0, None, None), 0
    for chunk in chunks:
        yield Data(connection, direction, offset, chunk, None, None)
        offset += len(chunk)
    yield Close(connection, direction, offset, None, None)
    yield Close(connection, 1 - direction, 0, None, None)


def captured(file: Any, ports: Iterable[int] | None = (AMQP_PORT,)) -> Iterator[Event | Fault]:
    """The events of a capture."""
    with capture.ByteSource(file) as source:
        segments = capture.read_segments(capture.read_packets(source))
        yield from capture.read_streams(segments, capture.StreamTracker(ports))


def stream_rows(impl: str, table: str, *chunks: bytes, **options: Any) -> list[dict[str, Any]]:
    """The rows of a stream that comes in these chunks."""
    return Table(impl, table, **options).rows(stream(*chunks))


def in_sync(octets: bytes) -> tuple[bytes, int]:
    """Octets behind a frame that any decoder trusts, and where they begin then."""
    return _HEARTBEAT + octets, len(_HEARTBEAT)


# -- what the object path says


def error_text(error: DecodeError) -> str:
    return f"{error.reply_name.upper().replace('-', '_')} at {error.offset}"


def cell(wire_type: str, value: Any) -> Any:
    """A decoded value as its column has it."""
    if value is None:
        return None
    match wire_type:
        case "longlong":
            return value if value <= MOST else None
        case "shortstr":
            return shown(value)
        case "timestamp":
            return value if isinstance(value, datetime) else None
        case "table":
            return entries(value)
        case "content":
            inline = isinstance(value, InlineContent)
            return {
                "inline": value.octets if inline else None,
                "reference": None if inline else value.octets,
            }
        case _:
            return value


def fits(wire_type: str, value: Any) -> bool:
    """Whether a column can hold a value."""
    return value is None or cell(wire_type, value) is not None


def shown(text: str) -> str:
    return "".join(
        f"\\x{ord(letter) - 0xDC00:02x}" if "\udc80" <= letter <= "\udcff" else letter for letter in text
    )


def entries(table: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    by_key = {shown(key): text(value) for key, value in table.items()}
    return list(by_key.items())


def text(value: Any) -> str | None:
    """A value of a table as its map has it."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case str():
            return shown(value)
        case bytes():
            return value.hex()
        case datetime():
            return f"{value:%Y-%m-%dT%H:%M:%SZ}".rjust(20, "0")
        case dict() | list():
            printed = json.dumps(json_value(value), ensure_ascii=False, separators=(",", ":"))
            return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", printed)
        case _:
            return str(value)


def json_value(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return {"hex": value.hex()}
        case dict():
            return {key: json_value(inner) for key, inner in value.items()}
        case list():
            return [json_value(inner) for inner in value]
        case _:
            return text(value)
