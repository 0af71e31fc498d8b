"""The page of every column of every table: name, type and meaning, from `amqpcodec._columns.schemas`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from amqpcodec._columns.schemas import (
    ALL_DIALECTS,
    MESSAGE_NAMES,
    Column,
    column_name,
    content_columns,
    kinds_of,
    method_columns,
    property_columns,
    table_columns,
)
from amqpcodec.capture.dialects import module
from amqpcodec.options import TABLES
from amqpcodec.spec import FieldSpec
from docs_pages.markup import code, document, heading, link, place, sentence, table

_MODULES = tuple(map(module, ALL_DIALECTS))
_KINDS = {
    "bool": "bool", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "string": "string",
    "binary": "binary", "timestamp": "timestamp[us, UTC]", "map": "map<string, string>", "struct": "struct",
    "content": "struct<inline: binary, reference: binary>",
}  # fmt: skip
_ROWS = {
    "frames": "frame, of any type",
    "methods": "method",
    "messages": "message: its method, properties, headers and body",
    "connections": "connection",
    "deliveries": "message that was published, delivered, got or returned, with what became of it",
    "errors": "gap, stretch of lost octets, frame in error, or fault of a file",
    "packets": "TCP segment",
}


class _Origin:
    """Where the values of one column come from: fields of methods or properties, and what these mean."""

    def __init__(self) -> None:
        self.labels: dict[str, None] = {}
        self.links: dict[str, str] = {}

    def add(self, owner: str, label: str, target: str) -> None:
        """Another field, unless a dialect before has it."""
        self.labels.setdefault(label)
        self.links.setdefault(owner, target)

    def __str__(self) -> str:
        text = " ".join(sentence(label) for label in self.labels)
        return f"{text} From {', '.join(link(name, target) for name, target in self.links.items())}."


def page() -> str:
    """The page; all columns that a capture with `dialect="auto"` has."""
    return document(
        "Columns of the tables",
        "[Columns](../columns.md) describes the tables, their values and their errors. This page lists every "
        "column, as Arrow and Spark have it. All are nullable. *Optional* columns come when asked for.",
        *(block for name in TABLES for block in _table(name)),
    )


def _table(name: str) -> Iterator[str]:
    columns = table_columns(name)
    yield heading(2, name, name)
    yield f"A row for each {_ROWS[name]}."
    fields = _fields_of_messages() if name == "messages" else {}
    yield table(("column", "type", "meaning"), (_row(name, each, fields) for each in columns))
    for column in columns:
        if column.children:
            inner = _arguments() if column.name == "args" else _properties()
            yield heading(3, f"{name}: {column.name}", f"{name}.{column.name}.fields")
            rows = (_row(f"{name}.{column.name}", each, inner) for each in column.children)
            yield table(("field", "type", "meaning"), rows)


def _row(owner: str, column: Column, fields: Mapping[str, _Origin]) -> tuple[str, str, str]:
    optional = " *Optional.*" if column.optional else ""
    known = fields.get(column.name)
    meaning = " ".join(([sentence(column.label)] if column.label else []) + ([str(known)] if known else []))
    if column.children:
        meaning += f" See {link('its fields', f'#{owner}.{column.name}.fields')}."
    name = f"{place(f'{owner}.{column.name}')}{code(column.name)}"
    return name, code(_KINDS[column.kind]), f"{meaning}{optional}".strip()


def _arguments() -> dict[str, _Origin]:
    kinds = kinds_of(method_columns(_MODULES))
    origins: dict[str, _Origin] = {}
    for dialect, method in _methods():
        for field in method.spec.fields:
            name = None if field.reserved else column_name(kinds, field)
            _add(origins, name, method.spec.name, field, f"{dialect}.md#{method.spec.name}.{field.name}")
    return origins


def _fields_of_messages() -> dict[str, _Origin]:
    kinds = kinds_of(content_columns(_MODULES))
    origins: dict[str, _Origin] = {}
    for dialect, method in _methods():
        for field in method.spec.fields if method.spec.content else ():
            name = None if field.reserved else column_name(kinds, field, MESSAGE_NAMES)
            _add(origins, name, method.spec.name, field, f"{dialect}.md#{method.spec.name}.{field.name}")
    return origins


def _properties() -> dict[str, _Origin]:
    kinds = kinds_of(property_columns(_MODULES))
    origins: dict[str, _Origin] = {}
    for each in _MODULES:
        for cls in each.PROPERTIES.values():
            for field in cls.spec.fields:
                target = f"{each.DIALECT.name}.md#{cls.spec.name}.properties.{field.name}"
                _add(origins, column_name(kinds, field), cls.spec.name, field, target)
    return origins


def _methods() -> Iterator[tuple[str, Any]]:
    for each in _MODULES:
        for method in each.METHODS.values():
            yield each.DIALECT.name, method


def _add(origins: dict[str, _Origin], name: str | None, owner: str, field: FieldSpec, target: str) -> None:
    if name is not None:
        origins.setdefault(name, _Origin()).add(owner, field.label, target)
