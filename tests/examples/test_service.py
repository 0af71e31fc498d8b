"""The service answers requests of any kind, and loses none when it is told to stop."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest
from support.examples import EXAMPLES, ROOT, example
from support.subprocesses import INTERRUPTIBLE, interrupt

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import Client
from amqpcodec.testing import Broker, running_broker

service = example("service")
DIRECT = "amq.rabbitmq.reply-to"


async def ask(broker: Broker, bodies: list[bytes]) -> list[bytes]:
    """Return the replies to requests, which are asked for by direct reply-to."""
    async with Client(broker.url) as client, await client.channel() as channel:
        async with channel.consume(DIRECT, no_ack=True) as replies:
            for body in bodies:
                asked = amqp.BasicProperties(reply_to=DIRECT, correlation_id=body.decode())
                await channel.publish(body, routing_key="calls", properties=asked)
            found = [await anext(replies) for _ in bodies]
        assert {each.properties.correlation_id.encode().upper() for each in found} == {
            each.body for each in found
        }
        return [each.body for each in found]


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-Break, which Windows has for it, ends a program at once")
def test_it_answers_until_it_is_interrupted(impl: Any) -> None:
    with running_broker() as broker:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", str(EXAMPLES / "service.py"), broker.url],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "AMQPCODEC_IMPL": impl.name},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **INTERRUPTIBLE,
        )  # fmt: skip
        while not broker.consumers():
            assert process.poll() is None
        assert asyncio.run(ask(broker, [b"one"])) == [b"ONE"]
        assert sorted(asyncio.run(ask(broker, [b"two", b"three"]))) == [b"THREE", b"TWO"]
        interrupt(process)
        assert process.communicate(timeout=20) == ("3 requests answered\n", "")
        assert process.returncode == 0


def test_what_is_begun_is_ended_and_the_rest_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        stop, go, working = asyncio.Event(), asyncio.Event(), asyncio.Semaphore(0)

        async def work(request: bytes) -> bytes:
            working.release()
            await go.wait()
            return request.upper()

        monkeypatch.setattr(service, "work", work)
        async with Broker() as broker:
            serving = asyncio.create_task(service.serve(broker.url, "calls", 2, stop))
            asking = asyncio.create_task(ask(broker, [b"one", b"two", b"three", b"four"]))
            for _ in range(2):
                await working.acquire()
            stop.set()
            while [each.queue for each in broker.consumers()] == ["calls"]:
                await asyncio.sleep(0)
            assert not serving.done()
            go.set()
            assert await serving == 2
            broker.assert_queue("calls", ready=[b"three", b"four"], unacknowledged=0)
            serving = asyncio.create_task(service.serve(broker.url, "calls", 2, stop := asyncio.Event()))
            assert sorted(await asking) == [b"FOUR", b"ONE", b"THREE", b"TWO"]
            stop.set()
            assert await serving == 2

    asyncio.run(asyncio.wait_for(run(), 10))


def test_a_request_that_cannot_be_answered_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async def work(request: bytes) -> bytes:
            return b"%d" % (1 // int(request))

        monkeypatch.setattr(service, "work", work)
        async with Broker() as broker:
            serving = asyncio.create_task(service.serve(broker.url, "calls", 1, stop := asyncio.Event()))
            while not broker.consumers():
                await asyncio.sleep(0.001)
            for body in (b"0", b"1", b"2"):
                broker.publish("", "calls", body, reply_to=None if body == b"1" else "gone")
            while broker.queue("calls").ready or broker.queue("calls").unacknowledged:
                await asyncio.sleep(0.001)
            stop.set()
            assert await serving == 2
            broker.assert_published(routing_key="gone", body=b"0", count=1)

    asyncio.run(asyncio.wait_for(run(), 10))
