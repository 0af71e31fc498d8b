"""The facts of other libraries against their live classes, and the releases that are known."""

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

from amqpcodec import AmqpError
from amqpcodec._generated import peers
from amqpcodec.compat import _facts, _versions
from amqpcodec.errors import UnknownReleaseError

PEERS = ("pamqp", "pika", "amqp")
RELEASES = {
    "pamqp": {"3.3.0": "3.3", "4.0.1": "4.0"},
    "pika": {"1.3.2": "1.3", "1.4.0": "1.4", "1.4.1": "1.4", "1.4.2": "1.4", "1.4.4": "1.4"},
    "amqp": {
        "5.2.0": "5.2", "5.3.0": "5.2", "5.3.1": "5.2", "5.4.0": "5.4.0", "5.4.1": "5.4.1", "5.4.2": "5.4.2",
    },
}  # fmt: skip
OTHERS = {"pamqp": ("3.2.1", "4.0.0"), "pika": ("1.3.1",), "amqp": ("5.0.9",)}

ASK = """
import sys
from amqpcodec.compat import _facts, _versions
from amqpcodec.errors import UnknownReleaseError
found = _versions.release(sys.argv[1], loops=sys.argv[2] == "True")
assert sys.argv[1] not in sys.modules
print(found.version, found.rules, _facts.differing(sys.argv[1], found.rules))
"""


