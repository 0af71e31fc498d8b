# cython: nonecheck=True
"""The state of a connection for both sides, and who may send what next. One text for both builds.

A method is judged by `fault`, whoever sends it, so that one set of rules serves for what comes and what goes.
"""

from __future__ import annotations

from .._protocol.codes import CHANNEL_ERROR, COMMAND_INVALID, NOT_ALLOWED
from .._typing import TYPE_CHECKING, Any
from .channel_py import Channel
from .constants import (
    CHANNEL_CLOSING,
    CHANNEL_OPEN,
    CHANNEL_OPENING,
    CLOSE,
    CLOSE_OK,
    GREETING,
    HANDSHAKE,
    LEAVING,
    LOGIN,
    OPEN_CHANNEL,
    OPEN_REQUEST,
    OPENING,
    OVER,
    RUNNING,
    SECURE_OK,
    SERVER,
    START,
    START_OK,
    TUNE_OK,
)
from .events import Outstanding
from .refusals import Refusal
from .rules_py import ROLES, Rule, classes_of, rules_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._kernel.dialect_py import Dialect
    from .limits import ConnectionLimits


FRAME_MIN_SIZE = 4096

# Where a method of the handshake is in place, and what follows it, the same for the two sides.
_STEPS = {
    "connection.start": (START, START_OK),
    "connection.start-ok": (START_OK, LOGIN),
    "connection.secure": (LOGIN, SECURE_OK),
    "connection.secure-ok": (SECURE_OK, LOGIN),
    "connection.tune": (LOGIN, TUNE_OK),
    "connection.tune-ok": (TUNE_OK, OPEN_REQUEST),
    "connection.open": (OPEN_REQUEST, OPENING),
    "connection.open-ok": (OPENING, RUNNING),
    "connection.redirect": (OPENING, OPENING),
}
RABBITMQ_FRAME_MIN_SIZE = 8192  # from 4.1 on: it refuses less without a word, after three seconds
NEVER = float("inf")


class Handshake:
    """Where the handshake stands: from the protocol header to an open connection.

    Attributes:
        phase: one of `constants`.
        channel_max: what this side wishes, then what is agreed; 0 for no limit.
        frame_max, heartbeat: likewise.
        tune: the connection.tune that was sent or has come.
        largest: octets of the largest frame that this side has sent before tuning.
    """

    __slots__ = ("channel_max", "frame_max", "heartbeat", "largest", "phase", "tune")

    def __init__(self, channel_max: int, frame_max: int, heartbeat: int) -> None:
        self.phase = GREETING
        self.channel_max = channel_max
        self.frame_max = frame_max
        self.heartbeat = heartbeat
        self.tune: Any = None
        self.largest = 0

    def fault(self, rule: Rule, method: Any) -> Refusal | None:
        """Why a method of the handshake is out of place, or None."""
        if _STEPS[rule.name][0] != self.phase:
            return Refusal(COMMAND_INVALID, f"{rule.name} does not belong here")
        if rule.name == "connection.tune" and 0 < method.frame_max < FRAME_MIN_SIZE:
            text = (
                f"connection.tune of the server has frame-max {method.frame_max}, lower than {FRAME_MIN_SIZE}"
            )
            return Refusal(NOT_ALLOWED, text)
        if rule.name == "connection.tune-ok":
            return self._tune_fault("channel-max", method.channel_max, self.tune.channel_max, 1) or (
                self._tune_fault("frame-max", method.frame_max, self.tune.frame_max, FRAME_MIN_SIZE)
            )
        return None

    def _tune_fault(self, name: str, answer: int, offer: int, least: int) -> Refusal | None:
        """A client may lower what it is offered. 0 stands for no limit, so it is higher than any offer."""
        if answer and answer < least:
            return Refusal(NOT_ALLOWED, f"negotiated {name} {answer} is lower than {least}")
        if offer and (not answer or answer > offer):
            shown = answer or "without limit"
            return Refusal(NOT_ALLOWED, f"negotiated {name} {shown} is higher than {offer}")
        return None

    def end_text(self) -> str:
        """Return what the end of the peer's octets without a close means."""
        text = "the peer has ended the stream without connection.close"
        if self.phase in (LOGIN, SECURE_OK) and self.largest > FRAME_MIN_SIZE:
            text += f", after a frame of {self.largest} octets: before tuning it may take no more than 4096"
        if self.phase == OPENING and 0 < self.frame_max < RABBITMQ_FRAME_MIN_SIZE:
            text += (
                f", after frame-max {self.frame_max} was agreed: RabbitMQ takes none below 8192 from 4.1 on"
            )
        return text

    def apply(self, rule: Rule, method: Any) -> None:
        """A method of the handshake has passed."""
        self.phase = _STEPS[rule.name][1]
        if rule.name == "connection.tune":
            self.tune = method
        elif rule.name == "connection.tune-ok":
            self.channel_max = method.channel_max
            self.frame_max = method.frame_max
            self.heartbeat = method.heartbeat

    def answer(self) -> tuple[int, int, int]:
        """Return a client's answer to connection.tune: channel-max, frame-max and heartbeat.

        0 is the highest of limits, and the lowest of heartbeats: a client that wants none has none.
        """
        tune = self.tune
        return (
            _lower(tune.channel_max, self.channel_max),
            _lower(tune.frame_max, self.frame_max),
            _lower(tune.heartbeat, self.heartbeat) if self.heartbeat else 0,
        )


