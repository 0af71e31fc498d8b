"""The routines of layouts in C: straight code that fills the slots of a record, or writes what is in them.

In those of usual layouts the values are read and written in place; the others call a function a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from codecgen.code import NO_BREAK, Code, string
from codecgen.layouts import Layout, bits_from

_KINDS = {"longstr": "OCTETS", "timestamp": "TIME"}  # where the name of the kind is not that of the wire type
_WIDTH = 120  # of lines of Cython
_SHOWN = 3  # holders that a comment names


def render_layouts_c(layouts: list[Layout], shared: str | None = None) -> str:
    """Return the text of the module with the routines of layouts, as Cython.

    Args:
        layouts: the layouts.
        shared: the module whose routines it adds these to; None for none.
    """
    code = Code()
    code.docstring(
        ["The routines of layouts in C: how fields are read and written. The twin of layouts_py.py."]
    )
    code.line()
    _emit_imports(code, layouts, shared)
    for layout in layouts:
        code.lines("", "")
        _emit_reading(code, layout)
        code.lines("", "")
        _emit_writing(code, layout)
    code.lines("", "")
    with code.block("ROUTINES = {"):
        if shared is not None:
            code.line("**_shared,")
        for layout in layouts:
            code.line(f"{string(layout.name)}: routines(read_{layout.name}, write_{layout.name}),")
    code.line("}")
    return code.text()


def _emit_imports(code: Code, layouts: list[Layout], shared: str | None) -> None:
    kinds = {_kind(each) for layout in layouts for each in layout.types if each != "bit"}
    reading = sorted({name for layout in layouts for name in _names(layout, "fill")})
    writing = sorted({name for layout in layouts for name in _names(layout, "emit")})
    if shared is not None:
        code.lines(f"from {shared} import ROUTINES as _shared", "")
    code.lines("from cpython.object cimport PyObject", "")
    inline = {"fill", "fill_if", "fill_bits", "read_flags", "emit", "emit_if", "emit_bits", "write_flags"}
    for module, names in (
        ("civil", {"import_datetime"}),
        ("fields", kinds),
        ("fast_reader_c", set(reading) - inline),
        ("fast_writer_c", set(writing) - inline),
        ("read_values", {"filled", "likely", "reading", *(set(reading) & inline)}),
        ("reader_c", {"Reader"}),
        ("routines_c", {"Reading", "Writing", "routines"}),
        ("writer_c", {"WriterRules"}),
        ("write_values", {"writing", "written", *(set(writing) & inline)}),
    ):
        if names:
            code.items(f"from amqpcodec._kernel.{module} cimport (", sorted(names))
    code.lines("", "import_datetime()")


def _names(layout: Layout, verb: str) -> Iterator[str]:
    """Yield the functions that a routine calls."""
    for step in _steps(layout, verb):
        yield step.removeprefix("likely(").partition("(")[0]


def _emit_reading(code: Code, layout: Layout) -> None:
    parameters = "Reader reader, PyObject **slots, const unsigned char *p, const unsigned char *end"
    with code.block(f"cdef bint read_{layout.name}({parameters}) noexcept:"):
        code.line(_comment(layout))
        code.line("cdef Reading r = reading(reader, slots, p, end)")
        _emit_chain(code, f"filled(&r, {len(layout.types)}, ", list(_steps(layout, "fill")))


def _emit_writing(code: Code, layout: Layout) -> None:
    parameters = "WriterRules rules, PyObject **slots, unsigned char *p, const unsigned char *end"
    with code.block(f"cdef unsigned char *write_{layout.name}({parameters}) noexcept:"):
        code.line("cdef Writing w = writing(slots, p, end)")
        _emit_chain(code, "written(&w, ", list(_steps(layout, "emit")))


def _emit_chain(code: Code, head: str, steps: list[str]) -> None:
    """Return what a function makes of steps that are done as long as none declines."""
    text = f"return {head}{' and '.join(steps) or 'True'})"
    if len(text) + 4 <= _WIDTH:
        code.line(text)
        return
    with code.block(f"return {head.rstrip()}"):
        joined = " and ".join(step.replace(" ", NO_BREAK) for step in steps)
        code.lines(*(row.replace(NO_BREAK, " ") for row in wrap(joined, _WIDTH - 8)))
    code.line(")")


def _steps(layout: Layout, verb: str) -> Iterator[str]:
    """Yield a call for each value, for each octet of bits, and for flags.

    A compiler puts code in place where it is likely to run, and takes each further one for less likely.
    """
    for call in _calls(layout, verb):
        yield f"likely({call})" if layout.usual else call


def _calls(layout: Layout, verb: str) -> Iterator[str]:
    by, of = ("reader", "&r") if verb == "fill" else ("rules", "&w")
    if layout.optional:
        yield f"read_flags(&r, {_mask(len(layout.types)):#06x})" if verb == "fill" else "write_flags(&w)"
    place = 0
    while place < len(layout.types):
        each = layout.types[place]
        bits = bits_from(layout.types, place)
        if bits:
            yield f"{verb}_bits({of}, {place}, {bits})"
        else:
            name = f"{verb}{'_if' if layout.optional else ''}{'' if layout.usual else '_by_call'}"
            yield f"{name}({by}, {of}, {_kind(each)}, {place})"
        place += bits or 1


def _mask(fields: int) -> int:
    """Return the flags of so many properties."""
    return 0xFFFF & 0xFFFF << 16 - fields


def _kind(name: str) -> str:
    """Return what fields.pxd calls a wire type."""
    return f"{_KINDS.get(name, name.upper())}_FIELD"


def _comment(layout: Layout) -> str:
    """Return a comment that names classes of a layout."""
    more = len(layout.holders) - _SHOWN
    return f"# {', '.join(layout.holders[:_SHOWN])}{f' and {more} more' if more > 0 else ''}"
