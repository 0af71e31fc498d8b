"""The next release of a library, simulated: what it changes stays as it is, and the rest is accelerated.

Each is a copy of the installed library with one change. A process of its own accelerates it, with `loops`,
and sends a message through it.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path
from typing import Any

import pytest
from support.compat.smoke import NEW
from support.marks import replaces
from support.tiers import few

from amqpcodec.compat import PEERS
from amqpcodec.compat._relied import AMQP_READING, REASON, class_names, compare, table
from amqpcodec.compat._sources import LARGEST, Sources, _imported

TESTS = Path(__file__).parents[1]

_PLAINTEXT = "pika.adapters.utils.io_services_utils._AsyncPlaintextTransport"
# What relies on a function beside what takes its own place.
ALSO = {
    "Basic.Properties": ["pamqp.frame.unmarshal", "pamqp.frame.marshal"],
    "amqp.serialization.loads": [
        "amqp.serialization.decode_properties_basic", "amqp.method_framing.frame_handler",
    ],
    "amqp.serialization.dumps": [
        "amqp.serialization.GenericContent._serialize_properties", "amqp.method_framing.frame_writer",
    ],
    "amqp.serialization.decode_properties_basic": ["amqp.method_framing.frame_handler"],
    "amqp.serialization.GenericContent._serialize_properties": ["amqp.method_framing.frame_writer"],
    "amqp.basic_message.Message.__init__": ["amqp.method_framing.frame_handler"],
    "pika.frame.decode_frame": ["pika.connection.Connection._on_data_available"],
    f"{_PLAINTEXT}._on_socket_writable": [f"{_PLAINTEXT}.write"],
}  # fmt: skip
SAMPLES = {
    "pamqp": ["Basic.Publish", "Basic.Properties"],
    "pika": ["Basic.Deliver", "BasicProperties"],
    "amqp": [],
}
EDITED = [
    *((peer, each.name) for peer in PEERS for each in table(peer) if each.name not in class_names(peer)),
    *((peer, name) for peer, names in SAMPLES.items() for name in names),
]
LABELS = {
    "amqp.abstract_channel.loads": "amqp.serialization.loads",
    "amqp.abstract_channel.dumps": "amqp.serialization.dumps",
    "amqp.connection.frame_handler": "amqp.method_framing.frame_handler",
    "amqp.connection.frame_writer": "amqp.method_framing.frame_writer",
    "amqp.serialization.PROPERTY_CLASSES[60]": "amqp.serialization.decode_properties_basic",
    "amqp.connection.Connection.__init__.__defaults__": "",  # has both of these
}
"""Further places in which a function is replaced."""

RENAMED = [
    ("pamqp", "ContentHeader", ["pamqp.frame.unmarshal", "pamqp.frame.marshal"]),
    ("pamqp", "Ack", ["Basic.Ack"]),
    ("pamqp", "by_type", ["pamqp.frame.unmarshal", "pamqp.frame.marshal"]),
    (
        "pika", "Body",
        ["pika.frame.decode_frame", "pika.frame.Body.marshal", *ALSO["pika.frame.decode_frame"]],
    ),
    ("pika", "Deliver", ["Basic.Deliver"]),
    ("pika", "CallbackManager", ["pika.callback.CallbackManager.pending"]),
    ("amqp", "_AbstractTransport", [AMQP_READING]),
    ("amqp", "frame_writer", ["amqp.method_framing.frame_writer"]),
    (
        "amqp", "GenericContent",
        [
            "amqp.serialization.GenericContent._serialize_properties", "amqp.method_framing.frame_handler",
            "amqp.method_framing.frame_writer", "amqp.basic_message.Message.__init__",
            "amqp.abstract_channel.AbstractChannel.dispatch_method",
        ],
    ),
]  # fmt: skip
MOVED = [
    ("pamqp", "heartbeat", ["pamqp.frame.unmarshal", "pamqp.frame.marshal"]),
    ("pamqp", "encode", ["pamqp.frame.marshal"]),
    (
        "pika",
        "amqp_object",
        [
            *class_names("pika"),
            "pika.callback.CallbackManager.pending",
            "pika.frame.decode_frame",
            *ALSO["pika.frame.decode_frame"],
        ],
    ),
    ("amqp", "method_framing", ["amqp.method_framing.frame_handler", "amqp.method_framing.frame_writer"]),
    ("amqp", "transport", [AMQP_READING]),
]

IN_SHORT = {
    "pamqp.frame.marshal", "Basic.Publish", "pika.frame.decode_frame", "amqp.serialization.loads",
    "Ack", "Body", "_AbstractTransport", "encode", "method_framing",
}  # fmt: skip
"""Changes that `make test` plays in processes; `make test-compat-releases` plays all."""


def shortened(peer: str, change: str, *rest: Any) -> Any:
    marks = [] if change in IN_SHORT else [pytest.mark.releases]
    return pytest.param(peer, change, *rest, marks=marks, id=f"{peer} {change}")


PROGRAM = """
import json, sys, warnings
from importlib import import_module
from amqpcodec import compat
from support.compat.smoke import send
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    compat.install(sys.argv[1], loops=True)
    sent = send(sys.argv[1])
