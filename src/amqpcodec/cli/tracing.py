"""``decode --trace``: the messages of one distributed trace, and what settled them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .. import DecodeError
from .._columns.trace import TRACERS, trace_of
from .._kernel.wire import BODY, HEADER, METHOD
from .._nearest import nearest_hint
from ..capture import CapturedFrame, Event, Fault, Item
from .choosing import Choice, Location, location
from .queues import Queues
from .recent import Recent
from .selection import Selection
from .settling import Settling

if TYPE_CHECKING:
    from .messages_py import Messages, ShownMessage

_MOST_SEEN = 10_000  # traces kept to find the nearest of
_LEAST_LIKENESS = 0.9  # of ids, most of which are random


class TraceChoice(Choice):
    """Chooses the messages of a trace, and the methods that settle them.

    A message belongs to the trace that its headers name. Its frames, or its line, come as soon as they are
    there; its method waits for the header.

    Args:
        selection: what is wanted; None for all. A method that settles a message is wanted as that message is.
        queues: knows which queue a method is about; None where nobody asks.
        messages: puts frames together; None to show frames.
        trace: the id of the trace, or a whole header with it, such as that of traceparent.
    """

    def __init__(
        self, selection: Selection | None, queues: Queues | None, messages: Messages | None, trace: str
    ) -> None:
        super().__init__(selection, queues)
        self._messages = messages
        self._trace = trace
        self._key = _key(_named(trace))
        self._settling: Settling[bool] = Settling()
        self._methods: Recent[Location, tuple[CapturedFrame, bool]] = Recent()  # those without a header yet
        self._shown: Recent[Location, bool] = Recent()  # contents that are
        self._seen: dict[str, None] = {}
        self._found = False

    def watching(self, events: Iterable[Event | Fault]) -> Iterable[Event | Fault]:
        """See `Choice.watching`."""
        return self._settling.watching(events)

    def feed(self, item: Item) -> Iterable[Item | ShownMessage]:
        """See `Choice.feed`."""
        wanted, queue = self.judge(item)
        if isinstance(item, Fault):
            self._settling.miss(item)
            frames: list[Item] = [item] if wanted and self._messages is None else []
        else:
            frames = list(self._frames(item, wanted))
        if self._messages is None:
            return frames
        whole = self._of_trace(self._messages.feed(item, wanted, queue))
        return [*whole, *(each for each in frames if not _is_content(each))]

    def finish(self) -> Iterable[Item | ShownMessage]:
        """See `Choice.finish`."""
        return () if self._messages is None else self._of_trace(self._messages.finish())

    def unmet(self) -> Iterator[str]:
        """See `Choice.unmet`."""
        if self._found:
            yield from super().unmet()
        else:
            there = f"; there are {len(self._seen)}, such as {next(iter(self._seen))!r}" if self._seen else ""
            hint = nearest_hint(self._trace, self._seen, _LEAST_LIKENESS) or there or "; none names any"
            yield f"no message in it names the trace {self._trace!r}{hint}"

    def left_out(self) -> Iterator[str]:
        """See `Choice.left_out`."""
        return self._settling.left_out()

    def _frames(self, item: CapturedFrame, wanted: bool) -> Iterable[CapturedFrame]:
        """Return the frames to show now that one has come."""
        kind, payload, here = item.frame.type, item.frame.payload, location(item)
        if kind == METHOD:
            self._shown.pop(here)
            if payload.spec.content:
                self._methods[here] = item, wanted
                return ()
            answers = any(self._settling.answer(item))
            return (item,) if answers and (self.selection is None or self.selection.covers(item)) else ()
        if kind == HEADER:
            method, wanted = self._methods.get(here) or (None, False)
            self._methods.pop(here)
            if method is None:
                return ()
            chosen = self._belongs(payload) and wanted
            self._settling.follow(method, True if chosen else None)
            if chosen:
                self._shown[here] = True
                return method, item
            return ()
        return (item,) if kind == BODY and self._shown.get(here) else ()

    def _of_trace(self, shown: Iterable[ShownMessage | Fault]) -> Iterator[ShownMessage | Fault]:
        """Return the faults, and the messages of the trace."""
        return (each for each in shown if isinstance(each, Fault) or self._belongs(each.header))

    def _belongs(self, header: Any) -> bool:
        """Return whether the content header of a message, or None, names the trace."""
        headers = getattr(header.properties, "headers", None) if header is not None else None
        if not isinstance(headers, Mapping):
            return False
        try:
            trace, _ = trace_of(headers)
        except DecodeError:  # a table that is read only now
            return False
        if trace is None:
            return False
        found = _key(trace) == self._key
        self._found = self._found or found
        if not self._found and len(self._seen) < _MOST_SEEN:
            self._seen[trace] = None
        return found


def _is_content(item: Item) -> bool:
    """Return whether a frame is part of a message."""
    return isinstance(item, CapturedFrame) and (item.frame.type != METHOD or item.frame.payload.spec.content)


def _named(trace: str) -> str:
    """Return the id of a trace in the value of a tracer's header; other text is one."""
    found = (read(trace) for read in TRACERS.values())
    return next((ids[0] for ids in found if ids is not None), trace)


def _key(trace: str) -> str:
    """Return an id to compare: tracers differ in case, and fill 64 bits up to 128 with zeros."""
    return trace.lower().lstrip("0")
