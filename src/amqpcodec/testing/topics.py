"""Topic bindings: those whose patterns match a routing key, found word by word."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .exchanges import Binding

ONE = "*"  # stands for any word
ANY = "#"  # stands for any number of words


class Topics:
    """The bindings whose patterns begin with the same words, as a tree of the words that follow.

    Args:
        repeats: whether the last word is `ANY`.
    """

    __slots__ = ("_bindings", "_following", "_repeats")

    def __init__(self, repeats: bool = False) -> None:
        self._repeats = repeats
        self._following: dict[str, Topics] = {}
        self._bindings: dict[Any, Binding] = {}  # whose patterns end here

    def add(self, binding: Binding) -> None:
        """Have a binding found."""
        topics = self
        for word in words_of(binding.routing_key):
            if word not in topics._following:
                topics._following[word] = Topics(word == ANY)
            topics = topics._following[word]
        topics._bindings[binding.key] = binding

    def remove(self, binding: Binding) -> None:
        """Have a binding found no more."""
        words = words_of(binding.routing_key)
        path = [self]
        for word in words:
            path.append(path[-1]._following[word])
        del path[-1]._bindings[binding.key]
        while words and not path[-1]._bindings and not path[-1]._following:
            path.pop()
            del path[-1]._following[words.pop()]

    def matching(self, keys: Iterable[str]) -> list[Binding]:
        """Return the bindings whose patterns match any of some routing keys."""
        ends: dict[Topics, None] = {}
        for key in keys:
            ends.update(self._follow(words_of(key)))
        return [binding for topics in ends for binding in topics._bindings.values()]

    def _follow(self, words: list[str]) -> dict[Topics, None]:
        """Return what is reached by words."""
        reached = self._reach({})
        for word in words:
            before, reached = reached, {}
            for topics in before:
                if topics._repeats:
                    topics._reach(reached)
                for wanted in (word, ONE):
                    if wanted in topics._following:
                        topics._following[wanted]._reach(reached)
        return reached

    def _reach(self, reached: dict[Topics, None]) -> dict[Topics, None]:
        """Note that this is reached; so is what follows after no word at all."""
        topics: Topics | None = self
        while topics is not None and topics not in reached:
            reached[topics] = None
            topics = topics._following.get(ANY)
        return reached


def words_of(key: str) -> list[str]:
    """Return the words of a routing key or of a pattern."""
    return key.split(".") if key else []


__all__ = ["Topics", "words_of"]
