"""Where frames were found, and how a time is marked that is not known."""

from __future__ import annotations

from typing import NamedTuple

from amqpcodec.capture import Connection

NO_TIME = int(-(2.0**63))  # as compiled code marks a packet or time that is not known


def none_for(number: int) -> int | None:
    """Return a number; None for NO_TIME."""
    return None if number == NO_TIME else number


class FrameOrigin(NamedTuple):
    """Where a frame was found.

    Attributes:
        connection: its connection; without endpoints for a stream that is no capture.
        direction: 0 client to server, 1 server to client.
        packet: number of the packet that completed it, None for a stream.
        time_ns: that packet's time.
        offset: octets of this direction before the frame.
    """

    connection: Connection
    direction: int
    packet: int | None
    time_ns: int | None
    offset: int
