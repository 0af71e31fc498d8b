# cython: nonecheck=True
"""The state of a connection for both sides, and who may send what next. One text for both builds.

A method is judged by `fault`, whoever sends it, so that one set of rules serves for what comes and what goes.
"""

from __future__ import annotations

from .._generated.codes import CHANNEL_ERROR, COMMAND_INVALID
from .._typing import TYPE_CHECKING, Any
from .channel_py import Channel
from .constants import (
    CHANNEL_CLOSING,
    CHANNEL_OPEN,
    CHANNEL_OPENING,
    CLOSE,
    CLOSE_OK,
    HANDSHAKE,
    LEAVING,
    OPEN_CHANNEL,
    OPENING,
    OVER,
    RUNNING,
    SERVER,
    START,
)
from .events import Outstanding
from .handshake_py import Handshake
from .refusals import Refusal
from .rules_py import ROLES, Rule, classes_of, rules_of

if TYPE_CHECKING:
    from .._kernel.dialect_py import Dialect
    from .limits import ConnectionLimits


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


__all__ = ["State"]
