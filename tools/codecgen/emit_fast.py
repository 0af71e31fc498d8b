"""The fast paths of the pure build: straight-line functions that read and write one class each.

They stand in a module beside the classes. Their names are `read_` and `write_` with the name of the class.
Each works on local names, and reads or writes what has a fixed size in one go. It checks no more than it
takes to decline what the slow path has to judge: `_read` and `_write` of the class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from struct import calcsize

from codecgen.code import Code
from codecgen.layout import BitRun, Flag, flags, steps, words
from codecgen.model import Class, Dialect, Field, Method
from codecgen.wire_types import WIRE_TYPES

_IMPORTS = """\
from struct import Struct

from amqpcodec._kernel.read_values import timestamp
from amqpcodec._kernel.values import Declined
from amqpcodec._kernel.write_values import fast_table, long_octets, seconds
from amqpcodec._typing import TYPE_CHECKING
"""

_TYPES = """\
if TYPE_CHECKING:
    from amqpcodec._kernel.read_values import Octets
    from amqpcodec._kernel.reader_py import Reader
    from amqpcodec._kernel.writer_py import WriterRules
    from amqpcodec._typing import Any
"""

_STRUCT = re.compile(r"\b_(read|write)_([A-Za-z]+)\(")


def render_fast(dialect: Dialect, classes: str, base: Dialect | None = None) -> str:
    """Return the text of a dialect's fast paths.

    Args:
        dialect: the dialect.
        classes: the module that has its classes.
        base: a dialect in the same package; what is the same there is imported from it.
    """
    package, module = classes.rsplit(".", 1)
    wanted = functions(dialect)
    theirs = functions(base) if base is not None else {}
    taken = [name for name, text in wanted.items() if theirs.get(name) == text]
    own = {name: text for name, text in wanted.items() if name not in taken}
    aliases = _aliases(own)
    texts = [text for name, text in own.items() if name not in aliases]
    code = Code()
    code.docstring([f"{dialect.label or dialect.name}: the fast paths of the pure build."])
    code.lines("", "from __future__ import annotations", "", *_IMPORTS.splitlines())
    if base is not None and taken:
        code.items(f"from {package}.{base.module}_fast_py import (", taken)
    code.lines("", *_TYPES.splitlines(), f"    from {package} import {module} as of", "")
    code.lines("_encode = str.encode  # whatever a subclass makes of it", *_structs("".join(texts)))
    for text in texts:
        code.lines("", "", *text.splitlines())
    if aliases:
        code.lines("", "", "# Classes that have the fields of another.")
        code.lines(*(f"{name} = {other}" for name, other in aliases.items()))
    return code.text()


def functions(dialect: Dialect) -> dict[str, str]:
    """Return all functions of a dialect, text by name; a class with rare fields has none."""
    texts = {}
    for cls in dialect.classes:
        for method in cls.methods:
            if _are_fast(method.fields):
                texts.update(method_functions(method))
        if cls in dialect.content_classes and has_fast_path(cls):
            texts.update(properties_functions(cls))
    return texts


def _aliases(texts: dict[str, str]) -> dict[str, str]:
    """Find functions that do what an earlier one does: the name of that one by theirs.

    Only functions that read are the same. Those that write a method write its ids as well.
    """
    first: dict[str, str] = {}
    names = {name: first.setdefault(text.partition("\n")[2], name) for name, text in texts.items()}
    return {name: other for name, other in names.items() if name != other}


def has_fast_path(cls: Class) -> bool:
    """Return whether properties are of the common kind: one word of flags, and no rare type."""
    return words(cls.properties) == 1 and _are_fast(cls.properties)


def _are_fast(fields: tuple[Field, ...]) -> bool:
    return all(WIRE_TYPES[field.type].fast for field in fields)


def _structs(text: str) -> Iterator[str]:
    """The structs that functions use, by direction and layout."""
    for direction, layout in sorted(set(_STRUCT.findall(text))):
        call = "unpack_from" if direction == "read" else "pack"
        yield f'_{direction}_{layout} = Struct(">{layout}").{call}'


def method_functions(method: Method) -> dict[str, str]:
    """Return the functions that read and write a method's arguments, text by name."""
    name = method.python_name
    reading, writing = Code(), Code()
    with _reading(reading, name):
        _emit_method_reading(reading, method)
    with _writing(writing, name):
        _emit_method_writing(writing, method)
    return {f"read_{name}": reading.text(), f"write_{name}": writing.text()}


