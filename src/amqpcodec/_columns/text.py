"""Values of field tables as the text of map columns, see docs/columns.md."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from amqpcodec import RawTable


def clean(text: str) -> str:
    """Text with every octet that was not UTF-8, kept as a surrogate escape, shown as ``\\\\xNN``."""
    if text.isascii():
        return text
    try:
        octets = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a pair that stands for no octet: only a caller's name of a file has any
        octets = text.encode("utf-8", "backslashreplace")
    return octets.decode("utf-8", "backslashreplace")


def cell_text(value: Any) -> str | None:
    """A value of a field table as text; None for a void."""
    if value is None:
        return None
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, (Mapping, list)):
        return _json(value)
    return str(value)


def pairs(table: Mapping[str, Any] | RawTable) -> list[tuple[str, str | None]]:
    """A field table as the entries of a map; of keys that look equal the later wins, as in the table."""
    return list({clean(key): cell_text(value) for key, value in table.items()}.items())


def _json(value: Any) -> str:
    """Compact JSON; what JSON has no type for, NaN and infinities too, becomes a string."""
    match value:
        case None:
            return "null"
        case bool() | int() | Decimal():
            return str(cell_text(value))
        case float() if math.isfinite(value):
            return str(value)
        case Mapping():
            entries = {clean(key): inner for key, inner in value.items()}
            return "{" + ",".join(f"{_quoted(key)}:{_json(inner)}" for key, inner in entries.items()) + "}"
        case list():
            return "[" + ",".join(map(_json, value)) + "]"
        case _:
            return _quoted(str(cell_text(value)))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
