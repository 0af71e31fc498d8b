# cython: nonecheck=True
"""From what the peer sends to events. One text for both builds: receiving_c is this file, compiled."""

from __future__ import annotations

from collections import deque

from amqpcodec._kernel.messages_py import Content, MessageDecoder
from amqpcodec._kernel.records_py import Message

from .._kernel.content_order import CUT_OFF, refusal
from .._kernel.foreign import foreign_protocol
from .._kernel.wire import FRAME_SLACK, HEARTBEAT, OVERHEAD
from .._protocol.codes import (
    CHANNEL_ERROR,
    COMMAND_INVALID,
    CONNECTION_FORCED,
    REPLY_NAMES,
    RESOURCE_ERROR,
    SOFT,
)
from .._typing import TYPE_CHECKING, Any
from ..errors import DecodeError, printable
from ..limits import MAX_LIMIT
from .constants import (
    BLOCKED,
    CHANNEL_CLOSING,
    CHANNEL_OPEN,
    CLIENT,
    CLOSE,
    CLOSE_OK,
    FLOW,
    HANDSHAKE,
    LEAVING,
    OPEN_CHANNEL,
    OPENING,
    OVER,
    RUNNING,
    SERVER,
    SETTLE,
    START,
    UNBLOCKED,
)
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
from .outbox_py import Outbox
from .refusals import Refusal
from .rules_py import Rule
from .state_py import NEVER, State, Timers
from .tuples import make_event, make_event_of_six

if TYPE_CHECKING:
    from typing import Literal

    from .._kernel.dialect_py import Dialect
    from ..limits import Limits


class ContentReader(MessageDecoder):
    """A `MessageDecoder` that asks before it takes a content in.

    A content is judged when its method comes, so that nothing is kept of one that is not wanted. What is kept
    of those that are not complete is limited for all channels together.

    Args:
        state: judges the contents, says what dialect to read, and has the limit.
        frame_max, tables, properties, profile, strict, tolerant, limits: as for `MessageDecoder`.
    """

    __slots__ = ("_held", "_held_limit", "_state")

    def __init__(
        self,
        state: State,
        *,
        frame_max: int,
        tables: Literal["dict", "raw"],
        properties: Literal["decoded", "raw"],
        profile: str | None,
        strict: bool,
        tolerant: bool,
        limits: Limits,
    ) -> None:
        self._state = state
        self._held_limit = state.limits.open_bytes
        slack = FRAME_SLACK if state.role == SERVER and not strict else 0
        MessageDecoder.__init__(
            self, frame_max=frame_max, frame_max_slack=slack, tables=tables, properties=properties,
            profile=profile, strict=strict, tolerant=tolerant, limits=limits, expect_header=False,
            aborted="keep",
        )  # fmt: skip
        # A larger header may be too much to keep, which `_header` finds out.
        self._whole_limit = min(self._held_limit, MAX_LIMIT - OVERHEAD) + OVERHEAD

    def _set_limits(self, frame_max: int, size_limit: int) -> None:
        """Let larger content headers pass: RabbitMQ sends them whole, whatever was agreed."""
        MessageDecoder._set_limits(self, frame_max, size_limit)
        reader = self._reader
        most = min(self._frame_size, self._held_limit)
        if self._state.role == CLIENT and not self._strict and most - OVERHEAD > size_limit:
            reader.header_limit = most - OVERHEAD
            reader.header_limit_name = "frame_size" if most == self._frame_size else "open_bytes"

    @property
    def dialect(self) -> Dialect:  # type: ignore[override]
        """The dialect that it reads."""
        return self._state.dialect

    def _judge(self, channel: int, method: Any) -> bool:
        """Return whether a content is to be discarded; refuses one that may not come now."""
        fault = self._state.judge_content(channel, method)
        if fault is not None and fault is not False:
            raise self._reader.refuse_frame(fault.code, fault.text)
        return fault is False

    def _forget(self) -> None:
        self._held = 0  # octets of contents that are not complete
        MessageDecoder._forget(self)

    def _header(self) -> Any:
        size = self._reader.left()
        message = MessageDecoder._header(self)
        if message is None:
            self._hold(size)
        return message

    def _body(self) -> Any:
        size = self._reader.left()
        message = MessageDecoder._body(self)
        if message is None:
            self._hold(size)
        return message

    def _hold(self, size: int) -> None:
        """Count octets of a content that waits for more, unless too much is held by then."""
        content = self._find(self._reader.channel)
        if content is not None and not content.discarded:
            content.held += size
            self._held += size
            if self._held > self._held_limit:
                self._drop(content)
                message = f"more than {self._held_limit} octets of messages that are not complete"
                raise self._of(content, self._reader.refuse_frame(RESOURCE_ERROR, message))

    def _drop(self, content: Content) -> None:
        self._held -= content.held
        MessageDecoder._drop(self, content)


