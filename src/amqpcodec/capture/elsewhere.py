"""A look at the ports that no one has asked for, as far as a hint needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpcodec._kernel.wire import FRAME_END

from .model import Segment

if TYPE_CHECKING:
    from .streams_py import StreamTracker

_MOST = 64  # ports
_MOST_NAMED = 3  # in a hint
_AMQP_1_0 = (b"\0\1\0\0", b"\2\1\0\0", b"\3\1\0\0")
_FRAME_TYPES = (1, 2, 3, 8)
_KNOWN = {5552: "streams of RabbitMQ", 15672: "the management of RabbitMQ"}
AMQP = "AMQP"


class Elsewhere:
    """The ports of connections that are not read.

    Attributes:
        ports: what they seem to carry, by number.
        others: whether there are others, which carry something else.
    """

    def __init__(self) -> None:
        self.ports: dict[int, str] = {}
        self.others = False

    def see(self, port: int, segment: Segment) -> None:
        """Take one of the first segments of a connection to a port."""
        if not segment.data:
            return
        what = _guess(segment.data) or _KNOWN.get(port, "")
        if not what:
            self.others = True
        elif len(self.ports) < _MOST or port in self.ports:
            # A protocol that shows itself in any connection is that of the port.
            self.ports[port] = what if self.ports.get(port) != AMQP else AMQP


def hint(tracker: StreamTracker | None, option: str) -> str:
    """Return where else to look for AMQP, as the end of a sentence; "" where the port is right.

    Args:
        tracker: has followed the connections; None if nobody knows what is on other ports.
        option: how a port is given, up to its number.
    """
    ports = [] if tracker is None else sorted(tracker.elsewhere.ports.items())
    if ports:
        listed = ", ".join(f"port {port} has {what}" for port, what in ports[:_MOST_NAMED])
        readable = [str(port) for port, what in ports if what == AMQP][:_MOST_NAMED]
        return f"; {listed}{f': try {option}' * bool(readable)}{','.join(readable)}"
    is_elsewhere = tracker is None or (tracker.elsewhere.others and not tracker.heard)
    return f"; try {option}any" * is_elsewhere


def _guess(octets: bytes) -> str:
    """Return what the octets of a segment seem to be."""
    if octets[:4] == b"AMQP":
        return "AMQP 1.0" if octets[4:8] in _AMQP_1_0 else AMQP
    if octets[0] in (0x16, 0x17) and octets[1:2] == b"\3":
        return "TLS"
    return AMQP if octets[0] in _FRAME_TYPES and octets[-1] == FRAME_END and len(octets) >= 8 else ""
