"""Tables and arrays inside headers have one form in JSON, in lines of the command and in columns."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.columns import stream_rows
from support.command import Run
from support.implementation import Implementation

from amqpcodec import RawTable, profiles

DIALECTS = ("amqp08", "amqp09", "amqp091", "qpid08", "rabbitmq")
SIZED = {profiles.LONGSTR, profiles.OCTETS, profiles.ARRAY, profiles.TABLE}
SAMPLES = {
    profiles.BOOL: [b"\0", b"\1"],
    profiles.INT8: [b"\xff"],
    profiles.UINT8: [b"\xff"],
    profiles.INT16: [b"\xff\xfe"],
    profiles.UINT16: [b"\xff\xfe"],
    profiles.INT32: [b"\xff" * 4],
    profiles.UINT32: [b"\xff" * 4],
    profiles.INT64: [b"\x80" + bytes(7), b"\x7f" + b"\xff" * 7],
    profiles.UINT64: [b"\xff" * 8],
    profiles.FLOAT: [struct.pack(">f", number) for number in (0.1, float("nan"), float("-inf"))],
    profiles.DOUBLE: [struct.pack(">d", number) for number in (-0.0, 1e300, 5e-324, float("inf"))],
    profiles.DECIMAL: [b"\2\0\0\0\x96", b"\x0a\0\0\0\0", b"\0\xff\xff\xff\xff"],
    profiles.SHORTSTR: [b"\0", b"\2a\xff"],
    profiles.LONGSTR: [b"", b"ff00", 'q"\\/\t\n\0\x0b\x7fé€😀'.encode(), b"a\xff\0"],
    profiles.OCTETS: [b"", b"ff00", b"a\xff\0"],
    profiles.ARRAY: [b"", b"S\0\0\0\1\xff" * 2],
    profiles.TIMESTAMP: [bytes(8), struct.pack(">Q", 1_700_000_000), b"\x7f" + bytes(7)],
    profiles.TABLE: [b"", b"\1\xffS\0\0\0\1x" + b'\2"\\S\0\0\0\0'],
    profiles.VOID: [b""],
    profiles.CHARACTER: [b"A", b"\xe9"],
}


def values(module: ModuleType) -> Iterator[bytes]:
    """Yield values in all forms that a table may have in a dialect, each with its tag."""
    for tag, kind in module.DIALECT.profile.readable(False).items():
        for octets in SAMPLES[kind]:
            yield tag.encode() + (struct.pack(">I", len(octets)) if kind in SIZED else b"") + octets


def message(module: ModuleType, value: bytes) -> bytes:
    """Return the frames of a message with a header that is a table with that value in it."""
    inside = b"\1v" + value
    headers = RawTable(b"\1hF" + struct.pack(">I", len(inside)) + inside)
    return module.encode_message(  # type: ignore[no-any-return]
        1, module.Basic.Publish(exchange="e"), module.BasicProperties(headers=headers), b""
    )


@pytest.mark.parametrize("name", DIALECTS)
def test_columns_and_the_command_show_the_same(
    build: Implementation, run: Run, tmp_path: Path, name: str
) -> None:
    module = import_module(f"amqpcodec.{name}")
    dialect = module.DIALECT.name
    octets = b"".join(message(module, value) for value in values(module))
    (tmp_path / "s").write_bytes(octets)
    lines = run.rows(tmp_path / "s", "--input", "stream", "--dialect", dialect)
    of_command = [row["properties"]["headers"]["h"] for row in lines if row["kind"] == "header"]
    rows = stream_rows(build.name, "messages", octets, dialect=dialect)
    of_columns = [json.loads(dict(row["headers"])["h"]) for row in rows]
    assert len(of_columns) == len(list(values(module))) > 10
    assert of_columns == of_command


def nested(build: Implementation, value: bytes) -> Any:
    """Return what a column has of a value in a table."""
    (row,) = stream_rows(build.name, "messages", message(import_module("amqpcodec.rabbitmq"), value))
    return json.loads(dict(row["headers"])["h"])["v"]


def test_octets_differ_from_text_and_decimals_keep_their_scale(build: Implementation) -> None:
    assert nested(build, b"S\0\0\0\4ff00") == "ff00"
    assert nested(build, b"x\0\0\0\2\xff\0") == {"hex": "ff00"}
    assert nested(build, b"S\0\0\0\2\xff\0") == {"hex": "ff00"}
    assert nested(build, b"D\2\0\0\0\x96") == "1.50"
    assert nested(build, b"D\x0a\0\0\0\0") == "0E-10"
    assert nested(build, b"F\0\0\0\4\2a\xffV") == {"a\udcff": None}
