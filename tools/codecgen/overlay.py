"""Corrections to the facts of a specification, kept apart from them, each with its reason.

An overlay is a TOML file of `[[correction]]` tables. Each names an element, one attribute of it, what the XML
says now (`was`), what it should say (`now`), and why (`reason`). Both values are written as the XML would
write them, an attribute that is absent being the empty string; a list is its words separated by blanks.
An entry whose `was` is not what the XML says is an error: the facts have changed, or the entry is stale.
"""

from __future__ import annotations

import copy
import hashlib
import tomllib
from pathlib import Path

from codecgen.elements import ATTRIBUTES, CHILDREN, Element, SpecError
from codecgen.model import Correction, Source

KEYS = ("element", "attribute", "was", "now", "reason")
SIDES = frozenset({"server", "client"})
NOT_CORRECTABLE = frozenset({"name", "extends"})


def read_overlay(path: Path, shown: str) -> tuple[tuple[Correction, ...], Source]:
    """The corrections of the file at `path`, called `shown` in messages, and the file's fingerprint."""
    octets = path.read_bytes()
    try:
        document = tomllib.loads(octets.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{shown}: not TOML: {error}") from error
    entries = document.pop("correction", [])
    if document:
        raise SpecError(f"{shown}: unknown key {min(document)!r}; an overlay has only [[correction]] tables")
    corrections = tuple(_correction(entry, f"{shown}: correction {n}") for n, entry in enumerate(entries, 1))
    return corrections, Source(shown, hashlib.sha256(octets).hexdigest())


def _correction(entry: dict[str, object], where: str) -> Correction:
    if sorted(entry) != sorted(KEYS):
        raise SpecError(f"{where}: has the keys {sorted(entry)}, not {sorted(KEYS)}")
    if not all(isinstance(value, str) for value in entry.values()):
        raise SpecError(f"{where}: every value is a string")
    element, attribute, was, now, reason = (str(entry[key]).strip() for key in KEYS)
    if not reason:
        raise SpecError(f"{where}: the reason is missing")
    if was == now:
        raise SpecError(f"{where}: changes nothing")
    return Correction(element, attribute, was, now, reason)


def corrected(root: Element, corrections: tuple[Correction, ...], shown: str) -> Element:
    """A copy of the tree with all corrections made; SpecError where one does not fit or two meet."""
    root = copy.deepcopy(root)
    seen: set[tuple[str, str]] = set()
    for entry in corrections:
        where = f"{shown}: {entry.element} {entry.attribute}"
        if (entry.element, entry.attribute) in seen:
            raise SpecError(f"{where}: corrected twice")
        seen.add((entry.element, entry.attribute))
        element = _find(root, entry.element)
        if element is None:
            raise SpecError(f"{where}: the specification has no such element")
        was = _read(element, entry.attribute, where)
        if was != entry.was:
            place = f"{element.file}:{element.line}"
            raise SpecError(f"{where}: was to be {entry.was!r}, but {place} says {was!r}")
        _write(element, entry.attribute, entry.now)
    return root


def _find(root: Element, address: str) -> Element | None:
    """The element at an address: amqp, constant:NAME, domain:NAME, CLASS, CLASS.METHOD or CLASS.METHOD.FIELD.

    A content property is written CLASS.properties.NAME.
    """
    if address == "amqp":
        return root
    tag, colon, name = address.partition(":")
    if colon:
        return root.named(tag, name)
    names = address.split(".")
    tags = ["class", "method", "field"][: len(names)]
    if len(names) == 3 and names[1] == "properties":
        del names[1], tags[1]
    found: Element | None = root if len(tags) == len(names) else None
    for tag, name in zip(tags, names, strict=False):
        found = found.named(tag, name) if found else None
    return found


def _read(element: Element, attribute: str, where: str) -> str:
    if attribute == "responses" and "response" in CHILDREN[element.tag]:
        return " ".join(child.get("name") or "" for child in element.of("response"))
    if attribute in SIDES and "chassis" in CHILDREN[element.tag]:
        chassis = element.named("chassis", attribute)
        return (chassis.get("implement") or "") if chassis else ""
    if attribute not in ATTRIBUTES[element.tag] - NOT_CORRECTABLE:
        raise SpecError(f"{where}: a correction cannot change this attribute")
    return element.get(attribute) or ""


def _write(element: Element, attribute: str, value: str) -> None:
    if attribute == "responses":
        _replace(element, "response", [{"name": name} for name in value.split()])
    elif attribute in SIDES:
        sides = {str(child.get("name")): str(child.get("implement")) for child in element.of("chassis")}
        sides[attribute] = value
        _replace(element, "chassis", [{"name": n, "implement": i} for n, i in sides.items() if i])
    elif value:
        element.attributes[attribute] = value
    else:
        element.attributes.pop(attribute, None)


def _replace(element: Element, tag: str, attributes: list[dict[str, str]]) -> None:
    others = [child for child in element.children if child.tag != tag]
    element.children = [Element(tag, each, element.file, element.line) for each in attributes] + others
