"""The client of the examples publishes and consumes whatever messages carry.

`make test-broker` has it publish 100,000 messages with bodies of up to 64 MiB; here it is few and small ones.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest
from support.examples import EXAMPLES, ROOT, example, serving
from support.mixed import body, headers, read

from amqpcodec import rabbitmq as amqp

MESSAGES = int(os.environ.get("AMQPCODEC_BROKER_MESSAGES", "2000"))
LONG = MESSAGES >= 50_000
module = example("client")


def run(work: Any, seconds: float = 60) -> Any:
    return asyncio.run(asyncio.wait_for(work, seconds))


def message(number: int, made: Any = lambda headers: headers) -> tuple[bytes, Any]:
    """Return body and properties of a message; `made` makes the headers of those that are sent."""
    properties = amqp.BasicProperties(
        delivery_mode=2, headers=made(headers(number)), message_id=f"m-{number}"
    )
    return body(number, LONG), properties


@pytest.mark.slow("needs a RabbitMQ")
def test_every_body_and_header_comes_back_equal(rabbitmq: str) -> None:
    async def work() -> None:
        queue = f"amqpcodec-{uuid4()}"
        async with module.client_with(queue, rabbitmq) as client:
            await module.publish(client, queue, map(message, range(MESSAGES)))
            found = await module.consume(client, queue, MESSAGES)
            await client.call(amqp.Queue.Delete(queue=queue))
        for number, delivery in enumerate(found):
            assert (delivery.body, delivery.properties) == message(number, read)
        stats = client.stats()
        assert (stats.connections, stats.confirmed, stats.acknowledged) == (1, MESSAGES, MESSAGES)

    run(work(), 60 + MESSAGES / 50)


@pytest.mark.slow("needs a RabbitMQ")
def test_the_octets_of_headers_with_every_tag_pass_unchanged(rabbitmq: str) -> None:
    async def work() -> None:
        queue = f"amqpcodec-{uuid4()}"
        async with module.client_with(queue, rabbitmq, tables="raw") as client:
            await module.publish(client, queue, [message(0)])
            [delivery] = await module.consume(client, queue, 1)
            in_order = headers(0), dict(sorted(headers(0).items()))  # as sent; by name, as of RabbitMQ 4
            assert delivery.properties.headers.octets in [amqp.encode_table(each)[4:] for each in in_order]
            await client.call(amqp.Queue.Delete(queue=queue))

    run(work())


def test_the_program_says_how_long_it_has_taken(impl: Any) -> None:
    with serving(impl.name) as (port, _):
        done = subprocess.run(
            [sys.executable, "-W", "error", str(EXAMPLES / "client.py"), f"amqp://127.0.0.1:{port}",
             "--queue", "q", "--count", "500", "--size", "10"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "AMQPCODEC_IMPL": impl.name},
            capture_output=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
    assert done.stderr == ""
    lines = ("published and confirmed", "consumed and acknowledged")
    assert re.fullmatch("".join(rf"{line} \d+ messages a second\n" for line in lines), done.stdout)
