"""``python -m suites.instrumented [NAME...]``: instrumentations of clients give the same spans and headers.

OpenTelemetry's of pika, aio-pika and Celery, elastic-apm's and Sentry's of Celery. Each plays a program at
the broker for tests, without and with acceleration, in a process of its own. Ids are numbered as they appear.
The exit code is 1 if anything differs, or if hardly anything was accelerated.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from amqpcodec.testing import running_broker

TESTS = Path(__file__).resolve().parents[1]
PROGRAM = "program"
MESSAGES = 5
LEAST_FAST = 3 * MESSAGES  # method, header and body of each message
_ID = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![0-9a-f])(?:[0-9a-f]{32}|[0-9a-f]{16})(?![0-9a-f])|gen\d+@"
)
# In names of attributes that no two runs share.
_OF_A_RUN = (
    "thread", "pid", "port", "latency", "time", "duration", "baggage", "profile", "sample",
)  # fmt: skip
Said = dict[str, list[Any]]


def publish_and_consume_by_pika(url: str) -> list[Any]:
    """The headers of messages as they arrive."""
    import pika

    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.queue_declare("work")
    for number in range(MESSAGES):
        properties = pika.BasicProperties(headers={"number": number})
        channel.basic_publish("", "work", b"body %d" % number, properties)
    received: list[Any] = []

    def take(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        received.append([properties.headers, body.decode()])
        channel.basic_ack(method.delivery_tag)
        if len(received) == MESSAGES:
            channel.stop_consuming()

    channel.basic_consume("work", take)
    channel.start_consuming()
    connection.close()
    return received


async def publish_and_consume_by_aio_pika(url: str) -> list[Any]:
    """The headers of messages as they arrive."""
    import aio_pika

    connection = await aio_pika.connect(url)
    channel = await connection.channel()
    queue = await channel.declare_queue("work")
    for number in range(MESSAGES):
        message = aio_pika.Message(b"body %d" % number, headers={"number": number})
        await channel.default_exchange.publish(message, routing_key="work")
    received: list[Any] = []
    done = asyncio.Event()

    async def take(message: Any) -> None:
        async with message.process():
            received.append([dict(message.headers), message.body.decode()])
        if len(received) == MESSAGES:
            done.set()

    await queue.consume(take)
    await done.wait()
    await connection.close()
    return received


def tasks_of_celery(url: str, prepare: Callable[[Any], object] = lambda app: None) -> list[Any]:
    """The headers of tasks as a worker in this process gets them."""
    from celery import Celery
    from celery.contrib.testing.worker import start_worker

    app = Celery("work", broker=url, backend="cache+memory://", set_as_current=True)
    app.conf.update(broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)
    received: list[Any] = []

    @app.task(bind=True, name="work.take")  # type: ignore[misc]
    def take(self: Any, number: int) -> int:
        headers = self.request.headers or {}
        received.append([number, {name: headers[name] for name in sorted(headers)}])
        return number

    prepare(app)
    for number in range(MESSAGES):
        take.delay(number)
    options = {"pool": "solo", "perform_ping_check": False, "loglevel": "WARNING", "shutdown_timeout": 100}
    with start_worker(app, **options):
        while len(received) < MESSAGES:
            time.sleep(0.01)
    return received


def _opentelemetry(instrumentor: Any, work: Callable[[], list[Any]]) -> Said:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    instrumentor().instrument()
    headers = work()
    return {"headers": headers, "spans": [json.loads(span.to_json()) for span in spans.get_finished_spans()]}


def otel_pika(url: str) -> Said:
    from opentelemetry.instrumentation.pika import PikaInstrumentor

    return _opentelemetry(PikaInstrumentor, lambda: publish_and_consume_by_pika(url))


def otel_aio_pika(url: str) -> Said:
    from opentelemetry.instrumentation.aio_pika import AioPikaInstrumentor

    return _opentelemetry(AioPikaInstrumentor, lambda: asyncio.run(publish_and_consume_by_aio_pika(url)))


def otel_celery(url: str) -> Said:
    from opentelemetry.instrumentation.celery import CeleryInstrumentor

    return _opentelemetry(CeleryInstrumentor, lambda: tasks_of_celery(url))


def elastic_celery(url: str) -> Said:
    from elasticapm import Client
    from elasticapm.contrib.celery import register_exception_tracking, register_instrumentation

    client = Client(service_name="work", server_url="http://127.0.0.1:1", cloud_provider="none")
    events: list[Any] = []
    client.tracer.queue_func = lambda kind, data, flush=False: events.append([kind, data])

    def prepare(app: Any) -> None:
        register_exception_tracking(client)
        register_instrumentation(client)
        client.begin_transaction("test")

    headers = tasks_of_celery(url, prepare)
    client.end_transaction("published", "done")
    client.close()
    return {"headers": headers, "events": [each for each in events if each[0] in ("transaction", "span")]}


def sentry_celery(url: str) -> Said:
    import sentry_sdk
    from sentry_sdk.integrations.celery import CeleryIntegration

    events: list[Any] = []
    sentry_sdk.init(
        dsn="http://key@127.0.0.1:1/1",
        traces_sample_rate=1.0,
        default_integrations=False,
        integrations=[CeleryIntegration()],
        before_send_transaction=lambda event, hint: events.append(event),
    )
    with sentry_sdk.start_transaction(name="published"):
        headers = tasks_of_celery(url)
    kept = ("transaction", "spans", "contexts", "tags")
    return {"headers": headers, "events": [{name: each.get(name) for name in kept} for each in events]}


NAMES: dict[str, tuple[str, Callable[[str], Said]]] = {
    "OpenTelemetry, pika": ("pika", otel_pika),
    "OpenTelemetry, aio-pika": ("pamqp", otel_aio_pika),
    "OpenTelemetry, Celery": ("amqp", otel_celery),
    "elastic-apm, Celery": ("amqp", elastic_celery),
    "Sentry, Celery": ("amqp", sentry_celery),
}


def normal(said: Any) -> str:
    """Return what was said as text, with ids numbered as they appear, and without what no two runs share."""
    text = json.dumps(_without(said), sort_keys=True, indent=1, default=str)
    numbers: dict[str, int] = {}
    return _ID.sub(lambda found: f"id {numbers.setdefault(found[0], len(numbers))}", text)


def _without(said: Any) -> Any:
    """Return what was said but for times, and attributes of the process."""
    if isinstance(said, dict):
        kept = [name for name in said if not any(part in str(name) for part in _OF_A_RUN)]
        return {name: _without(said[name]) for name in kept}
    return [_without(each) for each in said] if isinstance(said, (list, tuple)) else said


def played(name: str, peers: str) -> tuple[str, dict[str, Any]]:
    """Run a program; what it said, and what was accelerated.

    Raises:
        RuntimeError: it failed; with what it printed.
    """
    with running_broker() as broker:
        command = [sys.executable, "-m", "amqpcodec.run", "-m", __spec__.name, PROGRAM, name, broker.url]
        variables = {"PYTHONPATH": str(TESTS), "AMQPCODEC_COMPAT": peers}
        done = subprocess.run(
            command,
            env=os.environ | variables,
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(f"{name}, {peers or 'as it is'}: {done.stderr[-3000:]}")
    said, status = json.loads(done.stdout.splitlines()[-1])
    return normal(said), status


def compared(name: str) -> int:
    """Print how the two runs of a program compare; return the number of faults."""
    peer = NAMES[name][0]
    without, _ = played(name, "")
    with_, status = played(name, f"{peer}+loops")
    fast = status[peer]["fast"] if status[peer]["active"] else 0
    same = without == with_
    print(f"{name}: {len(without)} characters, {'the same' if same else 'DIFFERENT'}; {fast} fast calls")
    if not same:
        pairs = zip(without.splitlines(), with_.splitlines(), strict=False)
        print(*[f"    {one.strip()} | {other.strip()}" for one, other in pairs if one != other][:9], sep="\n")
    return int(not same) + int(fast < LEAST_FAST)


def program(name: str, url: str) -> None:
    """Play one in this process, and print what it said in the last line."""
    from support.clients.__main__ import status

    said = NAMES[name][1](url)
    for what, found in said.items():
        if len(found) < MESSAGES:
            raise AssertionError(f"{name}: {len(found)} {what}, of {MESSAGES} messages")
    print(json.dumps([said, status()], default=str), flush=True)
    os._exit(0)  # exporters have threads that would wait for servers


def main(names: list[str]) -> int:
    """Compare those, or all."""
    return int(sum(map(compared, names or NAMES)) > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == [PROGRAM]:
        program(*sys.argv[2:])
    sys.exit(main(sys.argv[1:]))
