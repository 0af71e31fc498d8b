"""What all targets share: the builds that are compared, and how a broken promise is reported."""

from __future__ import annotations

from typing import Any

from support.implementation import Implementation

from amqpcodec import DIALECTS

NAMES = tuple(DIALECTS)
BUILDS = (Implementation("c"), Implementation("py"))


class BrokenPromiseError(Exception):
    """The codec did what it says it never does."""


def demand(holds: bool, *details: Any) -> None:
    if not holds:
        raise BrokenPromiseError(*details)


def chunked(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
