"""Messages, and what becomes of them in each queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import replace
from ..reply_errors import AmqpPreconditionFailed
from .arguments import NEVER, expiration, wire_type

if TYPE_CHECKING:
    from .channels import Subscription
    from .queues import Queue

# Octets that a message takes in memory beyond its body, about, and each octet of its properties.
MEMORY_BESIDE_BODY = 1024
MEMORY_OF_OCTET = 16

READY = "ready"
UNACKNOWLEDGED = "unacknowledged"
ACKNOWLEDGED = "acknowledged"
REJECTED = "rejected"
EXPIRED = "expired"
MAXLEN = "maxlen"
DELIVERY_LIMIT = "delivery_limit"
PURGED = "purged"
DELETED = "deleted"
STATES = (READY, UNACKNOWLEDGED, ACKNOWLEDGED, REJECTED, EXPIRED, MAXLEN, DELIVERY_LIMIT, PURGED, DELETED)
CONFIRMS = ("", "ack", "nack")
UNCOUNTED = 0, 0


class Message:
    """A message that was published, and how it went on.

    Args:
        properties: as they are read; of `raw` those are kept alone.
        raw: the properties as they came; None where they have changed.

    Attributes:
        exchange, routing_key, body: as published.
        mandatory: whether it was to be returned where no queue takes it.
        virtual_host: where.
        connection, channel: the numbers of who has published it; 0 for the broker and the test.
        bcc: the routing keys of its header BCC, which goes no further.
        routing_keys: its routing key, and those of the headers CC and BCC; each once.
        lifetime: seconds that it lives in a queue, as it says itself; `NEVER` for no limit.
        to_send: its properties, as they go on.
        seen: its properties, where those that go on say more than values; None for the same.
        returned: whether it went back, because no queue took it.
        confirm: ``"ack"`` or ``"nack"`` as the publisher was told; empty if it was not.
        carried: how often it has come back to the queue that it has died in: failed, and in all.
        settled: for each queue that took it, what became of it there: ``"ready"``, ``"unacknowledged"``,
            ``"acknowledged"``, ``"rejected"``, ``"expired"``, ``"maxlen"``, ``"delivery_limit"``,
            ``"purged"``, ``"deleted"``.
        size: octets that it takes in memory, about.

    Raises:
        AmqpPreconditionFailed: RabbitMQ refuses its properties.
    """

    __slots__ = (
        "bcc", "body", "carried", "channel", "confirm", "connection", "exchange", "lifetime", "mandatory",
        "returned", "routing_key", "routing_keys", "seen", "settled", "size", "to_send", "virtual_host",
    )  # fmt: skip

    def __init__(
        self,
        exchange: str,
        routing_key: str,
        properties: Any,
        body: bytes,
        virtual_host: str,
        mandatory: bool = False,
        connection: int = 0,
        channel: int = 0,
        raw: Any = None,
    ) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.body = body
        self.virtual_host = virtual_host
        self.mandatory = mandatory
        self.connection = connection
        self.channel = channel
        octets = len(repr(properties)) if raw is None else len(raw.octets)
        self.size = len(body) + MEMORY_BESIDE_BODY + MEMORY_OF_OCTET * octets
        self.lifetime = NEVER if properties.expiration is None else expiration(properties.expiration)
        self.to_send = properties if raw is None else raw
        self.seen: Any = None
        self.carried = UNCOUNTED
        self.bcc: Iterable[str] = ()
        self.routing_keys: Iterable[str] = (routing_key,)
        headers = properties.headers
        if headers and ("CC" in headers or "BCC" in headers):
            self._read_keys(properties)
        self.returned = False
        self.confirm = ""
        self.settled: dict[str, str] = {}

    def _read_keys(self, properties: Any) -> None:
        """Take the routing keys of its headers; BCC goes no further."""
        headers = dict(properties.headers)
        keys = keys_in(headers, "CC")
        self.bcc = keys_in(headers, "BCC")
        if "BCC" in headers:
            del headers["BCC"]
            self.to_send = replace(properties, headers=headers)
        self.also_by((*keys, *self.bcc))

    def also_by(self, keys: Iterable[str]) -> None:
        """Have further routing keys."""
        self.routing_keys = dict.fromkeys((*self.routing_keys, *keys))

    @property
    def properties(self) -> Any:
        """Its properties, to be looked at."""
        return self.decoded() if self.seen is None else self.seen

    def decoded(self) -> Any:
        """Return the properties that go on, as they are read."""
        return self.to_send.decoded() if hasattr(self.to_send, "decoded") else self.to_send

    @property
    def headers(self) -> dict[str, Any]:
        """Its headers; empty if it has none."""
        return self.properties.headers or {}

    def __repr__(self) -> str:
        body = self.body if len(self.body) <= 40 else self.body[:40] + b"..."
        settled = ", ".join(f"{queue}: {state}" for queue, state in self.settled.items())
        fate = "returned" if self.returned else settled or "in no queue"
        return f"<message to {self.exchange!r} by {self.routing_key!r}: {body!r}; {fate}>"


def keys_in(headers: dict[str, Any], name: str) -> list[str]:
    """Return the routing keys in the header of a name: the texts of its array.

    Raises:
        AmqpPreconditionFailed: it is no array.
    """
    keys = headers.get(name, [])
    if not isinstance(keys, list):
        text = f'invalid message: {{unacceptable_type_in_header,"{name}",{wire_type(keys)}}}'
        raise AmqpPreconditionFailed(text)
    return [key for key in keys if isinstance(key, str)]


def by_name(headers: dict[str, Any]) -> dict[str, Any]:
    """Return headers sorted by name, as they are wherever RabbitMQ has written some of them."""
    return dict(sorted(headers.items()))


@dataclass(slots=True, eq=False)
class Entry:
    """A message in one queue.

    Attributes:
        message: the message.
        queue: the queue.
        place: where it stands in the queue, the lowest first; requeueing restores it.
        expires_at: when it ends, in seconds of the clock; or `NEVER`.
        redelivered: whether it was delivered before.
        consumer: who was delivered it last; None for nobody, and for who has asked for it by basic.get.
        failures: how often it has come back in a way that counts for a delivery limit.
        acquired: how often it has come back.
    """

    message: Message
    queue: Queue
    place: int
    expires_at: float
    redelivered: bool = False
    consumer: Subscription | None = None
    failures: int = 0
    acquired: int = 0

    def count(self, is_failure: bool) -> None:
        """Count that it has come back."""
        self.acquired += 1
        self.failures += is_failure


class Content(NamedTuple):
    """Holds what is sent of a message, where it is not as it came."""

    to_send: Any
    body: bytes


__all__ = ["UNCOUNTED", "Content", "Entry", "Message", "by_name", "keys_in"]
