"""pika's SelectConnection."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import pika

from .on_pika_blocking import properties
from .samples import PREFETCH, Clock, Sample

AT_ONCE = 500  # messages published before the loop runs again


def publish(url: str, queue: str, samples: Iterable[Sample], clock: Clock) -> None:
    source = iter(samples)

    def begin(channel: Any) -> None:
        clock.__enter__()
        some(channel)

    def some(channel: Any) -> None:
        some_samples = list(islice(source, AT_ONCE))
        for sample in some_samples:
            channel.basic_publish("", queue, sample.body, properties(sample))
        if some_samples:
            channel.connection.ioloop.call_later(0, lambda: some(channel))
        else:
            channel.queue_declare(queue, passive=True, callback=lambda _: end(channel))

    def end(channel: Any) -> None:
        clock.__exit__(None, None, None)
        channel.connection.close()

    _run(url, begin)


def consume(url: str, queue: str, count: int, clock: Clock) -> list[Sample]:
    received: list[Sample] = []

    def begin(channel: Any) -> None:
        channel.basic_qos(prefetch_count=PREFETCH)
        clock.__enter__()
        channel.basic_consume(queue, take)

    def take(channel: Any, method: Any, found: Any, body: bytes) -> None:
        received.append(Sample(body, found.headers, found.message_id))
        channel.basic_ack(method.delivery_tag)
        if len(received) == count:
            clock.__exit__(None, None, None)
            channel.connection.close()

    _run(url, begin)
    return received


def _run(url: str, begin: Callable[[Any], None]) -> None:
    """Open a connection and a channel, and run until the connection is closed.

    Raises:
        ConnectionError: something else than `begin` and what it started closed it.
    """
    reasons: list[BaseException] = []

    def closed(_: Any, reason: BaseException) -> None:
        reasons.append(reason)
        connection.ioloop.stop()

    connection = pika.SelectConnection(
        pika.URLParameters(url),
        on_open_callback=lambda opened: opened.channel(on_open_callback=begin),
        on_open_error_callback=closed,
        on_close_callback=closed,
    )
    connection.ioloop.start()
    if not isinstance(reasons[0], pika.exceptions.ConnectionClosedByClient):
        raise ConnectionError(f"the connection did not end as it should: {reasons[0]!r}")
