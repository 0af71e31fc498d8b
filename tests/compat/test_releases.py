"""Every release that is known does the same with and without acceleration. `make test-compat` runs this."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.releases import fetched

TESTS = Path(__file__).parents[1]
RELEASES = (
    ("pamqp", "3.3.0"), ("pamqp", "4.0.1"), ("pika", "1.3.2"), ("pika", "1.4.0"), ("pika", "1.4.4"),
    ("amqp", "5.1.1"), ("amqp", "5.2.0"), ("amqp", "5.3.1"), ("amqp", "5.4.0"), ("amqp", "5.4.1"),
    ("amqp", "5.4.2"),
)  # fmt: skip


@pytest.mark.fetches
@pytest.mark.parametrize(("peer", "version"), RELEASES)
def test_stock_and_accelerated_release_do_the_same(peer: str, version: str) -> None:
    path = os.pathsep.join([str(fetched(peer, version)), str(TESTS)])
    command = [sys.executable, "-m", "support.compat.compare", "--count", "20000", "--seed", "releases", peer]
    found = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=3600
    )
    assert found.returncode == 0, found.stderr[-3000:]
    assert found.stdout.startswith(f"{peer} {version}: ")
