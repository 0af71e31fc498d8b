"""Says in plain text what the dialects know about a class or a method, for `gen_codec.py --explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from codecgen.model import Assert, Class, Correction, Dialect, Field, Method
from codecgen.wire_types import WIRE_TYPES

FLAGS_PER_WORD = 15
"""Properties told by one word of flags; its lowest bit says that another word follows."""


def explain(dialects: Sequence[Dialect], target: str) -> str:
    """Explain `basic` or `basic.publish` in every dialect that has it; raise LookupError if none has it."""
    class_name, _, method_name = target.lower().partition(".")
    parts = []
    for dialect in dialects:
        cls = next((each for each in dialect.classes if each.name == class_name), None)
        if cls is None:
            continue
        if not method_name:
            parts.append("\n".join(_class(dialect, cls)))
        parts += ["\n".join(_method(dialect, each)) for each in cls.methods if each.name == method_name]
    if not parts:
        what = "method" if method_name else "class"
        raise LookupError(f"no dialect has a {what} {target!r}; methods are written class.method")
    return "\n\n".join(parts) + "\n"


def bit_places(fields: Sequence[Field]) -> list[tuple[int, int] | None]:
    """For each field its octet of bits (counted from 1) and its bit in there, or None if it is no bit.

    Neighbouring bits share an octet, the first in the lowest bit; the ninth, or a bit after another type,
    begins a new one.
    """
    places: list[tuple[int, int] | None] = []
    octet, bit = 0, 0
    previous: Field | None = None
    for field in fields:
        if field.type != "bit":
            places.append(None)
        else:
            fresh = previous is None or previous.type != "bit" or bit == 7
            octet, bit = (octet + 1, 0) if fresh else (octet, bit + 1)
            places.append((octet, bit))
        previous = field
    return places


def _class(dialect: Dialect, cls: Class) -> Iterator[str]:
    yield f"{cls.name}  [{dialect.name}]  {cls.label}"
    yield f"  class {cls.class_id} (0x{cls.class_id:04X}), Python: {cls.python_name}"
    yield f"  handler: {cls.handler or '-'}; who accepts: {_sides(cls.server, cls.client)}"
    if cls.properties:
        yield f"  properties of its contents ({cls.properties_name}), in wire order:"
        yield from _table(_property_rows(cls.properties))
    yield "  methods:"
    rows = [(f"{each.method_id}", each.name, each.label) for each in cls.methods]
    yield from _table(rows)
    yield from _corrections(dialect, cls.name)


def _property_rows(properties: Sequence[Field]) -> Iterator[tuple[str, ...]]:
    for number, field in enumerate(properties):
        word, place = divmod(number, FLAGS_PER_WORD)
        bit = 15 - place
        flag = f"bit {bit} (0x{1 << bit:04X})" + (f" of word {word + 1}" if word else "")
        yield (flag, WIRE_TYPES[field.type].octets, *_field_columns(field))


def _method(dialect: Dialect, method: Method) -> Iterator[str]:
    yield f"{method.full_name}  [{dialect.name}]  {method.label}"
    ids = f"class {method.class_id}, method {method.method_id}, index 0x{method.index:08X}"
    yield f"  {ids}, Python: {method.python_name}"
    yield f"  who accepts: {_sides(method.server, method.client)}"
    yield f"  synchronous: {_yes(method.synchronous)}; content: {_yes(method.content)}" + (
        "; deprecated" if method.deprecated else ""
    )
    yield f"  responses: {', '.join(method.responses) or 'none'}"
    if method.fields:
        yield "  arguments, in wire order after the two ids:"
        yield from _table(_argument_rows(method.fields))
    else:
        yield "  no arguments"
    yield from _corrections(dialect, method.full_name)


def _argument_rows(fields: Sequence[Field]) -> Iterator[tuple[str, ...]]:
    for field, place in zip(fields, bit_places(fields), strict=True):
        if place is None:
            wire = WIRE_TYPES[field.type].octets
        else:
            octet, bit = place
            wire = f"bit {bit} (0x{1 << bit:02X}) of bit octet {octet}"
        yield (wire, *_field_columns(field))


def _field_columns(field: Field) -> tuple[str, ...]:
    type_ = field.type if field.domain == field.type else f"{field.type} ({field.domain})"
    notes = [field.label, *(f"[{_assert(each)}]" for each in field.asserts)]
    notes += [f"(see {name})" for name in field.see]
    if field.reserved:
        notes.insert(0, "reserved:")
    plain = field.attribute == field.name.replace("-", "_")
    name = field.name if plain else f"{field.name} (Python: {field.attribute})"
    return name, type_, " ".join(notes)


def _assert(condition: Assert) -> str:
    """The condition as short as it can be read."""
    subject = f"{condition.method}.{condition.field}" if condition.method else ""
    labelled = zip_longest(condition.values, condition.labels, fillvalue="")
    values = "|".join(f"{value} ({label})" if label else value for value, label in labelled)
    operands = (condition.value, condition.rule, subject, values)
    return " ".join([condition.check, *(each for each in operands if each)])


def _corrections(dialect: Dialect, address: str) -> Iterator[str]:
    for entry in dialect.corrections:
        if _concerns(entry, address):
            changed = f"{entry.attribute} {entry.was!r} -> {entry.now!r}"
            yield f"  corrected: {entry.element} {changed}: {entry.reason}"


def _concerns(entry: Correction, address: str) -> bool:
    return entry.element == address or entry.element.startswith(f"{address}.")


def _sides(server: str | None, client: str | None) -> str:
    sides = [f"{side} {strength}" for side, strength in (("server", server), ("client", client)) if strength]
    return ", ".join(sides) or "nobody"


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _table(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """The rows as indented lines, every column but the last as wide as its widest cell."""
    cells = list(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield f"    {'  '.join(padded).rstrip()}"