status = compat.status()[sys.argv[1]]
said = [str(each.message) for each in said if each.category is RuntimeWarning]
print(json.dumps([sent, status.active, status.stock, sorted(status.originals), status.fast, said]))
"""


def outcome(peer: str, folder: Path) -> list[Any]:
    """Return the words of a process on a copy in a folder."""
    path = os.pathsep.join([str(folder), str(TESTS), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, peer],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


@cache
def unchanged(peer: str) -> list[Any]:
    """Return the words of a process on the library as it is installed."""
    pytest.importorskip(peer)
    return outcome(peer, TESTS)


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a copy of the sources of an installed library, and gives the folder that it lies in."""

    def make(peer: str) -> Path:
        spec = importlib.util.find_spec(peer)
        if spec is None:
            pytest.skip(f"{peer} is not installed")
        leave = shutil.ignore_patterns("__pycache__", "*.pyi")
        shutil.copytree(Path(str(spec.origin)).parent, tmp_path / peer, ignore=leave)
        return tmp_path

    return make


def check(peer: str, folder: Path, left: Collection[str]) -> None:
    """All but what is left is replaced, that is named once, and the message goes as it did."""
    sent, active, stock, originals, fast, said = outcome(peer, folder)
    before = unchanged(peer)
    assert sent == before[0]
    assert {name for name, reason in stock.items() if reason == REASON} == set(left)
    assert set(before[3]) - set(originals) <= {_label(peer, name) for name in left} | LABELS.keys()
    assert not set(originals) & {_label(peer, name) for name in left}
    assert not set(originals) & {label for label, name in LABELS.items() if name in left}
    assert active
    assert fast > 0
    assert len(said) == 1
    assert sorted(left)[0] in " ".join([said[0], *stock])


def _label(peer: str, name: str) -> str:
    return f"pamqp.commands.{name}.__init__" if peer == "pamqp" and name in class_names(peer) else name


@pytest.mark.parametrize(("peer", "path"), few([*EDITED[::2], *EDITED[1::2]], 13, "further functions"))
def test_of_a_function_that_was_edited_nothing_else_is_unknown(
    peer: str, path: str, copy: Callable[[str], Path]
) -> None:
    folder = copy(peer)
    edit(folder, _within(peer, path))
    spec = PathFinder.find_spec(peer, [str(folder)])
    assert spec is not None
    assert {each.name for each in compare(spec) if each.rules is None} == {path, *ALSO.get(path, ())}


@replaces
@pytest.mark.parametrize(("peer", "path"), [shortened(*each) for each in EDITED])
def test_a_function_that_was_edited_stays_and_the_rest_is_accelerated(
    peer: str, path: str, copy: Callable[[str], Path]
) -> None:
    folder = copy(peer)
    edit(folder, _within(peer, path))
    check(peer, folder, [path, *ALSO.get(path, ())])


