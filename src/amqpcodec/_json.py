"""Values of fields as JSON, for lines of the command and for columns alike; docs/capture.md has the table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any


class Redacted:
    """Stands for a secret of so many octets."""

    def __init__(self, size: int) -> None:
        self.size = size


def json_value(value: Any) -> Any:
    """Return a value as `json` can write it: octets as {"hex": ...}, so that they differ from text; times in
    ISO 8601; decimals as strings, which keep their scale; NaN and infinities as strings."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"hex": bytes(value).hex()}
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [json_value(inner) for inner in value]
    if isinstance(value, Redacted):
        return {"redacted": value.size}
    inner = inner_value(value)
    return {"type": inner[0], "value": json_value(inner[1])} if inner else str(value)


def iso(value: datetime) -> str:
    """Return ISO 8601 in UTC with a Z."""
    if value.tzinfo is not UTC:
        value = value.astimezone(UTC)
    return value.isoformat()[: -len("+00:00")] + "Z"


def inner_value(value: Any) -> tuple[str, Any] | None:
    """Return type and content of the codec's own value classes (tagged table values, inline and reference
    content); None for anything else."""
    tag = getattr(value, "tag", None)
    if tag is not None and hasattr(value, "value"):
        return str(tag), value.value
    if hasattr(value, "octets") and not isinstance(value, Mapping):
        return type(value).__name__, value.octets
    return None
