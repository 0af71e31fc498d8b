"""Which frames and faults the user wants to see."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any

import amqpcodec
from amqpcodec._protocol.index import DIALECTS

from .._kernel.wire import BODY, HEADER, METHOD
from .._nearest import nearest_hint
from ..capture import CapturedFrame, Fault, Item
from .ends import Ends
from .moments import Moment
from .recent import Recent
from .rendering import Stamps

_MOST_NAMES = 10_000  # kept to find the nearest of
_EXCHANGES = ("exchange", "source", "destination")  # arguments with the name of an exchange


class Selection:
    """Frames by connection, time, channel, method, exchange and queue; each kind of condition has to hold.

    A content header and its bodies are wanted when the method they belong to is. Faults are wanted whatever
    channels and methods are, but have to be of the connections and of the time, as far as they have any.

    Args:
        connections: the connections, None for all.
        since, until: the first time, and the first one that is too late.
        channels: channel numbers, or None for all.
        methods: patterns of method names, as `method_glob` takes them.
        exchanges, queues: patterns of their names; case matters.
    """

    def __init__(
        self,
        *,
        connections: Sequence[Ends] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        channels: Sequence[int] | None = None,
        methods: Sequence[str] | None = None,
        exchanges: Sequence[str] | None = None,
        queues: Sequence[str] | None = None,
    ) -> None:
        self._connections = connections
        self._period = None if since is None and until is None else _Period(since, until)
        self._channels = frozenset(channels) if channels else None
        self._matches = lru_cache(maxsize=1024)(lambda name: _fits_method(name, methods)) if methods else None
        self._exchanges = _Names("exchange", exchanges) if exchanges else None
        self._queues = _Names("queue", queues) if queues else None
        self._by_method = bool(methods or exchanges or queues)
        self._content: Recent[tuple[int, int | None, int], bool] = Recent()
        self._wanted: Recent[int, bool] = Recent()  # connections by number
        self._numbers: list[int] = []  # the lowest and the highest one there was
        self._matched = False  # whether one was wanted

    def wants(self, item: Item, queue: str | None) -> bool:
        """Return whether to show a frame or a fault. Every one has to be asked about, in order.

        Args:
            item: the frame or fault.
            queue: the one that a method is about, see `Queues.of`.
        """
        wanted = True
        if self._by_method and not isinstance(item, Fault):
            wanted = self._by_its_method(item, queue)
        return self.covers(item) and wanted

    def covers(self, item: Item) -> bool:
        """Return whether a frame or fault is of the time and connections, and a frame of the channels."""
        in_time = self._period is None or self._period.has(item)
        if not isinstance(item, Fault) and self._channels and item.frame.channel not in self._channels:
            return False
        return in_time and self._of_connections(item)

    def unmet(self) -> Iterator[str]:
        """Explain conditions that nothing in the file can meet."""
        for names in (self._exchanges, self._queues):
            if names is not None and not names.matched:
                yield names.unmet()
        if self._numbers and not self._matched:
            low, high = self._numbers
            yield f"no such connection; those with AMQP are numbered {low} to {high}"
        if self._period is not None and not self._period.matched:
            yield from self._period.unmet()

    def _by_its_method(self, item: CapturedFrame, queue: str | None) -> bool:
        frame = item.frame
        location = item.connection.number, item.direction, frame.channel
        if frame.type == METHOD:
            wanted = (
                (self._matches is None or self._matches(frame.payload.spec.name))
                and (self._exchanges is None or self._exchanges.fit(_exchanges(frame.payload)))
                and (self._queues is None or self._queues.fit(() if queue is None else (queue,)))
            )
            self._content[location] = wanted
            return wanted
        return frame.type in (HEADER, BODY) and bool(self._content.get(location))

    def _of_connections(self, item: Item) -> bool:
        if self._connections is None or item.connection is None:
            return True
        number = item.connection.number
        wanted = self._wanted.get(number)
        if wanted is None:
            wanted = any(each.fit(item.connection) for each in self._connections)
            self._wanted[number] = wanted
            self._matched = self._matched or wanted
            low, high = self._numbers or (number, number)
            self._numbers = [min(low, number), max(high, number)]
        return wanted


class _Period:
    """The time from a moment on and before another one, and the times that were met.

    Attributes:
        matched: whether anything was of that time.
    """

    def __init__(self, since: Moment | None, until: Moment | None) -> None:
        self._moments = since, until
        self._bounds: tuple[float, float] | None = None
        self._first = self._last = 0
        self.matched = False

    def has(self, item: Item) -> bool:
        """Return whether something is of that time. A fault without a time may be of any."""
        time_ns = item.time_ns
        if time_ns is None:
            return isinstance(item, Fault)
        if self._bounds is None:
            since, until = (each and each.at(time_ns) for each in self._moments)
            self._bounds = -math.inf if since is None else since, math.inf if until is None else until
            self._first = self._last = time_ns
        elif time_ns > self._last:
            self._last = time_ns
        within = self._bounds[0] <= time_ns < self._bounds[1]
        self.matched = self.matched or within
        return within

    def unmet(self) -> Iterator[str]:
        if self._bounds is None:
            return
        if self._bounds[0] >= self._bounds[1]:
            yield "no time is behind --since and before --until"
        else:
            stamps = Stamps(" ", 6)
            first, last = map(stamps.text, (self._first, self._last))
            yield f"nothing in it is of that time; its frames are from {first} to {last}"


class _Names:
    """Patterns of names, and the names that were met as long as none has fit."""

    def __init__(self, kind: str, globs: Sequence[str]) -> None:
        self._kind = kind
        self._globs = globs
        self._seen: dict[str, None] = {}
        self.matched = False

    def fit(self, names: Iterable[str]) -> bool:
        for name in names:
            if any(fnmatchcase(name, glob) for glob in self._globs):
                self.matched = True
                return True
            if not self.matched and len(self._seen) < _MOST_NAMES:
                self._seen[name] = None
        return False

    def unmet(self) -> str:
        glob = self._globs[0]
        return f"no {self._kind} in it fits {glob!r}{nearest_hint(glob, self._seen)}"


def method_glob(text: str) -> str:
    """A pattern of method names such as ``"basic.*"``. Case and missing hyphens do not matter:
    ``"Basic.GetOk"``, as the class is called, is ``"basic.get-ok"``.

    Raises:
        ValueError: no method of any dialect fits it.
    """
    glob = text.lower()
    if not any(_fits_method(name, (glob,)) for name in _method_names()):
        ending = [name for name in _method_names() if name.endswith(f".{glob}")]
        hint = f"; the nearest name is {ending[0]!r}" if ending else nearest_hint(glob, _method_names())
        raise ValueError(f"no method fits {text!r}{hint}")
    return glob


def carry_content(globs: Sequence[str]) -> bool:
    """Return whether any method that fits a pattern is the beginning of a message."""
    return any(_fits_method(name, globs) for name, content in _method_names().items() if content)


@cache
def _method_names() -> dict[str, bool]:
    """Methods of all dialects, and whether content comes behind them."""
    modules: list[Any] = [amqpcodec.dialect(name) for name in DIALECTS]
    return {method.spec.name: method.spec.content for module in modules for method in module.METHODS.values()}


def _fits_method(name: str, globs: Sequence[str]) -> bool:
    forms = (name, name.replace("-", ""))
    return any(fnmatchcase(form, glob) for form in forms for glob in globs)


def _exchanges(payload: Any) -> list[str]:
    """The exchanges that a method names."""
    return [getattr(payload, name) for name in _EXCHANGES if hasattr(payload, name)]
