"""Octets that a client sends first to RabbitMQ."""

from __future__ import annotations

from amqpcodec import rabbitmq as amqp

HELLO = amqp.protocol_header() + b"".join(
    amqp.encode_method(0, method)
    for method in (
        amqp.Connection.StartOk({}, "PLAIN", b"\0guest\0guest", "en_US"),
        amqp.Connection.TuneOk(2047, 131072, 0),
        amqp.Connection.Open("/"),
    )
)
OPEN = HELLO + b"".join(amqp.encode_method(number, amqp.Channel.Open()) for number in (1, 2))
