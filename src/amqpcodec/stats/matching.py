"""Matches answers to requests: confirms to publishes, acknowledgements to deliveries.

Delivery tags count from 1 on each channel. The broker numbers what it delivers itself; the numbers of
published messages are counted by both sides from confirm.select on (RabbitMQ's publisher confirms). With
``multiple`` an answer is for all messages up to its tag; tag 0 then means all of them. In transactions
answers count only at tx.commit, so channels in that mode are left out, as are consumers that do not
acknowledge.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import takewhile
from typing import Any, NamedTuple

import amqpcodec

from .counters import Durations, Tally
from .depths import Depths
from .flows import Flows
from .summary import Ending, Slow, Step

_DIALECT = "rabbitmq-0-9-1"
BEFORE = 5  # methods reported before the end of a channel or connection
_MOST_WAITING = 200_000  # messages without an answer yet, in total
_MOST_CHANNELS = 20_000
_MOST_ASKED = 1024  # of one kind of request, on one channel
_MOST_SOURCES = 100_000
_MOST_BREAKS = 1_000_000  # with more of them little is left to match
_SUCCESS = (0, 200)
_PEERS = ("client", "server")
_LOST_COUNT = -1
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
    delivery_tag: int | None
    multiple: bool | None
    no_ack: bool | None
    no_wait: bool | None
    nowait: bool | None
    reply_code: int | None
    reply_text: str | None
    class_id: int | None
    method_id: int | None
    redelivered: bool | None
    message_count: int | None
    reason: str | None


class Sources:
    """From which queue a message came: for consumers by their tag, for basic.get by channel.

    Offsets are those in the server's direction of the connection.
    """

    def __init__(self) -> None:
        self._by_key: dict[tuple[int | None, int, str | None], tuple[list[int], list[str]]] = {}
        self._size = 0

    def add(self, key: tuple[int | None, int, str | None], offset: int, queue: str) -> None:
        """From this offset on, messages of a connection, channel and consumer tag (None: basic.get) come
        from a queue."""
        if self._size >= _MOST_SOURCES:
            return
        offsets, queues = self._by_key.setdefault(key, ([], []))
        if queues and queues[-1] == queue:
            return
        offsets.append(offset)
        queues.append(queue)
        self._size += 1

    def queue(self, key: tuple[int | None, int, str | None], offset: int) -> str | None:
        """The queue of the message at an offset; None if it is not known."""
        offsets, queues = self._by_key.get(key, ((), ()))
        count = bisect_right(offsets, offset)
        return queues[count - 1] if count else None

    def is_one(self, key: tuple[int | None, int, str | None], first: int, last: int) -> bool:
        """Return whether all messages from one offset to another came from the same queue."""
        offsets, _ = self._by_key.get(key, ((), ()))
        return bisect_right(offsets, first) == bisect_right(offsets, last)


# What a channel begins with. They are never changed: it gets its own as soon as there is something in it.
# The first key of a dict is slow to find where many before it were removed.
_NO_ROWS: OrderedDict[int, MethodRow] = OrderedDict()
_NOBODY: frozenset[str] = frozenset()
_NOT_ASKED: tuple[MethodRow, ...] = ()


def _asked(asked: tuple[MethodRow, ...], row: MethodRow) -> tuple[MethodRow, ...]:
    """Requests, and one more; the oldest of too many is forgotten."""
    return (*asked[1 - _MOST_ASKED :], row)


class _Channel:
    """The state of a channel. A recording may have very many, so what most of them never need is made late.

    Attributes:
        next_tag: number of the next published message; 0 outside confirm mode, -1 if messages were missed.
        published, delivered: the rows that wait for an answer, by tag in ascending order.
        transacted: whether it is in the mode of tx.select.
        consumers, silent: tags of consumers; of those that do not acknowledge.
        queue: the name of the last queue that was declared.
        consumes, gets: requests not yet answered.
        recent: the last methods.
    """

    __slots__ = (
        "consumers", "consumes", "delivered", "gets", "next_tag", "published", "queue", "recent",
        "silent", "transacted",
    )  # fmt: skip

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget everything: the number belongs to another channel now."""
        self.next_tag = 0
        self.published = self.delivered = _NO_ROWS
        self.transacted = False
        self.consumers = self.silent = _NOBODY
        self.queue: str | None = None
        self.consumes = self.gets = _NOT_ASKED
        self.recent: list[MethodRow] = []

    def answered_get(self) -> MethodRow | None:
        """Take out the basic.get that is answered now; None if it was not seen."""
        if not self.gets:
            return None
        asked, *left = self.gets
        self.gets = tuple(left)
        return asked


