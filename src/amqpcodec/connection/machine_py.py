"""A connection of AMQP without any I/O. One text for both builds: machine_c is this file, compiled."""

from __future__ import annotations

from collections import deque
from time import monotonic

from amqpcodec._kernel.records_py import Message, Method, Properties

from .._backend import load
from .._generated.index import DIALECTS
from .._generated.reply_codes import REPLY_ERRORS
from .._typing import TYPE_CHECKING, Any
from ..errors import (
    CHANNEL_ERROR,
    COMMAND_INVALID,
    RESOURCE_ERROR,
    DecodeError,
    EncodeError,
    LocalProtocolError,
)
from ..limits import Limits
from .channel_py import CLOSING, OPEN, STATES, Channel, Fault
from .contents_py import ContentReader
from .events import (
    Blocked,
    ChannelClosed,
    ChannelOpened,
    ConnectionClosed,
    FlowChanged,
    FrameReceived,
    MessageReceived,
    MethodReceived,
    Opened,
    ProtocolHeaderReceived,
    Settled,
    Unblocked,
    Violation,
)
from .handshake_py import FRAME_MIN_SIZE, LEAVING, OPENING, OVER, RUNNING, START, TUNE_OK, Handshake
from .limits import ConnectionLimits
from .rules_py import (
    BLOCKED,
    CLIENT,
    CLOSE,
    CLOSE_OK,
    FLOW,
    HANDSHAKE,
    OPEN_CHANNEL,
    ROLES,
    SERVER,
    SETTLE,
    UNBLOCKED,
    Rule,
    classes_of,
    rules_of,
)
from .timers_py import NEVER, Timers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .events import Event

PIECES_FROM = 65536  # octets of a body from which on it is not copied into the octets to send
CONNECTION_FORCED = 320
_CONTENT_CUT_OFF = "content of {} cut off by another method"
_BUILD = __name__.rpartition("_")[2]


