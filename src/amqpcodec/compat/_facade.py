"""Modules that install and hand out a library's names: `from amqpcodec.compat import pamqp`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from .._typing import Any
from . import install


def hand_out(name: str) -> Callable[[str], Any]:
    """Install a library and import it.

    Returns:
        A `__getattr__` for a module: names of the library, and its modules.
    """
    install(name)
    library = import_module(name)

    def find(attribute: str) -> Any:
        if hasattr(library, attribute):
            return getattr(library, attribute)
        if not attribute.startswith("__"):
            try:
                return import_module(f"{name}.{attribute}")
            except ModuleNotFoundError as error:
                if error.name != f"{name}.{attribute}":
                    raise
        raise AttributeError(f"module {name!r} has no attribute {attribute!r}", name=attribute, obj=library)

    return find
