"""aio-pika: its messages are made in one step, which `install("pamqp")` does as well."""

from __future__ import annotations

import gc
from importlib import import_module

from .._typing import Any
from ._aio_pika_c import Messages
from ._before import REPLACED, note, untouched
from ._fast_c import Counts
from ._guards_c import Guards, ModuleGuard, TypeGuard
from ._looked_up import guards
from ._patches import Options, Patch, PatchPlan

MODULE = "aio_pika.message"
CONSTRUCTORS = tuple(f"{MODULE}.{name}.__init__" for name in ("Message", "IncomingMessage"))

_BY_TYPE = ("encode_timestamp", "decode_timestamp", "decode_expiration")
"""Functions that go by the type of their argument."""


def plan(options: Options) -> PatchPlan:
    """Plan the replacements in the aio-pika that is imported.

    Args:
        options: what `install` was asked for.
    """
    module, counts, stock = import_module(MODULE), Counts(), dict[str, str]()
    classes = (module.Message, module.IncomingMessage)
    by_type = {name: getattr(module, name) for name in _BY_TYPE}
    tables = [_table(name, function) for name, function in by_type.items() if hasattr(function, "registry")]
    guarding = Guards([*guards([cls.__init__ for cls in classes], _BY_TYPE), *tables])
    note(stock, [guarding, *(TypeGuard(cls, ("__setattr__", "locked")) for cls in classes)])
    if stock or len(tables) < len(by_type):
        return PatchPlan((), counts, stock | dict.fromkeys(CONSTRUCTORS, REPLACED))
    messages = Messages(module, by_type, guarding, counts)
    made = zip(classes, (messages.message, messages.incoming), CONSTRUCTORS, strict=True)
    patches = [Patch(cls, "__init__", each) for cls, each, name in made if name in options.known.rules]
    return PatchPlan(untouched(stock, patches), counts, stock)


def _table(name: str, function: Any) -> ModuleGuard:
    """Return a guard of the implementations of a function, by type."""
    (table,) = gc.get_referents(function.registry)  # which is a view of it
    return ModuleGuard(table, list(table), f"{MODULE}.{name}")
