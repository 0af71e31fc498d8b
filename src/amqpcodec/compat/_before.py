"""Patches that somebody made in a library before `install`: they stay, and `Status.stock` says so."""

from __future__ import annotations

from collections.abc import Iterable

from .._typing import Any
from ._guards_c import is_own
from ._patches import Patch, _held, _label

REPLACED = "was replaced before"


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
