# cython: nonecheck=True
"""The deadlines of a connection. One text for both builds: timers_c is this file, compiled.

Heartbeats (0-9-1 section 4.2.7): each side sends at least one frame in an interval, and takes the peer to be
gone after two intervals without an octet. This side sends after half an interval, as brokers do.
"""

from __future__ import annotations

from .._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

NEVER = float("inf")


class Timers:
    """The deadlines of one connection, in seconds of its clock.

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


__all__ = ["NEVER", "Timers"]
