"""Errors of a client, beside those of `amqpcodec.errors` and `amqpcodec.reply_errors`."""

from __future__ import annotations

from ..errors import AmqpError, printable


class ReturnedError(AmqpError):
    """No queue took a message that was published as mandatory.

    Attributes:
        reply_code, reply_text: as in basic.return.
    """

    def __init__(self, reply_code: int, reply_text: str) -> None:
        super().__init__(reply_code, reply_text)
        self.reply_code = reply_code
        self.reply_text = reply_text

    def __str__(self) -> str:
        return printable(f"returned: {self.reply_code} {self.reply_text}")


class UncertainReturnError(ReturnedError):
    """No queue took a message, or another one that the broker has returned as the same.

    RabbitMQ leaves the header ``BCC`` out of what it returns. So messages that differ in it alone cannot be
    told apart, and each of them raises this.
    """

    def __str__(self) -> str:
        return f"this message or one like it was {super().__str__()}"


class NackedError(AmqpError):
    """The broker has not taken a message: basic.nack."""


class ConsumerCancelledError(AmqpError):
    """The broker has cancelled a consumer, for instance since its queue was deleted."""


class AlreadySettledError(AmqpError):
    """A delivery was settled twice, or needs no acknowledgement."""


__all__ = [
    "AlreadySettledError",
    "ConsumerCancelledError",
    "NackedError",
    "ReturnedError",
    "UncertainReturnError",
]
