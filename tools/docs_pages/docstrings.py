"""For griffe, which reads docstrings: links from the names in them, and docstrings for overriding methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import griffe

from docs_pages.api import linked, separated


class LinkedNames(griffe.Extension):
    """Changes each docstring as soon as it is read, and then completes those that are missing."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Make links in the docstring of a class, function, module or attribute."""
        if obj.docstring:
            obj.docstring.value = separated(linked(obj.docstring.value, obj.path))

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Describe what overrides a method, and says nothing about itself, as that method."""
        for cls in _classes(pkg):
            for name, member in cls.members.items():
                if member.is_function and not member.docstring:
                    member.docstring = next(filter(None, _inherited(cls, name)), None)


def _classes(owner: griffe.Object) -> Iterator[griffe.Class]:
    for member in owner.members.values():
        if not member.is_alias and (member.is_module or member.is_class):
            if member.is_class:
                yield member
            yield from _classes(member)


def _inherited(cls: griffe.Class, name: str) -> Iterator[griffe.Docstring | None]:
    for base in cls.mro():
        if found := base.members.get(name):
            yield found.docstring