def _lower(one: int, other: int) -> int:
    """The lower of two limits, of which 0 is none."""
    return min(one, other) if one and other else one or other


class Timers:
    """The deadlines of one connection, in seconds of its clock.

    Heartbeats (0-9-1 section 4.2.7): each side sends at least one frame in an interval, and takes the peer to
    be gone after two intervals without an octet. This side sends after half an interval, as brokers do.

    Attributes:
        heartbeat: the interval agreed; 0 for none.
        handshake_ends: when the handshake has taken too long.
        close_ends: when the answer to a close has taken too long.
    """

    __slots__ = ("_clock", "_received_at", "_sent_at", "close_ends", "handshake_ends", "heartbeat")

    def __init__(self, clock: Callable[[], float], handshake_seconds: float) -> None:
        now = clock()
        self._clock = clock
        self._received_at = now
        self._sent_at = now
        self.heartbeat = 0
        self.handshake_ends = now + handshake_seconds
        self.close_ends = NEVER

    def received(self) -> None:
        """Octets have come."""
        if self.heartbeat:
            self._received_at = self._clock()

    def sent(self) -> None:
        """Octets go."""
        if self.heartbeat:
            self._sent_at = self._clock()

    def start_heartbeats(self, interval: int) -> None:
        """The handshake has agreed on an interval."""
        self.heartbeat = interval
        self._received_at = self._sent_at = self._clock()

    def start_close(self, seconds: float) -> None:
        """A close was sent."""
        self.handshake_ends = NEVER
        self.close_ends = self._clock() + seconds

    def stop(self) -> None:
        """The connection is over."""
        self.heartbeat = 0
        self.handshake_ends = self.close_ends = NEVER

    @property
    def peer_gone_at(self) -> float:
        """When the peer is taken to be gone."""
        return self._received_at + 2 * self.heartbeat if self.heartbeat else NEVER

    @property
    def heartbeat_at(self) -> float:
        """When a heartbeat is to be sent."""
        return self._sent_at + self.heartbeat / 2 if self.heartbeat else NEVER

    def heartbeat_queued(self, now: float) -> None:
        """A heartbeat goes to what is sent next."""
        self._sent_at = now

    @property
    def next(self) -> float:
        """The next deadline."""
        return min(self.handshake_ends, self.close_ends, self.peer_gone_at, self.heartbeat_at)


