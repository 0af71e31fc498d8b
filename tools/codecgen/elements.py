"""Reads the XML of a dialect into a tree that knows its lines, and checks its vocabulary.

What a specification says in prose (doc, rule, grammar, scenario, test elements, a few attributes) is passed
over; anything else that is not in the tables below is an error, so that no slip of the pen goes unnoticed.
Entities are refused: a specification needs none, and expanding them is a way to exhaust memory.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from codecgen.model import Source
from codecgen.naming import fold

PROSE = frozenset({"doc", "rule", "grammar", "scenario", "test"})
PROSE_ATTRIBUTES = frozenset({"comment", "on-failure", "actor"})
FOLDED = frozenset({"name", "domain", "type", "method", "field"})
"""Attributes that hold names, which are compared without regard to case and kind of separator."""

CHILDREN = {
    "amqp": {"constant", "domain", "class"},
    "constant": set(),
    "domain": {"assert"},
    "class": {"chassis", "field", "method"},
    "chassis": set(),
    "method": {"chassis", "response", "field"},
    "response": set(),
    "field": {"assert", "see"},
    "see": set(),
    "assert": {"value"},
    "value": set(),
}
ATTRIBUTES = {
    "amqp": {
        "major", "minor", "revision", "port", "name", "label",
        "module", "table-profile", "extends", "accepted-headers",
    },
    "constant": {"name", "value", "class", "label"},
    "domain": {"name", "type", "label"},
    "class": {"name", "index", "handler", "label"},
    "chassis": {"name", "implement"},
    "method": {"name", "index", "synchronous", "content", "deprecated", "label"},
    "response": {"name"},
    "field": {"name", "domain", "type", "reserved", "label"},
    "see": {"name"},
    "assert": {"check", "value", "rule", "method", "field"},
    "value": {"name", "label"},
}  # fmt: skip
TEXT_IS_LABEL = frozenset({"amqp", "constant", "domain", "class", "method", "field", "value"})
"""The 0-8 files write a short description as text where later ones have a label attribute."""


class SpecError(Exception):
    """A specification that cannot be used; the text has the file, the line and the element."""


@dataclass(slots=True)
class Element:
    """One element of the file: `text` is what stands between its children, blanks collapsed."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def get(self, attribute: str) -> str | None:
        """The attribute's text, or None where it is not written."""
        return self.attributes.get(attribute)

    def need(self, attribute: str) -> str:
        """The attribute's text; SpecError where it is missing or empty."""
        return self.attributes.get(attribute) or self.fail(f"attribute {attribute!r} is missing")

    def of(self, tag: str) -> list[Element]:
        """The children with this tag, in order."""
        return [child for child in self.children if child.tag == tag]

    def named(self, tag: str, name: str) -> Element | None:
        """The first child with this tag and name, or None."""
        return next((child for child in self.of(tag) if child.get("name") == name), None)

    @property
    def label(self) -> str:
        """The short description, from the attribute or else from the text."""
        return self.attributes.get("label", self.text)

    def fail(self, what: str) -> NoReturn:
        """Raise SpecError about this element."""
        name = self.attributes.get("name")
        shown = f'<{self.tag} name="{name}">' if name else f"<{self.tag}>"
        raise SpecError(f"{self.file}:{self.line}: {shown}: {what}")


def read_elements(path: Path, shown: str) -> tuple[Element, Source]:
    """The root element of the file at `path`, called `shown` in messages, and the file's fingerprint."""
    try:
        octets = path.read_bytes()
    except OSError as error:
        raise SpecError(f"{shown}: cannot be read: {error.strerror}") from error
    return _Builder(shown).build(octets), Source(shown, hashlib.sha256(octets).hexdigest())


class _Builder:
    """Turns the events of the XML parser into elements, refusing what the tables above do not have."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._open: list[Element] = []
        self._texts: list[list[str]] = []
        self._root: Element | None = None
        self._prose = 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._refuse_entity
        self._parser.SkippedEntityHandler = self._refuse_entity

    def build(self, octets: bytes) -> Element:
        try:
            self._parser.Parse(octets, True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise SpecError(f"{self._file}:{error.lineno}: not well-formed XML: {reason}") from error
        assert self._root is not None, "expat reports a file without elements as an error"
        return self._root

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._prose or (self._open and tag in PROSE):
            self._prose += 1
            return
        element = Element(tag, _folded(attributes), self._file, self._parser.CurrentLineNumber)
        self._check(element)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)
        self._texts.append([])

    def _check(self, element: Element) -> None:
        if not self._open and element.tag != "amqp":
            element.fail("the root element of a specification is <amqp>")
        if self._open and element.tag not in CHILDREN[self._open[-1].tag]:
            element.fail(f"unknown element inside <{self._open[-1].tag}>")
        for attribute in element.attributes:
            if attribute not in ATTRIBUTES[element.tag]:
                element.fail(f"unknown attribute {attribute!r}")

    def _end(self, tag: str) -> None:
        if self._prose:
            self._prose -= 1
            return
        element = self._open.pop()
        element.text = " ".join("".join(self._texts.pop()).split())
        if element.text and element.tag not in TEXT_IS_LABEL:
            element.fail(f"text does not belong here: {element.text[:40]!r}")

    def _characters(self, text: str) -> None:
        if not self._prose and self._texts:
            self._texts[-1].append(text)

    def _refuse_entity(self, name: str, *_declaration: object) -> None:
        line = self._parser.CurrentLineNumber
        raise SpecError(f"{self._file}:{line}: entity {name!r}: entities are not supported")


def _folded(attributes: dict[str, str]) -> dict[str, str]:
    return {
        key: fold(value) if key in FOLDED else " ".join(value.split())
        for key, value in attributes.items()
        if key not in PROSE_ATTRIBUTES
    }
