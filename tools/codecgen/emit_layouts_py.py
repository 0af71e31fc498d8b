"""The routines of layouts in the pure build: straight code that reads the values of a record, or writes them.

Each works on local names, and reads or writes what has a fixed size in one go. It checks no more than it
takes to decline what the slow path has to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from struct import calcsize

from codecgen.code import Code, string
from codecgen.layouts import Layout, bits_from
from codecgen.wire_types import WIRE_TYPES

_IMPORTS = """\
from struct import Struct

from amqpcodec._kernel.read_values import timestamp
from amqpcodec._kernel.routines_py import Routines
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
Place = int
"""The place of a field in its layout."""
Run = list[tuple[Place, int]]
"""Fields of a fixed size that follow each other: the place of each, and how many bits begin there."""


def render_layouts_py(layouts: list[Layout], shared: str | None = None) -> str:
    """Return the text of the module with the routines of layouts.

    Args:
        layouts: the layouts.
        shared: the module whose routines it adds these to; None for none.
    """
    texts = [text for layout in layouts for text in (_reading(layout), _writing(layout))]
    code = Code()
    code.docstring(["The routines of layouts: how fields are read and written. The twin of layouts_c.pyx."])
    code.lines("", "from __future__ import annotations", "", *_IMPORTS.splitlines())
    if shared is not None:
        code.line(f"from {shared} import ROUTINES as _shared")
    code.lines("", *_TYPES.splitlines(), "")
    code.lines("_encode = str.encode  # whatever a subclass makes of it", *_structs("".join(texts)))
    for text in texts:
        code.lines("", "", *text.splitlines())
    code.lines("", "")
    with code.block("ROUTINES: dict[str, Routines] = {"):
        if shared is not None:
            code.line("**_shared,")
        for layout in layouts:
            code.line(f"{string(layout.name)}: Routines(read_{layout.name}, write_{layout.name}),")
    code.line("}")
    return code.text()


def _structs(text: str) -> Iterator[str]:
    """The structs that functions use, by direction and letters."""
    for direction, letters in sorted(set(_STRUCT.findall(text))):
        call = "unpack_from" if direction == "read" else "pack"
        yield f'_{direction}_{letters} = Struct(">{letters}").{call}'


def _reading(layout: Layout) -> str:
    code = Code()
    parameters = "reader: Reader, data: Octets, pos: int, end: int"
    head = f"def read_{layout.name}({parameters}) -> tuple[int, tuple[Any, ...]]:"
    with code.block(head):
        (_emit_properties_reading if layout.optional else _emit_arguments_reading)(code, layout.types)
    return code.text()


def _writing(layout: Layout) -> str:
    code = Code()
    head = f"def write_{layout.name}(values: tuple[Any, ...], out: bytearray, rules: WriterRules) -> None:"
    with code.block(head):
        if layout.types:
            code.line(f"{_tuple([f'v{place}' for place in range(len(layout.types))])} = values")
        (_emit_properties_writing if layout.optional else _emit_arguments_writing)(code, layout.types)
        if not layout.types and not layout.optional:
            code.line("return")
    return code.text()


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _runs(types: tuple[str, ...]) -> Iterator[tuple[Run, Place | None]]:
    """Fields of a fixed size as far as they stand together, and the field without one that ends the run."""
    run: Run = []
    place = 0
    while place < len(types):
        bits = bits_from(types, place)
        if bits or WIRE_TYPES[types[place]].struct:
            run.append((place, bits))
        else:
            yield run, place
            run = []
        place += bits or 1
    if run:
        yield run, None


def _letters(types: tuple[str, ...], run: Run) -> str:
    return "".join("B" if bits else WIRE_TYPES[types[place]].struct for place, bits in run)


def _size(letters: str) -> int:
    return calcsize(f">{letters}")


def _read_call(letters: str) -> str:
    """The values of a struct; a single one is not wrapped in a tuple."""
    if letters == "B":
        return "data[pos]"
    return f"_read_{letters}(data, pos)" + ("[0]" if len(letters) == 1 else "")


def _emit_arguments_reading(code: Code, types: tuple[str, ...]) -> None:
    passed = ""  # octets between `pos` and the end of what was read
    for run, last in _runs(types):
        if last is not None and not run:
            _emit_size_and_reading(code, types[last], f"v{last}")
            continue
        letters = _letters(types, run)
        targets = [f"v{place}" for place, _ in run]
        if last is None:
            passed = f" + {_size(letters)}"
        else:
            letters += _size_letter(types[last])
            targets.append("size")
        code.line(f"{', '.join(targets)} = {_read_call(letters)}")
        if last is not None:
            code.lines(f"start = pos + {_size(letters)}", "pos = start + size")
            _emit_sized_reading(code, types[last], f"v{last}")
    values = [value for run, last in _runs(types) for value in _values(types, run, last)]
    code.line(f"return pos{passed}, {_tuple(values)}")