def properties_functions(cls: Class) -> dict[str, str]:
    """Return the functions that read and write the properties of a class, text by name."""
    name = cls.properties_name
    reading, writing = Code(), Code()
    with _reading(reading, name):
        _emit_properties_reading(reading, flags(cls.properties))
    with _writing(writing, name):
        _emit_properties_writing(writing, flags(cls.properties))
    return {f"read_{name}": reading.text(), f"write_{name}": writing.text()}


def _reading(code: Code, name: str) -> AbstractContextManager[None]:
    return code.block(
        f"def read_{name}(record: of.{name}, reader: Reader, data: Octets, pos: int, end: int) -> int:"
    )


def _writing(code: Code, name: str) -> AbstractContextManager[None]:
    return code.block(f"def write_{name}(record: of.{name}, out: bytearray, rules: WriterRules) -> None:")


def _runs(fields: tuple[Field, ...]) -> Iterator[tuple[list[Field | BitRun], Field | None]]:
    """Fields of a fixed size as far as they stand together, and the field without one that ends the run."""
    run: list[Field | BitRun] = []
    for step in steps(fields):
        if isinstance(step, BitRun) or WIRE_TYPES[step.type].layout:
            run.append(step)
        else:
            yield run, step
            run = []
    if run:
        yield run, None


def _layout(run: list[Field | BitRun]) -> str:
    return "".join("B" if isinstance(step, BitRun) else WIRE_TYPES[step.type].layout for step in run)


def _size(layout: str) -> int:
    return calcsize(f">{layout}")


def _read_call(layout: str) -> str:
    """The values of a layout; a single one is not wrapped in a tuple."""
    if layout == "B":
        return "data[pos]"
    return f"_read_{layout}(data, pos)" + ("[0]" if len(layout) == 1 else "")


def _emit_method_reading(code: Code, method: Method) -> None:
    for run, last in _runs(method.fields):
        if last is not None and not run:
            _emit_size_and_reading(code, last)
            continue
        layout = _layout(run)
        targets = [_target(step, place) for place, step in enumerate(run)]
        if last is not None:
            layout += _size_layout(last)
            targets.append("size")
        code.line(f"{', '.join(targets)} = {_read_call(layout)}")
        for place, step in enumerate(run):
            _emit_conversion(code, step, _target(step, place))
        if last is None:
            code.line(f"return pos + {_size(layout)}")
            return
        code.lines(f"start = pos + {_size(layout)}", "pos = start + size")
        _emit_sized_reading(code, last)
    code.line("return pos")


def _target(step: Field | BitRun, place: int) -> str:
    """Return the target that takes the number as it was read."""
    if isinstance(step, BitRun) or step.type == "timestamp":
        return f"number{place + 1}"
    return f"record.{step.attribute}"


def _emit_conversion(code: Code, step: Field | BitRun, number: str) -> None:
    if isinstance(step, BitRun):
        for place, field in enumerate(step.fields):
            code.line(f"record.{field.attribute} = {number} & {1 << place} != 0")
    elif step.type == "timestamp":
        code.line(f"record.{step.attribute} = timestamp({number})")


def _size_layout(field: Field) -> str:
    """Return the layout of the size before a value."""
    return "B" if field.type == "shortstr" else "I"


def _emit_size_and_reading(code: Code, field: Field) -> None:
    """A value with its size before it, at `pos`."""
    layout = _size_layout(field)
    code.lines(f"start = pos + {_size(layout)}", f"pos = start + {_read_call(layout)}")
    _emit_sized_reading(code, field)


