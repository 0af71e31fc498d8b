"""The wire layout of methods and content headers, as the steps that read and write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codecgen.model import Field

BITS_PER_OCTET = 8
FLAGS_PER_WORD = 15  # bit 0 of every word says whether another follows


@dataclass(frozen=True, slots=True)
class BitRun:
    """Consecutive bit arguments that share one octet, the first in its lowest place."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Flag:
    """The place of a property's presence: which word of flags, and which bit of it."""

    field: Field
    word: int
    mask: int


def steps(fields: tuple[Field, ...]) -> Iterator[Field | BitRun]:
    """A method's arguments in wire order, runs of bits gathered octet by octet (0-9-1 section 4.2.5.2)."""
    run: list[Field] = []
    for field in fields:
        if run and (field.type != "bit" or len(run) == BITS_PER_OCTET):
            yield BitRun(tuple(run))
            run = []
        if field.type == "bit":
            run.append(field)
        else:
            yield field
    if run:
        yield BitRun(tuple(run))


def flags(properties: tuple[Field, ...]) -> list[Flag]:
    """Where each property has its flag: fifteen to a word, from bit 15 down (0-9-1 section 4.2.6.1)."""
    return [
        Flag(field, index // FLAGS_PER_WORD, 1 << (15 - index % FLAGS_PER_WORD))
        for index, field in enumerate(properties)
    ]


def words(properties: tuple[Field, ...]) -> int:
    """How many words of flags the properties take; even none take one."""
    return max(1, -(-len(properties) // FLAGS_PER_WORD))


def word_name(index: int) -> str:
    """Return the name of a word of flags in generated code."""
    return f"flags{index + 1}" if index else "flags"
