"""The messages that clients send, each made of its number, and the clock that they are timed with."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from time import process_time
from types import TracebackType
from typing import Any, NamedTuple

PREFETCH = 500
CONTENT_TYPE = "application/octet-stream"
FIRST_SECOND = 1_763_800_000


class Sample(NamedTuple):
    """A message: 256 octets, three headers, and an id."""

    body: bytes
    headers: dict[str, Any]
    message_id: str

    @property
    def seconds(self) -> int:
        """Its timestamp; a new one every hundred messages."""
        return FIRST_SECOND + self.headers["number"] // 100

    @property
    def time(self) -> datetime:
        """The same for clients that take no number."""
        return datetime.fromtimestamp(self.seconds, UTC)


def sample(number: int) -> Sample:
    """The message of a number."""
    headers = {"number": number, "customer": f"customer-{number % 97}", "urgent": number % 3 == 0}
    return Sample(b"%08d" % number * 32, headers, f"message-{number}")


def samples(count: int) -> Iterator[Sample]:
    """So many messages."""
    return map(sample, range(count))


def task(number: int) -> list[Any]:
    """The same as a call of a task: its arguments, and the headers."""
    made = sample(number)
    return [number, made.body.decode(), made.headers]


class Clock:
    """CPU time of the process, all its threads, between entering and leaving; for one use."""

    seconds = 0.0

    def __enter__(self) -> Clock:
        self._begin = process_time()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = process_time() - self._begin
