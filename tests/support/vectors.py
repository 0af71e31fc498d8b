"""The golden vectors, and their way of writing values.

A vector writes integers and timestamps as numbers, text as a string, octets that are not text as
``{"hex": ...}``, tables as lists of ``[key, tag, value]``. `decoded` makes of such a value what a decoder
gives, `encodable` what an encoder takes to send exactly the tags of the vector.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from amqpcodec import FieldValue, InlineContent, ReferenceContent

FOLDER = Path(__file__).resolve().parent.parent / "data" / "vectors"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_SECOND = 253402300799  # of the year 9999
HOW_TO_ADD = """each method needs the octets of a frame with it, of a source that is not this codec:
a line of JSON in a file, like those of `PYTHONPATH=tests python -m support.vectors show queue.purge`. Then
`PYTHONPATH=tests python -m support.vectors add FILE` adds the lines"""


@cache
def load(name: str) -> tuple[dict[str, Any], ...]:
    """All lines of one file of vectors."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def vectors(dialect: str, *kinds: str) -> list[dict[str, Any]]:
    """The golden vectors of a dialect that are of these kinds; of every kind if none is named."""
    return [
        vector
        for vector in load("vectors-public")
        if vector["dialect"] == dialect and (not kinds or vector["kind"] in kinds)
    ]


def octets(value: Any) -> bytes:
    """The octets that a string or ``{"hex": ...}`` stands for."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes.fromhex(value["hex"])


def shortstr(value: Any) -> str:
    return octets(value).decode("utf-8", "surrogateescape")


def moment(seconds: int) -> datetime | int:
    return EPOCH + timedelta(seconds=seconds) if seconds <= LAST_SECOND else seconds


def decoded(wire_type: str, value: Any, profile: str = "rabbitmq") -> Any:
    """What a decoder makes of a method argument or property."""
    return _argument(wire_type, value, profile, lambda tag, value: value)


def encodable(wire_type: str, value: Any, profile: str = "rabbitmq") -> Any:
    """What an encoder takes for a method argument or property; table values get their tags."""
    return _argument(wire_type, value, profile, FieldValue)


def arguments(
    fields: Any, values: dict[str, Any], profile: str, convert: Callable[[str, Any, str], Any]
) -> dict[str, Any]:
    """Keyword arguments for a method or properties, as far as `values` has them."""
    return {
        field.attribute: convert(field.type, values[field.name], profile)
        for field in fields
        if field.name in values
    }


def _argument(wire_type: str, value: Any, profile: str, wrap: Callable[[str, Any], Any]) -> Any:
    match wire_type:
        case "shortstr":
            return shortstr(value)
        case "longstr":
            return octets(value)
        case "timestamp":
            return moment(value)
        case "table":
            return _tagged("F", value, profile, wrap)
        case "content" if "inline" in value:
            return InlineContent(octets(value["inline"]))
        case "content":
            return ReferenceContent(octets(value["reference"]))
        case _:
            return value


def _tagged(tag: str, value: Any, profile: str, wrap: Callable[[str, Any], Any]) -> Any:
    match tag:
        case "f" | "d":
            return float(value["float"]) if isinstance(value, dict) else float(value)
        case "D":
            return Decimal(value["value"]).scaleb(-value["scale"])
        case "S" | "c" | "C":
            return _text_or_octets(octets(value))
        case "k":
            return octets(value).decode("latin-1")
        case "s" if profile == "wg-0-9-1":
            return shortstr(value)
        case "x":
            return octets(value)
        case "T":
            return moment(value)
        case "A":
            return [wrap(item_tag, _tagged(item_tag, item, profile, wrap)) for item_tag, item in value]
        case "F":
            return {
                shortstr(key): wrap(item_tag, _tagged(item_tag, item, profile, wrap))
                for key, item_tag, item in value
            }
        case _:
            return value


def _text_or_octets(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def add(path: Path) -> None:
    """Put the lines of a file behind those that are there, with the next numbers."""
    known = list(load("vectors-public"))
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    numbered = [{**line, "id": f"a{number:05}"} for number, line in enumerate(lines, len(known) + 1)]
    text = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in known + numbered)
    octets = gzip.compress(text.encode(), mtime=0)  # the same octets for the same lines
    (FOLDER / "vectors-public.jsonl.gz").write_bytes(octets)


def main(command: str, argument: str) -> None:
    """Print the vectors of a method, or add those of a file."""
    if command == "add":
        add(Path(argument))
        return
    for vector in load("vectors-public"):
        if vector["name"] == argument:
            print(json.dumps(vector))


if __name__ == "__main__":
    main(*sys.argv[1:])
