"""Read definitions from the source of a library, without importing it.

A definition is compared by its tokens: comments, docstrings, blank lines and how lines are broken do not
count. The tokens are the same for every version of Python, which code objects and the tokens of `tokenize`
are not. That takes three to seven times as long besides, and `ast` twice as long, to parse alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from os.path import exists

from .._typing import NamedTuple

LARGEST = 1 << 20
"""Octets of a file; a larger one is not read, so that the time that this takes is bounded."""

# What is passed over, and a token: a line break with the indentation behind it, a text, a word, or a sign.
_TOKEN = re.compile(
    r"""
    (?:[^\S\n]|\\\n|\#[^\n]*)*
    (\n[^\S\n]*
    |[rbfu]{0,2}(?:"{3}(?:\\.|[^\\])*?"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |\w+|\S)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_OPENED = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_QUOTES = "\"'"
_MOST_STEPS = 8  # from a name to its definition, through modules that import it from each other
_COMPOUND = frozenset(("if", "try", "for", "while", "with"))
_CONTINUES = frozenset(("else", "elif", "except", "finally"))


class Line(NamedTuple):
    """One logical line: how far it is indented, and its tokens."""

    indent: int
    tokens: tuple[str, ...]


class Definition(NamedTuple):
    """A definition under a dotted path.

    Attributes:
        text: its tokens, line by line; empty, or in words, if it is missing.
        names: dotted paths of what it names in its library.
    """

    text: str
    names: tuple[str, ...]


def logical_lines(source: str) -> list[Line]:
    """Return the logical lines of a source, without comments and docstrings."""
    lines: list[Line] = []
    tokens: list[str] = []
    indent = depth = 0
    for token in _TOKEN.findall(f"{source}\n"):
        if token[0] != "\n":
            tokens.append(token)
            if token in _OPENED:
                depth += _OPENED[token]
        elif depth <= 0:
            if tokens and not (tokens[0][-1] in _QUOTES and all(each[-1] in _QUOTES for each in tokens)):
                lines.append(Line(indent, tuple(tokens)))
            indent, tokens = len(token.expandtabs()) - 1, []
    return lines


def definitions(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """Return the statements of a block by the names that they bind; a name may be bound by several."""
    found: dict[str, list[Line]] = {}
    for statement in _statements(lines):
        for name in dict.fromkeys(_bound(statement)):
            found.setdefault(name, []).extend(statement)
    return found


def _statements(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield the statements of a block, each with what is indented below it and its decorators."""
    statement: list[Line] = []
    for line in lines:
        begins = line.indent <= lines[0].indent and line.tokens[0] not in _CONTINUES
        if begins and statement and statement[-1].tokens[0] != "@":
            yield statement
            statement = []
        statement.append(line)
    if statement:
        yield statement


def _bound(statement: Sequence[Line]) -> Iterator[str]:
    """Yield the names that a statement binds, or changes."""
    outer = statement[0].indent
    head = next((line.tokens for line in statement if line.tokens[0] != "@" and line.indent == outer), ())
    head = head[1:] if head[:1] == ("async",) else head
    if not head:
        return
    if head[0] in ("def", "class"):
        yield head[1]
    elif head[0] in _COMPOUND:
        inner = [line for line in statement if line.indent > outer]
        for part in _statements(inner):
            yield from _bound(part)
    elif head[0] in ("import", "from"):
        yield from _imported(head)
    elif head[0].isidentifier():
        yield from _targets(head)


def _targets(tokens: Sequence[str]) -> Iterator[str]:
    """Yield the names before the equals signs of an assignment; of `table[key] = value` that of the table."""
    names: list[str] = []
    depth = 0
    for at, token in enumerate(tokens):
        depth += _OPENED.get(token, 0)
        if depth == 0 and token == "=":
            yield from names
            names = []
        elif token.isidentifier() and tokens[at - 1 : at] != (".",):
            names.append(token)
        elif depth == 0 and token == ":":
            yield from names
            return


def _imported(tokens: Sequence[str]) -> dict[str, str]:
    """Return what an import binds: dotted paths by name, those of relative imports with their dots."""
    where, _, names = " ".join(tokens).replace("(", "").replace(")", "").partition("import ")
    source = "".join(where.split()).removeprefix("from")
    found = {}
    for part in filter(None, map(str.strip, names.split(","))):
        path, _, name = (each.strip() for each in part.partition(" as "))
        path = path.replace(" ", "")
        if source:
            found[name or path] = f"{source}{'' if source.endswith('.') else '.'}{path}"
        else:
            found[name or path.partition(".")[0]] = path if name else path.partition(".")[0]
    return found


Block = tuple[list[Line], dict[str, list[Line]]]


class Module:
    """One module of a library, read from its source.

    Args:
        name: with that of the library.
        source: its text.
        is_package: its relative imports begin one step lower.
    """

    def __init__(self, name: str, source: str, is_package: bool) -> None:
        self.name = name
        self.is_package = is_package
        self._base = name.split(".") if is_package else name.split(".")[:-1]
        self._blocks: dict[tuple[str, ...], Block] = {(): ([], definitions(logical_lines(source)))}

    def find(self, path: Sequence[str]) -> list[Line]:
        """Return the lines of a definition, below the heads of the classes that it stands in; or none."""
        if not path:
            return []
        heads, names = self._block(tuple(path[:-1]))
        return heads + names[path[-1]] if path[-1] in names else []

    def _block(self, path: tuple[str, ...]) -> Block:
        """Return the heads of a class and of those around it, and its definitions; the module's by ``()``."""
        if path not in self._blocks:
            heads, names = self._block(path[:-1])
            lines = names.get(path[-1], [])
            if not lines or lines[0].tokens[0] not in ("class", "@"):
                self._blocks[path] = [], {}
            else:
                outer = lines[0].indent
                inner = definitions([line for line in lines if line.indent > outer])
                self._blocks[path] = [*heads, *(line for line in lines if line.indent == outer)], inner
        return self._blocks[path]

    def named(self, lines: Sequence[Line]) -> set[tuple[str, ...]]:
        """Return dotted names in lines that begin with a name of the module; base classes are left out."""
        names = self._blocks[()][1]
        found = set()
        for tokens in [line.tokens for line in lines if line.tokens[0] != "class"]:
            for at, token in enumerate(tokens):
                if token in names and (at == 0 or tokens[at - 1] != "."):
                    end = at + 1
                    while tokens[end : end + 1] == (".",):
                        end += 2
                    found.add(tokens[at:end:2])
        return found

    def path_of(self, name: str) -> str:
        """Return the dotted path of a name that the module binds, or an empty text."""
        lines = self._blocks[()][1].get(name)
        if lines is None:
            return ""
        for line in lines:
            if line.tokens[0] in ("import", "from"):
                path = _imported(line.tokens).get(name, "")
                dots = len(path) - len(path.lstrip("."))
                return ".".join([*self._base[: len(self._base) + 1 - dots], path[dots:]]) if dots else path
        return f"{self.name}.{name}"


class Sources:
    """The modules of a library as they lie on the disk, or wherever its loader reads them from.

    Args:
        spec: that of the library's package.
    """

    def __init__(self, spec: ModuleSpec) -> None:
        self.name = spec.name
        self._folder = str(spec.origin).replace("\\", "/").rpartition("/")[0]
        self._get_data: Callable[[str], bytes] | None = getattr(spec.loader, "get_data", None)
        self._modules: dict[str, Module | None] = {}
        self._definitions: dict[str, Definition] = {}

    def digest(self, roots: Sequence[str], apart: Sequence[str]) -> str:
        """Return the digest of definitions and of all that they name in the library, missing ones included.

        Args:
            roots: dotted paths.
            apart: dotted paths of what is not followed, nor what is below them.
        """
        relied = self.relied(roots, apart)
        return sha256(
            "".join(f"{path} {relied[path].text}\n" for path in sorted(relied)).encode()
        ).hexdigest()[:16]

    def relied(self, roots: Sequence[str], apart: Sequence[str]) -> dict[str, Definition]:
        """Return the definitions that `digest` is of, by dotted path."""
        found: dict[str, Definition] = {}
        waiting = list(roots)
        for path in waiting:  # which grows meanwhile
            if path not in found:
                found[path] = self._definition(path)
                waiting += [
                    each
                    for each in found[path].names
                    if not any(each == stop or each.startswith(f"{stop}.") for stop in apart)
                ]
        return found

    def module_of(self, path: str) -> str:
        """Return the name of the module that a dotted path leads to, or an empty text."""
        module = self._split(path)[0]
        return module.name if module is not None else ""

    def lines(self, path: str) -> list[Line]:
        """Return the lines of a definition; none if it is missing."""
        module, names = self._split(path)
        return module.find(names) if module is not None else []

    def _missing(self, path: str) -> str:
        """Return the text of a definition that is missing: whether what may have it is there."""
        owner = path.rpartition(".")[0]
        return "" if self.lines(owner) or self.module_of(owner) == owner else "nor what may have it"

    def _definition(self, path: str) -> Definition:
        if path not in self._definitions:
            module, lines = self._split(path)[0], self.lines(path)
            reached = (
                {self._reached(module, name) for name in module.named(lines)} if module is not None else set()
            )
            text = ascii([tuple(line) for line in lines]) if lines else self._missing(path)
            self._definitions[path] = Definition(text, tuple(filter(None, reached)))
        return self._definitions[path]

    def _reached(self, module: Module, name: Sequence[str]) -> str:
        """Return the path of what a dotted name in a module leads to; empty outside the library."""
        rest = list(name)
        for _ in range(_MOST_STEPS):
            path = module.path_of(rest[0])
            there, names = self._split(path)
            rest = [*names, *rest[1:]]
            if there is None or not rest:
                return ""
            if there is module:
                while len(rest) > 1 and not there.find(rest):  # an attribute of what is defined
                    rest.pop()
                return ".".join([there.name, *rest])
            module = there
        return ""

    def _split(self, path: str) -> tuple[Module | None, list[str]]:
        """Return the module that a dotted path leads to, and the names behind it."""
        parts = path.split(".")
        module = self._module(parts[0])
        at = 1
        while module is not None and module.is_package and at < len(parts):
            inner = self._module(".".join(parts[: at + 1]))
            if inner is None:
                break
            module, at = inner, at + 1
        return module, parts[at:]

    def _module(self, name: str) -> Module | None:
        if name not in self._modules:
            self._modules[name] = self._read(name)
        return self._modules[name]

    def _read(self, name: str) -> Module | None:
        """Return a module that Python would import from its text, or None."""
        library, _, inside = name.partition(".")
        place = "/".join([self._folder, *inside.split(".")]) if inside else self._folder
        if library != self.name or any(exists(f"{place}{suffix}") for suffix in EXTENSION_SUFFIXES):
            return None
        for path, is_package in ((f"{place}/__init__.py", True), (f"{place}.py", False)):
            octets = self._octets(path)
            if octets is not None and (inside or is_package):
                text = octets.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
                return Module(name, text, is_package)
        return None

    def _octets(self, path: str) -> bytes | None:
        try:
            octets = self._get_data(path) if self._get_data else None
        except OSError:
            return None
        return octets if octets is not None and len(octets) <= LARGEST else None
