"""Scenarios of clients of others, one list: ``python -m support.clients.scenarios [NAME...]``.

Does it at a RabbitMQ and at the broker for tests, and prints what each has seen where that differs. The exit
code is 1 if anything does. Programs that are not installed are named. A name may be the beginning of several.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from amqpcodec.testing import running_broker

from ..broker import broker as rabbitmq
from . import CLIENTS, sessions
from .on_pyamqp import connect
from .play import TESTS, lines, play, played, queue, worker
from .samples import task

MESSAGES = 300
TASKS = 1000
TASK_SECONDS = 120
NODE_PROGRAM = TESTS.parent / "benchmarks/layer/amqplib.js"
NODE_MODULES = TESTS.parent / "build/bench/clients/node_modules"  # of `make bench-client-peers`
BODIES = ("one", "", "größer")
Scenario = Callable[[str], Any]  # of a URL; returns what was seen


class NotInstalledError(Exception):
    """A program is missing; the text says which."""


class Failed(str):
    """The error of a scenario; one that fails at both is no success."""

    __slots__ = ()


def left(url: str, name: str) -> list[int]:
    """Return how many messages and consumers a queue has."""
    connection = connect(url)
    found = connection.channel().queue_declare(name, passive=True)
    connection.close()
    return [found.message_count, found.consumer_count]


def messages(action: Callable[[str, str, str, int], Any], url: str) -> Any:
    """Publish with confirms, then consume and compare; return what has waited between the two."""
    with queue(url) as name:
        action("publish", url, name, MESSAGES)
        waiting = left(url, name)
        action("consume", url, name, MESSAGES)
        return waiting


def in_node(action: str, url: str, name: str, count: int) -> None:
    """Do it by Node's amqplib."""
    if not NODE_MODULES.exists():
        raise NotInstalledError("amqplib of Node (`make bench-client-peers`)")
    output(["node", str(NODE_PROGRAM), action, url, name, str(count)], NODE_PATH=str(NODE_MODULES))


def session(client: str, url: str) -> Any:
    """Do the session of a client that has one."""
    return json.loads(output([sys.executable, "-m", sessions.__name__, client, url], AMQPCODEC_COMPAT=""))


def celery(pool: str, url: str) -> int:
    """Have tasks done by a worker; return how many were, once each and with their arguments."""
    with tempfile.TemporaryDirectory() as folder, queue(url) as name:
        variables = {"AMQP_URL": url, "AMQPCODEC_QUEUE": name, "AMQPCODEC_FOLDER": folder}
        with worker(pool, "", **variables):
            played(["support.clients.celery_app", str(TASKS)], "", **variables)
            done = lines(Path(folder), TASKS, TASK_SECONDS)
    return sum(found == task(number) for number, found in enumerate(done))


def tools(url: str) -> list[str]:
    """Publish, fetch, consume and clean up by the tools of librabbitmq; return what they print."""
    if shutil.which("amqp-publish") is None:
        raise NotInstalledError("the tools of librabbitmq (the package amqp-tools)")
    name = f"amqpcodec-{uuid4()}"

    def run(tool: str, *arguments: str) -> str:
        return output([f"amqp-{tool}", "--url", url.rstrip("/"), *arguments])  # without a path for "/"

    seen = [run("declare-queue", "-q", name).replace(name, "the queue")]
    seen += [run("publish", "-r", name, "-p", "-b", body) for body in BODIES]
    seen += [run("get", "-q", name), *map(str, left(url, name))]
    seen += [run("consume", "-q", name, "-c", str(len(BODIES) - 1), "cat"), *map(str, left(url, name))]
    return [*seen, run("delete-queue", "-q", name)]


def output(command: list[str], **variables: str) -> str:
    """Run a program; return what it prints.

    Raises:
        RuntimeError: it has failed.
    """
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": str(TESTS), **variables},
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} has ended with {done.returncode}: {done.stderr[-3000:]}")
    return done.stdout


SCENARIOS: dict[str, Scenario] = {
    **{f"{client}, messages": partial(messages, partial(play, client)) for client in CLIENTS},
    "amqplib, messages": partial(messages, in_node),
    **{f"{client}, session": partial(session, client) for client in sessions.CLIENTS},
    **{f"celery, {pool}": partial(celery, pool) for pool in ("solo", "prefork", "threads")},
    "librabbitmq, tools": tools,
}


def seen_at(url: str, scenario: Scenario) -> Any:
    """Return what a scenario has seen at a broker."""
    try:
        return scenario(url)
    except (RuntimeError, AssertionError, subprocess.TimeoutExpired) as error:
        return Failed(f"{type(error).__name__}: {error}")


def main(names: list[str]) -> int:
    """Do those scenarios, or all, at both brokers."""
    chosen = [name for name in SCENARIOS if not names or name.startswith(tuple(names))]
    differing = 0
    with rabbitmq() as theirs, running_broker() as ours:
        for name in chosen:
            try:
                there, here = (seen_at(url, SCENARIOS[name]) for url in (theirs, ours.url))
            except NotInstalledError as reason:
                print(f"{name}: not installed: {reason}", flush=True)
                continue
            if here == there and not isinstance(there, Failed):
                print(f"{name}: the same at both: {here}", flush=True)
            else:
                differing += 1
                print(f"{name}: differs", f"    RabbitMQ: {there}", f"    here: {here}", sep="\n", flush=True)
    print(f"{len(chosen)} scenarios, {differing} differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
