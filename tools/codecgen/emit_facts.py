"""The facts of one dialect as tables: what `spec` of every generated class is. Both builds share them."""

from __future__ import annotations

from codecgen.code import Code, string
from codecgen.model import Assert, Class, Dialect, Field, Method


def render_facts(dialect: Dialect) -> str:
    """The text of a dialect's table of facts: one name per generated class."""
    code = Code()
    code.docstring([f"{dialect.label or dialect.name}: the facts of its methods and content headers."])
    code.lines(
        "",
        "from amqpcodec.spec import Assert, FieldSpec, MethodSpec, PropertiesSpec",
        "",
        f"DIGEST = {string(dialect.digest)}  # of the specification, and in what was compiled of it",
    )
    for cls in dialect.classes:
        for method in cls.methods:
            _emit_method_spec(code, method)
        if cls in dialect.content_classes:
            _emit_properties_spec(code, cls)
    return code.text()


def sides(method: Method) -> list[tuple[str, str]]:
    """Which side must, should or may accept it."""
    return [(side, word) for side, word in (("server", method.server), ("client", method.client)) if word]


def _emit_method_spec(code: Code, method: Method) -> None:
    facts = [string(method.full_name), str(method.class_id), str(method.method_id)]
    facts += [f"{flag}=True" for flag in ("synchronous", "content", "deprecated") if getattr(method, flag)]
    if method.responses:
        facts.append(f"responses=({', '.join(map(string, method.responses))},)")
    facts += [f"{side}={string(word)}" for side, word in sides(method)]
    facts.append(f"label={string(method.label)}")
    head = f"{method.python_name} = MethodSpec({', '.join(facts)}"
    if method.fields:
        _emit_fields(code, f"{head}, fields=(", method.fields)
    else:
        code.line(f"{head})")


def _emit_fields(code: Code, head: str, fields: tuple[Field, ...]) -> None:
    with code.block(head):
        for field in fields:
            facts = [string(name) for name in (field.name, field.attribute, field.type, field.domain)]
            if field.reserved:
                facts.append("reserved=True")
            facts.append(f"label={string(field.label)}")
            if field.asserts:
                facts.append(f"asserts=({', '.join(map(_assert, field.asserts))},)")
            code.line(f"FieldSpec({', '.join(facts)}),")
    code.line("))")


def _assert(check: Assert) -> str:
    value = check.value or check.rule or ", ".join(check.values)
    operands = [string(check.check)]
    if value:
        operands.append(string(value))
    if check.field:
        operands.append(f"reference={string('.'.join(filter(None, (check.method, check.field))))}")
    return f"Assert({', '.join(operands)})"


def _emit_properties_spec(code: Code, cls: Class) -> None:
    head = f"{cls.properties_name} = PropertiesSpec({string(cls.name)}, {cls.class_id}, {string(cls.label)}"
    if cls.properties:
        _emit_fields(code, f"{head}, fields=(", cls.properties)
    else:
        code.line(f"{head})")
