"""From spec/peers/*.toml to what other libraries call the fields of their classes, and do with them.

A file begins with a dialect and says only where the library differs from it. A table of such differences has
keys from the general to the special: `type:TYPE`, `FIELD`, `CLASS.METHOD.FIELD`; the most special one holds.
Fields are meant by their names in the library, but in `names`, which says what those are.
"""

from __future__ import annotations

import ast
import hashlib
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from codecgen import naming
from codecgen.elements import SpecError
from codecgen.model import Class, Dialect, Field, Source

TABLES = frozenset(
    (
        "classes",
        "names",
        "defaults",
        "coercions",
        "checks",
        "leave",
        "lacks",
        "letters",
        "methods",
        "formats",
        "release",
    )
)
SETTINGS = frozenset({"peer", "dialect", "properties", "rules"})
COERCIONS = ("falsy", "none")
CHECKS = ("length", "pattern", "equals", "is", "in")


@dataclass(frozen=True, slots=True)
class PeerField:
    """One attribute: `coerce` says which values the constructor replaces, and `instead` by what."""

    name: str
    kind: str
    default: object
    coerce: str
    instead: object
    checks: tuple[tuple[str, object, bool], ...]


@dataclass(frozen=True, slots=True)
class PeerClass:
    """One class for a method or for properties; `leave` says why it is left to the library, if it is."""

    name: str
    index: int
    leave: str
    fields: tuple[PeerField, ...]


@dataclass(frozen=True, slots=True)
class Peer:
    """One library: its classes by the rules of a release, or its formats where it has no classes."""

    name: str
    rules: str
    classes: dict[str, tuple[PeerClass, ...]]
    formats: dict[int, str]
    properties: tuple[tuple[str, str], ...]
    sources: tuple[Source, ...]


def load_peers(root: Path, dialects: Sequence[Dialect]) -> list[Peer]:
    """Every library described under `root`, in the order of the file names; SpecError where one is wrong."""
    known = {dialect.name: dialect for dialect in dialects}
    return [
        _Loader(path, path.relative_to(root).as_posix(), known).peer()
        for path in sorted((root / "spec" / "peers").glob("*.toml"))
    ]


