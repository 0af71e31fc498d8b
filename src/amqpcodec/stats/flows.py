"""The fate of connections: whether they open, fall silent, are blocked, and how they end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..capture import CLIENT_TO_SERVER, Close, Connection, Data, Endpoint, Event, Fault, Gap
from ..options import KEEP
from .counters import Tally
from .lives import Lives, Stays
from .summary import SUCCESS, Incident

if TYPE_CHECKING:
    from .watching import MethodRow

_SECOND = 1_000_000_000
_SILENT_HEARTBEATS = 2  # intervals without an octet after which a peer counts as gone (0-9-1, 4.2.7)


class Incidents:
    """Counts what happened to connections, and keeps the first incidents of each kind.

    Args:
        top: how many to keep of each kind.
        copies: what becomes of connections that were recorded twice.
    """

    def __init__(self, top: int, copies: str = KEEP) -> None:
        self.of_copies = "recorded-twice" if copies == KEEP else "left-out"
        self.counts = Tally(("kind",), ("times", "duration_ns"))
        self.first: list[Incident] = []
        self._top = top
        self._kept: dict[str, int] = {}

    def add(self, incident: Incident) -> None:
        """Count one."""
        kind = incident.kind
        self.counts.add((kind,), 1, incident.duration_ns or 0)
        if self._kept.get(kind, 0) < self._top:
            self._kept[kind] = self._kept.get(kind, 0) + 1
            self.first.append(incident)


class _Flow:
    """A connection so far.

    Attributes:
        last, silence, since: of each direction, when the last octets came, the longest time without any, and
            its beginning.
        begun, opened, closing: whether the handshake began and ended, and whether connection.close was seen,
            or its answer.
        cut: of each direction, whether octets are missing behind the last ones recorded.
        unheard: the direction of which nothing was recorded, though there was something; None without one.
        blocked: the method connection.blocked that is in force.
        closes: how many directions have ended.
        row, stays: its row in the table `connections`, and its channels.
    """

    __slots__ = (
        "begun", "blocked", "closes", "closing", "connection", "cut", "last", "opened", "row", "silence",
        "since", "stays", "unheard",
    )  # fmt: skip

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.last: list[int | None] = [None, None]
        self.silence = [0, 0]
        self.since = [0, 0]
        self.begun = self.opened = self.closing = False
        self.cut = [False, False]
        self.unheard: int | None = None
        self.blocked: MethodRow | None = None
        self.closes = 0
        self.row: dict[str, Any] | None = None
        self.stays: Stays | None = None

    def see(self, direction: int, time_ns: int) -> None:
        """Octets came, or the direction ended."""
        last = self.last[direction]
        if last is not None and time_ns - last > self.silence[direction]:
            self.silence[direction], self.since[direction] = time_ns - last, last
        self.last[direction] = time_ns


def named(end: Endpoint | None) -> str | None:
    """Return address and port of an end, and the tunnels that tell it from equal ends in others."""
    return f"{end} in {end.tunnel}" if end and end.tunnel else str(end) if end else None


class Flows:
    """The connections of a file, as long as rows of theirs may come.

    Attributes:
        last_ns: when the last octets of any of them came.

    Args:
        file: its name.
        incidents: receives what happens to them.
        lives: receives them when they have ended.
        of_streams: whether the file holds the octets of one direction; its rows have no `flow`.
    """

    def __init__(self, file: str, incidents: Incidents, lives: Lives, of_streams: bool) -> None:
        self._file = file
        self._incidents = incidents
        self._lives = lives
        self._of_streams = of_streams
        self._flows: dict[int | None, _Flow] = {}
        self._closed: list[_Flow] = []
        self._ending: dict[_Flow, None] = {}  # closed, and nothing was recorded since
        self.in_tunnels: dict[int | None, str | None] = {}  # the clients of connections, by number
        self.last_ns: int | None = None

    def see(self, events: Iterable[Event | Fault]) -> None:
        """Take the next events."""
        for event in events:
            if isinstance(event, Fault):
                continue
            flow = self._flows.get(event.connection.number) or self._open(event)
            if event.time_ns is not None:
                flow.see(event.direction, event.time_ns)
                self.last_ns = event.time_ns
            if isinstance(event, Close):
                self._close(flow)
                continue
            flow.cut[event.direction] = isinstance(event, Gap)
            if isinstance(event, Gap) and event.whole:
                flow.unheard = event.direction
            elif self._ending:
                self._end_all(by_recording=False)

    def dialect(self, flow: int | None) -> str | None:
        """Name of the dialect of a connection, if it is known."""
        known = self._flows.get(0 if self._of_streams else flow)
        return known.connection.dialect if known else None

    def client(self, flow: int | None) -> str | None:
        """Return the name of the client of a connection, if it is known."""
        known = self._flows.get(flow)
        return named(known.connection.client) if known else None

    def end_ns(self, flow: int | None) -> int | None:
        """Return when the last octets of a connection came, or its end."""
        known = self._flows.get(flow)
        return max((time for time in known.last if time is not None), default=None) if known else None

    def method(self, row: MethodRow) -> None:
        """Take a method of the class connection."""
        flow = self._flows.get(row.flow)
        if flow is None:
            return
        if row.name == "connection.start":
            flow.begun = True
        elif row.name == "connection.open-ok":
            flow.opened = True
        elif row.name in ("connection.close", "connection.close-ok"):
            flow.closing = True
        elif row.name == "connection.blocked":
            flow.blocked = flow.blocked or row
        elif row.name == "connection.unblocked":
            self._unblock(flow, row.ts_ns)

    def end(self, row: dict[str, Any], stays: Stays) -> bool:
        """Take the row of a connection and its channels; no more methods of it will come.

        Returns:
            Whether the recording ended with it or before it, as far as is known yet.
        """
        flow = self._flows.get(row["flow"])
        if flow is None:
            return True
        flow.row, flow.stays = row, stays
        if flow in self._ending:
            return not flow.closing
        self._judge(flow, by_recording=False)
        return False

    def forget_closed(self) -> None:
        """All rows of the events so far have come."""
        for flow in self._closed:
            self._flows.pop(flow.connection.number, None)
            self.in_tunnels.pop(flow.connection.number, None)
        self._closed.clear()

    def finish(self) -> None:
        """The file has ended, and with it what was still open."""
        self._end_all(by_recording=True)

    def _open(self, event: Event) -> _Flow:
        connection = event.connection
        flow = self._flows[connection.number] = _Flow(connection)
        if connection.client is not None and connection.client.tunnel:
            self.in_tunnels[connection.number] = named(connection.client)
        if isinstance(event, Data) and event.direction == CLIENT_TO_SERVER:
            flow.begun = event.octets[:4] == b"AMQP"
        return flow

    def _close(self, flow: _Flow) -> None:
        flow.closes += 1
        if flow.closes == 2:
            if flow.connection.copy_of is not None:
                self._add(
                    flow, self._incidents.of_copies, self.last_ns, text=f"as #{flow.connection.copy_of}"
                )
            self._closed.append(flow)
            self._ending[flow] = None

    def _end_all(self, by_recording: bool) -> None:
        ending, self._ending = self._ending, {}
        for flow in ending:
            if flow.row is not None:
                self._judge(flow, by_recording)

    def _judge(self, flow: _Flow, by_recording: bool) -> None:
        """Report what was unusual about a connection that has ended, or with it the recording."""
        row = flow.row or {}
        if self._of_streams or not row["frames_sent"] + row["frames_received"]:
            return
        first, last = (
            None if time is None else time * 1000 for time in (row["ts_first_us"], row["ts_last_us"])
        )
        carried = row["messages_sent"] + row["messages_received"]
        if flow.unheard is not None:
            self._add(flow, "one-sided", first, direction=flow.unheard)
        elif flow.begun and not (flow.opened or carried or row["gaps"]):
            code, text = row["close_code"], row["close_text"]
            kind = "not-opened" if code in SUCCESS else "refused"
            self._add(flow, kind, first, text=None if code is None else f"{code} {text}")
        elif not flow.closing and not any(flow.cut):
            self._add(flow, "open-at-the-end" if by_recording else "ended-without-close", last)
        ended = "unknown" if any(flow.cut) else "recording" if by_recording else "broken"
        ended = "closed" if flow.closing else ended
        end_ns = self.last_ns if ended == "recording" else last
        self._lives.add(self._file, row, flow.stays or Stays(), ended, end_ns)
        if flow.blocked is not None:
            self._unblock(flow, self.last_ns if by_recording else last)
        for direction in (0, 1) if row["heartbeat"] else ():
            if by_recording and not flow.closing and self.last_ns is not None and flow.last[direction]:
                flow.see(direction, self.last_ns)
            if flow.silence[direction] > _SILENT_HEARTBEATS * row["heartbeat"] * _SECOND:
                silence = flow.since[direction], flow.silence[direction]
                self._add(flow, "silent", *silence, direction, f"heartbeat {row['heartbeat']} s")

    def _unblock(self, flow: _Flow, time_ns: int | None) -> None:
        blocked, flow.blocked = flow.blocked, None
        if blocked is not None:
            since = blocked.ts_ns
            lasted = None if since is None or time_ns is None else max(time_ns - since, 0)
            self._add(flow, "blocked", since, lasted, 1, blocked.reason)

    def _add(
        self,
        flow: _Flow,
        kind: str,
        time_ns: int | None,
        duration_ns: int | None = None,
        direction: int | None = None,
        text: str | None = None,
    ) -> None:
        connection = flow.connection
        server = str(connection.server) if connection.server else None
        where = self._file, connection.number, named(connection.client), server, direction
        self._incidents.add(Incident(kind, *where, time_ns, duration_ns, text))
