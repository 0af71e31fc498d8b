"""A user's program type-checks, and does what its types say."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import amqpcodec
import pytest
from support import consumer

from amqpcodec import rabbitmq as amqp

CONSUMER = Path(consumer.__file__)
SOURCE = Path(amqpcodec.__file__).parent.parent


def checked(tool: str, *arguments: str) -> None:
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed")
    command = [sys.executable, "-m", tool, *arguments, str(CONSUMER)]
    finished = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_mypy_finds_no_fault(tmp_path: Path) -> None:
    checked("mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}")


def test_pyright_finds_no_fault(tmp_path: Path) -> None:
    project = tmp_path / "pyrightconfig.json"
    project.write_text(
        f'{{"extraPaths": ["{SOURCE}"], "include": ["{CONSUMER}"], "typeCheckingMode": "strict"}}'
    )
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    command = [sys.executable, "-m", "pyright", "--project", str(project)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_the_program_runs() -> None:
    octets = b"".join(consumer.open_connection()) + consumer.publish(1, b"body", {"k": "v"})
    shown = list(consumer.frames(octets + amqp.encode_heartbeat()))
    assert shown[0] == "0: version (0, 0, 9, 1)"
    assert shown[-2:] == ["1: 4 octets", "0: heartbeat"]
    deliver = amqp.encode_message(1, amqp.Basic.Deliver("tag", 5, routing_key="key"), None, b"body")
    assert consumer.bodies(deliver) == [("key", b"body")]
    assert next(consumer.frames(deliver)) == "1: delivery 5 to tag by key"
    assert list(consumer.frames(b"\x01\0\x01\0\0\0\0\xce")) == ["501 frame-error at 7"]
    receiver = consumer.Receiver()
    receiver.get_buffer(8)[:8] = amqp.encode_heartbeat()
    receiver.buffer_updated(8)
    assert receiver.seen == ["heartbeat"]
    assert consumer.facts(amqp.Basic.Ack()) == ["basic.ack 60.80", "delivery-tag", "multiple"]
    assert consumer.refused({"a": [object()]}) == ("a", 0)
    assert b"".join(consumer.publish_parts(1, memoryview(b"x")))[-2:] == b"x\xce"