class _Loader:
    """Reads one file; every entry of it has to be of use, or it is an error."""

    def __init__(self, path: Path, shown: str, dialects: dict[str, Dialect]) -> None:
        octets = path.read_bytes()
        try:
            self._document: dict[str, Any] = tomllib.loads(octets.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SpecError(f"{shown}: not TOML: {error}") from error
        self._shown = shown
        self._dialects = dialects
        releases = [key for entries in self._document.get("release", {}).values() for key in entries]
        for key in (*self._document.keys() - SETTINGS, *releases):
            if key not in TABLES:
                self._fail(f"unknown key {key!r}")
        self._used: set[tuple[str, str]] = set()
        self._source = Source(shown, hashlib.sha256(octets).hexdigest())

    def peer(self) -> Peer:
        dialect = self._dialect(self._setting("dialect"))
        if "letters" in self._document:
            classes: dict[str, tuple[PeerClass, ...]] = {}
            formats, properties = self._formats(dialect), self._properties(dialect)
        else:
            classes, formats, properties = self._all_rules(dialect), {}, ()
        self._refuse_unused()
        return Peer(
            name=self._setting("peer"),
            rules=self._setting("rules"),
            classes=classes,
            formats=formats,
            properties=properties,
            sources=(*dialect.sources, self._source),
        )

    # -- libraries with a class for each method

    def _all_rules(self, dialect: Dialect) -> dict[str, tuple[PeerClass, ...]]:
        """The classes by rules: all of them for those of the file, and what differs for older releases."""
        newest = tuple(self._classes(dialect))
        rules = {self._setting("rules"): newest}
        for release in self._document.get("release", {}):
            changed = tuple(self._classes(dialect, release))
            rules[release] = tuple(cls for cls in changed if cls not in newest)
        return rules

    def _classes(self, dialect: Dialect, release: str = "") -> Iterator[PeerClass]:
        for cls in (*dialect.classes, *self._borrowed()):
            for method in cls.methods:
                if self._look_up("lacks", [method.full_name], release) is not None:
                    continue
                name = f"{naming.class_name(cls.name)}.{naming.class_name(method.name)}"
                yield self._class(name, method.full_name, method.index, method.fields, release)
            if cls.properties:
                name, address = self._setting("properties"), f"{cls.name}.properties"
                yield self._class(name, address, cls.class_id << 16, cls.properties, release)

    def _borrowed(self) -> Iterator[Class]:
        for name, dialect in self._table("classes").items():
            self._used.add(("classes", name))
            found = [cls for cls in self._dialect(dialect).classes if cls.name == name]
            if not found:
                self._fail(f"{dialect} has no class {name}")
            yield found[0]

    def _class(
        self, name: str, address: str, index: int, fields: tuple[Field, ...], release: str
    ) -> PeerClass:
        made = tuple(self._field(address, field, release) for field in fields)
        return PeerClass(name, index, self._look_up("leave", [address], release) or "", made)

    def _field(self, address: str, field: Field, release: str) -> PeerField:
        name = self._name(address, field)
        keys = [f"{address}.{name}", name, f"type:{field.type}"]
        default = self._literal(self._look_up("defaults", keys, release) or "None")
        coercion = self._look_up("coercions", keys, release) or {}
        for kind in coercion.keys() - set(COERCIONS):
            self._fail(f"{keys[0]}: unknown coercion {kind!r}")
        coerce, instead = next(iter(coercion.items()), ("", "None"))
        checks = dict(self._look_up("checks", keys[:2], release) or {})
        refuses_none = checks.pop("refuses", "") == "None"
        for kind in checks.keys() - set(CHECKS):
            self._fail(f"{keys[0]}: unknown check {kind!r}")
        made = tuple(
            (kind, tuple(value) if isinstance(value, list) else value, not refuses_none)
            for kind, value in checks.items()
        )
        return PeerField(name, field.type, default, coerce, self._literal(instead), made)

    # -- libraries with a format for each method

    def _formats(self, dialect: Dialect) -> dict[int, str]:
        formats = {}
        methods = {method.full_name: method for method in dialect.methods}
        for cls, names in self._table("methods").items():
            self._used.add(("methods", cls))
            for name in names:
                method = methods.get(f"{cls}.{name}")
                if method is None:
                    self._fail(f"{dialect.name} has no method {cls}.{name}")
                own = self._look_up("formats", [method.full_name])
                formats[method.index] = self._letters(method.fields) if own is None else own
        return formats

    def _properties(self, dialect: Dialect) -> tuple[tuple[str, str], ...]:
        return tuple(
            (self._name(f"{cls.name}.properties", field), self._letters([field]))
            for cls in dialect.classes
            for field in cls.properties
        )

    def _letters(self, fields: Sequence[Field]) -> str:
        letters = [self._look_up("letters", [field.type]) for field in fields]
        if None in letters:
            self._fail(f"no letter for {fields[letters.index(None)].type}")
        return "".join(letters)

    # -- the file

    def _name(self, address: str, field: Field) -> str:
        own = self._look_up("names", [f"{address}.{field.name}", field.name])
        return naming.attribute_name(field.name) if own is None else str(own)

    def _look_up(self, table: str, keys: list[str], release: str = "") -> Any:
        """Return the entry of the first key that the table has; the key of a release comes first."""
        own = self._document.get("release", {}).get(release, {}).get(table, {})
        for key in keys:
            for entries in (own, self._table(table)):
                if key in entries:
                    self._used.add((table, key))
                    return entries[key]
        return None

    def _refuse_unused(self) -> None:
        releases = self._document.get("release", {}).values()
        for entries in (self._document, *releases):
            for table in sorted(entries.keys() - SETTINGS - {"release"}):
                for key in entries[table]:
                    if (table, key) not in self._used:
                        self._fail(f"{table}: nothing is meant by {key!r}")

    def _table(self, name: str) -> dict[str, Any]:
        table: dict[str, Any] = self._document.get(name, {})
        if not isinstance(table, dict):
            self._fail(f"{name} is not a table")
        return table

    def _setting(self, name: str) -> str:
        value = self._document.get(name)
        if not isinstance(value, str):
            self._fail(f"{name} is missing")
        return value

    def _dialect(self, name: str) -> Dialect:
        if name not in self._dialects:
            self._fail(f"unknown dialect {name!r}")
        return self._dialects[name]

    def _literal(self, text: str) -> object:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            self._fail(f"{text!r} is not a value")

    def _fail(self, message: str) -> NoReturn:
        raise SpecError(f"{self._shown}: {message}")
