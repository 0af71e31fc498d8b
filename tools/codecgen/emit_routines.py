"""How generated classes read and write themselves: a reader or writer call per field, for both builds.

The C types of what is defined here are in the `.pxd` that `emit_types` writes.
"""

from __future__ import annotations

from codecgen.code import WIDTH, Code, string
from codecgen.layout import BitRun, Flag, flags, steps, word_name, words
from codecgen.model import Class, Field, Method

READ = "def _read(self, reader: _Reader) -> None:"
WRITE = "def _write(self, writer: _Writer) -> None:"


def emit_method_routines(code: Code, method: Method) -> None:
    """Reading and writing of a method's arguments, after an empty line."""
    code.line()
    _emit_method_reading(code, method)
    code.line()
    _emit_method_writing(code, method)


def emit_properties_routines(code: Code, cls: Class) -> None:
    """Reading and writing of the properties of a class, after an empty line."""
    code.line()
    _emit_properties_reading(code, cls)
    code.line()
    _emit_properties_writing(code, cls)


def _emit_method_reading(code: Code, method: Method) -> None:
    with code.block(READ):
        for step in steps(method.fields):
            if isinstance(step, BitRun):
                code.line(f"bits = reader.bits({string(step.fields[0].name)})")
                for place, field in enumerate(step.fields):
                    code.line(f"self.{field.attribute} = (bits & {1 << place}) != 0")
            else:
                code.line(f"self.{step.attribute} = reader.{step.type}({string(step.name)})")
        if not method.fields:
            code.line("pass")


def _emit_method_writing(code: Code, method: Method) -> None:
    with code.block(WRITE):
        code.line(f"writer.ids({method.class_id}, {method.method_id})")
        for step in steps(method.fields):
            if isinstance(step, BitRun):
                _emit_bits(code, step)
            else:
                code.line(_writing(step))


def _writing(field: Field) -> str:
    return f"writer.{field.type}(self.{field.attribute}, {string(field.name)})"


def _emit_bits(code: Code, run: BitRun) -> None:
    terms = []
    for place, field in enumerate(run.fields):
        bit = f"writer.bit(self.{field.attribute}, {string(field.name)})"
        terms.append(f"{bit} << {place}" if place else bit)
    flat = f"        writer.bits({' | '.join(terms)})"
    if len(flat) <= WIDTH:
        code.line(flat.strip())
        return
    with code.block("writer.bits("):
        for place, term in enumerate(terms):
            code.line(f"| {term}" if place else term)
    code.line(")")


def _emit_properties_reading(code: Code, cls: Class) -> None:
    count = words(cls.properties)
    places = flags(cls.properties)
    with code.block(READ):
        code.line("flags = reader.flag_word()")
        for index in range(1, count):
            code.line(f"{word_name(index)} = reader.flag_word() if {word_name(index - 1)} & 1 else 0")
        _emit_undefined(code, places, count)
        for flag in places:
            _emit_property_reading(code, flag)


def _emit_undefined(code: Code, places: list[Flag], count: int) -> None:
    """Flags without a property can only be in the last word; those before are full."""
    defined = sum(flag.mask for flag in places if flag.word == count - 1)
    last = word_name(count - 1)
    code.line(f"reader.further_flags({last}, {last} & {0xFFFE & ~defined:#06x})")


def _emit_property_reading(code: Code, flag: Flag) -> None:
    field = flag.field
    present = f"{word_name(flag.word)} & {flag.mask:#06x}"
    if field.type == "bit":
        code.line(f"self.{field.attribute} = ({present}) != 0")
        return
    # The fields of an instance that is to be filled are None.
    code.lines(f"if {present}:", f"    self.{field.attribute} = reader.{field.type}({string(field.name)})")


def _emit_properties_writing(code: Code, cls: Class) -> None:
    count = words(cls.properties)
    places = flags(cls.properties)
    with code.block(WRITE):
        for index in range(count):
            code.line(f"{word_name(index)} = 0")
        for flag in places:
            test = f"self.{flag.field.attribute} is not None"
            if flag.field.type == "bit":
                test = f"writer.bit(self.{flag.field.attribute}, {string(flag.field.name)})"
            code.lines(f"if {test}:", f"    {word_name(flag.word)} |= {flag.mask:#06x}")
        for index in range(count - 1, 0, -1):
            code.lines(f"if {word_name(index)}:", f"    {word_name(index - 1)} |= 1")
        code.line("writer.word(flags)")
        for index in range(1, count):
            code.lines(f"if {word_name(index - 1)} & 1:", f"    writer.word({word_name(index)})")
        for flag in places:
            if flag.field.type != "bit":
                write = _writing(flag.field)
                code.lines(f"if {word_name(flag.word)} & {flag.mask:#06x}:", f"    {write}")
