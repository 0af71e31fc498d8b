"""Limits on what one connection may demand of this side, whatever its peer does."""

from __future__ import annotations

from .._typing import NamedTuple


class ConnectionLimits(NamedTuple):
    """Limits of one `Connection`, with defaults for a server that faces the internet.

    `channel_max`, `frame_max` and `heartbeat` of the connection are negotiated and not repeated here. What a
    decoder refuses, such as bodies over a size (311), is in `amqpcodec.Limits`.

    Attributes:
        handshake_seconds: from the first call until connection.open is agreed; then 320 connection-forced.
        handshake_frame_size: octets of a frame before tuning. A server refuses a larger one with 501, and
            sending one raises `LocalProtocolError`. At least 4096, which every peer has to take. RabbitMQ
            takes 8192 from version 4.1 on, and 4096 before.
        close_seconds: how long a close may stay unanswered; then the connection is over.
        unacknowledged: deliveries of one channel that wait to be acknowledged: sending more raises
            `LocalProtocolError` with 406 precondition-failed.
        consumers: consumers of the peer on one channel; then 506 resource-error. A client remembers so many
            that it has cancelled without waiting for the reply.
        open_bytes: octets of the messages of the peer that are not complete yet, of all channels together:
            of their content headers and bodies; then 506 resource-error. A content header that exceeds both
            frame_max and this is refused with 501 before it is read.
        requests: requests of the peer on one channel that wait for their answer; then 506 resource-error.
        send_buffer: octets that wait to be sent: sending more raises `LocalProtocolError` with 506, and
            the answers that the connection itself would have to queue are a violation with 506.
    """

    handshake_seconds: float = 10.0
    handshake_frame_size: int = 8192
    close_seconds: float = 10.0
    unacknowledged: int = 65535
    consumers: int = 4096
    requests: int = 4096
    send_buffer: int = 64 << 20
    open_bytes: int = 512 << 20


__all__ = ["ConnectionLimits"]
