"""``decode --summary``: a few lines on a whole file, or a JSON object, made of counts alone.

`amqpcodec stats` shows more and needs an extra; this needs nothing but the codec.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from .._kernel.wire import HEADER, METHOD
from ..capture import CLIENT_TO_SERVER, CapturedFrame, Fault, Item
from ..spec import MethodSpec
from .rendering import escaped, text

_NS_PER_MS = 1_000_000
_MOST = 8  # entries of a list that are shown

# Where a method or its content stands: connection, channel, direction.
_Location = tuple[int, int, int | None]


class FrameSummary:
    """Counts frames, and says what was counted. Keeps nothing of a frame but numbers and names."""

    def __init__(self) -> None:
        self._frames = self._octets = 0
        self._first: int | None = None
        self._last: int | None = None
        self._dialects: dict[int, str] = {}
        self._methods: Counter[str] = Counter()
        self._contents: Counter[str] = Counter()
        self._content_octets: Counter[str] = Counter()
        self._refusals: Counter[tuple[str, int, str]] = Counter()  # method, reply code and text
        self._faults: Counter[str] = Counter()
        self._dropped = 0  # packets, by the recorder
        self._copies: set[int] = set()
        self._open: dict[_Location, str] = {}
        self._asked: dict[_Location, tuple[str, tuple[str, ...], int]] = {}
        self._answers = self._waited = self._longest = 0
        self._slowest = ""

    def add(self, item: Item) -> None:
        """Count a frame or a fault; they have to come in order."""
        self._see_time(item.time_ns)
        if isinstance(item, Fault):
            self._faults[item.kind] += 1
            self._dropped += item.dropped
            return
        self._frames += 1
        self._octets += len(item.octets)
        self._dialects[item.connection.number] = item.dialect
        if item.connection.copy_of is not None:
            self._copies.add(item.connection.number)
        frame = item.frame
        location = item.connection.number, frame.channel, item.direction
        if frame.type == METHOD:
            self._add_method(item, location, frame.payload)
        elif frame.type == HEADER and location in self._open:
            name = self._open.pop(location)
            self._contents[name] += 1
            self._content_octets[name] += frame.payload.body_size

    def text(self) -> str:
        """The summary, with line ends."""
        refused = Counter(
            {f"{name} {code} {text(said)}": count for (name, code, said), count in self._refusals.items()}
        )
        lines = [
            ("frames", [f"{self._frames}, {self._octets} bytes{self._duration()}"]),
            ("connections", _listed(Counter(self._dialects.values()))),
            ("methods", [", ".join(_listed(self._methods))]),
            ("messages", _listed(self._contents, self._content_octets)),
            ("answers", self._latencies()),
            ("refused", _listed(refused)),
            ("faults", _listed(self._faults)),
        ]
        if self._dropped:
            lines.append(("dropped", [f"{self._dropped} packets, by the recorder"]))
        if self._copies:
            lines.append(("copies", [f"{len(self._copies)} of the connections, recorded twice"]))
        return "".join(_entry(name, parts) for name, parts in lines)

    def row(self) -> dict[str, Any]:
        """The summary as values for JSON: counts, octets, and times in nanoseconds."""
        messages = {
            name: {"count": count, "bytes": self._content_octets[name]}
            for name, count in self._contents.most_common()
        }
        answers = {
            "count": self._answers,
            "mean_ns": self._waited // self._answers if self._answers else None,
            "slowest_ns": self._longest if self._answers else None,
            "slowest": self._slowest or None,
        }
        refused = [
            {"method": name, "reply_code": code, "reply_text": said, "count": count}
            for (name, code, said), count in self._refusals.most_common()
        ]
        return {
            "frames": self._frames,
            "bytes": self._octets,
            "first_ns": self._first,
            "last_ns": self._last,
            "connections": dict(Counter(self._dialects.values())),
            "methods": dict(self._methods.most_common()),
            "messages": messages,
            "answers": answers,
            "refused": refused,
            "faults": dict(self._faults.most_common()),
            "dropped": self._dropped,
            "copies": len(self._copies),
        }

    def _see_time(self, time_ns: int | None) -> None:
        if time_ns is not None:
            self._first = time_ns if self._first is None else min(self._first, time_ns)
            self._last = time_ns if self._last is None else max(self._last, time_ns)

    def _duration(self) -> str:
        if self._first is None or self._last is None:
            return ""
        return f" in {(self._last - self._first) / 1e9:.3f} s"

    def _add_method(self, item: CapturedFrame, location: _Location, payload: Any) -> None:
        spec: MethodSpec = payload.spec
        self._methods[spec.name] += 1
        if spec.content:
            self._open[location] = spec.name
        if getattr(payload, "reply_code", 200) >= 300 and not spec.content:
            refusal = spec.name, payload.reply_code, payload.reply_text
            if len(self._refusals) < 1000 or refusal in self._refusals:
                self._refusals[refusal] += 1
        if item.direction == CLIENT_TO_SERVER and spec.responses and item.time_ns is not None:
            self._asked[location] = spec.name, _full_names(spec), item.time_ns
        elif item.direction != CLIENT_TO_SERVER:
            self._answer(location, spec.name, item.time_ns)

    def _answer(self, location: _Location, name: str, time_ns: int | None) -> None:
        """Count the wait if this method answers what the client asked last on the channel."""
        asking = (*location[:2], CLIENT_TO_SERVER)
        asked, responses, since = self._asked.get(asking, ("", (), 0))
        if time_ns is None or name not in responses:
            return
        del self._asked[asking]
        waited = time_ns - since
        self._answers += 1
        self._waited += waited
        if waited >= self._longest:
            self._longest, self._slowest = waited, asked

    def _latencies(self) -> list[str]:
        if not self._answers:
            return []
        mean = self._waited / self._answers / _NS_PER_MS
        slowest = f"slowest {self._longest / _NS_PER_MS:.2f} ms ({self._slowest})"
        return [f"{self._answers} by the server, mean {mean:.2f} ms, {slowest}"]


def _full_names(spec: MethodSpec) -> tuple[str, ...]:
    """The methods that may answer one, which are of the same class."""
    return tuple(f"{spec.name.partition('.')[0]}.{response}" for response in spec.responses)


def _listed(counts: Counter[str], octets: Counter[str] | None = None) -> list[str]:
    """How often each name was met; the first few of them."""
    shown = []
    for name, count in counts.most_common(_MOST):
        size = f", {octets[name]} bytes" if octets else ""
        shown.append(f"{count} {escaped(name)}{size}")
    if len(counts) > _MOST:
        left_out = counts.total() - sum(count for _, count in counts.most_common(_MOST))
        shown.append("1 other" if left_out == 1 else f"{left_out} others")
    return shown


def _entry(name: str, parts: list[str]) -> str:
    first, *more = [line for line in parts if line] or ["none"]
    return f"{name:<12} {first}\n" + "".join(f"{'':<12} {line}\n" for line in more)


__all__ = ["FrameSummary"]
