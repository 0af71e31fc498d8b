"""Ids of distributed traces, as tracers put them into the headers of messages.

Sources: W3C Trace Context (traceparent), OpenZipkin B3 propagation (b3), SkyWalking cross process propagation
headers, version 3 (sw8), Jaeger client libraries (uber-trace-id).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

Ids = tuple[str, str]  # of the trace, and of the span that sent the message

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}")
_B3 = re.compile(r"([0-9a-fA-F]{32}|[0-9a-fA-F]{16})-([0-9a-fA-F]{16})(?:-.*)?")
_JAEGER = re.compile(r"([0-9a-fA-F]{1,32}):([0-9a-fA-F]{1,16}):[0-9a-fA-F]*:[0-9a-fA-F]{1,2}")
_SW8 = re.compile(r"[01]-([A-Za-z0-9+/=]+)-([A-Za-z0-9+/=]+)-([0-9]+)-.*", re.DOTALL)


def trace_of(headers: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the ids of the trace and the span in the headers of a message; None where there are none.

    Args:
        headers: keys and values. Of several tracers the first one counts, in the order of `TRACERS`.
    """
    for name, read in TRACERS.items():
        value = headers.get(name)
        found = read(value) if isinstance(value, str) else None
        if found is not None:
            return found
    return None, None


def _groups(pattern: re.Pattern[str]) -> Callable[[str], Ids | None]:
    def read(text: str) -> Ids | None:
        found = pattern.fullmatch(text)
        return (found[1], found[2]) if found else None

    return read


def _jaeger(text: str) -> Ids | None:
    return _groups(_JAEGER)(text.replace("%3A", ":").replace("%3a", ":"))


def _skywalking(text: str) -> Ids | None:
    """Return the trace, and the segment with the number of the span in it."""
    found = _SW8.fullmatch(text)
    try:
        trace, segment = (
            (b64decode(found[at], validate=True).decode() for at in (1, 2)) if found else ("", "")
        )
    except ValueError:
        return None
    return (trace, f"{segment}-{found[3]}") if found else None


TRACERS: dict[str, Callable[[str], Ids | None]] = {
    "traceparent": _groups(_TRACEPARENT),
    "b3": _groups(_B3),
    "sw8": _skywalking,
    "uber-trace-id": _jaeger,
}
