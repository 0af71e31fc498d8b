"""Ten faults by which a client loses its broker, and after which it gets it back."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable

from support.broker import Node
from support.relay import Relay

HEARTBEAT = 2  # seconds that both sides agree on; twice that without a word, and a connection is over
CONTROL_SECONDS = 120

Fault = Callable[[Node, Relay], Awaitable[None]]


def control(node: Node, *arguments: str) -> str:
    """Run ``rabbitmqctl`` with a node; return what it prints.

    Raises:
        RuntimeError: it fails; with what it prints.
    """
    script = node._script.with_name("rabbitmqctl")
    command = [str(script), "--node", node.environment["RABBITMQ_NODENAME"], *arguments]
    done = subprocess.run(
        command,
        env=node.environment,
        cwd=node.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=CONTROL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} has ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


async def keep_declarations(node: Node) -> None:
    """Have a node write down what was declared: a kill within two seconds would take the queue with it.

    Mnesia, which 4.3 has not, keeps it in a log. The name of a quorum queue's log is in a table of Dets.
    """
    write = "catch mnesia:sync_log(), [ok = dets:sync(Table) || Table <- dets:all()]."
    await asyncio.to_thread(control, node, "eval", write)


async def kill(node: Node, relay: Relay) -> None:
    """Kill the process of the node, and start it again."""
    node.end(False)  # in this turn: what is answered after the kill is counted was not answered before it
    await asyncio.sleep(0.3)
    node.start()
    await asyncio.to_thread(node.wait)


async def reset(node: Node, relay: Relay) -> None:
    """Cut the TCP connections by RST."""
    relay.reset()


async def finish(node: Node, relay: Relay) -> None:
    """Cut the TCP connections by FIN."""
    relay.finish()


async def swallow(node: Node, relay: Relay) -> None:
    """Let the TCP connections be there, and nothing come: the heartbeat has to find out."""
    relay.swallow()
    await asyncio.sleep(2 * HEARTBEAT + 1)


async def orphan(node: Node, relay: Relay) -> None:
    """Cut the client, while the broker goes on with the connection until its heartbeat finds out."""
    relay.orphan()


async def stop(node: Node, relay: Relay) -> None:
    """Stop the process of the node for longer than the heartbeat, and let it go on."""
    os.killpg(node.process.pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(3 * HEARTBEAT)
    finally:
        os.killpg(node.process.pid, signal.SIGCONT)


async def close_all(node: Node, relay: Relay) -> None:
    """Have the broker close all connections: 320 connection-forced."""
    await asyncio.to_thread(control, node, "close_all_connections", "the test closes them")


async def restart_listener(node: Node, relay: Relay) -> None:
    """Have the broker close its listener and all connections, and listen again later."""
    steps = (
        "rabbit_maintenance:suspend_all_client_listeners(),"
        "rabbit_maintenance:close_all_client_connections(),"
        "timer:sleep(500),"
        "rabbit_maintenance:resume_all_client_listeners()."
    )
    await asyncio.to_thread(control, node, "eval", steps)


TEN: tuple[Fault, ...] = (
    reset, kill, close_all, swallow, finish, restart_listener, stop, orphan, kill, close_all,
)  # fmt: skip
