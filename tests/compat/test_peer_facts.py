"""The facts of other libraries against their live classes."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.releases import fetched

from amqpcodec._generated import peers
from amqpcodec.compat import PEERS, _facts, supported

ASK = """
import sys
from amqpcodec.compat import _before, _facts, _relied
found = _relied.recognise(sys.argv[1], loops=True)
assert sys.argv[1] not in sys.modules
stock = {}
if _relied.class_names(sys.argv[1]):
    _before.own_classes(stock, sys.argv[1], _facts.known_records(sys.argv[1], found.rules))
print(found.version, found.unknown, [*stock])
"""


def ask(peer: str, folder: Path | None = None) -> str:
    """What a process says of a library, or of the copy of it in a folder; or how it fails."""
    path = os.pathsep.join([*([str(folder)] if folder else []), *(entry for entry in sys.path if entry)])
    command = [sys.executable, "-c", ASK, peer]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, encoding="utf-8", timeout=60
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


@pytest.fixture(params=PEERS)
def peer(request: pytest.FixtureRequest) -> str:
    """A library that is installed."""
    pytest.importorskip(request.param)
    return str(request.param)


def test_the_installed_release_is_known_and_its_classes_are_those_of_the_facts(peer: str) -> None:
    assert ask(peer) == f"{importlib.metadata.version(peer)} () []"


@pytest.mark.fetches
@pytest.mark.parametrize(
    ("peer", "version"), [(peer, version) for peer in PEERS for version in supported(peer)]
)
def test_the_classes_of_every_release_that_was_learnt_are_those_of_the_facts(peer: str, version: str) -> None:
    assert ask(peer, fetched(peer, version)) == f"{version} () []"


def test_the_arguments_of_the_methods_of_py_amqp_are_those_of_the_facts() -> None:
    connection, channel = pytest.importorskip("amqp.connection"), pytest.importorskip("amqp.channel")
    facts = _facts.formats("amqp")
    assert facts.methods == {
        class_id << 16 | method_id: method.args or ""
        for owner in (connection.Connection, channel.Channel)
        for (class_id, method_id), method in owner._METHODS.items()
    }
    assert tuple(importlib.import_module("amqp.basic_message").Message.PROPERTIES) == facts.properties


@pytest.mark.parametrize("name", sorted(peers.CLASSES))
def test_no_class_is_in_the_facts_twice(name: str) -> None:
    for classes in peers.CLASSES[name].values():
        names = [cls[0] for cls in classes]
        assert len(set(names)) == len(names)


def test_older_rules_have_what_differs_and_the_rest_of_the_newest() -> None:
    newest, older = _facts.records("pamqp", "4.0"), _facts.records("pamqp", "3.3")
    assert newest.keys() == older.keys()
    assert newest["Basic.Ack"] == older["Basic.Ack"]
    assert [field.coerce for field in newest["Basic.Cancel"].fields] == ["", "none"]
    assert [field.coerce for field in older["Basic.Cancel"].fields] == ["", "falsy"]


def test_rules_nobody_knows_are_an_error() -> None:
    with pytest.raises(KeyError):
        _facts.records("pika", "0.9")