def _within(peer: str, name: str) -> str:
    return next(each.roots[0] for each in table(peer) if each.name == name)


@replaces
@pytest.mark.parametrize(("peer", "name", "left"), [shortened(*each) for each in RENAMED])
def test_what_was_renamed_stays_and_the_rest_is_accelerated(
    peer: str, name: str, left: list[str], copy: Callable[[str], Path]
) -> None:
    folder = copy(peer)
    replace_word(folder, name, name + NEW)
    check(peer, folder, left)


@replaces
@pytest.mark.parametrize(("peer", "name", "left"), [shortened(*each) for each in MOVED])
def test_a_module_that_was_moved_stays_and_the_rest_is_accelerated(
    peer: str, name: str, left: list[str], copy: Callable[[str], Path]
) -> None:
    folder = copy(peer)
    move(folder / peer, name)
    check(peer, folder, left)


def move(folder: Path, name: str) -> None:
    """Give a module another name, and import it under that as what it was."""
    (folder / f"{name}.py").rename(folder / f"{name}{NEW}.py")
    imports = re.compile(r"^(?:from|import) [^(\n]*(?:\([^)]*\))?", re.MULTILINE)
    for file in folder.rglob("*.py"):

        def moved(found: re.Match[str]) -> str:
            text = re.sub(rf"\.{name}(?= import)", f".{name}{NEW}", found[0])
            return re.sub(rf"(?<![\w.]){name}(?!\w)", f"{name}{NEW} as {name}", text)

        file.write_text(imports.sub(moved, file.read_text(encoding="utf-8")), encoding="utf-8")


def replace_word(folder: Path, word: str, other: str) -> None:
    """Write another word for one wherever it stands."""
    for file in folder.rglob("*.py"):
        file.write_text(re.sub(rf"\b{word}\b", other, file.read_text(encoding="utf-8")), encoding="utf-8")


def edit(folder: Path, path: str) -> None:
    """Change the source of a function, or a class, in a way that does nothing."""
    parts = path.split(".")
    file = folder
    while (file / parts[0]).is_dir():
        file /= parts.pop(0)
    file /= f"{parts.pop(0)}.py"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    node: Any = ast.parse("".join(lines))
    for name in parts:
        node = next(each for each in node.body if name in (getattr(each, "name", ""), _target(each)))
    last = node.body[-1] if hasattr(node, "body") else node
    at = min([last.lineno, *(each.lineno for each in getattr(last, "decorator_list", ()))]) - 1
    text = "edited = None\n" if hasattr(node, "body") else f"{parts[-1]} = 0\n"
    lines.insert(at, " " * last.col_offset + text)
    file.write_text("".join(lines), encoding="utf-8")


def _target(node: ast.AST) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) else ""


# -- what is compared


@pytest.fixture
def seen(tmp_path: Path) -> Callable[[str], str]:
    """Gives the digest of `library.module.root` with a text as the module's source."""

    def digest(source: str) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir()))) / "library"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("", encoding="utf-8")
        (folder / "module.py").write_text(source, encoding="utf-8")
        (folder / "other.py").write_text(
            "def used(): return 1\n" if "# changed" in source else "def used(): return 2\n", encoding="utf-8"
        )
        spec = PathFinder.find_spec("library", [str(folder.parent)])
        assert spec is not None
        return Sources(spec).digest(["library.module.root"], [])

    return digest