class _Connection:
    """The channels of a connection, and its last methods on any of them.

    Attributes:
        breaks: offsets at which octets are missing, of each direction, as heaps.
        server_offset: where the server's last method began.
    """

    __slots__ = ("breaks", "channels", "recent", "server_offset")

    def __init__(self, breaks: _Breaks) -> None:
        self.breaks = breaks
        self.channels: dict[int, _Channel] = {}
        self.recent: list[MethodRow] = []
        self.server_offset = 0


class Matcher:
    """Matches the methods of one file, in their order.

    Args:
        file: its name.
        flows: knows the dialects of connections, and receives the methods about them.
        confirms, acks: receive the latencies.
        closings: counts how channels and connections were closed.
        returns: counts messages returned.
        settled: counts acknowledgements and refusals by method.
        redelivered: counts messages delivered again by queue.
        depths: receives how full queues are.
        endings: receives the first channels and connections closed by an error.
        top: how many of them.

    Attributes:
        sources: the queues of the messages delivered.
    """

    def __init__(
        self,
        file: str,
        flows: Flows,
        *,
        confirms: Durations,
        acks: Durations,
        closings: Tally,
        returns: Tally,
        settled: Tally,
        redelivered: Tally,
        depths: Depths,
        endings: list[Ending],
        top: int,
    ) -> None:
        self.sources = Sources()
        self._file = file
        self._flows = flows
        self._breaks: dict[int | None, _Breaks] = {}
        self._room = _MOST_BREAKS
        self._confirms = confirms
        self._acks = acks
        self._closings = closings
        self._returns = returns
        self._settled = settled
        self._redelivered = redelivered
        self._depths = depths
        self._endings = endings
        self._top = top
        self._connections: dict[int | None, _Connection] = {}
        self._channels = self._waiting = 0

    def miss(self, flow: int | None, direction: int, offset: int) -> None:
        """Octets are missing there; to be called before the methods behind them are fed."""
        if self._room:
            self._room -= 1
            connection = self._connections.get(flow)
            breaks = connection.breaks if connection else self._breaks.setdefault(flow, ([], []))
            heappush(breaks[direction], offset)

    def feed(self, rows: Iterable[MethodRow]) -> None:
        """Match the next methods."""
        connections, handlers = self._connections, _HANDLERS
        for row in rows:
            number, direction = row.channel, row.direction
            if number is None:
                continue  # a frame whose beginning is not known either
            connection = connections.get(row.flow)
            if connection is None:
                connection = connections[row.flow] = _Connection(self._breaks.pop(row.flow, ([], [])))
            ahead = connection.breaks[direction]
            while ahead and ahead[0] < row.offset:
                heappop(ahead)
                self._room += 1
                self._lose_count(connection, direction)
            channel = connection.channels.get(number)
            if channel is None:
                channel = self._open(connection, number)
            handler = handlers.get(row.name)
            if handler is not None:
                handler(self, row, channel, connection)
            for recent in (channel.recent, connection.recent):
                if len(recent) == BEFORE:
                    del recent[0]
                recent.append(row)
            if direction:
                connection.server_offset = row.offset

    def end(self, flow: int | None, by_recording: bool) -> None:
        """There are no more methods of a connection, perhaps because the recording ended."""
        before = self._confirms.unanswered, self._acks.unanswered
        if flow in self._connections:
            self._forget_connection(flow)
        if by_recording:
            self._confirms.waiting += self._confirms.unanswered - before[0]
            self._acks.waiting += self._acks.unanswered - before[1]
        self._room += sum(map(len, self._breaks.pop(flow, ())))

    def finish(self) -> None:
        """There are no more methods."""
        for connection in self._connections.values():
            self._end_all(connection)

    # -- channels

    def _open(self, connection: _Connection, number: int) -> _Channel:
        while self._channels >= _MOST_CHANNELS:
            # The oldest connection is forgotten.
            flow, oldest = next(iter(self._connections.items()))
            if oldest is connection:
                self._end_all(connection)
                break
            self._forget_connection(flow)
        self._channels += 1
        channel = connection.channels[number] = _Channel()
        return channel

    def _forget_connection(self, flow: int | None) -> None:
        connection = self._connections.pop(flow)
        self._end_all(connection)
        if any(connection.breaks):
            self._breaks[flow] = connection.breaks

    def _end_all(self, connection: _Connection) -> None:
        for channel in connection.channels.values():
            self._end(channel)
        self._channels -= len(connection.channels)
        connection.channels.clear()

    def _end(self, channel: _Channel) -> None:
        """No more answers will come."""
        self._waiting -= len(channel.published) + len(channel.delivered)
        self._confirms.unanswered += len(channel.published)
        channel.published = _NO_ROWS
        for row in channel.delivered.values():
            if row.name == "basic.get-ok" or row.consumer_tag in channel.consumers:
                self._acks.unanswered += 1
            else:
                self._acks.unfollowed += 1  # the consumer may be one that does not acknowledge
        channel.delivered = _NO_ROWS

    def _lose_count(self, connection: _Connection, direction: int) -> None:
        """Octets are missing: counting no longer matches requests and answers."""
        for channel in connection.channels.values():
            channel.consumes = channel.gets = _NOT_ASKED
            if direction == 0 and channel.next_tag:
                self._waiting -= len(channel.published)
                self._confirms.unfollowed += len(channel.published)
                channel.published = _NO_ROWS
                channel.next_tag = _LOST_COUNT

    def _reset(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        """A channel is opened, or its end is agreed on."""
        self._end(channel)
        channel.begin()

    def _connection_closed(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        self._forget_connection(row.flow)

    # -- requests and answers

    def _confirm_select(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        if not channel.next_tag:
            channel.next_tag = 1

    def _publish(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        tag = channel.next_tag
        if tag:
            if tag > 0:
                channel.next_tag = tag + 1
            if channel.published is _NO_ROWS:
                channel.published = OrderedDict()
            self._wait(channel.published, tag, row, self._confirms)

    def _deliver(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        if row.redelivered:
            consumer = row.flow, row.channel or 0, row.consumer_tag
            self._redelivered.add((self.sources.queue(consumer, row.offset),), 1)
        if row.consumer_tag not in channel.silent:
            self._follow(row, channel)

    def _get_ok(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        asked = channel.answered_get()
        queue = None if asked is None else asked.queue or channel.queue
        self._source(row, None, row.offset, queue)
        self._depths.report(queue, row.message_count)
        if row.redelivered:
            self._redelivered.add((queue,), 1)
        if asked is None or not asked.no_ack:
            self._follow(row, channel)

    def _follow(self, row: MethodRow, channel: _Channel) -> None:
        if not channel.transacted and row.delivery_tag is not None:
            if channel.delivered is _NO_ROWS:
                channel.delivered = OrderedDict()
            self._wait(channel.delivered, row.delivery_tag, row, self._acks)

    def _wait(self, waiting: dict[int, MethodRow], tag: int, row: MethodRow, durations: Durations) -> None:
        if tag < 0 or row.ts_ns is None or self._waiting >= _MOST_WAITING:
            durations.unfollowed += 1
            return
        self._waiting += tag not in waiting
        waiting[tag] = row

    def _ack(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        self._settled.add((row.name, _PEERS[row.direction]), 1)
        if row.direction:
            self._settle(row, channel.published, self._confirms)
        else:
            self._settle(row, channel.delivered, self._acks)

    def _settle(self, row: MethodRow, waiting: dict[int, MethodRow], durations: Durations) -> None:
        tag = row.delivery_tag
        if tag is None:
            return
        if row.multiple:
            answered = list(takewhile(tag.__ge__, waiting) if tag else waiting)
        else:
            answered = [tag] if tag in waiting else []
        self._waiting -= len(answered)
        if row.name != "basic.ack":
            durations.negative += len(answered)
        now, slow = row.ts_ns, durations.slow
        for each in answered:
            asked = waiting.pop(each)
            then = asked.ts_ns
            if now is None or then is None:
                durations.unfollowed += 1
            elif slow(now - then if now > then else 0):
                durations.keep(self._slow(row, each, asked))

    def _slow(self, row: MethodRow, tag: int, asked: MethodRow) -> Slow:
        then = asked.ts_ns or 0
        return Slow(
            self._file, asked.flow or 0, asked.channel or 0, tag, asked.packet or 0, then,
            row.packet or 0, max((row.ts_ns or 0) - then, 0), row.name or "", asked.exchange,
            asked.routing_key,
        )  # fmt: skip

    def _forget(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        """The waiting deliveries will come again, or a commit settles them."""
        self._waiting -= len(channel.delivered)
        self._acks.unfollowed += len(channel.delivered)
        channel.delivered = _NO_ROWS
        channel.transacted = channel.transacted or row.name == "tx.select"

    # -- queues

    def _declare(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        if row.queue:
            channel.queue = row.queue
            self._depths.report(row.queue, row.message_count)

    def _consume(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        if row.no_wait or row.nowait:
            self._consumer(row, row.consumer_tag or "", connection.server_offset + 1, channel)
        else:
            channel.consumes = _asked(channel.consumes, row)

    def _consume_ok(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        tag = row.consumer_tag or ""
        for index, asked in enumerate(channel.consumes):
            if asked.consumer_tag in ("", tag):
                channel.consumes = channel.consumes[:index] + channel.consumes[index + 1 :]
                self._consumer(asked, tag, row.offset, channel)
                return

    def _consumer(self, asked: MethodRow, tag: str, offset: int, channel: _Channel) -> None:
        if len(channel.consumers) < _MOST_ASKED:
            channel.consumers |= {tag}
        channel.silent -= {tag}
        if asked.no_ack and len(channel.silent) < _MOST_ASKED:
            channel.silent |= {tag}
        self._source(asked, tag, offset, asked.queue or channel.queue)

    def _source(self, row: MethodRow, tag: str | None, offset: int, queue: str | None) -> None:
        if queue is not None:
            self.sources.add((row.flow, row.channel or 0, tag), offset, queue)

    def _get(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        channel.gets = _asked(channel.gets, row)

    def _get_empty(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        asked = channel.answered_get()
        if asked is not None:
            self._depths.report(asked.queue or channel.queue, 0)

    # -- connections, errors and closes

    def _life(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        self._flows.method(row)

    def _return(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        self._returns.add((row.reply_code, row.reply_text, row.exchange, row.routing_key), 1)

    def _cancel(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        if row.direction:
            self._closings.add(("consumer", _PEERS[row.direction], None, "basic.cancel"), 1)

    def _close(self, row: MethodRow, channel: _Channel, connection: _Connection) -> None:
        scope = (row.name or "").partition(".")[0]
        if scope == "connection":
            self._flows.method(row)
        by = _PEERS[row.direction]
        self._closings.add((scope, by, row.reply_code, row.reply_text), 1)
        if row.reply_code in _SUCCESS or len(self._endings) >= self._top:
            return
        recent = (connection if scope == "connection" else channel).recent
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


_Breaks = tuple[list[int], list[int]]  # of each direction
_Handler = Callable[[Matcher, MethodRow, _Channel, _Connection], None]
_HANDLERS: dict[str | None, _Handler] = {
    "basic.publish": Matcher._publish,
    "basic.deliver": Matcher._deliver,
    "basic.get-ok": Matcher._get_ok,
    "basic.ack": Matcher._ack,
    "basic.nack": Matcher._ack,
    "basic.reject": Matcher._ack,
    "basic.recover": Matcher._forget,
    "basic.recover-async": Matcher._forget,
    "tx.select": Matcher._forget,
    "confirm.select": Matcher._confirm_select,
    "queue.declare": Matcher._declare,
    "queue.declare-ok": Matcher._declare,
    "basic.consume": Matcher._consume,
    "basic.consume-ok": Matcher._consume_ok,
    "basic.get": Matcher._get,
    "basic.get-empty": Matcher._get_empty,
    "basic.return": Matcher._return,
    "basic.cancel": Matcher._cancel,
    "channel.open": Matcher._reset,
    "channel.close": Matcher._close,
    "channel.close-ok": Matcher._reset,
    "connection.start": Matcher._life,
    "connection.open-ok": Matcher._life,
    "connection.blocked": Matcher._life,
    "connection.unblocked": Matcher._life,
    "connection.close": Matcher._close,
    "connection.close-ok": Matcher._connection_closed,
}
