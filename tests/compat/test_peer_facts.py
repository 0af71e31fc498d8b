"""The facts of other libraries against their live classes."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.releases import fetched

from amqpcodec._generated import peers
from amqpcodec.compat import PEERS, _facts, _relied, supported

ASK = """
import sys
from amqpcodec.compat import _facts, _relied
found = _relied.recognise(sys.argv[1], loops=True)
assert sys.argv[1] not in sys.modules
names = _relied.class_names(sys.argv[1])
rules = {name: found.rules[name] for name in names if name in found.rules}
facts = _facts.known_records(sys.argv[1], rules) if rules else {}
print(found.version, found.unknown, list(_facts.differing(sys.argv[1], facts)) if facts else [])
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
    differing = (
        ["Exchange.Declare"] if peer == "pika" and version < "1.3.2" else []
    )  # a default that is an enum
    assert ask(peer, fetched(peer, version)) == f"{version} () {differing}"


def newest(peer: str) -> dict[str, _facts.Record]:
    return _facts.records(peer, peers.NEWEST[peer])


def altered(name: str, **changes: Any) -> type:
    """A subclass of a live class of pamqp or pika with other attributes, which is called what that is."""
    module, _, path = name.partition(":")
    target: Any = importlib.import_module(module)
    for part in path.split("."):
        target = getattr(target, part)
    return type(
        target.__name__,
        (target,),
        {"__slots__": target.__slots__, **changes} if module == "pamqp.commands" else changes,
    )


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"index": 7}, "its index is 0x7"),
        ({"_exchange": "longstr"}, "the type of exchange is longstr"),
        ({"__init__": lambda self, ticket=0: None}, "its constructor takes ('ticket',)"),
        ({"marshal": lambda self: b""}, "Publish has a marshal of its own"),
        ({"validate": lambda self: None}, "1 as ticket is accepted"),
    ],
)  # fmt: skip
def test_a_class_of_pamqp_that_differs_is_named_with_the_difference(
    changes: dict[str, Any], difference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = pytest.importorskip("pamqp.commands")
    rules = {name: rule for name, rule in _relied.recognise("pamqp").rules.items() if name in newest("pamqp")}
    monkeypatch.setattr(commands.Basic, "Publish", altered("pamqp.commands:Basic.Publish", **changes))
    assert _facts.differing("pamqp", _facts.known_records("pamqp", rules)) == {"Basic.Publish": difference}


def refusing(self: Any, delivery_tag: Any = None, requeue: bool = True) -> None:
    raise LookupError("not today")


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"INDEX": 7}, "its INDEX is 0x7"),
        ({"encode": lambda self: []}, "it does not encode to the octets of its fields"),
        ({"decode": lambda self, encoded: self}, "it does not decode from the octets of its fields"),
        ({"__init__": lambda self, delivery_tag=None: None}, "its constructor takes ('delivery_tag',)"),
        ({"__init__": lambda self, delivery_tag=1, requeue=True: None}, "the default of delivery_tag is 1"),
        ({"__init__": refusing}, "trying it out gives LookupError: not today"),
    ],
)  # fmt: skip
def test_a_class_of_pika_that_differs_is_named_with_the_difference(
    changes: dict[str, Any], difference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = pytest.importorskip("pika.spec")
    monkeypatch.setattr(spec.Basic, "Reject", altered("pika.spec:Basic.Reject", **changes))
    assert _facts.differing("pika", newest("pika")) == {"Basic.Reject": difference}


def test_a_class_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = pytest.importorskip("pika.spec")
    monkeypatch.delattr(spec.Tx, "Commit")
    assert _facts.differing("pika", newest("pika")) == {"Tx.Commit": "it is missing"}


def test_an_index_that_leads_to_another_class_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    commands, spec = pytest.importorskip("pamqp.commands"), pytest.importorskip("pika.spec")
    monkeypatch.setitem(commands.INDEX_MAPPING, commands.Basic.Ack.index, commands.Basic.Nack)
    rules = {"Basic.Ack": _relied.recognise("pamqp").rules["Basic.Ack"]}
    facts = _facts.known_records("pamqp", rules)
    assert _facts.differing("pamqp", facts) == {"Basic.Ack": "its index leads to another class"}
    monkeypatch.setitem(spec.methods, spec.Basic.Ack.INDEX, spec.Basic.Nack)
    assert _facts.differing("pika", newest("pika")) == {"Basic.Ack": "its INDEX leads to another class"}


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
