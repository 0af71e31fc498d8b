"""Accelerated peers in threads, in forked processes, and in pickles."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.campaign import in_full
from support.marks import replaces

from amqpcodec import compat

pytestmark = replaces

HEADERS = {"number": 70000, "customer": "customer-7", "list": [1, "two"], "inner": {"deep": True}}
WHEN = datetime(2026, 11, 22, 12, tzinfo=UTC)


def with_pamqp() -> list[Any]:
    """Frames as objects, their octets, and frames made of those."""
    from pamqp import body, commands, frame, header

    properties = commands.Basic.Properties(headers=HEADERS, message_id="m-1", timestamp=WHEN)
    deliver = commands.Basic.Deliver("c1", 7, False, "orders", "eu")
    made = [deliver, header.ContentHeader(0, 3, properties), body.ContentBody(b"xyz")]
    octets = [frame.marshal(each, 1) for each in made]
    return [*made, octets, *(frame.unmarshal(each) for each in octets)]


def with_pika() -> list[Any]:
    """As `with_pamqp`."""
    from pika import frame, spec

    properties = spec.BasicProperties(headers=HEADERS, message_id="m-1", timestamp=1763812800)
    deliver = frame.Method(1, spec.Basic.Deliver("c1", 7, False, "orders", "eu"))
    made = [deliver, frame.Header(1, 3, properties), frame.Body(1, b"xyz")]
    octets = [each.marshal() for each in made]
    return [*made, octets, *(frame.decode_frame(each) for each in octets)]


def with_amqp() -> list[Any]:
    """As `with_pamqp`."""
    from amqp import serialization
    from amqp.basic_message import Message

    octets = serialization.dumps("sLbssF", ["c1", 7, False, "orders", "eu", HEADERS])
    loaded, _ = serialization.loads("sLbssF", octets, 0)
    message = Message(b"xyz", application_headers=loaded[-1], message_id="m-1")
    return [octets, loaded, message, message._serialize_properties()]


WORK: dict[str, Callable[[], list[Any]]] = {"pamqp": with_pamqp, "pika": with_pika, "amqp": with_amqp}


@pytest.fixture(params=WORK)
def peer(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(request.param)
    name: str = request.param
    return name


def pickled(peer: str) -> list[bytes]:
    return [pickle.dumps(each, protocol) for each in WORK[peer]() for protocol in (2, 4, 5)]


def test_pickles_are_the_same_octets_with_and_without(peer: str) -> None:
    before = pickled(peer)
    with compat.installed(peer):
        assert pickled(peer) == before
        restored = [pickle.dumps(pickle.loads(each), 5) for each in before]
    assert restored == [pickle.dumps(pickle.loads(each), 5) for each in before]


def test_pickles_load_where_amqpcodec_is_not_installed(peer: str) -> None:
    with compat.installed(peer):
        made = pickle.dumps(WORK[peer](), 5)
    program = (
        "import pickle, sys; sys.modules['amqpcodec'] = None\n"
        "sys.stdout.buffer.write(pickle.dumps(pickle.load(sys.stdin.buffer), 5))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=made, capture_output=True, timeout=60, check=True
    )
    assert done.stdout == pickle.dumps(pickle.loads(made), 5)


def test_threads_do_the_same_as_one(peer: str) -> None:
    expected = pickled(peer)
    found: list[bool] = []

    def work() -> None:
        found.append(all(pickled(peer) == expected for _ in range(50)))

    with compat.installed(peer):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert compat.status()[peer].fast >= 4 * 50
    assert found == [True] * 4


def test_peers_may_be_replaced_and_put_back_while_others_work(peer: str) -> None:
    expected = pickled(peer)
    done = threading.Event()
    wrong: list[Any] = []

    def work() -> None:
        try:
            while not done.is_set():
                if pickled(peer) != expected:
                    wrong.append("other values")
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(in_full(30, 12)):
            with compat.installed(peer):
                pickled(peer)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def _child(peer: str, results: Any) -> None:
    results.put((os.getpid(), compat.status()[peer].active, pickled(peer)))


def test_a_forked_process_goes_on_accelerated(peer: str) -> None:
    expected = pickled(peer)
    fork = multiprocessing.get_context("fork")
    with compat.installed(peer):
        pickled(peer)
        results = fork.SimpleQueue()
        process = fork.Process(target=_child, args=(peer, results))
        process.start()
        pid, active, found = results.get()
        process.join(60)
    assert (pid != os.getpid(), active, found == expected, process.exitcode) == (True, True, True, 0)


ASK = """
def active(peer):
    import pamqp.frame
    from amqpcodec import compat
    return compat.status()[peer].active
"""
SPAWN = """
import multiprocessing
import asked
from amqpcodec import compat

if __name__ == "__main__":
    compat.install("pamqp")
    spawn = multiprocessing.get_context("spawn")
    for arguments in ({}, {"initializer": compat.install, "initargs": ("pamqp",)}):
        with spawn.Pool(1, **arguments) as pool:
            print(pool.apply(asked.active, ("pamqp",)))
"""


def test_a_spawned_process_is_accelerated_by_its_initializer_and_not_by_a_guarded_line(
    tmp_path: Path,
) -> None:
    pytest.importorskip("pamqp")
    (tmp_path / "asked.py").write_text(ASK, encoding="utf-8")
    (tmp_path / "program.py").write_text(SPAWN, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "program.py")]
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["False", "True"]
