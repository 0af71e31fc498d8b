"""The generated classes: constructor, reading and writing of one method or of one class's properties."""

from __future__ import annotations

from codecgen.code import WIDTH, Code, string
from codecgen.emit_facts import sides
from codecgen.layout import BitRun, Flag, flags, steps, word_name, words
from codecgen.model import Class, Dialect, Field, Method

METHOD_BASE = "_DialectMethod"
PROPERTIES_BASE = "_DialectProperties"

_TYPES = {
    "bit": "bool", "octet": "int", "short": "int", "long": "int", "longlong": "int", "shortstr": "str",
    "longstr": "bytes", "timestamp": "_datetime | int", "table": "_Mapping[str, _Any]",
    "content": "_InlineContent | _ReferenceContent",
}  # fmt: skip
_DEFAULTS = {
    "bit": "False", "octet": "0", "short": "0", "long": "0", "longlong": "0", "shortstr": '""',
    "longstr": 'b""', "timestamp": "_EPOCH", "table": "None", "content": "_NO_CONTENT",
}  # fmt: skip


def emit_method(code: Code, dialect: Dialect, method: Method) -> None:
    """The class of one method."""
    with code.block(f"class {method.python_name}({METHOD_BASE}):"):
        code.docstring([_method_summary(dialect, method), *_method_notes(method)], _arguments(method.fields))
        code.line()
        _emit_names(code, method.fields)
        code.line(f"spec = _facts.{method.python_name}")
        code.line()
        _emit_constructor(code, method.fields)
        code.line()
        _emit_method_reading(code, method)
        code.line()
        _emit_method_writing(code, method)
        if method.content:
            code.line()
            _emit_content_facts(code, method.class_id)


def emit_properties(code: Code, cls: Class) -> None:
    """The class of the properties that content of an AMQP class may have."""
    with code.block(f"class {cls.properties_name}({PROPERTIES_BASE}):"):
        summary = f"Properties of {cls.name} content ({cls.class_id}); None stands for one that is absent."
        code.docstring([summary, "Args:"] if cls.properties else [summary], _arguments(cls.properties))
        code.line()
        _emit_names(code, cls.properties)
        code.line(f"spec = _facts.{cls.properties_name}")
        code.line()
        _emit_properties_constructor(code, cls)
        code.line()
        _emit_properties_reading(code, cls)
        code.line()
        _emit_properties_writing(code, cls)
        code.line()
        _emit_class_id(code, cls.class_id)


def _emit_content_facts(code: Code, class_id: int) -> None:
    code.lines("def _has_content(self) -> bool:", "    return True", "")
    _emit_class_id(code, class_id)


def _emit_class_id(code: Code, class_id: int) -> None:
    code.lines("def _class_id(self) -> int:", f"    return {class_id}")


def _method_summary(dialect: Dialect, method: Method) -> str:
    ids = f"{method.class_id}, {method.method_id}"
    return f"{method.full_name} ({ids}) of {dialect.name}: {method.label}."


def _method_notes(method: Method) -> list[str]:
    notes = [f"a {side} {word} accept it" for side, word in sides(method)]
    if method.deprecated:
        notes.append("deprecated")
    if method.content:
        notes.append("content follows")
    if method.responses:
        notes.append(f"answered by {' or '.join(method.responses)}")
    sentence = "; ".join(notes)
    paragraphs = [f"{sentence[0].upper()}{sentence[1:]}."] if sentence else []
    return [*paragraphs, "Args:"] if method.fields else paragraphs


def _arguments(fields: tuple[Field, ...]) -> list[str]:
    return [f"{field.attribute}: {field.label} ({field.type})." for field in fields]


def _emit_names(code: Code, fields: tuple[Field, ...]) -> None:
    code.call("__slots__ = (", [string(field.attribute) for field in fields], _tuple_end(fields))
    positional = tuple(field for field in fields if not field.reserved)
    code.call("__match_args__ = (", [string(field.attribute) for field in positional], _tuple_end(positional))


def _tuple_end(items: tuple[object, ...]) -> str:
    return ",)" if len(items) == 1 else ")"


def _emit_constructor(code: Code, fields: tuple[Field, ...]) -> None:
    if not fields:
        code.lines("def __init__(self) -> None:", "    pass")
        return
    positional = [_parameter(field) for field in fields if not field.reserved]
    reserved = [_parameter(field) for field in fields if field.reserved]
    parameters = ["self", *positional, *(["*", *reserved] if reserved else [])]
    code.call("def __init__(", parameters, ") -> None:")
    # To type checkers a parameter called str is what `str` means here; they find the same type without.
    told = "" if any(field.attribute == "str" for field in fields) else f": {_TYPES['table']}"
    for field in fields:
        name = field.attribute
        value = f"{{}} if {name} is None else {name}" if field.type == "table" else name
        kind = told if field.type == "table" else ""
        code.line(f"    self.{name}{kind} = {value}")


def _parameter(field: Field) -> str:
    optional = " | None" if field.type == "table" else ""
    return f"{field.attribute}: {_TYPES[field.type]}{optional} = {_DEFAULTS[field.type]}"


def _emit_method_reading(code: Code, method: Method) -> None:
    with code.block("def _read(self, reader: _Reader) -> None:"):
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
    with code.block("def _write(self, writer: _Writer) -> None:"):
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


def _emit_properties_constructor(code: Code, cls: Class) -> None:
    if not cls.properties:
        code.lines("def __init__(self) -> None:", "    pass")
        return
    parameters = ["self"]
    for field in cls.properties:
        kind, default = ("bool", "False") if field.type == "bit" else (f"{_TYPES[field.type]} | None", "None")
        parameters.append(f"{field.attribute}: {kind} = {default}")
    code.call("def __init__(", parameters, ") -> None:")
    for field in cls.properties:
        code.line(f"    self.{field.attribute} = {field.attribute}")


def _emit_properties_reading(code: Code, cls: Class) -> None:
    count = words(cls.properties)
    places = flags(cls.properties)
    with code.block("def _read(self, reader: _Reader) -> None:"):
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
    with code.block("def _write(self, writer: _Writer) -> None:"):
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
