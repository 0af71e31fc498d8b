"""The reference of one dialect: every class, method, field, property, domain and constant, with links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codecgen.explain import bit_places
from codecgen.model import Assert, Class, Dialect, Domain, Field, Method
from codecgen.wire_types import WIRE_TYPES

from amqpcodec.options import DIALECT
from docs_pages import codes
from docs_pages.markup import code, document, heading, link, place, sentence, table

FLAGS_PER_WORD = 15
SIGNATURE_WIDTH = 76


def path(dialect: Dialect) -> str:
    """Where the page of a dialect is in the site."""
    return f"reference/{dialect.name}.md"


def page(dialect: Dialect, dialects: Sequence[Dialect]) -> str:
    """The page of a dialect; `dialects` are all that there are."""
    return _found_first(dialect) + document(
        dialect.name,
        f"{sentence(dialect.label)} [The other dialects side by side](differences.md).",
        _facts(dialect),
        _contents(dialect),
        *(block for cls in dialect.classes for block in _class(dialect, cls)),
        heading(2, "Domains", "domains"),
        "A domain is a named type. Fields refer to it.",
        _domains(dialect),
        heading(2, "Constants", "constants"),
        _constants(dialect),
        *_corrections(dialect),
    )


def _found_first(dialect: Dialect) -> str:
    """Return the setting that has the search prefer the dialect that most people speak."""
    return "---\nsearch: {boost: 3}\n---\n\n" if dialect.name == DIALECT else ""


def signature(dialect: Dialect, owner: str, fields: Sequence[Field], *, absent: bool = False) -> str:
    """How a class is called in Python: `rabbitmq.Basic.Publish(exchange="", ...)`.

    Args:
        dialect: its module is named.
        owner: the name of the class in that module.
        fields: arguments in wire order; the reserved ones come last, by keyword.
        absent: whether None is the default, as it is of properties.
    """
    given = [_parameter(field, absent) for field in fields if not field.reserved]
    reserved = [_parameter(field, absent) for field in fields if field.reserved]
    parameters = [*given, *(["*", *reserved] if reserved else [])]
    name = f"{dialect.module}.{owner}"
    line = f"{name}({', '.join(parameters)})"
    if len(line) <= SIGNATURE_WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," if each != "*" else "    *," for each in parameters), ")"])


def _parameter(field: Field, absent: bool) -> str:
    default = WIRE_TYPES[field.type].default
    if absent and field.type != "bit":
        default = "None"
    return f"{field.attribute}={default.lstrip('_')}"


def _facts(dialect: Dialect) -> str:
    version = ".".join(
        str(each) for each in (dialect.major, dialect.minor, dialect.revision) if each is not None
    )
    others = [code(header.hex(" ")) for header in dialect.accepted_headers[1:]]
    corrected = link(f"{len(dialect.corrections)}", "#corrections") if dialect.corrections else "none"
    rows = [
        ("module", code(f"amqpcodec.{dialect.module}")),
        ("version, port", f"{version}, {dialect.port}"),
        ("protocol header", code(dialect.protocol_header.hex(" "))),
        ("also accepted", ", ".join(others) or "no other header"),
        ("field tables", link(f"profile {code(dialect.table_profile)}", "protocol.md#field-tables")),
        ("contents", f"{len(dialect.classes)} classes, {len(dialect.methods)} methods"),
        ("corrections", corrected),
    ]
    return table(("fact", "value"), rows)


def _contents(dialect: Dialect) -> str:
    rows = [
        (
            link(code(cls.name), f"#class.{cls.name}"),
            str(cls.class_id),
            ", ".join(link(each.name, f"#{each.full_name}") for each in cls.methods),
        )
        for cls in dialect.classes
    ]
    return table(("class", "id", "methods"), rows)


def _class(dialect: Dialect, cls: Class) -> Iterator[str]:
    yield heading(2, f"{cls.name}", f"class.{cls.name}")
    name = code(f"{dialect.module}.{cls.python_name}")
    yield f"Class {cls.class_id}, in Python {name}. {sentence(cls.label)}"
    for method in cls.methods:
        yield from _method(dialect, method)
    if cls.properties:
        yield from _properties(dialect, cls)


def _method(dialect: Dialect, method: Method) -> Iterator[str]:
    yield heading(3, method.full_name, method.full_name)
    yield f"{sentence(method.label)}{' *Deprecated.*' if method.deprecated else ''}"
    owner = f"{_class_of(dialect, method).python_name}.{method.short_name}"
    yield f"```python\n{signature(dialect, owner, method.fields)}\n```"
    yield "\n".join(f"- {line}" for line in _method_facts(dialect, method))
    if method.fields:
        yield _fields(method.full_name, method.fields, _places(method.fields), "place")


def _class_of(dialect: Dialect, method: Method) -> Class:
    return next(cls for cls in dialect.classes if cls.name == method.class_name)


def _method_facts(dialect: Dialect, method: Method) -> Iterator[str]:
    yield f"**Ids**: {method.class_id}, {method.method_id}; on the wire {code(f'{method.index:08x}')}"
    yield f"**Sent by**: {_senders(method)}"
    yield f"**Synchronous**: {'yes' if method.synchronous else 'no'}"
    answered = [link(code(name), f"#{target}") for name, target in _targets(dialect, method)]
    if answered:
        yield f"**Answered by**: {' or '.join(answered)}"
    requests = [
        each.full_name
        for each in dialect.methods
        if (method.name, method.full_name) in _targets(dialect, each)
    ]
    if requests:
        yield f"**Answers**: {', '.join(link(code(name), f'#{name}') for name in requests)}"
    if method.content:
        yield f"**Content**: a header with {_header(dialect, method)}, and bodies follow"
    yield f"**In other dialects**: {link('side by side', f'differences.md#{method.full_name}')}"


def _header(dialect: Dialect, method: Method) -> str:
    has_properties = _class_of(dialect, method).properties
    return link("properties", f"#{method.class_name}.properties") if has_properties else "no properties"


def _targets(dialect: Dialect, method: Method) -> list[tuple[str, str]]:
    """The names of the methods that may answer one, and where these are described."""
    known = {each.full_name for each in dialect.methods}
    return [(name, full) for name in method.responses if (full := f"{method.class_name}.{name}") in known]


def _senders(method: Method) -> str:
    """The side that accepts a method is not the side that sends it."""
    sides = [
        f"the {sender} (a {taker} {word} accept it)"
        for sender, taker, word in (("client", "server", method.server), ("server", "client", method.client))
        if word
    ]
    return ", and ".join(sides) or "nobody: neither side has to accept it"


def _places(fields: Sequence[Field]) -> list[str]:
    """For each argument, how many octets it takes; of a bit, which one it is."""
    return [
        WIRE_TYPES[field.type].octets if bit is None else f"bit {bit[1]} of octet {bit[0]}"
        for field, bit in zip(fields, bit_places(fields), strict=True)
    ]


def _fields(owner: str, fields: Sequence[Field], places: Sequence[str], head: str) -> str:
    rows = [
        (
            f"{place(f'{owner}.{field.name}')}{code(field.name)}{_python_name(field)}",
            _type(field),
            where,
            _meaning(field),
        )
        for field, where in zip(fields, places, strict=True)
    ]
    return table(("field", "type", head, "meaning"), rows)


def _python_name(field: Field) -> str:
    usual = field.attribute == field.name.replace("-", "_")
    return "" if usual else f" (Python: {code(field.attribute)})"


def _type(field: Field) -> str:
    wire = link(field.type, f"protocol.md#type.{field.type}")
    return wire if field.domain == field.type else f"{link(field.domain, f'#domain.{field.domain}')}: {wire}"


def _meaning(field: Field) -> str:
    reserved = "*Reserved.* " if field.reserved else ""
    checks = "; ".join(condition(each) for each in field.asserts)
    return f"{reserved}{sentence(field.label)}{f' Strict mode: {checks}.' if checks else ''}"


def condition(check: Assert) -> str:
    """Describe the asserts of the specification about a value."""
    match check.check:
        case "notnull":
            return "not empty"
        case "null":
            return "empty"
        case "length":
            return f"at most {check.value} octets"
        case "regexp":
            return f"matches {code(check.value)}"
        case "ne":
            return f"not {check.value}"
        case "le":
            return f"at most that of {code(f'{check.method}.{check.field}')}"
        case "enum":
            return f"one of {', '.join(check.values)} (not checked)"
        case _:
            return f"{check.check} {check.rule or check.value or ''}".rstrip() + " (not checked)"


def _properties(dialect: Dialect, cls: Class) -> Iterator[str]:
    yield heading(3, f"Properties of {cls.name}", f"{cls.name}.properties")
    yield f"```python\n{signature(dialect, cls.properties_name, cls.properties, absent=True)}\n```"
    yield "In the order of the wire. The flag says that a property is there."
    flags = [_flag(number) for number in range(len(cls.properties))]
    yield _fields(f"{cls.name}.properties", cls.properties, flags, "flag")


def _flag(number: int) -> str:
    word, at = divmod(number, FLAGS_PER_WORD)
    flag = code(f"0x{1 << 15 - at:04x}")
    return f"{flag} of word {word + 1}" if word else flag


def _domains(dialect: Dialect) -> str:
    rows = [
        (
            f"{place(f'domain.{domain.name}')}{code(domain.name)}",
            link(domain.type, f"protocol.md#type.{domain.type}"),
            _domain_meaning(domain),
            _uses(dialect, domain),
        )
        for domain in dialect.domains
    ]
    return table(("domain", "type", "meaning", "used by"), rows)


def _domain_meaning(domain: Domain) -> str:
    checks = "; ".join(condition(each) for each in domain.asserts)
    return f"{sentence(domain.label)}{f' Strict mode: {checks}.' if checks else ''}"


def _uses(dialect: Dialect, domain: Domain) -> str:
    names = [
        f"{method.full_name}.{field.name}"
        for method in dialect.methods
        for field in method.fields
        if field.domain == domain.name
    ]
    names += [
        f"{cls.name}.properties.{field.name}"
        for cls in dialect.classes
        for field in cls.properties
        if field.domain == domain.name
    ]
    return ", ".join(link(name, f"#{name}") for name in names) or "nothing"


def _constants(dialect: Dialect) -> str:
    rows = [
        (
            f"{place(f'constant.{each.name}')}{code(each.name)}",
            str(each.value),
            code(f"{dialect.module}.{each.python_name}"),
            f"{sentence(each.label)} {codes.effect(each)}",
        )
        for each in dialect.constants
    ]
    return table(("constant", "value", "Python", "meaning"), rows)


def _corrections(dialect: Dialect) -> Iterator[str]:
    if dialect.corrections:
        yield heading(2, "Corrections", "corrections")
        yield "Where the published XML is not taken at its word. `spec/overlays` has these entries."
        rows = [
            (code(each.element), each.attribute, each.was or "nothing", each.now or "nothing", each.reason)
            for each in dialect.corrections
        ]
        yield table(("element", "attribute", "was", "is", "reason"), rows)
