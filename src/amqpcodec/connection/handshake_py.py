# cython: nonecheck=True
"""From the protocol header to an open connection. One text for both builds.

What may come next is a table, the same for the two sides; who may send it is in the generated facts.
"""

from __future__ import annotations

from .._generated.codes import COMMAND_INVALID, NOT_ALLOWED
from .._typing import Any
from .constants import GREETING, LOGIN, OPEN_REQUEST, OPENING, RUNNING, SECURE_OK, START, START_OK, TUNE_OK
from .refusals import Refusal
from .rules_py import Rule

FRAME_MIN_SIZE = 4096

# Where a method of the handshake is in place, and what follows it.
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


class Handshake:
    """Where the handshake stands.

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
            lower(tune.channel_max, self.channel_max),
            lower(tune.frame_max, self.frame_max),
            lower(tune.heartbeat, self.heartbeat) if self.heartbeat else 0,
        )


def lower(one: int, other: int) -> int:
    """The lower of two limits, of which 0 is none."""
    return min(one, other) if one and other else one or other


__all__ = ["Handshake", "lower"]