class State:
    """The state of a connection.

    Attributes:
        role, peer: which side this is, and the other.
        dialect: the dialect spoken.
        rules: the rule of each method class.
        classes: the method classes by name.
        limits: what the peer may not demand.
        handshake: where the handshake stands, and what it has agreed on.
        channels: the channels that are not closed, by number.
        left: numbers of channels that the peer has closed, and on which more of that channel may come.
        ignored: how many methods and messages of the peer, and frames out of order, came after a close.
        zero: pairs the requests of the connection itself.
        closing: the connection.close that this side has sent.
        crossed: that of the peer, if this side had sent one.
        blocked: whether the server reads no publishes for now.
    """

    __slots__ = (
        "_connection_class", "_recent", "_recent_class", "_recent_rule", "blocked", "channels", "classes",
        "closing", "crossed", "dialect", "handshake", "ignored", "left", "limits", "peer", "role", "rules",
        "zero",
    )  # fmt: skip

    def __init__(self, role: int, dialect: Dialect, handshake: Handshake, limits: ConnectionLimits) -> None:
        self.role = role
        self.peer = 1 - role
        self.dialect = dialect
        self.rules = rules_of(dialect)
        self.classes = classes_of(dialect)
        self.limits = limits
        self.handshake = handshake
        self.channels: dict[int, Channel] = {}
        self.left: set[int] = set()
        self.ignored = 0
        # Most methods are for the channel of the one before, and most contents have the same method.
        self._recent: Channel | None = None
        self._recent_class: Any = None
        self._recent_rule: Any = None
        self.zero = Channel(0, role, limits)
        self.zero.state = CHANNEL_OPEN
        self.closing: Any = None
        self.crossed: Any = None
        self.blocked = False
        self._connection_class = -1 if dialect.connection_class is None else dialect.connection_class

    @property
    def name(self) -> str:
        """The state in a word."""
        phase = self.handshake.phase
        if phase == RUNNING:
            return "open"
        return "closed" if phase == OVER else "closing" if phase == LEAVING else "handshake"

    def entry(self, number: int) -> Channel | None:
        """The state of a channel, 0 for the connection; None if it is closed."""
        return self.zero if number == 0 else self.channel(number)

    def channel(self, number: int) -> Channel | None:
        """The state of a channel; None if it is closed, and for 0."""
        recent = self._recent
        if recent is None or recent.number is not number:
            recent = self.channels.get(number)
            self._recent = recent
        return recent

    def rule_of_content(self, method: Any) -> Rule:
        """The rule of a method of the decoder that carries a content."""
        if type(method) is not self._recent_class:
            self._recent_rule = self.rules[type(method)]
            self._recent_class = type(method)
        rule: Rule = self._recent_rule
        return rule

    def add_channel(self, sender: int, number: int, rule: Rule, method: Any) -> None:
        """A side asks for a channel."""
        self.channels[number] = entry = Channel(number, self.role, self.limits)
        self._recent = entry
        if self.role == SERVER:
            self.left.discard(number)
        entry.apply(sender, rule, method)

    def close_channel(self, number: int, close: Any) -> None:
        """This side has sent channel.close."""
        entry = self.channels[number]
        entry.state = CHANNEL_CLOSING
        entry.closing = close

    def drop_channel(self, number: int, by_peer: bool) -> Channel:
        """A channel is closed, by the peer or by this side alone: return its state."""
        self._recent = None
        if by_peer:
            self.left.add(number)
        else:
            self.left.discard(number)
        return self.channels.pop(number)

    def end(self) -> tuple[Outstanding, ...]:
        """Drop the channels, now that the connection is over; return what was open on them."""
        numbers = sorted(self.channels)
        channels = [self.zero, *[self.channels[number] for number in numbers]]
        self.channels.clear()
        self.left.clear()
        self._recent = None
        ended = [Outstanding(channel.number, *channel.end()) for channel in channels]
        return tuple([each for each in ended if any(each[1:])])

    def ignores(self, number: int) -> bool:
        """Return whether what the peer sends on a channel is ignored.

        After a close of this side, all but closes is (1.5.2.5). RabbitMQ also sends deliveries after its own
        channel.close. A client has no reason to, and is refused once its close-ok is out, as RabbitMQ does.
        """
        if self.handshake.phase == LEAVING:
            return True
        entry = self.channel(number)
        if entry is None or entry.state == CHANNEL_OPENING:
            return number in self.left
        return entry.state == CHANNEL_CLOSING

    def answered(self) -> None:
        """Take note that all that is queued goes out, close-ok too."""
        if self.role == SERVER and self.left:
            self.left.clear()

    def discards(self, number: int, rule: Rule) -> bool:
        """Return whether to ignore a method of the peer, and count it then."""
        if not self.ignores(number) or self._is_due(number, rule):
            return False
        self.ignored += 1
        return True

    def _is_due(self, number: int, rule: Rule) -> bool:
        """Return whether a method is not to be ignored though its channel is."""
        kind = rule.kind
        if self.handshake.phase == LEAVING:
            return number == 0 and kind in (CLOSE, CLOSE_OK)
        entry = self.channel(number)
        if entry is None:
            return kind == OPEN_CHANNEL
        if entry.state == CHANNEL_OPENING:
            return kind == CLOSE or entry.opens(rule)
        return kind in (CLOSE, CLOSE_OK)

    def forgives(self, number: int, wrong: bool) -> bool:
        """Return whether to ignore what is wrong on a channel, and count it then.

        The writer of a channel that RabbitMQ has closed goes on until it is done, even after open-ok of
        another channel of that number. What does not fit that one is of the channel before.
        """
        if not wrong or number not in self.left:
            return False
        self.ignored += 1
        return True

    def judge_content(self, number: int, method: Any) -> Any:
        """Why a content of the peer may not begin; False if it is to be ignored; None if it may come."""
        rule = self.rule_of_content(method)
        entry = self.channel(number)
        ordinary = rule.senders >> self.peer & 1 and self.handshake.phase == RUNNING
        if ordinary and entry is not None and entry.state == CHANNEL_OPEN:
            fault = entry.fault(self.peer, rule, method)  # the rest could find no other
            if self.left and self.forgives(number, fault is not None or entry.is_stray(rule, method)):
                return False
            return fault
        if self.discards(number, rule):
            return False
        return self.fault(self.peer, number, rule, method)

    def fault(self, sender: int, number: int, rule: Rule, method: Any) -> Refusal | None:
        """Why a side may not send a method now, or None."""
        if not rule.senders >> sender & 1:
            return Refusal(COMMAND_INVALID, f"{rule.name} is not for a {ROLES[sender]} to send")
        phase = self.handshake.phase
        if rule.class_id == self._connection_class:
            if number != 0:
                return Refusal(COMMAND_INVALID, "a connection method belongs on channel 0")
            return self._connection_fault(sender, rule, method)
        if number == 0:
            return Refusal(CHANNEL_ERROR, "channel 0 takes connection methods only")
        if phase < OPENING:
            return Refusal(CHANNEL_ERROR, f"{rule.name} before the connection is open")
        entry = self.channel(number)
        if rule.kind == OPEN_CHANNEL:
            highest = self.handshake.channel_max
            if entry is not None:
                return Refusal(CHANNEL_ERROR, f"channel {number} is open already")
            if highest and number > highest:
                return Refusal(CHANNEL_ERROR, f"channel {number}, the highest is {highest}")
            return None
        if entry is None:
            return Refusal(CHANNEL_ERROR, f"channel {number} is not open")
        if rule.kind == CLOSE_OK:
            closing = entry.state == CHANNEL_CLOSING and sender == self.peer
            return None if closing else Refusal(COMMAND_INVALID, f"{rule.name} answers no channel.close")
        if entry.state == CHANNEL_CLOSING and sender == self.role:
            return Refusal(CHANNEL_ERROR, f"channel {number} is being closed")
        return None if rule.kind == CLOSE else entry.fault(sender, rule, method)

    def _connection_fault(self, sender: int, rule: Rule, method: Any) -> Refusal | None:
        """Return the fault of a method of the connection class, or None."""
        kind = rule.kind
        phase = self.handshake.phase
        if kind == HANDSHAKE:
            return self.handshake.fault(rule, method)
        if kind == CLOSE_OK:
            leaving = phase == LEAVING and sender == self.peer
            return None if leaving else Refusal(COMMAND_INVALID, f"{rule.name} answers no connection.close")
        if kind == CLOSE:
            return None if phase > START else Refusal(COMMAND_INVALID, f"{rule.name} before connection.start")
        if phase < OPENING:
            return Refusal(COMMAND_INVALID, f"{rule.name} before the connection is open")
        return self.zero.fault(sender, rule, method)


__all__ = ["FRAME_MIN_SIZE", "NEVER", "Handshake", "State", "Timers"]