def ask(peer: str, folder: Path | None = None, loops: bool = True) -> str:
    """What a process says of a library, or of the copy of it in a folder; or how it fails."""
    path = os.pathsep.join([*([str(folder)] if folder else []), *(entry for entry in sys.path if entry)])
    command = [sys.executable, "-c", ASK, peer, str(loops)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


@pytest.fixture(params=PEERS)
def peer(request: pytest.FixtureRequest) -> str:
    """A library that is installed."""
    pytest.importorskip(request.param)
    return str(request.param)


def test_the_installed_release_is_known_and_its_classes_are_those_of_the_facts(peer: str) -> None:
    version = importlib.metadata.version(peer)
    assert ask(peer) == f"{version} {RELEASES[peer][version]} {{}}"


@pytest.mark.fetches
@pytest.mark.parametrize(
    ("peer", "version"), [(peer, version) for peer, versions in RELEASES.items() for version in versions]
)
def test_the_classes_of_every_supported_release_are_those_of_the_facts(peer: str, version: str) -> None:
    assert ask(peer, fetched(peer, version)) == f"{version} {RELEASES[peer][version]} {{}}"


@pytest.mark.fetches
@pytest.mark.parametrize(
    ("peer", "version"), [(peer, version) for peer, versions in OTHERS.items() for version in versions]
)
def test_any_other_release_is_refused_with_the_list(peer: str, version: str) -> None:
    said = ask(peer, fetched(peer, version))
    listed = ", ".join(_versions.releases_of(peer))
    assert said == (
        f"amqpcodec.errors.UnknownReleaseError: {peer} {version}: its files are not those of a release that"
        f" is known ({listed}); force=True takes it if its classes are as expected"
    )


@pytest.mark.fetches
def test_py_amqp_5_1_has_the_codec_of_5_2_and_a_read_loop_that_is_not_known() -> None:
    folder = fetched("amqp", "5.1.1")
    assert ask("amqp", folder, loops=False) == "5.1.1 5.2 {}"
    listed = ", ".join(_versions.releases_of("amqp loops"))
    assert ask("amqp", folder) == (
        "amqpcodec.errors.UnknownReleaseError: amqp 5.1.1: the files of its read loop are not those of a"
        f" release that is known ({listed}); force=True takes it if its classes are as expected"
    )


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of pika's folder of which every file may be changed, and which is what Python finds."""
    pika = pytest.importorskip("pika")
    origin = Path(pika.__file__).parent
    (tmp_path / "pika" / "adapters" / "utils").mkdir(parents=True)
    for name in ("__init__", *_versions._FILES["pika"], *_versions._FILES["pika loops"]):
        (tmp_path / "pika" / f"{name}.py").write_bytes((origin / f"{name}.py").read_bytes())
    (tmp_path / "pika-9.9.dist-info").mkdir()
    for name in [name for name in sys.modules if name.partition(".")[0] == "pika"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return tmp_path / "pika"


def test_a_release_is_known_by_its_files_whatever_it_says_of_itself(changed: Path) -> None:
    assert _versions.release("pika", loops=True) == ("9.9", "1.4")


def test_one_octet_that_differs_makes_a_release_unknown(changed: Path) -> None:
    with (changed / "data.py").open("ab") as stream:
        stream.write(b"#")
    with pytest.raises(UnknownReleaseError) as caught:
        _versions.release("pika")
    assert str(caught.value) == (
        "pika 9.9: its files are not those of a release that is known (1.3.2, 1.4.0 to 1.4.4); "
        "force=True takes it if its classes are as expected"
    )
    assert isinstance(caught.value, AmqpError)
    assert isinstance(caught.value, ImportError)
    assert _versions.release("pika", force=True) == ("9.9", "1.4")


def test_a_release_without_metadata_is_refused_in_words(changed: Path) -> None:
    (changed.parent / "pika-9.9.dist-info").rmdir()
    refused = (
        "pika of unknown version: {} are not those of a release that is known (1.3.2, 1.4.0 to 1.4.4); {}"
    )
    for name, files in (("connection", "the files of its read loop"), ("data", "its files")):
        with (changed / f"{name}.py").open("ab") as stream:
            stream.write(b"#")
        with pytest.raises(UnknownReleaseError) as caught:
            _versions.release("pika", loops=True)
        assert str(caught.value) == refused.format(
            files, "force=True takes it if its classes are as expected"
        )


def test_files_of_the_read_loop_count_where_it_is_to_be_replaced(changed: Path) -> None:
    with (changed / "connection.py").open("ab") as stream:
        stream.write(b"#")
    assert _versions.release("pika").rules == "1.4"
    with pytest.raises(UnknownReleaseError) as caught:
        _versions.release("pika", loops=True)
    assert str(caught.value) == (
        "pika 9.9: the files of its read loop are not those of a release that is known"
        " (1.3.2, 1.4.0 to 1.4.4); force=True takes it if its classes are as expected"
    )


def test_a_compiled_module_is_not_what_its_text_says(changed: Path) -> None:
    (changed / f"frame{_versions.EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    with pytest.raises(UnknownReleaseError, match=r"^pika 9\.9: its files are not those"):
        _versions.release("pika")


def test_a_file_that_is_missing_makes_a_release_unknown(changed: Path) -> None:
    (changed / "spec.py").unlink()
    with pytest.raises(UnknownReleaseError):
        _versions.release("pika")


def test_what_is_not_installed_cannot_be_accelerated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_versions, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError) as caught:
        _versions.release("pika")
    assert str(caught.value) == "pika is not installed, and amqpcodec does not bring it: pip install pika"
    assert caught.value.name == "pika"


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
    rules = _versions.release("pamqp").rules
    monkeypatch.setattr(commands.Basic, "Publish", altered("pamqp.commands:Basic.Publish", **changes))
    assert _facts.differing("pamqp", rules) == {"Basic.Publish": difference}


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
    assert _facts.differing("pika", "1.4") == {"Basic.Reject": difference}


def test_a_class_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = pytest.importorskip("pika.spec")
    monkeypatch.delattr(spec.Tx, "Commit")
    assert _facts.differing("pika", "1.4") == {"Tx.Commit": "it is missing"}


def test_arguments_of_py_amqp_that_differ_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = pytest.importorskip("amqp.channel").Channel
    methods = {**channel._METHODS, (60, 60): channel._METHODS[60, 60]._replace(args="sLs")}
    monkeypatch.setattr(channel, "_METHODS", methods)
    assert _facts.differing("amqp", "5.4.2") == {"60.60": "its arguments are 'sLs'"}


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
