"""Watches methods: how channels and connections were closed, what came before, what was returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import amqpcodec

from .counters import Tally
from .flows import Flows
from .lives import Closed, Stay, Stays
from .outcomes import Outcomes
from .summary import Ending, Step

_DIALECT = "rabbitmq-0-9-1"
BEFORE = 5  # methods reported before the end of a channel or connection
_MOST_CHANNELS = 20_000
PEACEFUL = (0, 200)  # reply codes of what is closed without an error
_PEERS = ("client", "server")
_ABOUT = ("exchange", "routing_key", "queue", "consumer_tag")


class MethodRow(NamedTuple):
    """A row of the table `methods`, with the arguments that matter here; None for those it does not have."""

    flow: int | None
    direction: int
    ts_ns: int | None
    offset: int
    packet: int | None
    channel: int | None
    name: str | None
    exchange: str | None
    routing_key: str | None
    queue: str | None
    consumer_tag: str | None
    reply_code: int | None
    reply_text: str | None
    class_id: int | None
    method_id: int | None
    reason: str | None
    prefetch_count: int | None


class _Channel:
    """A channel.

    Attributes:
        recent: its last methods.
        is_open: whether its end has not been agreed on yet.
        begin_ns: when it began.
        closed: the method that closes it.
        prefetch: how many messages may wait for an acknowledgement.
    """

    __slots__ = ("begin_ns", "closed", "is_open", "prefetch", "recent")

    def __init__(self, begin_ns: int | None) -> None:
        self.begin(begin_ns)

    def begin(self, begin_ns: int | None, is_open: bool = True) -> None:
        """Forget everything: the number belongs to another channel now, or to none."""
        self.recent: list[MethodRow] = []
        self.is_open = is_open
        self.begin_ns = begin_ns
        self.closed: Closed | None = None
        self.prefetch: int | None = None


class _Connection:
    """The last methods of a connection on any of its channels, the open ones, and those that have ended."""

    __slots__ = ("channels", "recent", "stays")

    def __init__(self) -> None:
        self.channels: dict[int, _Channel] = {}
        self.recent: list[MethodRow] = []
        self.stays: Stays | None = None


class Watcher:
    """Watches the methods of one file, in their order.

    Args:
        file: its name.
        flows: knows the dialects of connections, and receives the methods about them.
        outcomes: learns what ends consumers, and how much they may have waiting.
        closings: counts how channels and connections were closed.
        returns: counts messages returned.
        settled: counts acknowledgements and refusals by method.
        endings: receives the first channels and connections closed by an error.
        top: how many of them.
    """

    def __init__(
        self,
        file: str,
        flows: Flows,
        outcomes: Outcomes,
        *,
        closings: Tally,
        returns: Tally,
        settled: Tally,
        endings: list[Ending],
        top: int,
    ) -> None:
        self._file = file
        self._flows = flows
        self._outcomes = outcomes
        self._closings = closings
        self._returns = returns
        self._settled = settled
        self._endings = endings
        self._top = top
        self._connections: dict[int | None, _Connection] = {}
        self._channels = 0

    def feed(self, rows: Iterable[MethodRow]) -> None:
        """Take the next methods."""
        connections, handlers = self._connections, _HANDLERS
        for row in rows:
            number = row.channel
            if number is None:
                continue  # a frame whose beginning is not known either
            connection = connections.get(row.flow)
            if connection is None:
                connection = connections[row.flow] = _Connection()
            channel = connection.channels.get(number)
            if channel is None:
                channel = self._open(connection, row)
            handler = handlers.get(row.name)
            if handler is not None:
                handler(self, row, channel, connection)
            for recent in (channel.recent, connection.recent):
                if len(recent) == BEFORE:
                    del recent[0]
                recent.append(row)

    def end(self, flow: int | None) -> Stays:
        """Return the channels of a connection; there are no more methods of it."""
        connection = self._connections.pop(flow, None)
        if connection is None:
            return Stays()
        self._channels -= len(connection.channels)
        stays = connection.stays or Stays()
        for number, channel in connection.channels.items():
            self._leave(flow, number, channel, stays, None)
        return stays

    def _open(self, connection: _Connection, row: MethodRow) -> _Channel:
        while self._channels >= _MOST_CHANNELS:
            # The oldest connection is forgotten.
            flow, oldest = next(iter(self._connections.items()))
            if oldest is connection:
                self._channels -= len(connection.channels)
                connection.channels.clear()
                break
            self.end(flow)
        self._channels += 1
        channel = connection.channels[row.channel or 0] = _Channel(row.ts_ns)
        return channel

    def _leave(
        self, flow: int | None, number: int, channel: _Channel, stays: Stays, end_ns: int | None
    ) -> None:
        """A channel ends."""
        if number and channel.is_open:
            stays.add(Stay(number, channel.begin_ns, end_ns, channel.closed))
        if channel.prefetch is not None:
            self._outcomes.limit(self._flows.client(flow), number, channel.prefetch)

    def _opens(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        if channel.recent and channel.is_open:  # the end of an earlier one was not recorded
            self._closes(row, channel, connection)
        channel.begin(row.ts_ns)

    def _closes(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        """The end of a channel is agreed on."""
        if connection.stays is None:
            connection.stays = Stays()
        number = row.channel or 0
        self._leave(row.flow, number, channel, connection.stays, row.ts_ns)
        self._outcomes.stop(self._flows.client(row.flow), number, row.ts_ns)
        channel.begin(None, is_open=False)

    def _ack(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        self._settled.add((row.name, _PEERS[row.direction]), 1)

    def _qos(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        channel.prefetch = row.prefetch_count

    def _life(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        self._flows.method(row)

    def _return(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        self._returns.add((row.reply_code, row.reply_text, row.exchange, row.routing_key), 1)

    def _cancel(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        if row.direction:
            self._closings.add(("consumer", _PEERS[row.direction], None, "basic.cancel"), 1)
            self._cancelled(row, channel, connection)

    def _cancelled(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        self._outcomes.stop(self._flows.client(row.flow), row.channel or 0, row.ts_ns, row.consumer_tag)

    def _close(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        scope = (row.name or "").partition(".")[0]
        if scope == "connection":
            self._flows.method(row)
        by = _PEERS[row.direction]
        channel.closed = channel.closed or Closed(by, row.reply_code, row.reply_text)
        self._closings.add((scope, by, row.reply_code, row.reply_text), 1)
        if row.reply_code in PEACEFUL or len(self._endings) >= self._top:
            return
        recent = connection.recent if scope == "connection" else channel.recent
        self._endings.append(
            Ending(
                self._file, row.flow, row.packet, row.ts_ns, scope, row.channel or 0, by, row.reply_code,
                row.reply_text, self._cause(row), [_step(each) for each in recent],
            )
        )  # fmt: skip

    def _cause(self, row: MethodRow) -> str | None:
        """The method that failed, by the ids in the closing method."""
        if not row.class_id or row.method_id is None:
            return None
        dialect = amqpcodec.dialect(self._flows.dialect(row.flow) or _DIALECT)
        method = dialect.METHODS.get((row.class_id, row.method_id))
        return method.spec.name if method else f"{row.class_id}.{row.method_id}"


def _step(row: MethodRow) -> Step:
    about: dict[str, str] = {}
    for argument in _ABOUT:
        value: Any = getattr(row, argument)
        if value:
            about[argument] = value
    return Step(row.ts_ns, row.packet, row.direction, row.channel or 0, row.name or "", about)


_Handler = Callable[[Watcher, MethodRow, _Channel, _Connection], None]
_HANDLERS: dict[str | None, _Handler] = {
    "basic.ack": Watcher._ack,
    "basic.nack": Watcher._ack,
    "basic.reject": Watcher._ack,
    "basic.return": Watcher._return,
    "basic.qos": Watcher._qos,
    "basic.cancel": Watcher._cancel,
    "basic.cancel-ok": Watcher._cancelled,
    "channel.open": Watcher._opens,
    "channel.close": Watcher._close,
    "channel.close-ok": Watcher._closes,
    "connection.start": Watcher._life,
    "connection.open-ok": Watcher._life,
    "connection.blocked": Watcher._life,
    "connection.unblocked": Watcher._life,
    "connection.close": Watcher._close,
    "connection.close-ok": Watcher._life,
}
