"""Errors of a client, beside those of `amqpcodec.errors` and `amqpcodec.reply_errors`."""

from __future__ import annotations

from ..errors import AmqpError, printable


class ReturnedError(AmqpError):
    """No queue took a message that was published as mandatory.

    Attributes:
        reply_code, reply_text, exchange, routing_key: as in basic.return.
    """

    def __init__(self, reply_code: int, reply_text: str, exchange: str = "", routing_key: str = "") -> None:
        super().__init__(reply_code, reply_text, exchange, routing_key)
        self.reply_code = reply_code
        self.reply_text = reply_text
        self.exchange = exchange
        self.routing_key = routing_key

    def __str__(self) -> str:
        if self.exchange:
            where = f"exchange {self.exchange!r} has no queue for routing key {self.routing_key!r}"
        else:
            where = f"there is no queue {self.routing_key!r}, which the default exchange routes to"
        why = f"returned: {self.reply_code} {self.reply_text}"
        return printable(f"{why}: {where}; publish with mandatory=False what may be lost")


class UncertainReturnError(ReturnedError):
    """No queue took a message, or another one that the broker has returned as the same.

    RabbitMQ leaves the header ``BCC`` out of what it returns. So messages that differ in it alone cannot be
    told apart, and each of them raises this.
    """

    def __str__(self) -> str:
        return f"this message or one like it was {super().__str__()}"


class NackedError(AmqpError):
    """The broker has not taken a message: basic.nack."""


class LateError(AmqpError, TimeoutError):
    """There was no answer within the time that the program has set.

    Attributes:
        was_sent: whether the request or message was sent, so that the broker may act on it; if
            not, it never will.
    """

    def __init__(self, text: str, was_sent: bool = False) -> None:
        super().__init__(text)
        self.was_sent = was_sent

    def __str__(self) -> str:
        return f"{self.args[0]}: {certainty(self.was_sent)}"


def certainty(was_sent: bool) -> str:
    """Return what is certain of something that no one waits for any more."""
    return "it was sent, and the broker may have it" if was_sent else "it was not sent, and never will be"


class ConsumerCancelledError(AmqpError):
    """The broker has cancelled a consumer, for instance since its queue was deleted."""


class AlreadySettledError(AmqpError):
    """A delivery was settled twice, or needs no acknowledgement."""


__all__ = [
    "AlreadySettledError",
    "ConsumerCancelledError",
    "LateError",
    "NackedError",
    "ReturnedError",
    "UncertainReturnError",
    "certainty",
]
