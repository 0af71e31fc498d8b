"""The routines of the generated classes in the pure build."""

from __future__ import annotations

from contextlib import AbstractContextManager

from codecgen.code import WIDTH, Code, string
from codecgen.layout import BitRun, Flag, flags, steps, word_name, words
from codecgen.model import Class, Field, Method

BUILD = "py"
KERNEL = {
    "Dialect": "dialect", "Encoder": "encoder", "FrameDecoder": "frames", "MessageDecoder": "messages",
    "Method": "records", "Properties": "records", "Reader": "reader", "Writer": "writer",
    "table_codec": "tables",
}  # fmt: skip
HEADER = ""
PARAMETER = ""
DEFINITION = {
    "_dialect": "def _dialect(self) -> _Dialect:",
    "_read": "def _read(self, reader: _Reader) -> None:",
    "_write": "def _write(self, writer: _Writer) -> None:",
    "_has_content": "def _has_content(self) -> bool:",
    "_class_id": "def _class_id(self) -> int:",
}


def class_block(
    code: Code, name: str, base: str, fields: tuple[Field, ...] = ()
) -> AbstractContextManager[None]:
    """See `Routines`."""
    return code.block(f"class {name}({base}):")


def emit_method_routines(code: Code, method: Method) -> None:
    """See `Routines`."""
    _emit_method_reading(code, method)
    code.line()
    _emit_method_writing(code, method)


def emit_properties_routines(code: Code, cls: Class) -> None:
    """See `Routines`."""
    _emit_properties_reading(code, cls)
    code.line()
    _emit_properties_writing(code, cls)


def _emit_method_reading(code: Code, method: Method) -> None:
    with code.block(DEFINITION["_read"]):
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
    with code.block(DEFINITION["_write"]):
        code.line(f"writer.ids({method.class_id}, {method.method_id})")
        for step in steps(method.fields):
            if isinstance(step, BitRun):
                _emit_bits(code, step)
            else:
                code.line(f"writer.{step.type}(self.{step.attribute}, {string(step.name)})")


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
    with code.block(DEFINITION["_read"]):
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
    code.line(f"self.{field.attribute} = reader.{field.type}({string(field.name)}) if {present} else None")


def _emit_properties_writing(code: Code, cls: Class) -> None:
    count = words(cls.properties)
    places = flags(cls.properties)
    with code.block(DEFINITION["_write"]):
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
                write = f"writer.{flag.field.type}(self.{flag.field.attribute}, {string(flag.field.name)})"
                code.lines(f"if {word_name(flag.word)} & {flag.mask:#06x}:", f"    {write}")
