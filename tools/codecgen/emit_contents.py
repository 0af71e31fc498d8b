"""Straight code of the compiled build for what most traffic is made of: one function a layout.

A layout is the kinds of fields in their order. Methods of one layout share a function, whatever they are
called. All dialects of this repository have the same five.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from codecgen.code import WIDTH, Code
from codecgen.elements import SpecError
from codecgen.layout import BitRun, flags, steps
from codecgen.model import Dialect, Field

_CLASS = "basic"
_METHODS = ("deliver", "get-ok", "publish", "return")
_KINDS = {"longstr": "OCTETS", "timestamp": "TIME"}  # where the name of the kind is not that of the wire type
_PARAMETERS = (
    "Reader reader, Guesses *guesses, PyObject **slots, const unsigned char **at, const unsigned char *end"
)

Layouts = dict[tuple[bool, tuple[str, ...]], tuple[str, tuple[Field, ...]]]
"""Name and fields, by whether flags say which fields are there, and by the kinds of the fields."""


def render_layouts(dialects: list[Dialect]) -> str:
    """Return the text of `layouts.pxd`: the numbers of the layouts, and which one a class has."""
    found = layouts(dialects)
    code = Code()
    code.line("# What most traffic is made of, by the kinds of its fields; contents.pxd reads it.")
    code.line("from amqpcodec._kernel cimport fields as _fields")
    code.line()
    with code.block("cdef enum:"):
        code.line("OTHER_LAYOUT = 0")
        for number, (name, _) in enumerate(found.values(), 1):
            code.line(f"{name.upper()}_LAYOUT = {number}")
    code.lines("", "")
    with code.block(
        "cdef inline int layout_of(const unsigned char *kinds, int fields, bint optional) noexcept:"
    ):
        for (optional, kinds), (name, _) in found.items():
            with code.block(f"if {'optional' if optional else 'not optional'} and fields == {len(kinds)}:"):
                tests = (f"kinds[{at}] == _fields.{kind}" for at, kind in enumerate(kinds))
                with code.block("if ("):
                    code.lines(*wrap(" and ".join(tests), WIDTH - 12))
                code.line("):")
                code.line(f"    return {name.upper()}_LAYOUT")
        code.line("return OTHER_LAYOUT")
    return code.text()


def render_contents(dialects: list[Dialect]) -> str:
    """Return the text of `contents.pxd`: a function that fills the slots of a record for each layout."""
    found = layouts(dialects)
    kinds = sorted({kind for _, each in found for kind in each} - {"BIT_FIELD"})
    code = Code()
    code.lines(
        "# Each function fills the slots from the octets at at[0], and passes over these. It returns how",
        "# many slots it filled: all of them unless it declines.",
        "from cpython.object cimport PyObject",
        "",
    )
    code.items("from amqpcodec._kernel.fields cimport (", kinds)
    code.lines(
        "from amqpcodec._kernel.read_values cimport field_at, truth",
        "from amqpcodec._kernel.reader_c cimport Guesses, Reader",
        "from amqpcodec._kernel.slots.makers_c cimport refer_to_none",
    )
    for (optional, _), (name, fields) in found.items():
        with code.block(f"\n\ncdef inline int {name}_at(\n    {_PARAMETERS}\n) noexcept:"):
            (_properties if optional else _arguments)(code, fields)
    return code.text()


def layouts(dialects: list[Dialect]) -> Layouts:
    """Return the layouts that the contents of dialects have.

    Raises:
        SpecError: methods of one name have several.
    """
    found: Layouts = {}
    for optional, name, fields in (each for dialect in dialects for each in _records(dialect)):
        found.setdefault((optional, tuple(map(kind_of, fields))), (name.replace("-", "_"), fields))
    names = [name for name, _ in found.values()]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(
                f"{_CLASS} {name}: dialects have other fields, and fast_reader_c calls one function"
            )
    return found


def _records(dialect: Dialect) -> Iterator[tuple[bool, str, tuple[Field, ...]]]:
    """Yield whether they are properties, the name, and the fields."""
    for cls in dialect.classes:
        if cls.name == _CLASS:
            yield from ((False, each.name, each.fields) for each in cls.methods if each.name in _METHODS)
            yield True, "properties", cls.properties


def kind_of(field: Field) -> str:
    """Return what fields.pxd calls the kind of a field."""
    return f"{_KINDS.get(field.type, field.type.upper())}_FIELD"


def _call(field: Field, guess: str) -> str:
    return f"field_at(reader, {kind_of(field)}, {guess}, &p, end)"


def _arguments(code: Code, fields: tuple[Field, ...]) -> None:
    """Add the lines that read a method's arguments."""
    code.line("cdef const unsigned char *p = at[0]")
    slot = 0
    for step in steps(fields):
        if not isinstance(step, BitRun):
            code.line(f"slots[{slot}] = {_call(step, f'guesses.arguments + {slot}')}")
            with code.block(f"if slots[{slot}] is NULL:"):
                code.line(f"return {slot}")
            slot += 1
            continue
        with code.block("if p >= end:"):
            code.line(f"return {slot}")
        for bit in range(len(step.fields)):
            code.line(f"slots[{slot + bit}] = truth(p[0] >> {bit} & 1)")
        code.line("p += 1")
        slot += len(step.fields)
    code.lines("at[0] = p", f"return {slot}")


def _properties(code: Code, fields: tuple[Field, ...]) -> None:
    """Add the lines that read properties behind their word of flags."""
    code.lines(
        "cdef const unsigned char *p = at[0] + 2",
        "cdef unsigned int flags = at[0][0] << 8 | at[0][1]",
        "cdef Py_ssize_t absent = 0",
    )
    for slot, flag in enumerate(flags(fields)):
        with code.block(f"if flags & 0x{flag.mask:04X}:"):
            code.line(f"slots[{slot}] = {_call(flag.field, f'guesses.properties + {slot}')}")
            with code.block(f"if slots[{slot}] is NULL:"):
                code.lines("refer_to_none(absent)", f"return {slot}")
        with code.block("else:"):
            code.lines(f"slots[{slot}] = <PyObject *>None", "absent += 1")
    code.lines("refer_to_none(absent)", "at[0] = p", f"return {len(fields)}")