SOURCE = """
from library import other
from .other import used as it
LIMIT = 3
TABLE = {1: LIMIT}
TABLE[2] = 4
if LIMIT:
    def helper(value):
        return value
else:
    helper = None
def unrelated(): return LIMIT
def root(value, text='a # b'):
    \"\"\"Say what it does.\"\"\"
    if value:  # a comment
        value = helper(TABLE[value])
    return it(value) + other.used()
"""
SAME = {
    "a comment": ("# a comment", "# another"),
    "a docstring": ("Say what it does.", "Say it otherwise."),
    "a line that is broken": ("TABLE[value]", "TABLE[\n  value\n]"),
    "blank lines": ("    return it", "\n\n    return it"),
    "what is not relied on": ("return LIMIT", "return LIMIT + 1"),
}
OTHER = {
    "a token": ("if value:", "if not value:"),
    "a text": ("a # b", "a # c"),
    "an indentation": ("        value = helper", "    pass\n    value = helper"),
    "a constant of a constant": ("LIMIT = 3", "LIMIT = 4"),
    "an entry of a table": ("TABLE[2] = 4", "TABLE[2] = 5"),
    "a helper": ("        return value", "        return -value"),
    "the other branch": ("helper = None", "helper = 1"),
    "another module": ("# a comment", "# changed"),
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_count_leaves_a_digest_as_it_is(name: str, seen: Callable[[str], str]) -> None:
    assert SAME[name][0] in SOURCE
    assert seen(SOURCE) == seen(SOURCE.replace(*SAME[name]))


@pytest.mark.parametrize("name", OTHER)
def test_what_a_function_relies_on_changes_its_digest(name: str, seen: Callable[[str], str]) -> None:
    assert OTHER[name][0] in SOURCE
    assert seen(SOURCE) != seen(SOURCE.replace(*OTHER[name]))


def test_what_is_compiled_or_too_large_or_missing_is_not_known(tmp_path: Path) -> None:
    pytest.importorskip("pika")
    spec = importlib.util.find_spec("pika")
    assert spec is not None
    whole = {each.name: each.rules for each in compare(spec)}
    assert None not in whole.values()
    shutil.copytree(Path(str(spec.origin)).parent, tmp_path / "pika")
    (tmp_path / "pika" / f"callback{EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    with (tmp_path / "pika" / "frame.py").open("a", encoding="utf-8") as stream:
        stream.write("#" * LARGEST)
    (tmp_path / "pika" / "connection.py").unlink()
    copied = PathFinder.find_spec("pika", [str(tmp_path)])
    assert copied is not None
    found = {each.name: each.rules for each in compare(copied)}
    left = {name for name in found if found[name] is None}
    assert left == {
        each.name
        for each in table("pika")
        if each.roots[0].split(".")[1] in ("frame", "callback", "connection")
    }


def test_a_text_that_is_no_python_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "amqp").mkdir()
    (tmp_path / "amqp" / "__init__.py").write_text("", encoding="utf-8")
    for name in ("serialization", "method_framing", "basic_message"):
        (tmp_path / "amqp" / f"{name}.py").write_bytes(b"def loads\nclass\ndef\n'\xff\n)))\nfrom import\n=")
    spec = PathFinder.find_spec("amqp", [str(tmp_path)])
    assert spec is not None
    assert {(each.rules, each.module) for each in compare(spec)} == {(None, "")}


@pytest.mark.parametrize("peer", PEERS)
def test_comparing_a_library_takes_a_bounded_time(peer: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(peer)
    spec = importlib.util.find_spec(peer)
    assert spec is not None
    times = []
    for _ in range(3):
        start = time.process_time()
        compare(spec)
        times.append((time.process_time() - start) * 1000)
    with capsys.disabled():
        print(f" {peer}: compared in {min(times):.0f} ms ", end="")
    assert min(times) < 500


@pytest.mark.parametrize(
    ("line", "bound"),
    [
        ("import a", {"a": "a"}),
        ("import a . b , c", {"a": "a", "c": "c"}),
        ("import a . b as c", {"c": "a.b"}),
        ("from a . b import ( c , d as e , )", {"c": "a.b.c", "e": "a.b.d"}),
        ("from . import a", {"a": ".a"}),
        ("from . . a import b", {"b": "..a.b"}),
    ],
)
def test_an_import_binds_the_names_that_python_binds(line: str, bound: dict[str, str]) -> None:
    assert _imported(line.split()) == bound
