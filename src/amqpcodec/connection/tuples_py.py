"""Events made of their values; the compiled twin, tuples_c.pyx, spares the calls of a constructor."""

from __future__ import annotations

from .._typing import TYPE_CHECKING, Any
from .events import MessageReceived

if TYPE_CHECKING:
    from typing import TypeVar

    _E = TypeVar("_E")


def make_event(cls: type[_E], values: tuple[Any, ...]) -> _E:
    """An event of a class, with all of its values in order. Three times as fast as the constructor."""
    event: _E = tuple.__new__(cls, values)  # type: ignore[type-var]  # every event is a tuple
    return event


def message_received(
    number: int, method: Any, properties: Any, body: Any, request: Any, sequence_number: int | None
) -> MessageReceived:
    """Return the most frequent event."""
    return make_event(MessageReceived, (number, method, properties, body, request, sequence_number))


__all__ = ["make_event", "message_received"]