class Connection:
    """One connection of a client or a server: the protocol, without sockets, threads or waiting.

    Octets from the peer go into `receive_data`, which returns events. Methods and messages for the peer go
    into `send` and `send_message`. What is then to be written to the socket is in `data_to_send`. Time goes
    into `on_time`, when `next_deadline` has come.

        connection = Connection("client")
        socket.sendall(connection.data_to_send())
        for event in connection.receive_data(socket.recv(65536)):
            ...
        socket.sendall(connection.data_to_send())

    What the peer does wrong becomes a `Violation`, with the right channel.close or connection.close queued.
    What this side would do wrong raises `LocalProtocolError`, and nothing is sent or changed. The connection
    itself answers connection.close, channel.close and channel.flow, and sends heartbeats.

    Args:
        role: ``"client"`` or ``"server"``: this side's.
        dialect: a name of `amqpcodec.DIALECTS`, or the module of a dialect.
        channel_max: the highest channel number wanted, 0 for no limit. The lower wish of the two sides
            holds, here and below.
        frame_max: octets of the largest frame wanted: 0 for no limit, else at least 4096.
        heartbeat: seconds between heartbeats wanted, 0 for none of one's own accord.
        tables, profile, strict: as for `FrameDecoder`, for what comes and goes.
        limits: what the decoder refuses.
        connection_limits: what else the peer may not demand.
        clock: returns seconds that never run backwards.

    Raises:
        ValueError: a role or dialect that there is not, or a number out of range.

    Source: 0-9-1 sections 2.2.4, 4.2, 4.8 and 4.10; the order of methods from the specification of each
    class.
    """

    __slots__ = (
        "_blocked",
        "_channels",
        "_classes",
        "_clock",
        "_closing",
        "_connection_class",
        "_decoder",
        "_dialect",
        "_encoder",
        "_ended",
        "_frame_limit",
        "_handshake",
        "_head",
        "_limits",
        "_module",
        "_next_channel",
        "_out",
        "_out_size",
        "_peer",
        "_ready",
        "_role",
        "_rules",
        "_timers",
        "_zero",
    )  # fmt: skip

    def __init__(
        self,
        role: str,
        dialect: Any = "rabbitmq-0-9-1",
        *,
        channel_max: int = 2047,
        frame_max: int = 131072,
        heartbeat: int = 60,
        tables: str = "dict",
        profile: str | None = None,
        strict: bool = False,
        limits: Limits | None = None,
        connection_limits: ConnectionLimits | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if role not in ROLES:
            raise ValueError(f'role must be "client" or "server", not {role!r}')
        _check_wishes(channel_max, frame_max, heartbeat)
        self._role = ROLES.index(role)
        self._peer = 1 - self._role
        self._module = module = _module(dialect)
        self._dialect = module.DIALECT
        self._rules = rules_of(module.DIALECT)
        self._classes = classes_of(module.DIALECT)
        self._connection_class = (
            -1 if self._dialect.connection_class is None else self._dialect.connection_class
        )
        self._limits = connection_limits or ConnectionLimits()
        limits = limits or Limits()
        self._encoder = module.Encoder(profile=profile, strict=strict, limits=limits)
        self._decoder = ContentReader(
            module.DIALECT, self._judge_content, frame_max=self._first_frame_max(frame_max), tables=tables,
            profile=profile, strict=strict, limits=limits,
        )  # fmt: skip
        self._handshake = Handshake(channel_max, frame_max, heartbeat)
        self._clock = clock
        self._timers = Timers(clock, self._limits.handshake_seconds)
        self._channels: dict[int, Channel] = {}
        self._next_channel = 1
        self._zero = Channel(0, self._role, self._limits)  # pairs the requests of the connection itself
        self._zero.state = OPEN
        self._ready: deque[Any] = deque()  # events that are due before anything is read
        self._out: list[Any] = []
        self._out_size = 0
        self._frame_limit = 0  # octets of a frame to send; 0 for no limit
        self._head: bytearray | None = bytearray()  # where a protocol header may stand, until it is known
        self._closing: Any = None  # the connection.close that this side sent
        self._ended = False  # no more octets come
        self._blocked = False
        if self._role == CLIENT:
            self._handshake.phase = START
            self._put(self._dialect.protocol_header)

    def _first_frame_max(self, frame_max: int) -> int:
        """Octets of a frame to accept before tuning: a server trusts nobody yet."""
        if self._role == SERVER:
            return max(self._limits.handshake_frame_size, FRAME_MIN_SIZE)
        return frame_max

    # -- what there is to know

    @property
    def role(self) -> str:
        """``"client"`` or ``"server"``."""
        return ROLES[self._role]

    @property
    def dialect(self) -> Any:
        """The module of the dialect spoken: its method classes, properties and constants."""
        return self._module

    @property
    def state(self) -> str:
        """``"handshake"``, ``"open"``, ``"closing"`` (this side has sent a close) or ``"closed"``."""
        phase = self._handshake.phase
        if phase == RUNNING:
            return "open"
        return "closed" if phase == OVER else "closing" if phase == LEAVING else "handshake"

    @property
    def channel_max(self) -> int:
        """The highest channel number: as wanted, and once tuned as agreed; 0 for no limit."""
        return self._handshake.channel_max

    @property
    def frame_max(self) -> int:
        """Octets of the largest frame: as wanted, and once tuned as agreed; 0 for no limit."""
        return self._handshake.frame_max

    @property
    def heartbeat(self) -> int:
        """Seconds between heartbeats: as wanted, and once tuned as agreed; 0 for none."""
        return self._handshake.heartbeat

    @property
    def blocked(self) -> bool:
        """Whether the server has said that it reads no publishes for now."""
        return self._blocked

    @property
    def channels(self) -> tuple[int, ...]:
        """The numbers of the channels that are not closed."""
        return tuple(self._channels)

    def channel_state(self, channel: int) -> str:
        """``"closed"``, ``"opening"``, ``"open"`` or ``"closing"`` (this side has sent channel.close)."""
        entry = self._channels.get(channel)
        return STATES[0] if entry is None else STATES[entry.state]

    def unacknowledged(self, channel: int) -> tuple[int, ...]:
        """Delivery tags of a channel that the client has not settled yet, in order."""
        entry = self._channels.get(channel)
        return () if entry is None else entry.deliveries.waiting()

    def unconfirmed(self, channel: int) -> tuple[int, ...]:
        """Sequence numbers of publishes that the server has not confirmed yet, in order."""
        entry = self._channels.get(channel)
        return () if entry is None else entry.publishes.waiting()

    def next_delivery_tag(self, channel: int) -> int:
        """The delivery tag for the next basic.deliver or basic.get-ok on a channel.

        Raises:
            LocalProtocolError: the channel is not open.
        """
        return self._open_channel(channel).deliveries.last + 1

    def awaited(self, channel: int) -> tuple[Any, ...]:
        """The requests that this side has sent on a channel and that are not answered, oldest first."""
        entry = self._entry(channel)
        return () if entry is None else entry.waiting(self._role)

    def unanswered(self, channel: int) -> tuple[Any, ...]:
        """The requests of the peer on a channel that this side has not answered, oldest first."""
        entry = self._entry(channel)
        return () if entry is None else entry.waiting(self._peer)

    def _entry(self, channel: int) -> Channel | None:
        return self._zero if channel == 0 else self._channels.get(channel)

    def _open_channel(self, channel: int) -> Channel:
        entry = self._channels.get(channel)
        if entry is None or entry.state == CLOSING:
            raise LocalProtocolError(f"channel {channel} is not open", CHANNEL_ERROR, channel)
        return entry

    # -- octets in, events out

    def receive_data(self, data: Any) -> Iterator[Event]:
        """Take octets from the peer.

        The events come one at a time, as the iterator is asked: each describes the connection as it is at
        that point, so that an answer sent while it is handled is judged by that. What is not asked for
        stays for the next time.

        Args:
            data: bytes or any bytes-like object, cut anywhere.

        Returns:
            An iterator over the events, the connection itself.
        """
        if self._handshake.phase != OVER and len(data):
            self._timers.received()
            if self._head is not None:
                data = self._read_head(bytes(data))
            if self._handshake.phase != OVER and len(data):
                self._decoder.feed(data)
        return self

    def receive_eof(self) -> Iterator[Event]:
        """The peer sends no more octets: `ConnectionClosed` follows what has come so far.

        Returns:
            An iterator over the events, the connection itself.
        """
        self._ended = True
        return self

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = self._next()
        if event is None:
            raise StopIteration
        return event  # type: ignore[no-any-return]

    def _next(self) -> Any:
        """The next event, or None when more octets are needed."""
        while True:
            if self._ready:
                return self._ready.popleft()
            if self._handshake.phase == OVER:
                return None
            try:
                value = next(self._decoder, None)
            except DecodeError as error:
                event = self._on_error(error)
            else:
                if value is not None:
                    event = self._on_value(value)
                elif self._ended:
                    text = "the peer has ended the stream without connection.close"
                    event = self._over(ConnectionClosed("eof", 0, text))
                else:
                    return None
            if event is not None:
                return event

    def _read_head(self, octets: bytes) -> bytes:
        """Look for the peer's protocol header; the octets after it, once that is settled."""
        head = self._head
        assert head is not None
        head += octets
        if self._role == CLIENT and head[0] != 0x41:  # a frame: the server agrees to the version
            self._head = None
            return octets
        if len(head) < 8:
            return b""
        self._head = None
        header, rest = bytes(head[:8]), bytes(head[8:])
        accepted = self._role == SERVER and header in self._dialect.accepted_headers
        self._ready.append(ProtocolHeaderReceived(header, accepted))
        if accepted:
            self._handshake.phase = START
            return rest
        if self._role == SERVER:
            self._put(self._dialect.protocol_header)
        text = f"the peer names the protocol {header!r}"
        self._ready.append(self._over(ConnectionClosed("version", 0, text)))
        return b""

    def _on_value(self, value: Any) -> Any:
        """A message or a frame from the decoder."""
        if type(value) is Message:
            return self._on_message(value)
        method = value.payload
        rule = self._rules.get(type(method))
        if rule is not None:
            return self._on_method(value.channel, rule, method)
        if value.channel == 0 and value.type == 8:
            return None
        return None if self._handshake.phase < OPENING else FrameReceived(value)

    def _on_method(self, number: int, rule: Rule, method: Any) -> Any:
        """A method without content."""
        if self._discards(number, rule):
            return None
        fault = self._fault(self._peer, number, rule, method)
        if fault is not None:
            return self._violated(number, fault, rule.class_id, rule.method_id, None)
        kind = rule.kind
        if kind == CLOSE:
            return self._on_close(number, method)
        if kind == CLOSE_OK:
            return self._on_close_ok(number)
        if kind == HANDSHAKE:
            return self._on_handshake(rule, method)
        if kind == OPEN_CHANNEL:
            self._add_channel(self._peer, number, rule, method)
            return MethodReceived(number, method)
        entry = self._zero if number == 0 else self._channels[number]
        opening = entry.state != OPEN
        request = entry.apply(self._peer, rule, method)
        if kind == SETTLE:
            return Settled(number, method, entry.settle(self._peer, rule, method))
        if kind == FLOW:
            self._answer(number, "channel.flow-ok", active=method.active)
            return FlowChanged(number, bool(method.active))
        if opening and entry.state == OPEN:
            return ChannelOpened(number, method)
        if kind == BLOCKED or kind == UNBLOCKED:
            self._blocked = kind == BLOCKED
            return Blocked(method.reason) if self._blocked else Unblocked()
        return MethodReceived(number, method, request)

    def _discards(self, number: int, rule: Rule) -> bool:
        """Whether a method of the peer is to be ignored: after a close, all but closes are (1.5.2.5)."""
        if self._handshake.phase == LEAVING:
            return number != 0 or rule.kind not in (CLOSE, CLOSE_OK)
        entry = self._channels.get(number)
        return entry is not None and entry.state == CLOSING and rule.kind not in (CLOSE, CLOSE_OK)

    def _judge_content(self, number: int, method: Any) -> Any:
        """Why a content of the peer may not begin; False if it is to be ignored; None if it may come."""
        rule: Rule = self._rules[type(method)]
        if self._discards(number, rule):
            return False
        return self._fault(self._peer, number, rule, method)

    def _on_message(self, message: Any) -> Any:
        """A method with its content, which was judged when it began."""
        number = message.channel
        entry = self._channels.get(number)
        if self._handshake.phase != RUNNING and self._handshake.phase != OPENING:
            return None
        if entry is None or entry.state == CLOSING:
            return None
        method = message.method
        rule: Rule = self._rules[type(method)]
        if not message.complete:
            fault = Fault(self._dialect.unexpected_frame, _CONTENT_CUT_OFF.format(rule.name))
            return self._violated(number, fault, rule.class_id, rule.method_id, None)
        request = entry.apply(self._peer, rule, method)
        sequence_number = entry.sequence_number(rule)
        return MessageReceived(number, method, message.properties, message.body, request, sequence_number)

    def _on_handshake(self, rule: Rule, method: Any) -> Any:
        self._pass_handshake(rule, method)
        if self._handshake.phase != RUNNING:
            return MethodReceived(0, method)
        return Opened(self.channel_max, self.frame_max, self.heartbeat)

    def _on_close(self, number: int, method: Any) -> Any:
        """The peer closes a channel or the connection: it is answered at once."""
        if number == 0:
            leaving = self._handshake.phase == LEAVING
            self._answer(0, "connection.close-ok")
            # Where both have sent a close, each also waits for the other's answer.
            return None if leaving else self._over(ConnectionClosed("peer", *_told(method)))
        entry = self._channels[number]
        if entry.state != CLOSING:
            del self._channels[number]
        self._answer(number, "channel.close-ok")
        return None if entry.state == CLOSING else ChannelClosed(number, "peer", *_told(method))

    def _on_close_ok(self, number: int) -> Any:
        """The peer has answered a close of this side."""
        if number == 0:
            return self._over(ConnectionClosed("local", *_told(self._closing)))
        entry = self._channels.pop(number)
        return ChannelClosed(number, "local", *_told(entry.closing))

    # -- what may be sent, by either side

    def _fault(self, sender: int, number: int, rule: Rule, method: Any) -> Fault | None:
        """Why a side may not send a method now, or None."""
        if not rule.senders >> sender & 1:
            return Fault(COMMAND_INVALID, f"{rule.name} is not for a {ROLES[sender]} to send")
        phase = self._handshake.phase
        if rule.class_id == self._connection_class:
            if number != 0:
                return Fault(COMMAND_INVALID, "a connection method belongs on channel 0")
            return self._connection_fault(sender, rule, method)
        if number == 0:
            return Fault(CHANNEL_ERROR, "channel 0 takes connection methods only")
        if phase < OPENING:
            return Fault(CHANNEL_ERROR, f"{rule.name} before the connection is open")
        entry = self._channels.get(number)
        if rule.kind == OPEN_CHANNEL:
            highest = self._handshake.channel_max
            if entry is not None:
                return Fault(CHANNEL_ERROR, f"channel {number} is open already")
            if highest and number > highest:
                return Fault(CHANNEL_ERROR, f"channel {number}, the highest is {highest}")
            return None
        if entry is None:
            return Fault(CHANNEL_ERROR, f"channel {number} is not open")
        if rule.kind == CLOSE_OK:
            closing = entry.state == CLOSING and sender == self._peer
            return None if closing else Fault(COMMAND_INVALID, f"{rule.name} answers no channel.close")
        if entry.state == CLOSING and sender == self._role:
            return Fault(CHANNEL_ERROR, f"channel {number} is being closed")
        return None if rule.kind == CLOSE else entry.fault(sender, rule, method)

    def _connection_fault(self, sender: int, rule: Rule, method: Any) -> Fault | None:
        """The same for a method of the connection class."""
        kind = rule.kind
        phase = self._handshake.phase
        if kind == HANDSHAKE:
            return self._handshake.fault(rule, method)
        if kind == CLOSE_OK:
            leaving = phase == LEAVING and sender == self._peer
            return None if leaving else Fault(COMMAND_INVALID, f"{rule.name} answers no connection.close")
        if kind == CLOSE:
            return None if phase > START else Fault(COMMAND_INVALID, f"{rule.name} before connection.start")
        if phase < OPENING:
            return Fault(COMMAND_INVALID, f"{rule.name} before the connection is open")
        return self._zero.fault(sender, rule, method)

    # -- what the peer does wrong

    def _on_error(self, error: DecodeError) -> Any:
        """The decoder refuses a frame."""
        if not error.fatal:
            self._decoder.skip_frame()
        entry = self._channels.get(error.channel)
        closing = entry is not None and entry.state == CLOSING
        if self._handshake.phase == LEAVING or (closing and not error.fatal):
            # After a fatal error no answer to the close can be read.
            return self._over(ConnectionClosed("local", *_told(self._closing))) if error.fatal else None
        fault = Fault(error.reply_code, error.message)
        if entry is None and error.channel and not error.fatal and error.reply_code != COMMAND_INVALID:
            fault = Fault(CHANNEL_ERROR, f"channel {error.channel} is not open")
        return self._violated(error.channel, fault, error.class_id, error.method_id, error)

    def _violated(
        self, number: int, fault: Fault, class_id: int, method_id: int, error: DecodeError | None
    ) -> Any:
        """Close what the fault's code says, and report it."""
        soft = number != 0 and _closes_channel(fault.code) and number in self._channels
        text = _reply_text(fault)
        told = (fault.code, text, class_id, method_id)
        close = None
        if soft:
            close = self._classes["channel.close"](*told)
            self._put(self._encoder.encode_method(number, close))
            entry = self._channels[number]
            entry.state = CLOSING
            entry.closing = close
        elif self._handshake.phase > START:
            close = self._classes["connection.close"](*told)
            self._put(self._encoder.encode_method(0, close))
            self._leave(close)
        if not soft and (close is None or (error is not None and error.fatal)):
            self._ready.append(self._over(ConnectionClosed("local", *told)))
        return Violation(number if soft else 0, fault.code, text, class_id, method_id, close, error)

    def _leave(self, close: Any) -> None:
        """This side has sent connection.close."""
        self._handshake.phase = LEAVING
        self._closing = close
        self._timers.start_close(self._limits.close_seconds)

    def _over(self, event: ConnectionClosed) -> ConnectionClosed:
        """The connection is over, by this event."""
        self._handshake.phase = OVER
        self._timers.stop()
        self._channels.clear()
        self._decoder.reset()
        return event

    # -- methods and messages out

    def send(self, channel: int, method: Method) -> None:
        """Send a method without content.

        Args:
            channel: channel number; 0 for methods of the connection.
            method: a method of the dialect. connection.close and channel.close begin a close; close-ok
                and flow-ok are never sent by hand.

        Raises:
            LocalProtocolError: it may not be sent now.
            EncodeError: a value that its field cannot carry.
        """
        rule = self._rule(method)
        if rule.content:
            raise LocalProtocolError(f"{rule.name} carries a content: use send_message", channel=channel)
        self._judge(channel, rule, method)
        self._put(self._encoder.encode_method(channel, method, frame_max=self._frame_limit))
        kind = rule.kind
        if kind == HANDSHAKE:
            self._pass_handshake(rule, method)
        elif kind == OPEN_CHANNEL:
            self._add_channel(self._role, channel, rule, method)
        elif kind == CLOSE:
            self._close(channel, method)
        else:
            entry = self._zero if channel == 0 else self._channels[channel]
            entry.apply(self._role, rule, method)
            if kind == SETTLE:
                entry.settle(self._role, rule, method)

    def send_message(
        self, channel: int, method: Method, properties: Properties | None, body: Any
    ) -> int | None:
        """Send a method with its content.

        Args:
            channel: channel number.
            method: a method that carries content, such as basic.publish or basic.deliver.
            properties: the properties of its class; None for none.
            body: bytes-like. `bytes` of 64 KiB and more are not copied.

        Returns:
            The sequence number that will confirm a basic.publish in confirm mode, else None.

        Raises:
            LocalProtocolError: it may not be sent now, or a limit of `ConnectionLimits` is reached.
            EncodeError: a value that its field cannot carry.
        """
        rule = self._rule(method)
        if not rule.content:
            raise LocalProtocolError(f"{rule.name} carries no content: use send", channel=channel)
        self._judge(channel, rule, method)
        limit = self._frame_limit
        if type(body) is bytes and len(body) >= PIECES_FROM:
            for part in self._encoder.encode_message_parts(
                channel, method, properties, body, frame_max=limit
            ):
                self._put(part)
        else:
            self._put(self._encoder.encode_message(channel, method, properties, body, frame_max=limit))
        entry = self._channels[channel]
        entry.apply(self._role, rule, method)
        return entry.sequence_number(rule)

    def open_channel(self) -> int:
        """Send channel.open on a number that is free.

        Returns:
            The number. The channel may be used at once: the server answers in order.

        Raises:
            LocalProtocolError: no number is free, or the connection is not open.
        """
        highest = self._handshake.channel_max or 65535
        channels = self._channels
        if len(channels) >= highest:
            raise LocalProtocolError(f"all {highest} channels are in use", CHANNEL_ERROR)
        number = self._next_channel
        while number in channels or number > highest:
            number = 1 if number >= highest else number + 1
        self.send(number, self._classes["channel.open"]())
        self._next_channel = number + 1
        return number

    def close_channel(
        self, channel: int, reply_code: int = 200, reply_text: str = "", class_id: int = 0, method_id: int = 0
    ) -> None:
        """Send channel.close. `ChannelClosed` follows once the peer has answered.

        Args:
            channel: channel number.
            reply_code, reply_text, class_id, method_id: as in channel.close.

        Raises:
            LocalProtocolError: the channel is not open.
        """
        self.send(channel, self._classes["channel.close"](reply_code, reply_text, class_id, method_id))

    def close(
        self, reply_code: int = 200, reply_text: str = "", class_id: int = 0, method_id: int = 0
    ) -> None:
        """Send connection.close. `ConnectionClosed` follows once the peer has answered.

        Args:
            reply_code, reply_text, class_id, method_id: as in connection.close.

        Raises:
            LocalProtocolError: the connection is closed, or there is none yet.
        """
        self.send(0, self._classes["connection.close"](reply_code, reply_text, class_id, method_id))

    def tune(self) -> Method:
        """The connection.tune that offers what this side wants, for a server to send."""
        handshake = self._handshake
        return self._classes["connection.tune"](  # type: ignore[no-any-return]
            handshake.channel_max, handshake.frame_max, handshake.heartbeat
        )

    def tune_ok(self) -> Method:
        """The connection.tune-ok that answers the server's connection.tune by what this side wants.

        Raises:
            LocalProtocolError: no connection.tune waits for an answer.
        """
        if self._handshake.phase != TUNE_OK:
            raise LocalProtocolError("no connection.tune waits for an answer")
        return self._classes["connection.tune-ok"](*self._handshake.answer())  # type: ignore[no-any-return]

    def data_to_send(self) -> bytes:
        """The octets for the peer, in order; they are then regarded as sent. Empty if there are none."""
        parts = self.buffers_to_send()
        return parts[0] if len(parts) == 1 and type(parts[0]) is bytes else b"".join(parts)

    def buffers_to_send(self) -> list[bytes | memoryview]:
        """The same as `data_to_send` in several buffers, for `socket.sendmsg` or `writelines`."""
        parts = self._out
        if parts:
            self._timers.sent()
            self._out = []
            self._out_size = 0
        return parts

    @property
    def bytes_to_send(self) -> int:
        """How many octets `data_to_send` would return."""
        return self._out_size

    def _rule(self, method: Any) -> Rule:
        """The rule of a method of the caller."""
        for cls in type(method).__mro__:
            rule = self._rules.get(cls)
            if rule is not None:
                return rule
        self._encoder.encode_method(0, method)  # says what is wrong with it
        raise EncodeError(f"{self._dialect.name} has no method {method.spec.name}")

    def _judge(self, channel: int, rule: Rule, method: Any) -> None:
        """Refuse what this side may not send now."""
        if self._handshake.phase >= LEAVING:
            raise LocalProtocolError(f"{rule.name} after the connection was closed", CHANNEL_ERROR, channel)
        if self._out_size >= self._limits.send_buffer:
            raise LocalProtocolError(f"{self._out_size} octets wait to be sent", RESOURCE_ERROR, channel)
        fault = self._fault(self._role, channel, rule, method)
        if fault is not None:
            raise LocalProtocolError(fault.text, fault.code, channel)

    def _put(self, octets: Any) -> None:
        self._out.append(octets)
        self._out_size += len(octets)

    def _answer(self, number: int, name: str, **arguments: Any) -> None:
        """Send what the protocol itself demands."""
        method = self._classes[name](**arguments)
        self._put(self._encoder.encode_method(number, method))
        entry = self._channels.get(number)
        rule = self._rules[type(method)]
        if entry is not None and rule.kind != CLOSE_OK:
            entry.apply(self._role, rule, method)

    def _add_channel(self, sender: int, number: int, rule: Rule, method: Any) -> None:
        self._channels[number] = entry = Channel(number, self._role, self._limits)
        entry.apply(sender, rule, method)

    def _close(self, channel: int, method: Any) -> None:
        """This side has sent a close."""
        if channel == 0:
            self._leave(method)
        else:
            entry = self._channels[channel]
            entry.state = CLOSING
            entry.closing = method

    def _pass_handshake(self, rule: Rule, method: Any) -> None:
        """A method of the handshake has passed, in either direction."""
        handshake = self._handshake
        handshake.apply(rule, method)
        if rule.name == "connection.tune-ok":
            self._frame_limit = handshake.frame_max
            self._decoder.agree(handshake.frame_max)
            self._timers.start_heartbeats(handshake.heartbeat)
        elif handshake.phase == RUNNING:
            self._timers.handshake_ends = NEVER

    # -- time

    def next_deadline(self) -> float | None:
        """When `on_time` is to be called, in seconds of the clock; None for never."""
        deadline = self._timers.next
        return None if deadline == NEVER else deadline

    def on_time(self, now: float | None = None) -> list[Event]:
        """Do what is due: queue a heartbeat, or give up on a peer that is silent or too slow.

        Args:
            now: seconds of the clock; None to ask it.

        Returns:
            `ConnectionClosed` if the connection is over, else nothing.
        """
        timers = self._timers
        now = self._clock() if now is None else now
        if now >= timers.handshake_ends:
            text = f"no connection within {self._limits.handshake_seconds:g} seconds"
            if self._handshake.phase > START:
                close = self._classes["connection.close"](CONNECTION_FORCED, text, 0, 0)
                self._put(self._encoder.encode_method(0, close))
            return [self._over(ConnectionClosed("timeout", CONNECTION_FORCED, text))]
        if now >= timers.close_ends:
            code = self._closing.reply_code
            return [self._over(ConnectionClosed("timeout", code, "no answer to connection.close"))]
        if now >= timers.peer_gone_at:
            text = f"nothing came for {2 * timers.heartbeat} seconds"
            return [self._over(ConnectionClosed("timeout", 0, text))]
        if now >= timers.heartbeat_at:
            self._put(self._encoder.encode_heartbeat())
            timers.heartbeat_queued(now)
        return []


def _check_wishes(channel_max: int, frame_max: int, heartbeat: int) -> None:
    for name, value in (("channel_max", channel_max), ("heartbeat", heartbeat)):
        if not isinstance(value, int) or not 0 <= value <= 65535:
            raise ValueError(f"{name} must be 0 to 65535, not {value!r}")
    if not isinstance(frame_max, int) or (frame_max != 0 and not FRAME_MIN_SIZE <= frame_max < 1 << 32):
        raise ValueError(f"frame_max must be 0 or {FRAME_MIN_SIZE} and more, not {frame_max!r}")


def _module(dialect: Any) -> Any:
    """The module of a dialect: by name that of this build."""
    if not isinstance(dialect, str):
        return dialect
    if dialect not in DIALECTS:
        raise ValueError(f"no dialect {dialect!r}; there are {', '.join(DIALECTS)}")
    return load(f"amqpcodec._generated.{DIALECTS[dialect]}", _BUILD)


def _told(close: Any) -> tuple[int, str, int, int]:
    """What a close method says."""
    return close.reply_code, close.reply_text, close.class_id, close.method_id


def _closes_channel(code: int) -> bool:
    return code in REPLY_ERRORS and REPLY_ERRORS[code].closes == "channel"


def _reply_text(fault: Fault) -> str:
    """The text of a close method, which is a short string."""
    name = REPLY_ERRORS[fault.code].name.upper().replace("-", "_")
    octets = f"{name} - {fault.text}".encode("utf-8", "backslashreplace")[:255]
    return octets.decode("utf-8", "ignore")


__all__ = ["Connection"]
