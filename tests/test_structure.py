"""Imports between files of the package: none leads back to where it began, and all point down the layers.

Late imports count as well, and modules that are loaded by their names; what only type checkers read does not.
A `cimport` declares, as a header of C does, so it does not count either. A module of both builds is one room.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "amqpcodec"
PATH = ROOT / "src" / PACKAGE
BUILDS = ("py", "c")
LOADERS = ("load", "export", "import_module")
WORDS = re.compile("import|load|export")  # only what has such a word is looked at closely
IN_CYTHON = re.compile(r"^\s*from (\.*)([\w.]*) import (.*)$", re.MULTILINE)
NODE = re.compile(r'^ *(\w+)\["([^":]+)', re.MULTILINE)
ARROW = re.compile(r"^ *(\w+) (?:-->|-\. is given \.->) (\w+)$", re.MULTILINE)

Import = tuple[str, str, bool]  # a module, a name that is taken from it, whether in the pure build alone


class Package:
    """The files of a package, and which of them import which.

    Args:
        folder: that of the package.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rooms: dict[str, list[Path]] = defaultdict(list)
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".pyx", ".pxd"):
                self.rooms[self.room(self.module(path))].append(path)

    def module(self, path: Path) -> str:
        parts = path.relative_to(self.folder.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def room(self, module: str) -> str:
        """Return the name of a module without the ending of a build."""
        name, ending, _ = module.rpartition("_")
        pure = self.folder.parent / f"{name.replace('.', '/')}_py.py"
        return name if ending and module[len(name) :] in ("_py", "_c") and pure.exists() else module

    def is_in(self, path: Path, build: str) -> bool:
        """Return whether a build has a file; the compiled one has those texts that it has types for."""
        if path.suffix != ".py" or not path.stem.endswith("_py"):
            return path.suffix == ".py" or build == "c"
        compiled = path.with_name(f"{path.stem.removesuffix('_py')}_c.pxd")
        is_compiled = compiled.exists() or path.parent.name == "_generated"  # whose types are derived
        return build == "py" or (is_compiled and not compiled.with_suffix(".pyx").exists())

    def graph(self, build: str) -> dict[str, set[str]]:
        """Return the rooms that each room imports in a build."""
        graph: dict[str, set[str]] = {}
        for room, paths in self.rooms.items():
            found = {
                self.room_of(module, name)
                for path in paths
                if self.is_in(path, build)
                for module, name, is_pure in self.imports(path)
                if build == "py" or not is_pure
            }
            graph[room] = found & self.rooms.keys() - {room}
        return graph

    def room_of(self, module: str, name: str) -> str:
        inner = self.room(f"{module}.{name}")
        return inner if inner in self.rooms else self.room(module)

    @cache  # noqa: B019, there is one package for all tests
    def imports(self, path: Path) -> list[Import]:
        text = path.read_text(encoding="utf-8")
        package = self.module(path)
        if path.name != "__init__.py":
            package = package.rpartition(".")[0]
        if path.suffix != ".py":
            return [
                (absolute(package, len(dots), module), name, False)
                for dots, module, names in IN_CYTHON.findall(text)
                for name in re.findall(r"\w+", names) or [""]
            ]
        if path.parent.name == "_generated":
            text = text.partition("\nclass ")[0]  # they import at the beginning
        lines = text.splitlines()
        return [
            found
            for statement in ast.parse(text).body
            if any(WORDS.search(line) for line in lines[statement.lineno - 1 : statement.end_lineno])
            for found in imports_of(statement, package)
        ]


def absolute(package: str, level: int, module: str | None) -> str:
    base = package.split(".")[: len(package.split(".")) - level + 1] if level else []
    return ".".join([*base, *([module] if module else [])])


def imports_of(node: ast.AST, package: str, is_pure: bool = False) -> Iterator[Import]:
    """Yield what a text imports, wherever that stands, but for type checkers alone."""
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    match node:
        case ast.If(test=ast.Name("TYPE_CHECKING"), orelse=children):
            pass
        case ast.If(test=ast.Name("PURE"), body=body, orelse=children):
            for pure in body:
                yield from imports_of(pure, package, True)
        case ast.Import(names=names):
            yield from ((each.name, "", is_pure) for each in names)
        case ast.ImportFrom(level=level, module=module, names=names):
            yield from ((absolute(package, level, module), each.name, is_pure) for each in names)
        case ast.Call(func=function, args=[ast.Constant(str(module)), *_]):
            if ast.unparse(function).rpartition(".")[2] in LOADERS:
                yield module, "", is_pure
    for child in children:
        yield from imports_of(child, package, is_pure)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return rooms that import each other, in a circle; none if there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


class Layers:
    """The layers of docs/architecture.md: what each holds, and what it may import."""

    def __init__(self) -> None:
        text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
        diagram = text.partition("```mermaid")[2].partition("```")[0]
        named = {node: label.split(", ") for node, label in NODE.findall(diagram)}
        self.of: dict[str, str] = {
            name.replace("/", "."): node for node, names in named.items() for name in names
        }
        self.below: dict[str, set[str]] = {node: set() for node in named}
        for above, below in ARROW.findall(diagram):
            self.below[above].add(below)

    def layer(self, room: str) -> str:
        """Return the layer of a room: that of the nearest folder that has one."""
        name = room.removeprefix(PACKAGE).removeprefix(".") or PACKAGE
        if re.fullmatch(r"_\w+", name) and name not in self.of and not (PATH / name).exists():
            return self.of["errors"]  # a private file
        while name and name not in self.of:
            name = name.rpartition(".")[0]
        return self.of.get(name, "")

    def reach(self, layer: str) -> set[str]:
        """Return a layer and all that are below it."""
        found, left = {layer}, [layer]
        while left:
            new = self.below.get(left.pop(), set()) - found
            found |= new
            left += new
        return found


@pytest.fixture(scope="module")
def package() -> Package:
    return Package(PATH)


@pytest.mark.parametrize("build", BUILDS)
def test_no_files_import_each_other_in_a_circle(package: Package, build: str) -> None:
    assert circle(package.graph(build)) == []


def test_every_file_has_a_layer_and_no_layer_is_above_itself(package: Package) -> None:
    layers = Layers()
    assert [room for room in package.rooms if not layers.layer(room)] == []
    assert circle(layers.below) == []
    there = {room.removeprefix(f"{PACKAGE}.") for room in package.rooms}
    assert layers.of.keys() <= there


@pytest.mark.parametrize("build", BUILDS)
def test_imports_point_down_the_layers(package: Package, build: str) -> None:
    layers = Layers()
    up = [
        f"{room} -> {other}"
        for room, others in package.graph(build).items()
        for other in sorted(others)
        if layers.layer(other) not in layers.reach(layers.layer(room))
    ]
    assert up == []


@pytest.mark.parametrize(
    ("text", "is_circle"),
    [
        ("from .b import x", True),
        ("from . import b", True),
        ("import package.b", True),
        ("def f():\n    from .b import x", True),
        ("def f():\n    return load('package.b').x", True),
        ("if TYPE_CHECKING:\n    from .b import x", False),
        ("from .d import b", False),
    ],
)
def test_a_circle_of_imports_is_found(tmp_path: Path, text: str, is_circle: bool) -> None:
    folder = tmp_path / "package"
    folder.mkdir()
    files = {"a_py.py": text, "b.py": "from .c import x", "c.py": "from .a_py import x", "d.py": "b = 1"}
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    found = circle(Package(folder).graph("py"))
    assert set(found) == ({"package.a", "package.b", "package.c"} if is_circle else set())
