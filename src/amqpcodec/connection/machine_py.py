# cython: nonecheck=True
"""A connection of AMQP without any I/O. One text for both builds: machine_c is this file, compiled."""

from __future__ import annotations

from time import monotonic

from amqpcodec._kernel.records_py import Method, Properties
from amqpcodec._kernel.slots.constructors_py import describe

from .._backend import load
from .._protocol.codes import CHANNEL_ERROR, FRAME_ERROR, RESOURCE_ERROR
from .._protocol.index import DIALECTS
from .._typing import TYPE_CHECKING, Any
from ..errors import EncodeError, LocalProtocolError
from ..limits import Limits, checked_limits
from .channel_py import STATES, Channel
from .constants import (
    CHANNEL_CLOSING,
    CLIENT,
    CLOSE,
    HANDSHAKE,
    LEAVING,
    OPEN_CHANNEL,
    SETTLE,
    START,
    TUNE_OK,
)
from .limits import ConnectionLimits
from .outbox_py import Outbox
from .receiving_py import ContentReader, Receiver
from .rules_py import ROLES, Rule
from .state_py import FRAME_MIN_SIZE, NEVER, Handshake, State, Timers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    from .events import Event

_BUILD = __name__.rpartition("_")[2]


class Connection:
    """One connection of a client or a server: the protocol, without sockets, threads or waiting.

    Octets from the peer go into `receive_data`, which returns events. Methods and messages for the peer go
    into `send` and `send_message`. What is then to be written to the socket is in `data_to_send`. Time goes
    into `on_time`, when `next_deadline` has come.

        connection = Connection("client")
        socket.sendall(connection.data_to_send())
        octets = socket.recv(65536)
        for event in connection.receive_data(octets) if octets else connection.receive_eof():
            ...
        socket.sendall(connection.data_to_send())

    What the peer does wrong becomes a `Violation`, with the right channel.close or connection.close queued.
    What this side would do wrong raises `LocalProtocolError`, and nothing is sent or changed. The connection
    itself answers connection.close, channel.close and channel.flow, and sends heartbeats. One thread at a
    time may use it.

    Args:
        role: ``"client"`` or ``"server"``: this side's.
        dialect: a name of `amqpcodec.DIALECTS`, or the module of a dialect.
        channel_max: the highest channel number wanted, 0 for no limit. The lower wish of the two sides
            holds, here and below.
        frame_max: octets of the largest frame wanted: 0 for no limit, else at least 4096.
        heartbeat: seconds between heartbeats wanted. 0 of a client is none, whatever the server offers. 0 of
            a server leaves it to the client.
        tables, properties, profile, strict: as for `FrameDecoder`, for what comes and goes. Where it is not
            strict, a server takes frames that exceed frame_max by up to 8 octets, as RabbitMQ does. A client
            takes content headers of any size that the limits allow, since RabbitMQ sends them whole.
        tolerant: as for `FrameDecoder`: what cannot be read in a field table never ends the connection.
        limits: what the decoder refuses.
        connection_limits: what else the peer may not demand.
        clock: returns seconds that never run backwards.

    Raises:
        ValueError: a role or dialect that there is not, or a number out of range.
        TypeError: a dialect or limits of another class.

    Source: 0-9-1 sections 2.2.4, 4.2, 4.8 and 4.10; the order of methods from the specification of each
    class.
    """

    __slots__ = (
        "_clock",
        "_encoder",
        "_module",
        "_next_channel",
        "_outbox",
        "_receiver",
        "_send_buffer",
        "_sent_class",
        "_sent_rule",
        "_state",
        "_timers",
    )

    def __init__(
        self,
        role: Literal["client", "server"],
        dialect: Any = "rabbitmq-0-9-1",
        *,
        channel_max: int = 2047,
        frame_max: int = 131072,
        heartbeat: int = 60,
        tables: Literal["dict", "raw"] = "dict",
        properties: Literal["decoded", "raw"] = "decoded",
        profile: str | None = None,
        strict: bool = False,
        tolerant: bool = False,
        limits: Limits | None = None,
        connection_limits: ConnectionLimits | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if role not in ROLES:
            raise ValueError(f'role must be "client" or "server", not {role!r}')
        _check_wishes(channel_max, frame_max, heartbeat)
        self._module = module = _module(dialect)
        limits = checked_limits(limits or Limits())
        connection_limits = _checked(connection_limits or ConnectionLimits())
        side = ROLES.index(role)
        state = State(side, module.DIALECT, Handshake(channel_max, frame_max, heartbeat), connection_limits)
        # A server trusts nobody before the handshake has agreed on a size.
        first_frames = (
            frame_max if side == CLIENT else max(connection_limits.handshake_frame_size, FRAME_MIN_SIZE)
        )
        decoder = ContentReader(
            state, frame_max=first_frames, tables=tables, properties=properties, profile=profile,
            strict=strict, tolerant=tolerant, limits=limits,
        )  # fmt: skip
        self._encoder = module.Encoder(profile=profile, strict=strict, limits=limits)
        self._clock = clock
        self._timers = Timers(clock, connection_limits.handshake_seconds)
        self._outbox = Outbox(self._encoder, self._timers)
        self._send_buffer = connection_limits.send_buffer
        self._state = state
        self._receiver = Receiver(state, decoder, self._outbox, self._timers)
        self._next_channel = 1
        self._send_buffer = connection_limits.send_buffer
        self._sent_class: Any = None  # of the method sent last, which mostly is that of the next one too,
        self._sent_rule: Any = None  # and its rule
        if side == CLIENT:
            state.handshake.phase = START
            self._outbox.put(module.DIALECT.protocol_header)

    # -- what there is to know

    @property
    def role(self) -> str:
        """``"client"`` or ``"server"``."""
        return ROLES[self._state.role]

    @property
    def dialect(self) -> Any:
        """The module of the dialect spoken: its method classes, properties and constants."""
        return self._module

    @property
    def state(self) -> str:
        """``"handshake"``, ``"open"``, ``"closing"`` (this side has sent a close) or ``"closed"``."""
        return self._state.name

    @property
    def channel_max(self) -> int:
        """The highest channel number: as wanted, and once tuned as agreed; 0 for no limit."""
        return self._state.handshake.channel_max

    @property
    def frame_max(self) -> int:
        """Octets of the largest frame: as wanted, and once tuned as agreed; 0 for no limit."""
        return self._state.handshake.frame_max

    @property
    def heartbeat(self) -> int:
        """Seconds between heartbeats: as wanted, and once tuned as agreed; 0 for none."""
        return self._state.handshake.heartbeat

    @property
    def blocked(self) -> bool:
        """Return whether the server has said that it reads no publishes for now."""
        return self._state.blocked

    @property
    def channels(self) -> tuple[int, ...]:
        """The numbers of the channels that are not closed."""
        return tuple(self._state.channels)

    @property
    def ignored(self) -> int:
        """How many methods and messages of the peer were ignored, since they came after the close of their
        channel or of the connection. A frame that is out of order or cannot be read counts as one."""
        return self._state.ignored

    def channel_state(self, channel: int) -> str:
        """``"closed"``, ``"opening"``, ``"open"`` or ``"closing"`` (this side has sent channel.close)."""
        entry = self._state.channel(channel)
        return STATES[0] if entry is None else STATES[entry.state]

    def unacknowledged(self, channel: int) -> tuple[int, ...]:
        """Delivery tags of a channel that the client has not settled yet, in order.

        Of a channel that is closed, `ChannelClosed` or `ConnectionClosed` has them; so below.
        """
        entry = self._state.channel(channel)
        return () if entry is None else entry.deliveries.waiting()

    def unconfirmed(self, channel: int) -> tuple[int, ...]:
        """Sequence numbers of publishes that the server has not confirmed yet, in order."""
        entry = self._state.channel(channel)
        return () if entry is None else entry.publishes.waiting()

    def consumers(self, channel: int) -> tuple[str, ...]:
        """The consumer tags in use on a channel."""
        entry = self._state.channel(channel)
        return () if entry is None else tuple(entry.consumers)

    def next_delivery_tag(self, channel: int) -> int:
        """The delivery tag for the next basic.deliver or basic.get-ok on a channel.

        Raises:
            LocalProtocolError: the channel is not open.
        """
        return self._open_channel(channel).deliveries.last + 1

    def awaited(self, channel: int) -> tuple[Any, ...]:
        """The requests that this side has sent on a channel and that are not answered, oldest first."""
        entry = self._state.entry(channel)
        return () if entry is None else entry.waiting(self._state.role)

    def unanswered(self, channel: int) -> tuple[Any, ...]:
        """The requests of the peer on a channel that this side has not answered, oldest first."""
        entry = self._state.entry(channel)
        return () if entry is None else entry.waiting(self._state.peer)

    def _open_channel(self, channel: int) -> Channel:
        entry = self._state.channel(channel)
        if entry is None or entry.state == CHANNEL_CLOSING:
            raise LocalProtocolError(f"channel {channel} is not open", CHANNEL_ERROR, channel)
        return entry

    # -- octets in, events out

    def receive_data(self, data: Any) -> Iterator[Event]:
        """Take octets from the peer.

        The events come one at a time, as the iterator is asked: each describes the connection as it is at
        that point, so that an answer sent while it is handled is judged by that. What is not asked for
        stays for the next time.

        Args:
            data: bytes or any bytes-like object, cut anywhere. None at all, of a transport that is not
                read for a while, keep the peer from being taken for silent meanwhile; the end of
                the stream is `receive_eof`.

        Returns:
            An iterator over the events, the connection itself.
        """
        self._receiver.feed(data)
        return self

    def receive_eof(self) -> Iterator[Event]:
        """The peer sends no more octets: `ConnectionClosed` follows what has come so far.

        Returns:
            An iterator over the events, the connection itself.
        """
        self._receiver.end()
        return self

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = self._receiver.next()
        if event is None:
            raise StopIteration
        return event  # type: ignore[no-any-return]

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
        octets = self._outbox.method_frame(channel, method)  # first, so that its values are known to be right
        self._judge(channel, rule, method)
        state = self._state
        kind = rule.kind
        if kind == HANDSHAKE:
            self._judge_size(rule, len(octets))
        self._outbox.put(octets)
        if kind == HANDSHAKE:
            self._receiver.pass_handshake(rule, method)
        elif kind == OPEN_CHANNEL:
            state.add_channel(state.role, channel, rule, method)
        elif kind == CLOSE and channel == 0:
            self._receiver.leave(method)
        elif kind == CLOSE:
            state.close_channel(channel, method)
        else:
            entry = state.entry(channel)
            assert entry is not None  # or `_judge` had refused it
            if kind == SETTLE:
                entry.settle(state.role, rule, method)
            else:
                entry.apply(state.role, rule, method)

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
        frames = self._outbox.message_frames(channel, method, properties, body)
        self._judge(channel, rule, method)
        self._outbox.put_frames(frames)
        entry = self._state.channel(channel)
        assert entry is not None  # or `_judge` had refused it
        entry.apply(self._state.role, rule, method)
        return entry.sequence_number(rule)

    def open_channel(self) -> int:
        """Send channel.open on a number that is free.

        Returns:
            The number. The channel may be used at once: the server answers in order.

        Raises:
            LocalProtocolError: no number is free, or the connection is not open.
        """
        highest = self._state.handshake.channel_max or 65535
        channels = self._state.channels
        if len(channels) >= highest:
            raise LocalProtocolError(f"all {highest} channels are in use", CHANNEL_ERROR)
        number = self._next_channel
        while number in channels or number > highest:
            number = 1 if number >= highest else number + 1
        self.send(number, self._state.classes["channel.open"]())
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
        self.send(channel, self._state.classes["channel.close"](reply_code, reply_text, class_id, method_id))

    def close(
        self, reply_code: int = 200, reply_text: str = "", class_id: int = 0, method_id: int = 0
    ) -> None:
        """Send connection.close. `ConnectionClosed` follows once the peer has answered.

        Args:
            reply_code, reply_text, class_id, method_id: as in connection.close.

        Raises:
            LocalProtocolError: the connection is closed, or there is none yet.
        """
        self.send(0, self._state.classes["connection.close"](reply_code, reply_text, class_id, method_id))

    def tune(self) -> Method:
        """The connection.tune that offers what this side wants, for a server to send."""
        handshake = self._state.handshake
        return self._state.classes["connection.tune"](  # type: ignore[no-any-return]
            handshake.channel_max, handshake.frame_max, handshake.heartbeat
        )

    def tune_ok(self) -> Method:
        """The connection.tune-ok that answers the server's connection.tune by what this side wants.

        Raises:
            LocalProtocolError: no connection.tune waits for an answer.
        """
        if self._state.handshake.phase != TUNE_OK:
            raise LocalProtocolError("no connection.tune waits for an answer")
        return self._state.classes["connection.tune-ok"](*self._state.handshake.answer())  # type: ignore[no-any-return]

    def data_to_send(self) -> bytes:
        """The octets for the peer, in order; they are then regarded as sent. Empty if there are none."""
        self._state.answered()
        return b"".join(self._outbox.take())

    def buffers_to_send(self) -> list[bytes | memoryview]:
        """Return the octets of `data_to_send` in several buffers, for `socket.sendmsg` or `writelines`."""
        self._state.answered()
        return self._outbox.take()

    @property
    def bytes_to_send(self) -> int:
        """How many octets `data_to_send` would return."""
        return self._outbox.size

    @property
    def on_queued(self) -> Callable[[], object] | None:
        """Called when there is something to send and nothing was before; None for nobody.

        With it an adapter writes whatever is sent, whoever sends it. It is called amid the call that sends:
        it schedules `data_to_send` for later, and does not use the connection itself.
        """
        return self._outbox.on_queued

    @on_queued.setter
    def on_queued(self, called: Callable[[], object] | None) -> None:
        self._outbox.on_queued = called

    def _rule(self, method: Any) -> Rule:
        """The rule of a method of the caller."""
        if type(method) is self._sent_class:
            return self._sent_rule  # type: ignore[no-any-return]
        rules = self._state.rules
        rule = rules.get(type(method))
        if rule is not None:
            self._sent_class, self._sent_rule = type(method), rule
            return rule
        for cls in type(method).__mro__:  # of a class that the caller has derived
            if cls in rules:
                return rules[cls]
        self._encoder.encode_method(0, method)  # says what is wrong with it
        raise EncodeError(f"{self._state.dialect.name} has no method {method.spec.name}")

    def _judge(self, channel: int, rule: Rule, method: Any) -> None:
        """Refuse what this side may not send now."""
        state = self._state
        if state.handshake.phase >= LEAVING:
            raise LocalProtocolError(f"{rule.name} after the connection was closed", CHANNEL_ERROR, channel)
        if self._outbox.size >= self._send_buffer:
            message = f"{self._outbox.size} octets wait to be sent"
            raise LocalProtocolError(message, RESOURCE_ERROR, channel)
        fault = state.fault(state.role, channel, rule, method)
        if fault is not None:
            raise LocalProtocolError(fault.text, fault.code, channel)

    def _judge_size(self, rule: Rule, size: int) -> None:
        """Refuse a method that is too large before tuning, such as connection.start-ok with a long token."""
        handshake = self._state.handshake
        if handshake.phase <= TUNE_OK:
            most = max(self._state.limits.handshake_frame_size, FRAME_MIN_SIZE)
            if size > most:
                text = f"{rule.name} of {size} octets, handshake_frame_size {most}"
                raise LocalProtocolError(text, FRAME_ERROR)
            handshake.largest = max(handshake.largest, size)

    # -- time

    def next_deadline(self) -> float | None:
        """When `on_time` is to be called, in seconds of the clock; None for never."""
        deadline = self._timers.next
        return None if deadline == NEVER else deadline

    def on_time(self, now: float | None = None) -> Iterator[Event]:
        """Do what is due: queue a heartbeat, or give up on a peer that is silent or too slow.

        Args:
            now: seconds of the clock; None to ask it.

        Returns:
            An iterator over the events, the connection itself: `ConnectionClosed` if it is over.
        """
        self._receiver.on_time(self._clock() if now is None else now)
        return self


def _check_wishes(channel_max: int, frame_max: int, heartbeat: int) -> None:
    for name, value in (("channel_max", channel_max), ("heartbeat", heartbeat)):
        if not isinstance(value, int) or not 0 <= value <= 65535:
            raise ValueError(f"{name} must be 0 to 65535, not {value!r}")
    if not isinstance(frame_max, int) or (frame_max != 0 and not FRAME_MIN_SIZE <= frame_max < 1 << 32):
        raise ValueError(f"frame_max must be 0 or {FRAME_MIN_SIZE} and more, not {frame_max!r}")


def _checked(limits: ConnectionLimits) -> ConnectionLimits:
    if not isinstance(limits, ConnectionLimits):
        raise TypeError(f"connection_limits must be ConnectionLimits, not {type(limits).__name__}")
    for name, value in limits._asdict().items():
        if not isinstance(value, (int, float)) or not value > 0:
            raise ValueError(f"ConnectionLimits.{name} must be positive, not {value!r}")
    return limits


def _module(dialect: Any) -> Any:
    """The module of a dialect: by name that of this build."""
    if not isinstance(dialect, str):
        if not hasattr(dialect, "DIALECT"):
            raise TypeError(f"dialect must be a name, or the module of a dialect, not {dialect!r}")
        return dialect
    if dialect not in DIALECTS:
        raise ValueError(f"no dialect {dialect!r}; there are {', '.join(DIALECTS)}")
    return load(f"amqpcodec._generated.{DIALECTS[dialect]}", _BUILD)


describe([Connection])

__all__ = ["Connection"]
