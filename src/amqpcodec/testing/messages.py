"""Messages, and what becomes of them in each queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import replace

# Octets that a message takes in memory beyond its body, about, and each octet of its properties.
MEMORY_BESIDE_BODY = 1024
MEMORY_OF_OCTET = 16

READY = "ready"
UNACKNOWLEDGED = "unacknowledged"
ACKNOWLEDGED = "acknowledged"
REJECTED = "rejected"
EXPIRED = "expired"
MAXLEN = "maxlen"
PURGED = "purged"
DELETED = "deleted"


@dataclass(slots=True, eq=False, repr=False)
class Message:
    """A message that was published, and how it went on.

    Attributes:
        exchange, routing_key, body, properties: as published.
        bcc: the routing keys of its header BCC, which goes no further.
        raw: the properties as they came, to go on as they are; None where they have changed.
        mandatory: whether it was to be returned where no queue takes it.
        virtual_host: where.
        connection, channel: the numbers of who has published it; 0 for the broker and the test.
        returned: whether it went back, because no queue took it.
        confirm: ``"ack"`` or ``"nack"`` as the publisher was told; empty if it was not.
        settled: for each queue that took it, what became of it there: ``"ready"``, ``"unacknowledged"``,
            ``"acknowledged"``, ``"rejected"``, ``"expired"``, ``"maxlen"``, ``"purged"``, ``"deleted"``.
        size: octets that it takes in memory, about.
    """

    exchange: str
    routing_key: str
    properties: Any
    body: bytes
    raw: Any = None
    mandatory: bool = False
    virtual_host: str = "/"
    connection: int = 0
    channel: int = 0
    bcc: list[str] = field(default_factory=list)
    returned: bool = False
    confirm: str = ""
    settled: dict[str, str] = field(default_factory=dict)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        octets = len(self.raw.octets) if self.raw is not None else len(repr(self.properties))
        self.size = len(self.body) + MEMORY_BESIDE_BODY + MEMORY_OF_OCTET * octets

    @property
    def headers(self) -> dict[str, Any]:
        """Its headers; empty if it has none."""
        return self.properties.headers or {}

    @property
    def may_have_keys(self) -> bool:
        """False where it has neither of the headers CC and BCC, so that its headers need not be read."""
        return self.raw is None or b"CC" in self.raw.octets

    @property
    def routing_keys(self) -> dict[str, None]:
        """Its routing key, and those of the headers CC and BCC; each once."""
        if not self.may_have_keys:
            return {self.routing_key: None}
        return dict.fromkeys((self.routing_key, *(self.headers.get("CC") or ()), *self.bcc))

    def hide_bcc(self) -> None:
        """Take the header BCC out, and keep what it says."""
        headers = self.headers
        if "BCC" in headers:
            self.bcc = headers["BCC"]
            headers = {name: value for name, value in headers.items() if name != "BCC"}
            self.properties, self.raw = replace(self.properties, headers=headers), None

    def __repr__(self) -> str:
        body = self.body if len(self.body) <= 40 else self.body[:40] + b"..."
        settled = ", ".join(f"{queue}: {state}" for queue, state in self.settled.items())
        fate = "returned" if self.returned else settled or "in no queue"
        return f"<message to {self.exchange!r} by {self.routing_key!r}: {body!r}; {fate}>"


@dataclass(slots=True, eq=False)
class Entry:
    """A message in one queue.

    Attributes:
        message: the message.
        position: where it stands in the queue, which requeueing restores.
        priority: of those that the queue tells apart.
        expires_at: when it ends, in seconds of the clock; None for never.
        redelivered: whether it was delivered before.
    """

    message: Message
    position: int
    priority: int
    expires_at: float | None
    redelivered: bool = False


__all__ = ["Entry", "Message"]
