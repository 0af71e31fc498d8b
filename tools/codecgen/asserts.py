"""Reads the conditions a specification puts on values."""

from __future__ import annotations

import re

from codecgen.elements import Element
from codecgen.model import Assert
from codecgen.wire_types import WIRE_TYPES

OPERANDS = {
    "notnull": (),
    "null": (),
    "length": ("value",),
    "regexp": ("value",),
    "syntax": ("rule",),
    "ne": ("value",),
    "le": ("method", "field"),
    "enum": (),
}
"""The checks in use, and the attributes each of them needs."""

INTEGERS = tuple(each.name for each in WIRE_TYPES.values() if each.annotation == "int")
STRINGS = tuple(each.name for each in WIRE_TYPES.values() if each.annotation in ("str", "bytes"))
TYPES = {"length": STRINGS, "regexp": STRINGS, "ne": INTEGERS, "le": INTEGERS}
"""The wire types that a check can be made on, where not on all."""


def load_asserts(holder: Element, type_: str, owner: Element | None) -> tuple[Assert, ...]:
    """The asserts of a field or domain that comes down to the wire type `type_`.

    `owner` is the class whose methods they may refer to, if any.
    """
    return tuple(_assert(element, type_, owner) for element in holder.of("assert"))


def _assert(element: Element, type_: str, owner: Element | None) -> Assert:
    check = element.need("check")
    if check not in OPERANDS:
        element.fail(f"check {check!r} is not one of {', '.join(OPERANDS)}")
    values, labels = _values(element) if check == "enum" else ((), ())
    written = set(element.attributes) - {"check"} - ({"value"} if check == "enum" else set())
    if written != set(OPERANDS[check]):
        needed = ", ".join(OPERANDS[check]) or "nothing else"
        element.fail(f"check {check!r} goes with {needed}")
    if check != "enum" and element.children:
        element.fail(f"check {check!r} has no <value> elements")
    _operands(element, check, owner)
    if type_ not in TYPES.get(check, (type_,)):
        element.fail(f"check {check!r} cannot be made on a {type_}, only on {', '.join(TYPES[check])}")
    get = element.get
    value = None if values else get("value")
    return Assert(check, value, get("rule"), get("method"), get("field"), values, labels)


def _values(element: Element) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The values of an enumeration, from <value name="..."/> elements or the words of its attribute.

    With each goes its label.
    """
    children = element.of("value")
    words = tuple((element.get("value") or "").split())
    if bool(children) == bool(words):
        element.fail("check 'enum' goes with <value> elements or a value attribute")
    if words:
        return words, ("",) * len(words)
    return tuple(child.need("name") for child in children), tuple(child.label for child in children)


def _operands(element: Element, check: str, owner: Element | None) -> None:
    value = element.get("value") or ""
    if check in ("length", "ne") and not (value.isascii() and value.isdecimal()):
        element.fail(f"value {value!r} is not a number")
    if check == "regexp":
        try:
            re.compile(value)
        except re.error as error:
            element.fail(f"value {value!r} is not a regular expression: {error}")
    if check == "le":
        method = owner.named("method", element.need("method")) if owner else None
        if method is None or method.named("field", element.need("field")) is None:
            element.fail("refers to a method and field its class does not have")
