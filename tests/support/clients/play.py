"""Processes of clients, with and without acceleration."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from .on_pyamqp import connect

TESTS = Path(__file__).resolve().parents[2]


class Played(NamedTuple):
    """What a process reports of its work."""

    microseconds: float  # of CPU time, a message
    status: dict[str, Any]
    shares: dict[str, float] = {}  # noqa: RUF012  # of functions, if it was asked for


@contextmanager
def queue(url: str) -> Iterator[str]:
    """The name of a queue that is there until the context ends."""
    name = f"amqpcodec-{uuid4()}"
    _with_channel(url, lambda channel: channel.queue_declare(name, durable=True, auto_delete=False))
    try:
        yield name
    finally:
        _with_channel(url, lambda channel: channel.queue_delete(name))


def play(
    client: str, action: str, url: str, name: str, count: int, peers: str = "", **variables: str
) -> Played:
    """Run a client on a queue.

    Args:
        client: one of `support.clients.CLIENTS`.
        action: ``publish`` or ``consume``.
        url, name, count: the broker, the queue, and how many messages.
        peers: what to accelerate, as ``AMQPCODEC_COMPAT`` has it.
        variables: of its environment, such as `UVLOOP`.
    """
    return played(["support.clients", client, action, url, name, str(count)], peers, **variables)


def played(command: list[str], peers: str = "", **variables: str) -> Played:
    """Run a module that reports its work in its last line."""
    done = subprocess.run(
        program(command),
        env=environment(peers, **variables),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)}, {peers or 'stock'}: {done.stdout[-1000:]}{done.stderr[-3000:]}"
        )
    return Played(**json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def worker(pool: str, peers: str, **variables: str) -> Iterator[None]:
    """A worker of Celery, until the context ends; it has then written down its status."""
    options = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING"]
    command = [
        "celery",
        "-A",
        "support.clients.celery_app",
        "worker",
        "--pool",
        pool,
        "--concurrency",
        "2",
        *options,
    ]
    process = subprocess.Popen(
        program(command),
        env=environment(peers, **variables),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    if process.returncode != 0:
        raise RuntimeError(f"the worker ended with {process.returncode}: {errors[-3000:].decode()}")


def lines(folder: Path, count: int, seconds: float) -> list[Any]:
    """What the task has written down, once it has been called so often, or when that time is over."""
    deadline = time.monotonic() + seconds
    while True:
        found = [line for path in folder.glob("called-*") for line in path.read_bytes().splitlines()]
        if len(found) >= count or time.monotonic() > deadline:
            return sorted(map(json.loads, found))
        time.sleep(0.2)


def program(command: list[str]) -> list[str]:
    """A module and its arguments, run so that the environment says what is accelerated."""
    return [sys.executable, "-m", "amqpcodec.run", "-m", *command]


def environment(peers: str, **variables: str) -> dict[str, str]:
    """The environment for it."""
    return {**os.environ, "PYTHONPATH": str(TESTS), "AMQPCODEC_COMPAT": peers, **variables}


def _with_channel(url: str, act: Any) -> None:
    connection = connect(url)
    act(connection.channel())
    connection.close()
