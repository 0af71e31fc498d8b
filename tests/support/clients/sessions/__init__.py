"""Sessions of ordinary clients, as they are, against any broker: each says what it has seen.

    python -m support.clients.sessions pika amqp://guest:guest@127.0.0.1:5672/

All do the same: declare, bind, publish with confirms, be returned what is not routable, get, give back,
consume with prefetch, clean up, close. What they have seen is printed as JSON and should be `SEEN`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

CLIENTS = ("pika", "aio_pika", "kombu", "amqpstorm")
KEY = "orders.eu.created"
LARGE = b"\x00\xce" * 150_000  # several frames


class Sample(NamedTuple):
    """A message to be published."""

    body: bytes
    headers: dict[str, Any]
    message_id: str


SAMPLES = [
    Sample(
        body, {"number": number, "text": "größer", "flags": [True, None], "nested": {"a": -5}}, f"m-{number}"
    )
    for number, body in enumerate((b"", b"first", LARGE, b"\xce" * 4096, b"last"))
]
SEEN: dict[str, Any] = {
    "declared": 0,  # messages in the new queue
    "confirmed": len(SAMPLES),
    "returned": [312, "NO_ROUTE", "nowhere"],
    "got": [[0, False], [0, True]],  # number and redelivered: given back, and got again
    "consumed": [[1, False], [2, False], [1, True], [3, False], [4, False]],  # likewise, two at a time
    "empty": True,
    "deleted": 0,
    "closed": True,
}


def number_of(body: bytes, headers: Any, message_id: Any) -> int:
    """Which of the samples a message is; -1 for one that is not as it was published."""
    found = Sample(bytes(body), dict(headers), message_id)
    return SAMPLES.index(found) if found in SAMPLES else -1
