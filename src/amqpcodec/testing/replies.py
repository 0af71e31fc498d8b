"""Direct replies: messages to a channel by a name of its own, without a queue."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from .. import reply_errors as refused

if TYPE_CHECKING:
    from .channels import Channel
    from .messages import Message

REPLY_TO = "amq.rabbitmq.reply-to"


class Address:
    """An address for replies where it is as a queue: it takes all, also when no one reads there."""

    deleted = False

    def __init__(self, replies: Replies, name: str) -> None:
        self.name = name
        self._replies = replies

    def put(self, message: Message) -> bool:
        """Take a message, for a channel that may be gone."""
        self._replies.pass_on(self.name, message)
        return True


class Replies:
    """Knows the channels that take replies, of all virtual hosts, by the names that they have for that."""

    def __init__(self) -> None:
        self._channels: dict[str, Channel] = {}
        self._numbers = count(1)
        self._given: set[str] = set()

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
        self._given.add(channel.reply_name)

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
            self.pass_on(key, message)

    def pass_on(self, name: str, message: Message) -> None:
        """Send a message to the channel of a name, if there is one."""
        if name in self._channels:
            self._channels[name].deliver_reply(message)

    def was_given(self, name: str) -> bool:
        """Return whether a channel has or had a name."""
        return name in self._given

    def address(self, name: str) -> Address | None:
        """Return the address of a name, of a channel that may be gone; None where there was none."""
        return Address(self, name) if name in self._given else None


__all__ = ["REPLY_TO", "Address", "Replies"]
