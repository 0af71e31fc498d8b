"""The generated classes: one for each method, and one for the content properties of each class."""

from __future__ import annotations

from codecgen.code import Code, sentence, string
from codecgen.emit_facts import sides
from codecgen.model import Class, Dialect, Field, Method
from codecgen.wire_types import WIRE_TYPES

METHOD_BASE = "_DialectMethod"
PROPERTIES_BASE = "_DialectProperties"
_BASES = {METHOD_BASE: "_Method", PROPERTIES_BASE: "_Properties"}


def emit_base(code: Code, name: str, module: str) -> None:
    """The base of the methods, or of the properties, of the dialect that users know as a module."""
    with code.block(f"class {name}({_BASES[name]}):"):
        code.lines("__slots__ = ()", f"_module = {string(module)}")


def emit_method(code: Code, dialect: Dialect, method: Method) -> None:
    """The class of one method."""
    with code.block(f"class {method.python_name}({METHOD_BASE}):"):
        code.docstring([_method_summary(dialect, method), *_method_notes(method)], _arguments(method.fields))
        code.line()
        _emit_names(code, method.fields)
        code.line()
        _emit_constructor(code, method.fields)


def emit_properties(code: Code, cls: Class) -> None:
    """The class of the properties that content of an AMQP class may have."""
    with code.block(f"class {cls.properties_name}({PROPERTIES_BASE}):"):
        summary = f"Properties of {cls.name} content ({cls.class_id}); None stands for one that is absent"
        # The flag of a bit property is its value (0-9-1 section 4.2.6.1): it cannot be absent.
        bits = ", False for a bit" if any(field.type == "bit" for field in cls.properties) else ""
        summary = f"{summary}{bits}."
        code.docstring([summary, "Args:"] if cls.properties else [summary], _arguments(cls.properties))
        code.line()
        _emit_names(code, cls.properties)
        code.line()
        _emit_properties_constructor(code, cls)


def _method_summary(dialect: Dialect, method: Method) -> str:
    ids = f"{method.class_id}, {method.method_id}"
    return sentence(f"{method.full_name} ({ids}) of {dialect.name}", method.label)


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
    return [_argument(field) for field in fields]


def _argument(field: Field) -> str:
    label = field.label.rstrip(".")
    return f"{field.attribute}: {label} ({field.type})." if label else f"{field.attribute}: {field.type}."


def _emit_names(code: Code, fields: tuple[Field, ...]) -> None:
    positional = tuple(field for field in fields if not field.reserved)
    if positional == fields:
        _emit_tuple(code, "__slots__ = __match_args__ = (", fields)
    else:
        _emit_tuple(code, "__slots__ = (", fields)
        _emit_tuple(code, "__match_args__ = (", positional)


def _emit_tuple(code: Code, head: str, fields: tuple[Field, ...]) -> None:
    code.items_or_line(head, [string(field.attribute) for field in fields], _tuple_end(fields))


def _tuple_end(items: tuple[object, ...]) -> str:
    return ",)" if len(items) == 1 else ")"


def _emit_constructor(code: Code, fields: tuple[Field, ...]) -> None:
    if not _emit_signature(code, fields, [_parameter(field) for field in fields]):
        return
    # To type checkers a parameter called str is what `str` means here; they find the same type without.
    told = "" if any(field.attribute == "str" for field in fields) else f": {WIRE_TYPES['table'].annotation}"
    for field in fields:
        name = field.attribute
        value = f"{{}} if {name} is None else {name}" if field.type == "table" else name
        kind = told if field.type == "table" else ""
        code.line(f"    self.{name}{kind} = {value}")


def _emit_signature(code: Code, fields: tuple[Field, ...], parameters: list[str]) -> bool:
    """The head of a constructor, reserved fields by keyword only; False if there is nothing to do in it."""
    if not fields:
        code.lines("def __init__(self) -> None:", "    pass")
        return False
    positional = [
        parameter for field, parameter in zip(fields, parameters, strict=True) if not field.reserved
    ]
    reserved = [parameter for field, parameter in zip(fields, parameters, strict=True) if field.reserved]
    parameters = ["self", *positional, *(["*", *reserved] if reserved else [])]
    code.items_or_line("def __init__(", parameters, ") -> None:")
    return True


def _parameter(field: Field) -> str:
    kind = WIRE_TYPES[field.type]
    optional = " | None" if kind.default == "None" else ""
    return f"{field.attribute}: {kind.annotation}{optional} = {kind.default}"


def _emit_properties_constructor(code: Code, cls: Class) -> None:
    parameters = []
    for field in cls.properties:
        kind = WIRE_TYPES[field.type]
        given = f"bool = {kind.default}" if field.type == "bit" else f"{kind.annotation} | None = None"
        parameters.append(f"{field.attribute}: {given}")
    if not _emit_signature(code, cls.properties, parameters):
        return
    for field in cls.properties:
        code.line(f"    self.{field.attribute} = {field.attribute}")
