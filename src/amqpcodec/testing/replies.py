"""Direct replies: messages to a channel by a name of its own, without a queue."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from .. import reply_errors as refused

if TYPE_CHECKING:
    from .channels import Channel
    from .messages import Message

REPLY_TO = "amq.rabbitmq.reply-to"


class Replies:
    """Knows the channels that take replies, of all virtual hosts, by the names that they have for that."""

    def __init__(self) -> None:
        self._channels: dict[str, Channel] = {}
        self._numbers = count(1)

    def take(self, channel: Channel, tag: str, no_ack: bool) -> None:
        """Let a channel take replies, by a name of its own.

        Raises:
            AmqpPreconditionFailed: it takes replies already, or wants to acknowledge them.
        """
        if not no_ack:
            raise refused.AmqpPreconditionFailed("reply consumer cannot acknowledge")
        if channel.reply_name:
            raise refused.AmqpPreconditionFailed("reply consumer already set")
        channel.reply_tag = tag
        channel.reply_name = f"{REPLY_TO}.{next(self._numbers)}"
        self._channels[channel.reply_name] = channel

    def forget(self, channel: Channel) -> None:
        """Take its name from a channel."""
        self._channels.pop(channel.reply_name, None)
        channel.reply_name = channel.reply_tag = ""

    def has(self, name: str) -> bool:
        """Return whether a client may declare a name: that of a channel, or the one that stands for all."""
        return name == REPLY_TO or name in self._channels

    def send(self, message: Message) -> None:
        """Send a message to the channels that its routing keys name."""
        for key in message.routing_keys:
            if key in self._channels:
                self._channels[key].deliver_reply(message)


__all__ = ["REPLY_TO", "Replies"]
