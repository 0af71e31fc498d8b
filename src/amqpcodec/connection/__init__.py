"""Connections of AMQP for clients and servers, without any I/O: `Connection`.

    connection = Connection("client")
    login = ClientLogin("guest", "guest")
    socket.sendall(connection.data_to_send())
    while connection.state != "closed":
        octets = socket.recv(65536)
        for event in connection.receive_data(octets) if octets else connection.receive_eof():
            if not login.handle(connection, event):
                ...
        socket.sendall(connection.data_to_send())

`events` has what a connection reports, `login` the two sides of the handshake, `address` what a URL says,
`amqpcodec.aio` an adapter for asyncio.
"""

from __future__ import annotations

from .. import _backend
from .._typing import TYPE_CHECKING
from ..errors import LocalProtocolError
from .address import Address
from .events import (
    Blocked,
    ChannelClosed,
    ChannelOpened,
    ConnectionClosed,
    Event,
    FlowChanged,
    FrameReceived,
    MessageReceived,
    MethodReceived,
    Opened,
    Outstanding,
    ProtocolHeaderReceived,
    Settled,
    Unblocked,
    Violation,
)
from .limits import ConnectionLimits
from .login import ClientLogin, ServerLogin

if TYPE_CHECKING:
    from .machine_py import Connection
else:
    Connection = _backend.load("amqpcodec.connection.machine").Connection

__all__ = [
    "Address",
    "Blocked",
    "ChannelClosed",
    "ChannelOpened",
    "ClientLogin",
    "Connection",
    "ConnectionClosed",
    "ConnectionLimits",
    "Event",
    "FlowChanged",
    "FrameReceived",
    "LocalProtocolError",
    "MessageReceived",
    "MethodReceived",
    "Opened",
    "Outstanding",
    "ProtocolHeaderReceived",
    "ServerLogin",
    "Settled",
    "Unblocked",
    "Violation",
]
