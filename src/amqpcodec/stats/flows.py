"""What the events of connections show that no row does."""

from __future__ import annotations

from collections.abc import Iterable

from ..capture import Close, Connection, Event, Fault


class Flows:
    """The connections of a file, as long as rows of theirs may come.

    Args:
        of_streams: whether the file holds the octets of one direction; its rows have no `flow`.
    """

    def __init__(self, of_streams: bool) -> None:
        self._of_streams = of_streams
        self._flows: dict[int | None, Connection] = {}
        self._closed: list[int] = []

    def see(self, events: Iterable[Event | Fault]) -> None:
        """Take the next events."""
        flows = self._flows
        for event in events:
            if not isinstance(event, Fault):
                flows[event.connection.number] = event.connection
                if isinstance(event, Close):
                    self._closed.append(event.connection.number)

    def dialect(self, flow: int | None) -> str | None:
        """Name of the dialect of a connection, if it is known."""
        connection = self._flows.get(0 if self._of_streams else flow)
        return connection.dialect if connection else None

    def forget_closed(self) -> None:
        """All rows of the events so far have come."""
        for flow in self._closed:
            self._flows.pop(flow, None)  # the other direction may have closed before
        self._closed.clear()
