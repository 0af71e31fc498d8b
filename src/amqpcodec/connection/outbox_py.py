# cython: nonecheck=True
"""Octets on their way to the peer. One text for both builds: outbox_c is this file, compiled."""

from __future__ import annotations

from .._typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._kernel.encoder_py import Encoder
    from .state_py import Timers

PIECES_FROM = 65536  # octets of a body from which on it is not copied


class Outbox:
    """Frames that wait to be sent.

    Args:
        encoder: of the dialect.
        timers: notified when octets are sent.

    Attributes:
        size: octets that wait.
        frame_max: octets of the largest frame; 0 for no limit.
        on_queued: called when octets wait and none did before; None for nobody.
    """

    __slots__ = ("_encoder", "_parts", "_timers", "frame_max", "on_queued", "size")

    def __init__(self, encoder: Encoder, timers: Timers) -> None:
        self._encoder = encoder
        self._timers = timers
        self._parts: list[Any] = []
        self.size = 0
        self.frame_max = 0
        self.on_queued: Callable[[], object] | None = None

    def put(self, octets: Any) -> None:
        """Add octets."""
        self._parts.append(octets)
        is_first = self.size == 0
        self.size += len(octets)
        if is_first and self.on_queued is not None:
            self.on_queued()

    def put_method(self, number: int, method: Any) -> None:
        """Add the frame of a method."""
        self.put(self.method_frame(number, method))

    def method_frame(self, number: int, method: Any) -> Any:
        """The frame of a method, not added yet; EncodeError if that cannot be."""
        return self._encoder._one_method(number, method, self.frame_max, False)

    def message_frames(self, number: int, method: Any, properties: Any, body: Any) -> Any:
        """The frames of a message for `put_frames`; EncodeError if that cannot be."""
        if type(body) is bytes and len(body) >= PIECES_FROM:
            encode = self._encoder.encode_message_parts
            return encode(number, method, properties, body, frame_max=self.frame_max)
        return self._encoder._one_message(number, method, properties, body, self.frame_max, False)

    def put_frames(self, frames: Any) -> None:
        """Add what `message_frames` has made: octets, or a list of parts."""
        if type(frames) is bytes:
            self.put(frames)
        else:
            for part in frames:
                self.put(part)

    def put_heartbeat(self) -> None:
        """Add a heartbeat."""
        self.put(self._encoder.encode_heartbeat())

    def take(self) -> list[Any]:
        """All that waits; it is then regarded as sent."""
        parts = self._parts
        if parts:
            self._timers.sent()
            self._parts = []
            self.size = 0
        return parts


__all__ = ["Outbox"]
