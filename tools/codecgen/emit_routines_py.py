"""The routines of the generated classes in the pure build: the short way, which `routines_py.py` tries first.

They work on local names and read or write what has a fixed size in one go. Nothing is checked but what is
needed to notice that something is odd.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager

from codecgen.code import Code
from codecgen.layout import BitRun, Flag, flags, steps, words
from codecgen.model import Class, Field, Method

BUILD = "py"
KERNEL = {
    "Dialect": "dialect", "Encoder": "quick_encoder", "FrameDecoder": "frames",
    "MessageDecoder": "messages", "Method": "routines", "Properties": "routines", "Reader": "reader",
    "WriterRules": "writer", "Octets": "quick_reader", "OddError": "quick_reader",
    "timestamp": "quick_reader", "long_octets": "quick_writer", "quick_table": "quick_writer",
    "seconds": "quick_writer", "share": "sharing", "table_codec": "tables",
}  # fmt: skip
HEADER = "from struct import Struct as _Struct"
PARAMETER = ""
DEFINITION = {
    "_dialect": "def _dialect(self) -> _Dialect:",
    "_take": "def _take(self, reader: _Reader, data: _Octets, pos: int, end: int) -> int:",
    "_put": "def _put(self, out: bytearray, rules: _WriterRules) -> None:",
    "_has_content": "def _has_content(self) -> bool:",
    "_class_id": "def _class_id(self) -> int:",
}

_LAYOUTS = {"octet": "B", "short": "H", "long": "I", "longlong": "Q", "timestamp": "Q"}
_SIZES = {"B": 1, "H": 2, "I": 4, "Q": 8}
_RARE = {"content"}  # types that only the exact way knows
_STRUCT = re.compile(r"\b_(read|write)_([BHIQ]+)\(")


def class_block(
    code: Code, name: str, base: str, fields: tuple[Field, ...] = ()
) -> AbstractContextManager[None]:
    """See `Routines`."""
    return code.block(f"class {name}({base}):")


def preamble(text: str) -> list[str]:
    """See `Routines`: the structs that the routines use, by direction and layout."""
    lines = ["_encode = str.encode  # whatever a subclass makes of it"]
    for direction, layout in sorted(set(_STRUCT.findall(text))):
        call = "unpack_from" if direction == "read" else "pack"
        lines.append(f'_{direction}_{layout} = _Struct(">{layout}").{call}')
    return lines


def emit_method_routines(code: Code, method: Method) -> None:
    """See `Routines`."""
    if any(field.type in _RARE for field in method.fields):
        return
    code.line()
    with code.block(DEFINITION["_take"]):
        _emit_method_reading(code, method)
    code.line()
    with code.block(DEFINITION["_put"]):
        _emit_method_writing(code, method)


def emit_properties_routines(code: Code, cls: Class) -> None:
    """See `Routines`."""
    if words(cls.properties) > 1 or any(field.type in _RARE for field in cls.properties):
        return
    code.line()
    with code.block(DEFINITION["_take"]):
        _emit_properties_reading(code, flags(cls.properties))
    code.line()
    with code.block(DEFINITION["_put"]):
        _emit_properties_writing(code, flags(cls.properties))


def _runs(fields: tuple[Field, ...]) -> Iterator[tuple[list[Field | BitRun], Field | None]]:
    """Fields of a fixed size as far as they stand together, and the field without one that ends the run."""
    run: list[Field | BitRun] = []
    for step in steps(fields):
        if isinstance(step, BitRun) or step.type in _LAYOUTS:
            run.append(step)
        else:
            yield run, step
            run = []
    if run:
        yield run, None


def _layout(run: list[Field | BitRun]) -> str:
    return "".join("B" if isinstance(step, BitRun) else _LAYOUTS[step.type] for step in run)


def _size(layout: str) -> int:
    return sum(_SIZES[letter] for letter in layout)


def _read_call(layout: str) -> str:
    """The values of a layout; a single one is not wrapped in a tuple."""
    if layout == "B":
        return "data[pos]"
    return f"_read_{layout}(data, pos)" + ("[0]" if len(layout) == 1 else "")


def _emit_method_reading(code: Code, method: Method) -> None:
    for run, last in _runs(method.fields):
        layout = _layout(run)
        targets = [_target(step, place) for place, step in enumerate(run)]
        if last is not None:
            layout += "B" if last.type == "shortstr" else "I"
            targets.append("size")
        code.line(f"{', '.join(targets)} = {_read_call(layout)}")
        for place, step in enumerate(run):
            _emit_conversion(code, step, _target(step, place))
        if last is None:
            code.line(f"return pos + {_size(layout)}")
            return
        code.line(f"start = pos + {_size(layout)}")
        code.line("pos = start + size")
        _emit_sized_reading(code, last)
    code.line("return pos")


def _target(step: Field | BitRun, place: int) -> str:
    """What takes the number as it was read."""
    if isinstance(step, BitRun) or step.type == "timestamp":
        return f"number{place + 1}"
    return f"self.{step.attribute}"


def _emit_conversion(code: Code, step: Field | BitRun, number: str) -> None:
    if isinstance(step, BitRun):
        for place, field in enumerate(step.fields):
            code.line(f"self.{field.attribute} = {number} & {1 << place} != 0")
    elif step.type == "timestamp":
        code.line(f"self.{step.attribute} = _timestamp({number})")


def _emit_sized_reading(code: Code, field: Field) -> None:
    """The value of data[start:pos]."""
    if field.type == "shortstr":
        code.line(f"self.{field.attribute} = data[start:pos].decode()")
    elif field.type == "longstr":
        code.lines("if pos > end:", "    raise _OddError", f"self.{field.attribute} = bytes(data[start:pos])")
    else:
        code.line(f"self.{field.attribute} = reader.quick_table(data, start, pos, end)")


def _emit_method_writing(code: Code, method: Method) -> None:
    _emit_type_checks(code, method.fields)
    places = {field: place for place, field in enumerate(method.fields)}
    layout, values = "HH", [str(method.class_id), str(method.method_id)]
    for run, last in _runs(method.fields):
        layout += _layout(run)
        values += (_value(step, places) for step in run)
        if last is None:
            break
        if last.type == "shortstr":
            code.line(f"octets = _encode(self.{last.attribute})")
            _emit_packing(code, f"{layout}B", [*values, "len(octets)"])
            code.line("out += octets")
        else:
            _emit_packing(code, layout, values)
            _emit_sized_writing(code, last, f"self.{last.attribute}")
        layout, values = "", []
    _emit_packing(code, layout, values)


def _emit_type_checks(code: Code, fields: tuple[Field, ...]) -> None:
    """What a struct would take as well, but is not of the type of its field, is odd. Each is looked up once,
    so that what is written is what was checked."""
    checks = []
    for place, field in enumerate(fields):
        if _is_checked(field):
            code.line(f"value{place} = self.{field.attribute}")
            checks.append(f"type(value{place}) is not {'bool' if field.type == 'bit' else 'int'}")
    if checks:
        code.line("if (")
        for place, check in enumerate(checks):
            code.line(f"    or {check}" if place else f"    {check}")
        code.lines("):", "    raise _OddError")


def _is_checked(field: Field) -> bool:
    return field.type == "bit" or (field.type in _LAYOUTS and field.type != "timestamp")


def _value(step: Field | BitRun, places: dict[Field, int]) -> str:
    if isinstance(step, BitRun):
        bits = [f"value{places[field]}" for field in step.fields]
        return " | ".join(f"{bit} << {place}" if place else bit for place, bit in enumerate(bits))
    return f"_seconds(self.{step.attribute})" if step.type == "timestamp" else f"value{places[step]}"


def _emit_packing(code: Code, layout: str, values: list[str]) -> None:
    if layout == "B":
        code.line(f"out.append({values[0]})")
    elif layout:
        code.call(f"out += _write_{layout}(", values)


def _emit_sized_writing(code: Code, field: Field, value: str) -> None:
    if field.type == "longstr":
        code.line(f"out += _long_octets({value})")
    else:
        code.line(f"_quick_table(out, {value}, rules.depth_limit, rules.quick_writers)")


def _emit_properties_reading(code: Code, places: list[Flag]) -> None:
    """The flags from the highest down: each that is found set is taken off, which leaves those undefined."""
    code.lines("flags = data[pos] << 8 | data[pos + 1]", "pos += 2")
    for flag in places:
        attribute = f"self.{flag.field.attribute}"
        with code.block(f"if flags >= {flag.mask:#06x}:"):
            code.line(f"flags -= {flag.mask:#06x}")
            _emit_property_reading(code, flag.field)
        code.lines("else:", f"    {attribute} = {'False' if flag.field.type == 'bit' else 'None'}")
    code.lines("if flags:", "    raise _OddError", "return pos")


def _emit_property_reading(code: Code, field: Field) -> None:
    if field.type == "bit":
        code.line(f"self.{field.attribute} = True")
        return
    layout = _LAYOUTS.get(field.type)
    if layout is None:
        size = "data[pos]" if field.type == "shortstr" else "_read_I(data, pos)[0]"
        code.line(f"start = pos + {1 if field.type == 'shortstr' else 4}")
        code.line(f"pos = start + {size}")
        _emit_sized_reading(code, field)
        return
    number = _read_call(layout)
    code.line(f"self.{field.attribute} = {f'_timestamp({number})' if field.type == 'timestamp' else number}")
    code.line(f"pos += {_SIZES[layout]}")


def _emit_properties_writing(code: Code, places: list[Flag]) -> None:
    code.lines("flags = 0", "at = len(out)", 'out += b"\\0\\0"')
    for place, flag in enumerate(places):
        code.line(f"value{'' if place else ': _Any'} = self.{flag.field.attribute}")
        if flag.field.type == "bit":
            code.lines("if type(value) is not bool:", "    raise _OddError")
            code.lines("if value:", f"    flags |= {flag.mask:#06x}")
            continue
        with code.block("if value is not None:"):
            code.line(f"flags |= {flag.mask:#06x}")
            _emit_property_writing(code, flag.field)
    code.lines("out[at] = flags >> 8", "out[at + 1] = flags & 0xFF")


def _emit_property_writing(code: Code, field: Field) -> None:
    if field.type == "shortstr":
        code.lines("octets = _encode(value)", "out.append(len(octets))", "out += octets")
    elif field.type == "timestamp":
        code.line("out += _write_Q(_seconds(value))")
    elif field.type in _LAYOUTS:
        code.lines("if type(value) is not int:", "    raise _OddError")
        _emit_packing(code, _LAYOUTS[field.type], ["value"])
    else:
        _emit_sized_writing(code, field, "value")
