"""The name that was probably meant, for errors about a name that there is not."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], likeness: float = 0.5) -> str | None:
    """Return the name most like another, or None where none is as like as that.

    Args:
        name: the other one. Case does not count, nor do the dashes before options.
        known: the names that there are.
        likeness: from 0 for any to 1 for the same.
    """
    # It is seldom needed, and takes a sixth of the time that --help does.
    from difflib import get_close_matches

    by_key = {_key(each): each for each in known}
    found = get_close_matches(_key(name), by_key, 1, likeness)
    return by_key[found[0]] if found else None


def nearest_hint(name: str, known: Iterable[str], likeness: float = 0.5, what: str = "name") -> str:
    """Return the end of a sentence with the `nearest` name; "" where there is none."""
    found = nearest(name, known, likeness)
    return "" if found is None else f"; the nearest {what} is {found!r}"


def _key(name: str) -> str:
    """Return the part of a name to compare; two options are not like each other for their dashes."""
    return name.lower().lstrip("-")
