"""Every release that is met starts, does the same with and without acceleration, and is fast where it counts.

`make test-compat-releases` runs this.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.clients.play import played, queue
from support.releases import fetched

from amqpcodec.compat._relied import class_names, table

pytestmark = pytest.mark.releases

TESTS = Path(__file__).parents[1]
PEERS = {
    "pamqp": "2.2.0 2.3.0 3.0.0 3.0.1 3.1.0 3.2.0 3.2.1 3.3.0 4.0.0 4.0.1",
    "pika": "1.2.0 1.2.1 1.3.0 1.3.1 1.3.2 1.4.0 1.4.1 1.4.2 1.4.4 1.5.0rc1",
    "amqp": "5.0.8 5.0.9 5.1.0 5.1.1 5.2.0 5.3.0 5.3.1 5.4.0 5.4.1 5.4.2",
}
CLIENTS = {
    "aiormq": "7.1.2 7.1.3 7.1.4 7.1.5 7.1.6 7.2.0 7.2.1 7.2.2 7.2.3 7.2.4",
    "aio-pika": "10.0.0 10.0.1 10.0.2 10.0.3 10.0.4 10.1.0 10.1.1 10.1.2 10.2.0 10.2.1",
    "amqpstorm": "2.10.7 2.10.8 2.11.0 2.11.1 3.0 3.1 3.1.1 3.1.2 3.1.3 3.1.4",
    "rabbitpy": "0.26.2 0.27.0 0.27.1 1.0.0 2.0.0 2.0.1 3.0.0 3.0.1 3.0.2",
    "kombu": "5.4.2 5.5.0 5.5.1 5.5.2 5.5.3 5.5.4 5.6.0 5.6.1 5.6.2 5.7.0",
}
HOT = {
    "pamqp": ("3.2.1", "3.3.0", "4.0.0", "4.0.1"),
    "pika": ("1.2.0", "1.4.1", "1.4.2", "1.4.4"),
    "amqp": ("5.1.1", "5.4.0", "5.4.1", "5.4.2"),
}
"""The last three that are no candidates, and Debian 12's: nine tenths of what is hot are active there."""

PLAYED_BY = {"pamqp": "pamqp", "pika": "pika_blocking", "amqp": "pyamqp", "aio-pika": "aio_pika"}
BUILT_ON = {
    "aiormq": "pamqp",
    "aio-pika": "pamqp",
    "amqpstorm": "pamqp",
    "rabbitpy": "pamqp",
    "kombu": "amqp",
}
MESSAGES = 200

OCTETS = {
    "pamqp": ("2.2.0", "2.3.0"),
    "amqpstorm": ("2.10.7", "2.10.8", "2.11.0", "2.11.1"),
    "rabbitpy": ("0.26.2", "0.27.0", "0.27.1", "1.0.0", "2.0.0", "2.0.1"),
}
"""Releases on pamqp 1 and 2, in which nothing is accelerated. They give texts in headers as octets, and the
program refuses its first message, stock and accelerated."""

START = """
import json, sys, time
from amqpcodec import compat
from importlib import import_module
start = time.process_time()
compat.install(sys.argv[1], loops=True)
took = time.process_time() - start
for name in sys.argv[2:]:
    import_module(name)
status = compat.status()[sys.argv[1]]
print(json.dumps({"active": status.active, "stock": list(status.stock), "ms": took * 1000}))
"""
MODULES = {
    "pamqp": ["pamqp.frame"],
    "pika": ["pika", "pika.adapters.utils.io_services_utils"],
    "amqp": ["amqp", "amqp.connection", "amqp.channel"],
}


def each(releases: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, version) for name, versions in releases.items() for version in versions.split()]


def path(folder: Path) -> str:
    return os.pathsep.join([str(folder), str(TESTS)])


@pytest.mark.parametrize(("peer", "version"), each(PEERS))
def test_a_release_starts_and_what_is_hot_is_active(peer: str, version: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", START, peer, *MODULES[peer]],
        env=os.environ | {"PYTHONPATH": path(fetched(peer, version))},
        capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    names = [one.name for one in table(peer)]
    left = [name for name in found["stock"] if name in names]
    share = 1 - len(left) / len(names) if found["active"] else 0.0
    print(f"{peer} {version}: {share:.0%} active, installed in {found['ms']:.0f} ms; left: {left[:5]}")
    if version in HOT[peer]:
        assert share >= 0.9
        assert not [name for name in left if name not in class_names(peer)]  # functions are hot, all of them


@pytest.mark.parametrize(("peer", "version"), each(PEERS))
def test_stock_and_accelerated_release_do_the_same(peer: str, version: str) -> None:
    command = [sys.executable, "-m", "support.compat.compare", "--count", "3000", "--seed", "releases", peer]
    found = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path(fetched(peer, version))},
        capture_output=True, encoding="utf-8", timeout=3600, check=False,
    )  # fmt: skip
    print(found.stdout)
    assert found.returncode == 0, found.stderr[-3000:]
    assert found.stdout.startswith(f"{peer} {version}: ")


@pytest.mark.parametrize(("library", "version"), [*each(PEERS), *each(CLIENTS)])
def test_a_program_does_the_same_at_a_broker(library: str, version: str, rabbitmq: str) -> None:
    variables = {"PYTHONPATH": path(fetched(library, version, whole=library in CLIENTS))}
    client = PLAYED_BY.get(library, library)
    peer = BUILT_ON.get(library, library)
    outcomes = {}
    for peers in ("", f"{peer}+loops"):
        with queue(rabbitmq) as name:
            outcomes[peers] = ""
            for action in ("publish", "consume"):
                command = ["support.clients", client, action, rabbitmq, name, str(MESSAGES)]
                try:
                    done = played(command, peers, **variables)
                except RuntimeError as error:
                    outcomes[peers] += f"{action}: {str(error).strip().splitlines()[-1]}\n"
                    break
                outcomes[peers] += f"{action}: done\n"
                if peers and done.status[peer]["why"]:
                    print(f"{library} {version}: {done.status[peer]['why']}")
    print(f"{library} {version}: {outcomes['']}")
    stock, accelerated = outcomes.values()
    assert accelerated == stock
    refused = version in OCTETS.get(library, ())
    consumed = "AssertionError: message 0 is" if refused else "done\n"
    assert stock.startswith(f"publish: done\nconsume: {consumed}")
