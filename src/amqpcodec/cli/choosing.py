"""Chooses what is shown of a file: its frames, or its messages, as far as they are wanted.

`tracing` and `problems` have the other choices: the messages of a trace, and what went wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .._kernel.wire import METHOD
from ..capture import CapturedFrame, Event, Fault, Item
from .found import Found
from .queues import Queues
from .selection import Selection

if TYPE_CHECKING:
    from .messages_py import Messages, ShownMessage

Location = tuple[int, int, int]  # where a content comes: connection, direction, channel


class Choice:
    """Chooses frames and faults of one file.

    Args:
        selection: what is wanted; None for all.
        queues: knows which queue a method is about; None where nobody asks.
    """

    def __init__(self, selection: Selection | None, queues: Queues | None) -> None:
        self.selection = selection
        self._queues = queues

    def watching(self, events: Iterable[Event | Fault]) -> Iterable[Event | Fault]:
        """Return the events that frames are read from, to learn from them what frames do not tell."""
        return events

    def feed(self, item: Item) -> Iterable[Item | ShownMessage | Found]:
        """Return what is to be shown now that a frame or fault has come."""
        return (item,) if self.judge(item)[0] else ()

    def finish(self) -> Iterable[Item | ShownMessage | Found]:
        """Return what is to be shown now that nothing more will come."""
        return ()

    def unmet(self) -> Iterator[str]:
        """Explain why nothing was shown."""
        if self.selection is not None:
            yield from self.selection.unmet()

    def left_out(self) -> Iterator[str]:
        """Say what could not be looked for, since there was too much of it."""
        yield from ()

    def judge(self, item: Item) -> tuple[bool, str | None]:
        """Return whether a frame or fault is wanted, and which queue its method is about, if it is known."""
        if self.selection is None and self._queues is None:
            return True, None
        queue = None
        if self._queues is not None:
            if isinstance(item, Fault):
                self._queues.miss(item)
            elif item.frame.type == METHOD:
                queue = self._queues.of(item)
        return self.selection is None or self.selection.wants(item, queue), queue


class MessageChoice(Choice):
    """Chooses messages, and faults.

    Args:
        selection: what is wanted; None for all.
        queues: knows which queue a method is about.
        messages: puts frames together.
    """

    def __init__(self, selection: Selection | None, queues: Queues, messages: Messages) -> None:
        super().__init__(selection, queues)
        self._of = queues.of
        self._messages = messages

    def feed(self, item: Item) -> Iterable[Item | ShownMessage | Found]:
        """See `Choice.feed`."""
        if self.selection is None and type(item) is CapturedFrame:  # as it nearly always is
            return self._messages.feed(item, True, self._of(item) if item.frame.type == METHOD else None)
        wanted, queue = self.judge(item)
        return self._messages.feed(item, wanted, queue)

    def finish(self) -> Iterable[Item | ShownMessage | Found]:
        """See `Choice.finish`."""
        return self._messages.finish()


def location(item: CapturedFrame) -> Location:
    """Return where the content of a frame comes."""
    return item.connection.number, item.direction, item.frame.channel