class Receiver:
    """Turns octets into events, changes the state by them, and queues what the protocol itself answers."""

    __slots__ = ("_decoder", "_ended", "_head", "_outbox", "_ready", "_state", "_timers")

    def __init__(self, state: State, decoder: ContentReader, outbox: Outbox, timers: Timers) -> None:
        self._state = state
        self._decoder = decoder
        self._outbox = outbox
        self._timers = timers
        self._ready: deque[Any] = deque()  # events that are due before anything is read
        self._head: bytearray | None = bytearray()  # where a protocol header may stand, until it is known
        self._ended = False  # no more octets come

    # -- octets in

    def feed(self, data: Any) -> None:
        """Take octets."""
        self._timers.received()
        if self._head is not None and self._state.handshake.phase != OVER:
            octets = bytes(memoryview(data))
            data = self._read_head(octets) if octets else octets
        if self._state.handshake.phase != OVER and len(data):
            self._decoder.feed(data)

    def end(self) -> None:
        """No more octets come."""
        self._ended = True

    def _read_head(self, octets: bytes) -> bytes:
        """Look for the peer's protocol header; the octets after it, once that is settled."""
        head = self._head
        assert head is not None
        head += octets
        state = self._state
        if state.role == CLIENT and head[0] != 0x41:  # a frame: the server agrees to the version
            self._head = None
            return octets
        if len(head) < 8:
            return b""
        self._head = None
        header, rest = bytes(head[:8]), bytes(head[8:])
        accepted = state.role == SERVER and header in state.dialect.accepted_headers
        self._ready.append(ProtocolHeaderReceived(header, accepted))
        if accepted:
            state.handshake.phase = START
            return rest
        if state.role == SERVER:
            self._outbox.put(state.dialect.protocol_header)
        text = f"the peer names the protocol {header!r}{foreign_protocol(header)}"
        self._ready.append(self._over(ConnectionClosed("version", 0, text)))
        return b""

    # -- events out

    def next(self) -> Any:
        """The next event, or None when more octets are needed."""
        while True:
            if self._ready:
                return self._ready.popleft()
            if self._state.handshake.phase == OVER:
                return None
            try:
                value = self._decoder._next()
            except DecodeError as error:
                event = self._on_error(error)
            else:
                if value is not None:
                    event = self._on_value(value)
                elif self._ended:
                    event = self._over(ConnectionClosed("eof", 0, self._state.handshake.end_text()))
                else:
                    return None
            if event is not None:
                return event

    def _on_value(self, value: Any) -> Any:
        """A message or a frame from the decoder."""
        if type(value) is Message:
            return self._on_message(value)
        method = value.payload
        rule = self._state.rules.get(type(method))
        if rule is not None:
            return self._on_method(value.channel, rule, method)
        if value.type == HEARTBEAT or self._state.handshake.phase < OPENING:
            return None
        return FrameReceived(value)

    def _on_method(self, number: int, rule: Rule, method: Any) -> Any:
        """A method without content."""
        state = self._state
        if state.discards(number, rule):
            return None
        fault = state.fault(state.peer, number, rule, method)
        if fault is not None:
            if state.forgives(number, True):
                return None
            return self._violated(number, fault, rule.class_id, rule.method_id, None)
        kind = rule.kind
        if kind == CLOSE:
            return self._on_close(number, method)
        if kind == CLOSE_OK:
            return self._on_close_ok(number)
        if kind == HANDSHAKE:
            return self._on_handshake(rule, method)
        if kind == OPEN_CHANNEL:
            state.add_channel(state.peer, number, rule, method)
            return MethodReceived(number, method)
        return self._on_other(number, rule, method)

    def _on_other(self, number: int, rule: Rule, method: Any) -> Any:
        """A method that neither opens nor closes anything."""
        state = self._state
        entry = state.entry(number)
        assert entry is not None  # or there had been a fault
        kind = rule.kind
        if kind == SETTLE:
            return make_event(Settled, (number, method, entry.settle(state.peer, rule, method)))
        opening = entry.state != CHANNEL_OPEN
        request = entry.apply(state.peer, rule, method)
        if kind == FLOW:
            return self._on_flow(number, method)
        if kind == BLOCKED:
            state.blocked = True
            return Blocked(printable(method.reason))
        if kind == UNBLOCKED:
            state.blocked = False
            return Unblocked()
        if opening and entry.state == CHANNEL_OPEN:
            return ChannelOpened(number, method)
        return make_event(MethodReceived, (number, method, request))

    def _on_message(self, message: Any) -> Any:
        """A method with its content, which was judged when it began."""
        state = self._state
        number = message.channel
        entry = state.channel(number)
        if entry is None or entry.state == CHANNEL_CLOSING or state.handshake.phase == LEAVING:
            state.ignored += 1
            return None
        method = message.method
        rule = state.rule_of_content(method)
        if not message.complete:
            if state.role == CLIENT and self._cut_by_close():
                state.ignored += 1
                return None
            code, text = refusal(
                CUT_OFF, state.dialect.unexpected_frame, frame="another method", content=rule.name
            )
            return self._violated(number, Refusal(code, text), rule.class_id, rule.method_id, None)
        request = entry.apply(state.peer, rule, method)
        sequence_number = entry.sequence_number(rule)
        return make_event_of_six(
            MessageReceived, number, method, message.properties, message.body, request, sequence_number
        )

    def _cut_by_close(self) -> bool:
        """Return whether channel.close cuts a content off, which a server sends at any time."""
        frame = self._decoder._deferred
        if frame is None:
            return False  # another content
        rule = self._state.rules[type(frame.payload)]
        return rule.kind == CLOSE

    def _on_flow(self, number: int, method: Any) -> Any:
        """The peer wants no content, or wants it again: that is answered at once."""
        state = self._state
        answer = state.classes["channel.flow-ok"](active=method.active)
        if not self._answer(number, answer):
            return self._flooded()
        return FlowChanged(number, bool(method.active))

    def _on_handshake(self, rule: Rule, method: Any) -> Any:
        self.pass_handshake(rule, method)
        handshake = self._state.handshake
        if handshake.phase != RUNNING:
            return MethodReceived(0, method)
        return Opened(handshake.channel_max, handshake.frame_max, handshake.heartbeat)

    def pass_handshake(self, rule: Rule, method: Any) -> None:
        """A method of the handshake has passed, in either direction."""
        handshake = self._state.handshake
        handshake.apply(rule, method)
        if rule.name == "connection.tune-ok":
            self._outbox.frame_max = self._decoder.frame_max = handshake.frame_max
            self._timers.start_heartbeats(handshake.heartbeat)
        elif handshake.phase == RUNNING:
            self._timers.handshake_ends = NEVER

    # -- closes

    def _on_close(self, number: int, method: Any) -> Any:
        """The peer closes a channel or the connection: that is answered at once."""
        state = self._state
        if number == 0:
            leaving = state.handshake.phase == LEAVING
            close_ok = state.classes["connection.close-ok"]()
            if not leaving:
                self._outbox.put_method(0, close_ok)
                return self._over(ConnectionClosed("peer", *_close_fields(method)))
            # Where both have sent a close, each also waits for the other's answer.
            state.crossed = method
            self._answer(0, close_ok)
            return None
        if not self._answer(number, state.classes["channel.close-ok"]()):
            return self._flooded()
        entry = state.channels[number]
        if entry.state == CHANNEL_CLOSING:
            entry.crossed = method
            return None
        return self._channel_over(number, "peer", method)

    def _on_close_ok(self, number: int) -> Any:
        """The peer has answered a close of this side."""
        state = self._state
        if number == 0:
            return self._over(ConnectionClosed("local", *_close_fields(state.closing)))
        return self._channel_over(number, "local", state.channels[number].closing)

    def _channel_over(self, number: int, by: Literal["peer", "local"], close: Any) -> ChannelClosed:
        """Drop a channel, by this close; what was open on it goes into the event."""
        crossed = self._state.channels[number].crossed
        entry = self._state.drop_channel(number, by == "peer" or crossed is not None)
        return ChannelClosed(number, by, *_close_fields(close), *entry.end(), crossed)

    def leave(self, close: Any) -> None:
        """This side has sent connection.close."""
        state = self._state
        state.handshake.phase = LEAVING
        state.closing = close
        self._timers.start_close(state.limits.close_seconds)

    def _over(self, event: ConnectionClosed) -> ConnectionClosed:
        """The connection is over, by this event; what was open goes into it."""
        state = self._state
        state.handshake.phase = OVER
        self._timers.stop()
        self._decoder.reset()
        return event._replace(outstanding=state.end(), crossed=state.crossed)

    def _answer(self, number: int, method: Any) -> bool:
        """Queue what the protocol itself demands, unless the peer lets too much of it pile up."""
        if self._outbox.size >= self._state.limits.send_buffer:
            return False
        self._outbox.put_method(number, method)
        return True

    # -- what the peer does wrong

    def _on_error(self, error: DecodeError) -> Any:
        """The decoder refuses a frame."""
        state = self._state
        number = error.channel
        if not error.fatal:
            self._decoder.skip_frame()
            if state.ignores(number):
                state.ignored += 1
                return None
        elif state.handshake.phase == LEAVING:  # no answer to the close can be read
            return self._over(ConnectionClosed("local", *_close_fields(state.closing)))
        fault = Refusal(error.reply_code, error.message)
        closed = number != 0 and number not in state.channels
        if closed and not error.fatal and error.reply_code != COMMAND_INVALID:
            fault = Refusal(CHANNEL_ERROR, f"channel {number} is not open")
        return self._violated(number, fault, error.class_id, error.method_id, error)

    def _flooded(self) -> Any:
        """The peer makes this side answer, and does not read the answers."""
        fault = Refusal(RESOURCE_ERROR, f"{self._outbox.size} octets of answers were not read")
        return self._violated(0, fault, 0, 0, None)

    def _violated(
        self, number: int, fault: Refusal, class_id: int, method_id: int, error: DecodeError | None
    ) -> Any:
        """Close what the fault's code says, and report it."""
        state = self._state
        text = _reply_text(fault)
        told = (fault.code, text, class_id, method_id)
        if fault.code in SOFT and number in state.channels:
            close = state.classes["channel.close"](*told)
            self._outbox.put_method(number, close)
            state.close_channel(number, close)
            return Violation(number, *told, close, error)
        close = None
        if state.handshake.phase > START:
            close = state.classes["connection.close"](*told)
            self._outbox.put_method(0, close)
            self.leave(close)
        if close is None or (error is not None and error.fatal):
            self._ready.append(self._over(ConnectionClosed("local", *told)))
        return Violation(0, *told, close, error)

    # -- time

    def on_time(self, now: float) -> None:
        """Do what is due; `ConnectionClosed` is then the next event, if that ends the connection."""
        timers = self._timers
        if now >= timers.handshake_ends:
            text = f"no connection within {self._state.limits.handshake_seconds:g} seconds"
            if self._state.handshake.phase > START:
                close = self._state.classes["connection.close"](CONNECTION_FORCED, text, 0, 0)
                self._outbox.put_method(0, close)
            self._time_out(CONNECTION_FORCED, text)
        elif now >= timers.close_ends:
            self._time_out(self._state.closing.reply_code, "no answer to connection.close")
        elif now >= timers.peer_gone_at:
            self._time_out(0, f"nothing came for {2 * timers.heartbeat} seconds")
        elif now >= timers.heartbeat_at:
            self._outbox.put_heartbeat()
            timers.heartbeat_queued(now)

    def _time_out(self, code: int, text: str) -> None:
        self._ready.append(self._over(ConnectionClosed("timeout", code, text)))


def _close_fields(close: Any) -> tuple[int, str, int, int]:
    """Return the code, text and ids of a close method."""
    return close.reply_code, printable(close.reply_text), close.class_id, close.method_id


def _reply_text(fault: Refusal) -> str:
    """The text of a close method, which is a short string."""
    name = REPLY_NAMES[fault.code].upper().replace("-", "_")
    octets = f"{name} - {fault.text}".encode("utf-8", "backslashreplace")[:255]
    return octets.decode("utf-8", "ignore")


__all__ = ["ContentReader", "Receiver"]
