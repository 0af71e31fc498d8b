"""Wire types as the package knows them at run time: as Python, and their numbers as C."""

from __future__ import annotations

from codecgen.code import Code, string
from codecgen.wire_types import WIRE_TYPES


def render_python() -> str:
    """The text of `wire_types.py`."""
    code = Code()
    code.docstring(["The wire types of fields: kinds of columns, numbers in C, letters in names of layouts."])
    code.lines("", "from __future__ import annotations", "")
    for head, values in (
        ("COLUMN_KINDS: dict[str, str] = {", [string(each.column) for each in WIRE_TYPES.values()]),
        ("NUMBERS: dict[str, int] = {", [str(number) for _, number in _numbers()]),
        ("LETTERS: dict[str, str] = {", [string(each.letter) for each in WIRE_TYPES.values()]),
    ):
        with code.block(head):
            for name, value in zip(WIRE_TYPES, values, strict=True):
                code.line(f"{string(name)}: {value},")
        code.line("}")
    return code.text()


def render_c() -> str:
    """The text of `wire_types.pxd`."""
    code = Code()
    with code.block("cdef enum:"):
        for name, number in _numbers():
            code.line(f"{name.upper()} = {number}")
    return code.text()


def _numbers() -> list[tuple[str, int]]:
    """From 1 on, so that 0 is none."""
    return [(name, place + 1) for place, name in enumerate(WIRE_TYPES)]
