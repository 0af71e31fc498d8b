"""A node that tests have started does not outlive them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest
from support.broker import Node
from support.marks import posix

# A node of two processes, as RabbitMQ's script and Erlang are, whose pids it writes down.
SCRIPT = "#!/bin/sh\nsleep 60 & echo $$ $! >pids.new; mv pids.new pids; wait\n"
STARTS_A_NODE = """
import sys
from pathlib import Path
from support.broker import Node

node = Node(Path(sys.argv[1]), Path(sys.argv[1]).parent, 0, "")
sys.stdin.read()
"""

pytestmark = posix


def runs(pid: int) -> bool:
    """Return whether a process runs; one that has ended may wait for its parent."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return done.stdout.strip()[:1] not in (b"", b"Z")


def becomes(condition: Callable[[], bool]) -> bool:
    """Return whether something is true within ten seconds."""
    end = monotonic() + 10
    while not (is_true := condition()) and monotonic() < end:
        sleep(0.01)
    return is_true


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "rabbitmq-server"
    path.write_text(SCRIPT, encoding="utf-8")
    path.chmod(0o755)
    return path


def pids(script: Path) -> list[int]:
    """Return the processes of a node, once it has started."""
    written = script.with_name("pids")
    assert becomes(written.exists)
    return [int(pid) for pid in written.read_text(encoding="utf-8").split()]


def test_a_node_ends_with_the_tests_that_are_killed(script: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    tests = subprocess.Popen(
        [sys.executable, "-c", STARTS_A_NODE, str(script)], stdin=subprocess.PIPE, env=environment
    )
    started = pids(script)
    assert all(map(runs, started))
    tests.kill()
    tests.communicate()
    assert becomes(lambda: not any(map(runs, started)))


def test_a_node_that_is_started_again_is_the_one_that_is_ended(script: Path) -> None:
    node = Node(script, script.parent, 0, "")
    first = pids(script)
    node.end(kindly=False)
    assert becomes(lambda: not any(map(runs, first)))
    script.with_name("pids").unlink()
    node.start()
    second = pids(script)
    node._watch.communicate()  # which the end of the tests does
    node.process.wait()
    assert becomes(lambda: not any(map(runs, second)))
