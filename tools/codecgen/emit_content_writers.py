"""Straight code of the compiled build that writes what most traffic is made of: one function a layout.

The counterpart of `emit_contents`, whose layouts these are.
"""

from __future__ import annotations

from codecgen.code import Code
from codecgen.emit_contents import kind_of, layouts
from codecgen.layout import BitRun, flags, steps
from codecgen.model import Dialect, Field

_PARAMETERS = "PyObject **slots, unsigned char *p, const unsigned char *end, WriterRules rules"


def render_content_writers(dialects: list[Dialect]) -> str:
    """Return the text of `content_writers.pxd`: for each layout a function that writes its slots."""
    found = layouts(dialects)
    kinds = sorted({kind for _, each in found for kind in each} - {"BIT_FIELD"})
    code = Code()
    code.lines(
        "# Each function writes the values in the slots, and returns where they end; NULL where it declines.",
        "from cpython.object cimport PyObject",
        "from libc.stdint cimport uint32_t",
        "",
    )
    code.items("from amqpcodec._kernel.fields cimport (", kinds)
    code.lines(
        "from amqpcodec._kernel.octets cimport put16",
        "from amqpcodec._kernel.write_values cimport Py_True, is_truth, put_field",
        "from amqpcodec._kernel.writer_c cimport WriterRules",
    )
    for (optional, _), (name, fields) in found.items():
        with code.block(f"\n\ncdef inline unsigned char *put_{name}(\n    {_PARAMETERS}\n) noexcept:"):
            (_properties if optional else _arguments)(code, fields)
    return code.text()


def _put(code: Code, field: Field, slot: int) -> None:
    code.line(f"p = put_field(p, end, {kind_of(field)}, slots[{slot}], rules)")
    with code.block("if p is NULL:"):
        code.line("return NULL")


def _arguments(code: Code, fields: tuple[Field, ...]) -> None:
    """Add the lines that write a method's arguments."""
    slot = 0
    for step in steps(fields):
        if not isinstance(step, BitRun):
            _put(code, step, slot)
            slot += 1
            continue
        places = range(slot, slot + len(step.fields))
        code.any_of(["p >= end", *(f"not is_truth(slots[{place}])" for place in places)])
        code.line("    return NULL")
        bits = (f"(slots[{place}] is Py_True) << {bit}" for bit, place in enumerate(places))
        code.line(f"p[0] = <unsigned char>({' | '.join(bits)})")
        code.line("p += 1")
        slot += len(step.fields)
    code.line("return p")


def _properties(code: Code, fields: tuple[Field, ...]) -> None:
    """Add the lines that write the flags of those properties that are there, and these."""
    code.lines(
        "cdef unsigned char *start = p",
        "cdef uint32_t flags = 0",
        "if end - p < 2:",
        "    return NULL",
        "p += 2",
    )
    for slot, flag in enumerate(flags(fields)):
        with code.block(f"if slots[{slot}] is not <PyObject *>None:"):
            code.line(f"flags |= 0x{flag.mask:04X}")
            _put(code, flag.field, slot)
    code.lines("put16(start, flags)", "return p")
