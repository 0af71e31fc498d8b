"""Patches that somebody made in a library before `install`: they stay, and `Status.stock` says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from .._typing import Any
from ._facts import REQUIRED, Record
from ._guards_c import is_own
from ._patches import Patch, _held, _label

REPLACED = "was replaced before"

# Where classes are, and how each says its index; tables that lead to methods, and to properties.
_CLASSES = {
    "pamqp": ("pamqp.commands", "index", "INDEX_MAPPING", ""),
    "pika": ("pika.spec", "INDEX", "methods", "props"),
}


def own_classes(stock: dict[str, str], peer: str, facts: Mapping[str, Record]) -> dict[str, Any]:
    """Return the classes of a library that are as its source defines them; report the others in `stock`.

    Guards notice a function of somebody else. They cannot tell whose a number or a text is: the facts can.

    Args:
        stock: what stays as it is, with the reason.
        peer: ``"pamqp"`` or ``"pika"``.
        facts: of the classes that are known.
    """
    found = {name: _live(peer, name) for name in facts}
    own = {name: cls for name, cls in found.items() if _is_as_defined(peer, facts[name], cls)}
    stock.update({name: REPLACED for name in facts if name not in own})
    return own


def _live(peer: str, name: str) -> Any:
    found: Any = import_module(_CLASSES[peer][0])
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _is_as_defined(peer: str, record: Record, cls: Any) -> bool:
    """Return whether a class is the library's own, and the data in it are those of the facts."""
    module, attribute, methods, properties = _CLASSES[peer]
    index, table = (record.index, methods) if record.is_method else (record.index >> 16, properties)
    if not (isinstance(cls, type) and is_own(cls, peer) and getattr(cls, attribute, None) == index):
        return False
    if table and vars(import_module(module))[table].get(index) is not cls:
        return False
    return peer != "pamqp" or _is_called_as_defined(record, cls)


def _is_called_as_defined(record: Record, cls: Any) -> bool:
    """Return whether a class of pamqp has the types, flags and defaults of the facts."""
    names = [field.name for field in record.fields]
    flags = {} if record.is_method else {name: 0x8000 >> at for at, name in enumerate(names)}
    defaults = tuple(field.default for field in record.fields if field.default is not REQUIRED)
    return (
        [getattr(cls, f"_{name}", None) for name in names] == [field.kind for field in record.fields]
        and getattr(cls, "flags", {}) == flags
        and repr(getattr(cls.__init__, "__defaults__", None) or ()) == repr(defaults)
    )


def note(stock: dict[str, str], guards: Iterable[Any]) -> None:
    """Tell which names the guards find replaced; what depends on those is left to the library.

    Args:
        stock: what stays as it is, with the reason.
        guards: guards, and layouts, of what the compiled code counts on.
    """
    for guard in guards:
        stock.update(dict.fromkeys(guard.replaced, REPLACED))


def untouched(stock: dict[str, str], patches: Iterable[Patch]) -> tuple[Patch, ...]:
    """The patches that replace functions of the library itself. The others are reported in `stock`.

    Args:
        stock: what stays as it is, with the reason.
        patches: all that might be replaced.
    """
    kept = []
    for patch in patches:
        label = _label(patch)
        if is_own(_held(patch.owner, patch.name), label.partition(".")[0]):
            kept.append(patch)
        else:
            stock[label] = REPLACED
    return tuple(kept)
