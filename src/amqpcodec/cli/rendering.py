"""Field values as text that is safe on a terminal, and as JSON values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from ..capture import CapturedFrame
from ..spec import CREDENTIALS

_NS = 1_000_000_000
_LONGEST_TEXT = 240


class Redacted:
    """Stands for a secret of so many octets."""

    def __init__(self, size: int) -> None:
        self.size = size


def method_fields(payload: Any, include_credentials: bool) -> Iterator[tuple[str, Any]]:
    """Names and values of a method's arguments; reserved ones only if something is in them."""
    spec = payload.spec
    for field in spec.fields:
        value = getattr(payload, field.attribute)
        if field.reserved and not value:
            continue
        if (spec.name, field.name) in CREDENTIALS and not include_credentials:
            value = Redacted(len(value))
        yield field.attribute, value


def present_properties(properties: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of the properties that a content header carries."""
    for field in properties.spec.fields:
        value = getattr(properties, field.attribute)
        if value is not None:
            yield field.attribute, value


def inner_value(value: Any) -> tuple[str, Any] | None:
    """Type and content of the codec's own value classes (tagged table values, inline and reference
    content); None for anything else."""
    tag = getattr(value, "tag", None)
    if tag is not None and hasattr(value, "value"):
        return str(tag), value.value
    if hasattr(value, "octets") and not isinstance(value, Mapping):
        return type(value).__name__, value.octets
    return None


def text(value: Any) -> str:
    """A value for people, on one line, with every control character escaped."""
    if isinstance(value, bool) or value is None:
        return str(value).lower() if value is not None else "void"
    if isinstance(value, str):
        return _shortened(repr, value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return octets(bytes(value))
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{escaped(str(key))}: {text(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return "[" + ", ".join(map(text, value)) + "]"
    if isinstance(value, Redacted):
        return f"<redacted, {value.size} octets>"
    inner = inner_value(value)
    return f"{escaped(inner[0])}:{text(inner[1])}" if inner else escaped(str(value))


def octets(value: bytes, limit: int = _LONGEST_TEXT) -> str:
    """Octets for people: as quoted text where all of it can be printed, else in hex; the first ones only,
    if there are many."""
    shown = value[:limit]
    more = f"...(+{len(value) - limit})" if len(value) > limit else ""
    try:
        readable = shown.decode("utf-8")
    except UnicodeDecodeError:
        # The cut may have gone through a character; a few octets less may do.
        readable = shown.decode("utf-8", "ignore") if more else ""
    if readable and readable.isprintable() and len(readable.encode()) > len(shown) - 4:
        return repr(readable) + more
    return (f"0x{shown.hex()}" if shown else "''") + more


def escaped(string: str) -> str:
    """Text without quotes, with everything escaped that is not printable."""
    return string if string.isprintable() else repr(string)[1:-1]


def iso(value: datetime) -> str:
    """ISO 8601 in UTC with a Z."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def clock(time_ns: int | None) -> str:
    """Time of day in UTC with microseconds."""
    if time_ns is None:
        return "--:--:--.------"
    seconds, rest = divmod(time_ns, _NS)
    minutes, second = divmod(seconds % 86400, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}.{rest // 1000:06}"


def iso_ns(time_ns: int | None) -> str | None:
    """ISO 8601 in UTC with all nine digits; None beyond what a calendar date can be given for."""
    if time_ns is None:
        return None
    seconds, rest = divmod(time_ns, _NS)
    try:
        date = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return f"{date:%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


def json_value(value: Any) -> Any:
    """A value as `json` can write it: octets as {"hex": ...}, times in ISO 8601, decimals, NaN and
    infinities as strings."""
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


def frame_kind(item: CapturedFrame) -> str:
    """Name of a frame's type."""
    return _KINDS.get(item.frame.type, f"type-{item.frame.type}")


def _shortened(shape: Any, value: str) -> str:
    if len(value) <= _LONGEST_TEXT:
        return str(shape(value))
    return f"{shape(value[:_LONGEST_TEXT])}...(+{len(value) - _LONGEST_TEXT})"


_KINDS = {
    1: "method",
    2: "header",
    3: "body",
    4: "oob-method",
    5: "oob-header",
    6: "oob-body",
    7: "trace",
    8: "heartbeat",
    65: "protocol",
}
