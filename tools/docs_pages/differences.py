"""The page of what differs between the dialects: classes, methods, fields, properties, domains, constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from codecgen.model import Class, Dialect, Field, Method

from docs_pages.markup import code, document, heading, link, place, table

MISSING = "–"  # noqa: RUF001  # a dash, as tables have it


def page(dialects: Sequence[Dialect]) -> str:
    """The page."""
    return document(
        "Differences between the dialects",
        "Each column is a dialect, and a number is the id that leads to its description. "
        f"`{MISSING}` says that the dialect does not have it.",
        heading(2, "Classes", "classes"),
        _classes(dialects),
        *(block for name in names(dialects) for block in _class(dialects, name)),
        heading(2, "Domains", "domains"),
        "The wire type of each domain.",
        _domains(dialects),
        heading(2, "Constants", "constants"),
        "`soft` closes the channel, `hard` closes the connection.",
        _constants(dialects),
    )


def names(dialects: Iterable[Dialect]) -> list[str]:
    """The classes of all dialects."""
    return list(dict.fromkeys(cls.name for dialect in dialects for cls in dialect.classes))


def _side_by_side(head: str, dialects: Sequence[Dialect], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    return table(
        (head, *(link(code(each.name), f"{each.name}.md") for each in dialects)), ((a, *b) for a, b in rows)
    )


def _classes(dialects: Sequence[Dialect]) -> str:
    rows = []
    for name in names(dialects):
        cells = []
        for dialect in dialects:
            cls = _of(dialect, name)
            target = f"{dialect.name}.md#class.{name}"
            cells.append(
                link(str(cls.class_id), target) + f", {len(cls.methods)} methods" if cls else MISSING
            )
        rows.append((link(code(name), f"#class.{name}"), cells))
    return _side_by_side("class", dialects, rows)


def _of(dialect: Dialect, name: str) -> Class | None:
    return next((cls for cls in dialect.classes if cls.name == name), None)


def _class(dialects: Sequence[Dialect], name: str) -> Iterator[str]:
    yield heading(2, name, f"class.{name}")
    versions = {dialect.name: cls for dialect in dialects if (cls := _of(dialect, name))}
    methods: dict[str, dict[str, Method]] = {}
    for dialect, cls in versions.items():
        for method in cls.methods:
            methods.setdefault(method.name, {})[dialect] = method
    yield _side_by_side("method", dialects, (_method(dialects, name, *each) for each in methods.items()))
    for having in methods.values():
        yield from _fields_that_differ(dialects, having)
    properties = {dialect: cls.properties for dialect, cls in versions.items() if cls.properties}
    if properties:
        yield heading(3, f"Properties of {name}", f"{name}.properties")
        yield _fields(dialects, properties, f"{name}.properties")


def _method(
    dialects: Sequence[Dialect], owner: str, name: str, having: Mapping[str, Method]
) -> tuple[str, list[str]]:
    anchor = "" if _differ(having.values(), _layout) else place(f"{owner}.{name}")
    cells = [
        link(str(having[each.name].method_id), f"{each.name}.md#{owner}.{name}")
        + _flags(having[each.name], having.values())
        if each.name in having
        else MISSING
        for each in dialects
    ]
    note = f", {link('fields differ', f'#{owner}.{name}')}" if not anchor else ""
    return f"{anchor}{code(name)}{note}", cells


def _flags(method: Method, versions: Iterable[Method]) -> str:
    """Return the flags of a method in one dialect, where not all dialects agree."""
    versions = list(versions)
    notes = []
    if _differ(versions, lambda each: each.synchronous):
        notes.append("synchronous" if method.synchronous else "not synchronous")
    if _differ(versions, lambda each: each.content):
        notes.append("content" if method.content else "no content")
    if _differ(versions, lambda each: each.responses):
        notes.append(f"answered by {' or '.join(method.responses) or 'nothing'}")
    if _differ(versions, lambda each: (each.server, each.client)):
        sides = [
            f"{side} {word}" for side, word in (("server", method.server), ("client", method.client)) if word
        ]
        notes.append(", ".join(sides) or "nobody must")
    return "".join(f"<br>{note}" for note in notes)


def _differ(items: Iterable[Method], key: Callable[[Method], object]) -> bool:
    return len({key(each) for each in items}) > 1


def _layout(method: Method) -> object:
    return [_cell(at, field) for at, field in enumerate(method.fields)].__repr__() + repr(
        [field.name for field in method.fields]
    )


def _fields_that_differ(dialects: Sequence[Dialect], having: Mapping[str, Method]) -> Iterator[str]:
    if not _differ(having.values(), _layout):
        return
    name = next(iter(having.values())).full_name
    yield heading(3, name, name)
    yield _fields(dialects, {dialect: each.fields for dialect, each in having.items()}, name)


def _fields(dialects: Sequence[Dialect], having: Mapping[str, Sequence[Field]], owner: str) -> str:
    """The fields of a method or of content, with their place and type in each dialect."""
    places = {
        name: {each.name: (at, each) for at, each in enumerate(fields)} for name, fields in having.items()
    }
    rows = []
    for field in dict.fromkeys(name for fields in places.values() for name in fields):
        cells = []
        for dialect in dialects:
            found = places.get(dialect.name, {}).get(field)
            target = f"{dialect.name}.md#{owner}.{field}"
            cells.append(link(_cell(*found), target) if found else MISSING)
        rows.append((code(field), cells))
    return _side_by_side("field", dialects, rows)


def _cell(at: int, field: Field) -> str:
    reserved = ", reserved" if field.reserved else ""
    return f"{at + 1}. {field.type}{reserved}"


def _domains(dialects: Sequence[Dialect]) -> str:
    found: dict[str, dict[str, str]] = {}
    for dialect in dialects:
        for domain in dialect.domains:
            found.setdefault(domain.name, {})[dialect.name] = link(
                domain.type, f"{dialect.name}.md#domain.{domain.name}"
            )
    return _side_by_side("domain", dialects, _cells(dialects, found))


def _constants(dialects: Sequence[Dialect]) -> str:
    found: dict[str, dict[str, str]] = {}
    for dialect in dialects:
        for each in dialect.constants:
            kind = f", {each.kind}" if each.kind else ""
            target = f"{dialect.name}.md#constant.{each.name}"
            found.setdefault(each.name, {})[dialect.name] = link(f"{each.value}{kind}", target)
    return _side_by_side("constant", dialects, _cells(dialects, found))


def _cells(
    dialects: Sequence[Dialect], found: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, list[str]]]:
    for name, having in found.items():
        yield code(name), [having.get(each.name, MISSING) for each in dialects]