def _values(types: tuple[str, ...], run: Run, last: Place | None) -> Iterator[str]:
    """The values of the fields of a run, from the numbers as they were read."""
    for place, bits in run:
        if bits:
            yield from (f"v{place} & {1 << bit} != 0" for bit in range(bits))
        else:
            yield f"timestamp(v{place})" if types[place] == "timestamp" else f"v{place}"
    if last is not None:
        yield f"v{last}"


def _size_letter(name: str) -> str:
    """Return the struct of the size before a value."""
    return "B" if name == "shortstr" else "I"


def _emit_size_and_reading(code: Code, name: str, target: str) -> None:
    """A value with its size before it, at `pos`."""
    letter = _size_letter(name)
    code.lines(f"start = pos + {_size(letter)}", f"pos = start + {_read_call(letter)}")
    _emit_sized_reading(code, name, target)


def _emit_sized_reading(code: Code, name: str, target: str) -> None:
    """The value of data[start:pos]."""
    if name == "shortstr":
        code.line(f"{target} = data[start:pos].decode()")
    elif name == "longstr":
        code.lines("if pos > end:", "    raise Declined", f"{target} = bytes(data[start:pos])")
    else:
        code.line(f"{target} = reader.fast_table(data, start, pos, end)")


def _emit_arguments_writing(code: Code, types: tuple[str, ...]) -> None:
    _emit_type_checks(code, types)
    for run, last in _runs(types):
        letters = _letters(types, run)
        values = [_number(types, place, bits) for place, bits in run]
        if last is not None and types[last] == "shortstr":
            code.line(f"octets = _encode(v{last})")
            _emit_packing(code, f"{letters}B", [*values, "len(octets)"])
            code.line("out += octets")
            continue
        _emit_packing(code, letters, values)
        if last is not None:
            _emit_sized_writing(code, types[last], f"v{last}")


def _emit_type_checks(code: Code, types: tuple[str, ...]) -> None:
    """Decline values of other types than the field's, some of which a struct would take."""
    checks = [
        f"type(v{place}) is not {WIRE_TYPES[each].annotation}"
        for place, each in enumerate(types)
        if each == "bit" or (WIRE_TYPES[each].struct and each != "timestamp")
    ]
    if checks:
        code.any_of(checks)
        code.line("    raise Declined")


def _number(types: tuple[str, ...], place: Place, bits: int) -> str:
    if bits:
        return " | ".join(f"v{place + bit} << {bit}" if bit else f"v{place}" for bit in range(bits))
    return f"seconds(v{place})" if types[place] == "timestamp" else f"v{place}"


def _emit_packing(code: Code, letters: str, values: list[str]) -> None:
    if letters == "B":
        code.line(f"out.append({values[0]})")
    elif letters:
        code.call(f"out += _write_{letters}(", values)


def _emit_sized_writing(code: Code, name: str, value: str) -> None:
    if name == "longstr":
        code.line(f"out += long_octets({value})")
    else:
        code.line(f"fast_table(out, {value}, rules.depth_limit, rules.fast_writers)")


def _emit_properties_reading(code: Code, types: tuple[str, ...]) -> None:
    """The flags from the highest down: each that is found set is taken off, which leaves those undefined."""
    code.lines("flags = data[pos] << 8 | data[pos + 1]", "pos += 2")
    if types:
        code.line(f"{' = '.join(f'v{place}' for place in range(len(types)))} = None")
    for place, name in enumerate(types):
        mask = 0x8000 >> place
        with code.block(f"if flags >= {mask:#06x}:"):
            code.line(f"flags -= {mask:#06x}")
            letter = WIRE_TYPES[name].struct
            if not letter:
                _emit_size_and_reading(code, name, f"v{place}")
                continue
            number = _read_call(letter)
            code.line(f"v{place} = {f'timestamp({number})' if name == 'timestamp' else number}")
            code.line(f"pos += {_size(letter)}")
    code.lines("if flags:", "    raise Declined")
    code.line(f"return pos, {_tuple([f'v{place}' for place in range(len(types))])}")


def _emit_properties_writing(code: Code, types: tuple[str, ...]) -> None:
    code.lines("flags = 0", "at = len(out)", 'out += b"\\0\\0"')
    for place, name in enumerate(types):
        with code.block(f"if v{place} is not None:"):
            code.line(f"flags |= {0x8000 >> place:#06x}")
            _emit_property_writing(code, name, f"v{place}")
    code.lines("out[at] = flags >> 8", "out[at + 1] = flags & 0xFF")


def _emit_property_writing(code: Code, name: str, value: str) -> None:
    kind = WIRE_TYPES[name]
    if name == "shortstr":
        code.lines(f"octets = _encode({value})", "out.append(len(octets))", "out += octets")
    elif name == "timestamp":
        code.line(f"out += _write_Q(seconds({value}))")
    elif kind.struct:
        code.lines(f"if type({value}) is not {kind.annotation}:", "    raise Declined")
        _emit_packing(code, kind.struct, [value])
    else:
        _emit_sized_writing(code, name, value)
