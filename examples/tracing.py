"""Traces go on across a broker: two hooks put the trace context into headers of messages, and take it out.

`tracing.py URL` does so by OpenTelemetry, or where that is not installed by the header ``traceparent`` alone.
Change first: `main`, to your client; for another tracer, the functions `_inject` and `continued`.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from copy import copy
from typing import Any

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import Client, Delivery

try:
    from opentelemetry import context, propagate, trace
except ImportError:
    current: ContextVar[str] = ContextVar("current", default="")

    def _inject(headers: dict[str, Any]) -> None:
        if current.get():
            headers["traceparent"] = current.get()

    @contextmanager
    def continued(headers: dict[str, Any]) -> Iterator[None]:
        """Go on with the trace of headers."""
        token = current.set(headers.get("traceparent", ""))
        try:
            yield
        finally:
            current.reset(token)
else:

    def _inject(headers: dict[str, Any]) -> None:
        propagate.inject(headers)

    @contextmanager
    def continued(headers: dict[str, Any]) -> Iterator[None]:
        """Go on with the trace of headers, in a span of its own."""
        token = context.attach(propagate.extract(headers))
        try:
            with trace.get_tracer("amqp").start_as_current_span("process", kind=trace.SpanKind.CONSUMER):
                yield
        finally:
            context.detach(token)


def before_publish(method: Any, properties: Any) -> Any:
    """Return the properties of a message, with the current trace in the headers of a copy."""
    made = amqp.BasicProperties() if properties is None else copy(properties)
    made.headers = headers = dict(made.headers or {})
    _inject(headers)
    return made


def around_delivery(delivery: Delivery) -> AbstractContextManager[None]:
    """Go on with the trace of a delivery, until its task asks for the next."""
    return continued(delivery.properties.headers or {})


async def main(url: str) -> None:
    """Publish a message within a trace, and consume it."""
    async with Client(url, before_publish=before_publish, around_delivery=around_delivery) as client:
        queue = (await client.call(amqp.Queue.Declare(exclusive=True))).queue
        channel = await client.channel()
        with continued({"traceparent": "00-5eed0000000000000000000000000001-c0de000000000001-01"}):
            print("published in", before_publish(None, None).headers)
            await channel.publish(b"body", routing_key=queue)
        async with channel.consume(queue) as deliveries:
            (await anext(deliveries)).ack()
            print("consumed in", before_publish(None, None).headers)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
