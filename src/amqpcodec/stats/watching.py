"""Watches methods: how channels and connections were closed, what came before, what was returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import amqpcodec

from .counters import Tally
from .flows import Flows
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


class _Connection:
    """The last methods of a connection: on any of its channels, and on each."""

    __slots__ = ("channels", "recent")

    def __init__(self) -> None:
        self.channels: dict[int, list[MethodRow]] = {}
        self.recent: list[MethodRow] = []


class Watcher:
    """Watches the methods of one file, in their order.

    Args:
        file: its name.
        flows: knows the dialects of connections, and receives the methods about them.
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
        *,
        closings: Tally,
        returns: Tally,
        settled: Tally,
        endings: list[Ending],
        top: int,
    ) -> None:
        self._file = file
        self._flows = flows
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
            on_channel = connection.channels.get(number)
            if on_channel is None:
                on_channel = self._open(connection, number)
            handler = handlers.get(row.name)
            if handler is not None:
                handler(self, row, on_channel, connection.recent)
            for recent in (on_channel, connection.recent):
                if len(recent) == BEFORE:
                    del recent[0]
                recent.append(row)

    def end(self, flow: int | None) -> None:
        """There are no more methods of a connection."""
        connection = self._connections.pop(flow, None)
        if connection is not None:
            self._channels -= len(connection.channels)

    def _open(self, connection: _Connection, number: int) -> list[MethodRow]:
        while self._channels >= _MOST_CHANNELS:
            # The oldest connection is forgotten.
            flow, oldest = next(iter(self._connections.items()))
            if oldest is connection:
                self._channels -= len(connection.channels)
                connection.channels.clear()
                break
            self.end(flow)
        self._channels += 1
        recent = connection.channels[number] = []
        return recent

    def _reset(self, row: MethodRow, on_channel: list[MethodRow], on_any: list[MethodRow]) -> None:
        """A channel is opened, or its end is agreed on: the number belongs to another channel now."""
        on_channel.clear()

    def _ack(self, row: MethodRow, on_channel: list[MethodRow], on_any: list[MethodRow]) -> None:
        self._settled.add((row.name, _PEERS[row.direction]), 1)

    def _life(self, row: MethodRow, on_channel: list[MethodRow], on_any: list[MethodRow]) -> None:
        self._flows.method(row)

    def _return(self, row: MethodRow, on_channel: list[MethodRow], on_any: list[MethodRow]) -> None:
        self._returns.add((row.reply_code, row.reply_text, row.exchange, row.routing_key), 1)

    def _cancel(self, row: MethodRow, on_channel: list[MethodRow], on_any: list[MethodRow]) -> None:
        if row.direction:
            self._closings.add(("consumer", _PEERS[row.direction], None, "basic.cancel"), 1)

    def _close(self, row: MethodRow, on_channel: list[MethodRow], on_any: list[MethodRow]) -> None:
        scope = (row.name or "").partition(".")[0]
        if scope == "connection":
            self._flows.method(row)
        by = _PEERS[row.direction]
        self._closings.add((scope, by, row.reply_code, row.reply_text), 1)
        if row.reply_code in PEACEFUL or len(self._endings) >= self._top:
            return
        recent = on_any if scope == "connection" else on_channel
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


_Handler = Callable[[Watcher, MethodRow, list[MethodRow], list[MethodRow]], None]
_HANDLERS: dict[str | None, _Handler] = {
    "basic.ack": Watcher._ack,
    "basic.nack": Watcher._ack,
    "basic.reject": Watcher._ack,
    "basic.return": Watcher._return,
    "basic.cancel": Watcher._cancel,
    "channel.open": Watcher._reset,
    "channel.close": Watcher._close,
    "channel.close-ok": Watcher._reset,
    "connection.start": Watcher._life,
    "connection.open-ok": Watcher._life,
    "connection.blocked": Watcher._life,
    "connection.unblocked": Watcher._life,
    "connection.close": Watcher._close,
}
