"""Values of field tables as the text of map columns, see docs/columns.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from amqpcodec import RawTable
from amqpcodec._json import iso, json_value


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
        return iso(value)
    if isinstance(value, (Mapping, list)):
        return _json(value)
    return str(value)


def pairs(table: Mapping[str, Any] | RawTable) -> list[tuple[str, str | None]]:
    """A field table as the entries of a map; of keys that look equal the later wins, as in the table."""
    return list({clean(key): cell_text(value) for key, value in table.items()}.items())


def _json(value: Any) -> str:
    """Return compact JSON. Surrogates, which Arrow's text cannot have, are escaped as JSON does."""
    text = json.dumps(json_value(value), ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