def _emit_sized_reading(code: Code, field: Field) -> None:
    """The value of data[start:pos]."""
    if field.type == "shortstr":
        code.line(f"record.{field.attribute} = data[start:pos].decode()")
    elif field.type == "longstr":
        code.lines(
            "if pos > end:", "    raise Declined", f"record.{field.attribute} = bytes(data[start:pos])"
        )
    else:
        code.line(f"record.{field.attribute} = reader.fast_table(data, start, pos, end)")


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
            code.line(f"octets = _encode(record.{last.attribute})")
            _emit_packing(code, f"{layout}B", [*values, "len(octets)"])
            code.line("out += octets")
        else:
            _emit_packing(code, layout, values)
            _emit_sized_writing(code, last, f"record.{last.attribute}")
        layout, values = "", []
    _emit_packing(code, layout, values)


def _emit_type_checks(code: Code, fields: tuple[Field, ...]) -> None:
    """Decline values of other types than the field's, some of which a struct would take.

    Each is looked up once, so that what is written is what was checked.
    """
    checks = []
    for place, field in enumerate(fields):
        if _is_checked(field):
            code.line(f"value{place} = record.{field.attribute}")
            checks.append(f"type(value{place}) is not {WIRE_TYPES[field.type].annotation}")
    if checks:
        code.any_of(checks)
        code.line("    raise Declined")


def _is_checked(field: Field) -> bool:
    return field.type == "bit" or (WIRE_TYPES[field.type].layout != "" and field.type != "timestamp")


def _value(step: Field | BitRun, places: dict[Field, int]) -> str:
    if isinstance(step, BitRun):
        bits = [f"value{places[field]}" for field in step.fields]
        return " | ".join(f"{bit} << {place}" if place else bit for place, bit in enumerate(bits))
    return f"seconds(record.{step.attribute})" if step.type == "timestamp" else f"value{places[step]}"


def _emit_packing(code: Code, layout: str, values: list[str]) -> None:
    if layout == "B":
        code.line(f"out.append({values[0]})")
    elif layout:
        code.call(f"out += _write_{layout}(", values)


def _emit_sized_writing(code: Code, field: Field, value: str) -> None:
    if field.type == "longstr":
        code.line(f"out += long_octets({value})")
    else:
        code.line(f"fast_table(out, {value}, rules.depth_limit, rules.fast_writers)")


def _emit_properties_reading(code: Code, places: list[Flag]) -> None:
    """The flags from the highest down: each that is found set is taken off, which leaves those undefined."""
    code.lines("flags = data[pos] << 8 | data[pos + 1]", "pos += 2")
    for flag in places:
        attribute = f"record.{flag.field.attribute}"
        with code.block(f"if flags >= {flag.mask:#06x}:"):
            code.line(f"flags -= {flag.mask:#06x}")
            _emit_property_reading(code, flag.field)
        code.lines("else:", f"    {attribute} = {'False' if flag.field.type == 'bit' else 'None'}")
    code.lines("if flags:", "    raise Declined", "return pos")


def _emit_property_reading(code: Code, field: Field) -> None:
    if field.type == "bit":
        code.line(f"record.{field.attribute} = True")
        return
    layout = WIRE_TYPES[field.type].layout
    if not layout:
        _emit_size_and_reading(code, field)
        return
    number = _read_call(layout)
    code.line(f"record.{field.attribute} = {f'timestamp({number})' if field.type == 'timestamp' else number}")
    code.line(f"pos += {_size(layout)}")


def _emit_properties_writing(code: Code, places: list[Flag]) -> None:
    code.lines("flags = 0", "at = len(out)", 'out += b"\\0\\0"')
    for place, flag in enumerate(places):
        code.line(f"value{'' if place else ': Any'} = record.{flag.field.attribute}")
        if flag.field.type == "bit":
            code.lines("if type(value) is not bool:", "    raise Declined")
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
        code.line("out += _write_Q(seconds(value))")
    elif WIRE_TYPES[field.type].layout:
        kind = WIRE_TYPES[field.type]
        code.lines(f"if type(value) is not {kind.annotation}:", "    raise Declined")
        _emit_packing(code, kind.layout, ["value"])
    else:
        _emit_sized_writing(code, field, "value")
