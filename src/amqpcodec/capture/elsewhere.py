"""A look at the ports that no one has asked for, as far as a hint needs it."""

from __future__ import annotations

from amqpcodec._kernel.wire import FRAME_END

from .model import Segment

_MOST = 64  # ports
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


def _guess(octets: bytes) -> str:
    """Return what the octets of a segment seem to be."""
    if octets[:4] == b"AMQP":
        return "AMQP 1.0" if octets[4:8] in _AMQP_1_0 else AMQP
    if octets[0] in (0x16, 0x17) and octets[1:2] == b"\3":
        return "TLS"
    return AMQP if octets[0] in _FRAME_TYPES and octets[-1] == FRAME_END and len(octets) >= 8 else ""
