"""For griffe, which reads docstrings: makes links of the public names in them."""

from __future__ import annotations

from typing import Any

import griffe

from docs_pages.api import linked


class LinkedNames(griffe.Extension):
    """Changes each docstring as soon as it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Make links in the docstring of a class, function, module or attribute."""
        if obj.docstring:
            obj.docstring.value = linked(obj.docstring.value, obj.path)
