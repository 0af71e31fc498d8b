"""Numbers of the frame layer (0-9-1 section 4.2.3). wire.pxd has the same as C constants."""

METHOD = 1
HEADER = 2
BODY = 3
HEARTBEAT = 8
PROTOCOL_HEADER = 65  # the "A" of "AMQP", where a frame would have its type

ENVELOPE_SIZE = 7  # octets before a payload: type, channel, size
OVERHEAD = 8  # octets of a frame that are not its payload
FRAME_END = 0xCE
# Clients such as AMQPStorm fill the payload alone up to frame-max; RabbitMQ takes these octets more.
FRAME_SLACK = 8
MAX_PAYLOAD = 2**32 - 1


def as_unsigned(size: int) -> int:
    """A size, for C from a signed number to an unsigned one."""
    return size
