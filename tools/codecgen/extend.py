"""Puts a dialect together from its base and a file that says only how it differs.

The rule is the same everywhere: a constant, domain, method, chassis or property of a name the base has takes
the place of that one; a new one goes to the end. Only a class is opened up, so that its methods can be told
one by one. Attributes of a class or of the whole that are not written keep what the base says. Nothing can
be removed.
"""

from __future__ import annotations

from codecgen.elements import Element

NOT_INHERITED = frozenset({"name", "module", "extends", "label", "accepted-headers"})
"""Elements that a dialect must have itself."""


def extend(base: Element, extension: Element) -> Element:
    """The tree of `base` with everything `extension` says; neither argument is changed."""
    inherited = {key: value for key, value in base.attributes.items() if key not in NOT_INHERITED}
    return _merged(base, extension, inherited)


def _merged(base: Element, extension: Element, inherited: dict[str, str]) -> Element:
    children = list(base.children)
    positions = {_key(child): place for place, child in enumerate(children)}
    added: set[tuple[str, str]] = set()
    for child in extension.children:
        place = positions.get(_key(child))
        if place is None or _key(child) in added:
            added.add(_key(child))
            children.append(child)
            continue
        # A second child of one name stays a second one, for the loader to complain about.
        added.add(_key(child))
        children[place] = _merged_class(children[place], child) if child.tag == "class" else child
    attributes = {**inherited, **extension.attributes}
    return Element(extension.tag, attributes, extension.file, extension.line, children, extension.text)


def _merged_class(base: Element, extension: Element) -> Element:
    index = extension.get("index")
    if index is not None and index != base.get("index"):
        extension.fail(f"index {index} is not the {base.get('index')} it has in {base.file}:{base.line}")
    return _merged(base, extension, {**base.attributes, "label": extension.label or base.label})


def _key(element: Element) -> tuple[str, str]:
    return element.tag, element.get("name") or ""
