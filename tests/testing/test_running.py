"""Brokers on threads, with TLS, and as fixtures of pytest."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from probes import consume, passive, queue
from probing import VERSIONS, publish
from support.hello import OPEN
from talking import talk

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import Backoff, Client
from amqpcodec.testing import Broker, faults, running_broker

TEST = """
import sys

def test_imports():
    ours = ["amqpcodec"] if sys.version_info >= (3, 14) else ["amqpcodec", "asyncio"]  # pytest needs it there
    assert not [name for name in sys.modules if name.partition(".")[0] in ours]

def test_one(amqp_broker):
    assert amqp_broker.url.startswith("amqp://guest:guest@127.0.0.1:")
    amqp_broker.publish("", "none", b"")

def test_other(amqp_broker, amqp_broker_session):
    assert amqp_broker.port != amqp_broker_session.port
    assert amqp_broker.published() == []
"""


def test_a_broker_runs_on_a_thread_and_is_asked_from_others(options: dict[str, Any]) -> None:
    with running_broker(**options) as broker:
        broker.clock.advance(5)
        assert (broker.queues(), broker.connections()) == ({}, [])
        with pytest.raises(AssertionError):
            broker.assert_published()
        assert "amqpcodec broker" in [thread.name for thread in threading.enumerate()]
    assert "amqpcodec broker" not in [thread.name for thread in threading.enumerate()]


def test_a_port_that_is_taken_is_an_error(options: dict[str, Any]) -> None:
    with (
        running_broker(**options) as broker,
        pytest.raises(OSError, match=rf"Errno {errno.EADDRINUSE}\b"),
        running_broker(port=broker.port, **options),
    ):
        pass


def test_a_port_that_the_program_cannot_have_is_told_in_a_line() -> None:
    def said(port: int) -> tuple[int, str, str]:
        command = [sys.executable, "-W", "error", "-m", "amqpcodec.testing", "--port", str(port)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=20, check=False)
        return done.returncode, done.stdout, done.stderr

    with running_broker() as broker:
        text = f"python -m amqpcodec.testing: port {broker.port}: {os.strerror(errno.EADDRINUSE)}\n"
        assert said(broker.port) == (1, "", text)
    assert said(70_000) == (1, "", "python -m amqpcodec.testing: port 70000: bind(): port must be 0-65535.\n")


def test_a_version_that_it_is_not_like_is_told_with_those_that_it_is() -> None:
    command = [sys.executable, "-m", "amqpcodec.testing", "--like", "3.8"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=20, check=False)
    assert done.returncode == 2
    assert "3.8" in done.stderr
    assert all(like in done.stderr for like in VERSIONS)


def test_a_blocking_client_works(options: dict[str, Any]) -> None:
    pika = pytest.importorskip("pika")
    with running_broker(**options) as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"body")
        assert channel.basic_get("q", auto_ack=True)[2] == b"body"
        broker.assert_published(routing_key="q", settled="acknowledged", count=1)
        connection.close()


async def test_a_certificate_is_made(options: dict[str, Any]) -> None:
    pytest.importorskip("trustme")
    import ssl

    async with Broker(tls=True, **options) as broker:
        context = ssl.create_default_context(cadata=broker.certificate.decode())
        async with talk(broker, ssl=context) as client:
            await client.say(queue())
        assert broker.url.startswith("amqps://")
        assert "q" in broker.queues()
        with pytest.raises(OSError, match="certificate"):
            async with talk(broker, ssl=True):
                pass
        assert broker.connections() == []


async def test_two_brokers_in_one_loop_know_nothing_of_each_other(
    broker: Broker, options: dict[str, Any]
) -> None:
    async with Broker(**options) as other, talk(broker) as client, talk(other) as second:
        broker.faults.add(faults.close_channel(405), method="queue.declare")
        assert (await client.say(queue()))[-1][1] == "channel.close"
        await second.say(queue(message_ttl=1000), publish("", "q", b"1"))
        broker.clock.advance(60)
        other.assert_queue("q", ready=[b"1"])
        assert other.published() != broker.published() == []
        broker.reset()
        other.clock.advance(60)
        other.assert_queue("q", ready=0)
        assert len(other.connections()) == 1


async def test_a_broker_that_is_started_again_has_nothing(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue(), publish("", "q", bytes(100)))
    await broker.stop()
    assert broker.connections() == []
    await broker.start()
    assert (broker.queues(), broker.published(), broker.store.octets) == ({}, [], 0)


async def test_a_broker_that_was_down_is_back_on_its_port(broker: Broker) -> None:
    url = broker.url
    async with talk(broker) as client:
        await client.say(queue())
        broker.stop_listening()
        with pytest.raises(ConnectionRefusedError):
            async with talk(broker):
                pass
        assert (await client.say(passive()))[-1][1] == "queue.declare-ok"  # those that are there stay
        broker.listen()
        assert broker.url == url
        async with talk(broker) as other:
            assert (await other.say(passive()))[-1][1] == "queue.declare-ok"


def answers(broker: Broker) -> bool:
    """Return whether somebody listens on the port of a broker that answers."""
    with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", broker.port), 5) as peer:
        peer.sendall(amqp.protocol_header())
        return peer.recv(1) == b"\x01"
    return False


def test_a_broker_that_restarts_is_down_for_a_while(options: dict[str, Any]) -> None:
    with running_broker(**options) as broker, socket.create_connection(("127.0.0.1", broker.port), 5) as peer:
        peer.sendall(OPEN + b"".join(amqp.encode_method(1, each) for each in (queue(), consume("c"))))
        peer.sendall(amqp.encode_message(1, amqp.Basic.Publish("", "q"), None, b"1"))
        while "q" not in broker.queues() or not broker.queue("q").unacknowledged:
            pass
        url = broker.url
        broker.restart(after=30)
        said = b"".join(iter(lambda: peer.recv(65536), b""))
        assert b"CONNECTION_FORCED" in said
        assert not answers(broker)
        broker.clock.advance(29)
        assert not answers(broker)
        broker.clock.advance(1)
        assert answers(broker)
        assert broker.url == url
        broker.assert_queue("q", ready=1, unacknowledged=0, consumers=0)
        broker.restart()
        assert answers(broker)
        broker.restart(after=30)
        broker.listen()
        assert answers(broker)
        broker.stop_listening()
        broker.clock.advance(60)  # an outage that was ended early does not end the next one
        assert not answers(broker)


@pytest.mark.parametrize("after", [0, 30])
async def test_a_connection_that_is_made_during_a_restart_does_not_wait_for_ever(
    broker: Broker, after: float
) -> None:
    """It ends, or is one of the time after: wherever asyncio stands between accepting it and a transport."""
    loop = asyncio.get_running_loop()
    for turns in range(8):
        with socket.socket() as peer:
            peer.setblocking(False)
            await loop.sock_connect(peer, ("127.0.0.1", broker.port))
            await loop.sock_sendall(peer, amqp.protocol_header())
            for _ in range(turns):
                await asyncio.sleep(0)
            broker.restart(after=after)
            async with asyncio.timeout(2):
                with suppress(ConnectionError):
                    while await loop.sock_recv(peer, 65536) and after:
                        pass
            broker.clock.advance(after)
    assert broker.errors == []


def test_a_broker_that_is_emptied_is_not_down_any_more(options: dict[str, Any]) -> None:
    with running_broker(**options) as broker:
        with pytest.raises(ValueError, match="not for -1"):
            broker.restart(after=-1)
        assert answers(broker)
        broker.restart(after=30)
        broker.reset()
        assert answers(broker)
        broker.stop_listening()
        broker.clock.advance(30)
        assert not answers(broker)


def test_a_broker_that_does_not_run_takes_no_connections(options: dict[str, Any]) -> None:
    with running_broker(**options) as ended:
        ended.restart(after=0.01)
    for broker in (ended, Broker(**options)):
        for ask in (broker.restart, broker.listen):
            with pytest.raises(RuntimeError, match="the broker does not run"):
                ask()
        broker.reset()


def test_a_client_of_another_loop_goes_on_after_a_restart(options: dict[str, Any]) -> None:
    """A message that it has acknowledged does not come again."""

    async def work(broker: Broker) -> None:
        async with Client(broker.url, backoff=Backoff(first=0.01)) as client:
            await client.call(queue())
            async with await client.channel(prefetch=1) as channel, channel.consume("q") as deliveries:
                await channel.publish(b"1", routing_key="q")
                (await anext(deliveries)).ack()
                while broker.queue("q").unacknowledged:
                    await asyncio.sleep(0.001)
                broker.restart()
                await channel.publish(b"2", routing_key="q")
                assert (await anext(deliveries)).body == b"2"
            assert client.stats().connections == 2
        with pytest.raises(RuntimeError, match=r"another event loop runs the broker: restart\(\)"):
            await broker.stop()
        with pytest.raises(RuntimeError, match="runs already"):
            await broker.start()
        broker.assert_queue("q", ready=[b"2"])

    with running_broker(**options) as broker:
        asyncio.run(asyncio.wait_for(work(broker), 10))


def test_the_broker_is_imported_without_the_client() -> None:
    code = "import sys, amqpcodec.testing; sys.exit('amqpcodec.aio.client' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_plugin_imports_nothing_until_a_fixture_is_used(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_amqpcodec", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "test_it.py"], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # others may import what they like
    )  # fmt: skip
    assert "3 passed" in done.stdout, done.stdout + done.stderr
