"""The slow path of records: field by field, by the facts of their class. One text for both builds.

It reads and writes what the routines of layouts decline, and it alone raises errors of fields.
Layouts: 0-9-1 sections 4.2.5.2 (bits) and 4.2.6.1 (flags of properties).
"""

from __future__ import annotations

from .._typing import TYPE_CHECKING, Any
from .fields import BIT_FIELD, FIELD_KINDS

if TYPE_CHECKING:
    from .reader_py import Reader
    from .writer_py import Writer

_FLAGS = 15  # in a word; its lowest bit says that another word follows


def read_slowly(record: Any, reader: Reader) -> None:
    """Set the fields of a record, whose properties are absent so far, from the payload of a reader."""
    if hasattr(record.spec, "method_id"):
        _read_arguments(record, reader)
    else:
        _read_properties(record, reader)


def write_slowly(record: Any, writer: Writer) -> None:
    """Write the ids and arguments of a method, or the flags and values of properties."""
    if hasattr(record.spec, "method_id"):
        _write_arguments(record, writer)
    else:
        _write_properties(record, writer)


def _read_arguments(record: Any, reader: Reader) -> None:
    octet = 0
    place = 8  # in that octet, of the bit to come; 8 for one that begins another octet
    for field in record.spec.fields:
        kind = FIELD_KINDS[field.type]
        if kind != BIT_FIELD:
            place = 8
            setattr(record, field.attribute, reader.field(kind, field.name))
            continue
        if place == 8:
            octet, place = reader.bits(field.name), 0
        setattr(record, field.attribute, octet >> place & 1 != 0)
        place += 1


def _write_arguments(record: Any, writer: Writer) -> None:
    spec = record.spec
    octet = place = 0
    writer.ids(spec.class_id, spec.method_id)
    for field in spec.fields:
        kind = FIELD_KINDS[field.type]
        value = getattr(record, field.attribute)
        if place == 8 or (place and kind != BIT_FIELD):
            writer.bits(octet)
            octet = place = 0
        if kind == BIT_FIELD:
            octet |= writer.bit(value, field.name) << place
            place += 1
        else:
            writer.field(kind, value, field.name)
    if place:
        writer.bits(octet)


def _read_properties(record: Any, reader: Reader) -> None:
    fields = record.spec.fields
    words = [reader.flag_word()]
    while len(words) * _FLAGS < len(fields):
        words.append(reader.flag_word() if words[-1] & 1 else 0)
    unused = len(words) * _FLAGS - len(fields)  # flags of the last word; those before are full
    reader.further_flags(words[-1], words[-1] & ((1 << unused) - 1) << 1)
    for place, field in enumerate(fields):
        kind = FIELD_KINDS[field.type]
        present = words[place // _FLAGS] & 0x8000 >> place % _FLAGS
        if kind == BIT_FIELD:
            setattr(record, field.attribute, present != 0)
        elif present:
            setattr(record, field.attribute, reader.field(kind, field.name))


def _write_properties(record: Any, writer: Writer) -> None:
    fields = record.spec.fields
    values = [getattr(record, field.attribute) for field in fields]
    words = [0] * max(1, -(-len(fields) // _FLAGS))
    for place, (field, value) in enumerate(zip(fields, values, strict=True)):
        present = writer.bit(value, field.name) if field.type == "bit" else value is not None
        if present:
            words[place // _FLAGS] |= 0x8000 >> place % _FLAGS
    for at in range(len(words) - 1, 0, -1):
        words[at - 1] |= words[at] != 0
    for at, word in enumerate(words):
        if at == 0 or words[at - 1] & 1:
            writer.word(word)
    for field, value in zip(fields, values, strict=True):
        if value is not None and field.type != "bit":
            writer.field(FIELD_KINDS[field.type], value, field.name)


__all__ = ["read_slowly", "write_slowly"]
