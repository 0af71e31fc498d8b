"""The tables that frames are turned into, as columns computed from the specifications.

A column has the same name, kind and place whichever build fills it. Fields of methods and properties come
from the generated classes of the dialects asked for: the union of their names, in the order in which the
dialects bring them. All kinds are signed and nullable, since Spark knows no others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

from amqpcodec._generated.wire_types import COLUMN_KINDS
from amqpcodec.capture.dialects import module
from amqpcodec.options import STREAM_TABLES, TABLES
from amqpcodec.spec import FieldSpec

ALL_DIALECTS = ("rabbitmq-0-9-1", "amqp-0-9-1", "amqp-0-9", "amqp-0-8", "qpid-0-8")


class Column(NamedTuple):
    """One column of a table.

    Attributes:
        name: its name.
        kind: ``bool``, ``int8``, ``int16``, ``int32``, ``int64``, ``string`` (UTF-8), ``binary``,
            ``timestamp`` (microseconds, UTC), ``map`` (string to string), ``content`` (a struct of two
            binaries, ``inline`` and ``reference``, one of them null), or ``struct``.
        children: the columns inside a struct.
        optional: True for those that only come when asked for by name.
    """

    name: str
    kind: str
    children: tuple[Column, ...] = ()
    optional: bool = False


# Where a row was found. All but `offset` and `direction` are null for a stream that is no capture.
LEAD = (
    Column("file", "string"),
    Column("flow", "int64"),
    Column("client", "string"),
    Column("server", "string"),
    Column("direction", "int8"),
    Column("ts", "timestamp"),
    Column("ts_ns", "int64"),
    Column("offset", "int64"),
    Column("packet", "int64"),
)
_FAULT = (Column("_error", "string"), Column("_corrupt_record", "binary", optional=True))
_FRAMES = (
    Column("frame_type", "int16"),
    Column("channel", "int32"),
    Column("size", "int64"),
    Column("class_id", "int32"),
    Column("method_id", "int32"),
    Column("name", "string"),
    Column("payload", "binary", optional=True),
)
_METHODS = (
    Column("channel", "int32"),
    Column("class_id", "int32"),
    Column("method_id", "int32"),
    Column("name", "string"),
)
_MESSAGES = (
    Column("channel", "int32"),
    Column("name", "string"),
    Column("kind", "string"),
)
HEADERS = Column("headers", "map")
_CONTENT = (
    HEADERS,
    Column("headers_raw", "binary"),
    Column("body", "binary"),
    Column("body_size", "int64"),
    Column("frames", "int32"),
    Column("ts_last", "timestamp"),
    Column("complete", "bool"),
)
# What a field of a method with content must not be called in the table of messages.
MESSAGE_NAMES = frozenset(("properties", *(column.name for column in LEAD + _MESSAGES + _CONTENT + _FAULT)))
_CONNECTIONS = (
    Column("file", "string"),
    Column("flow", "int64"),
    Column("client", "string"),
    Column("server", "string"),
    Column("dialect", "string"),
    Column("ts_first", "timestamp"),
    Column("ts_last", "timestamp"),
    Column("product", "string"),
    Column("version", "string"),
    Column("platform", "string"),
    Column("client_product", "string"),
    Column("client_version", "string"),
    Column("client_platform", "string"),
    Column("connection_name", "string"),
    Column("mechanism", "string"),
    Column("user", "string"),
    Column("vhost", "string"),
    Column("channel_max", "int32"),
    Column("frame_max", "int64"),
    Column("heartbeat", "int32"),
    Column("octets_sent", "int64"),
    Column("octets_received", "int64"),
    Column("frames_sent", "int64"),
    Column("frames_received", "int64"),
    Column("messages_sent", "int64"),
    Column("messages_received", "int64"),
    Column("gaps", "int64"),
    Column("octets_missing", "int64"),
    Column("errors", "int64"),
    Column("closed_by", "string"),
    Column("close_code", "int32"),
    Column("close_text", "string"),
)
_ERRORS = (
    Column("kind", "string"),
    Column("code", "string"),
    Column("reply_code", "int32"),
    Column("message", "string"),
    Column("length", "int64"),
    Column("octets", "binary"),
)
_PACKETS = (
    Column("seq", "int64"),
    Column("ack", "int64"),
    Column("flags", "int16"),
    Column("length", "int64"),
    Column("payload", "binary", optional=True),
)


def stream_table(table: str) -> str:
    """The name of a table, if octets without packets around them have one of that name.

    Raises:
        ValueError: they have none.
    """
    if table not in STREAM_TABLES:
        raise ValueError(f"no table {table!r} of a stream; there are {', '.join(STREAM_TABLES)}")
    return table


def table_columns(table: str, dialects: Iterable[str | ModuleType] = ALL_DIALECTS) -> tuple[Column, ...]:
    """Every column of a table, optional ones included, in order.

    Args:
        table: one of `TABLES`.
        dialects: the dialects whose fields it is to hold, by name, or the modules of foreign ones.

    Raises:
        ValueError: no such table or dialect.
    """
    if table not in TABLES:
        raise ValueError(f"no table {table!r}; there are {', '.join(TABLES)}")
    modules = tuple(module(dialect) for dialect in dialects)
    match table:
        case "frames":
            return LEAD + _FRAMES + _FAULT
        case "methods":
            return (*LEAD, *_METHODS, Column("args", "struct", method_columns(modules)), *_FAULT)
        case "messages":
            kept = tuple(column for column in property_columns(modules) if column != HEADERS)
            properties = Column("properties", "struct", kept)
            return (*LEAD, *_MESSAGES, *content_columns(modules), properties, *_CONTENT, *_FAULT)
        case "connections":
            return _CONNECTIONS
        case "packets":
            return LEAD + _PACKETS
        case _:
            return LEAD + _ERRORS


@lru_cache(maxsize=64)
def method_columns(modules: tuple[Any, ...]) -> tuple[Column, ...]:
    """The columns for the arguments of all methods of some dialects."""
    return union(method.spec.fields for module in modules for method in module.METHODS.values())


@lru_cache(maxsize=64)
def content_columns(modules: tuple[Any, ...]) -> tuple[Column, ...]:
    """The columns for the arguments of those methods that carry content."""
    methods = (method for module in modules for method in module.METHODS.values())
    return union((method.spec.fields for method in methods if method.spec.content), taken=MESSAGE_NAMES)


@lru_cache(maxsize=64)
def property_columns(modules: tuple[Any, ...]) -> tuple[Column, ...]:
    """The columns for the properties of content headers, `HEADERS` among them."""
    classes = (cls for module in modules for cls in module.PROPERTIES.values())
    return union((cls.spec.fields for cls in classes), reserved=True)


def union(
    groups: Iterable[Iterable[FieldSpec]], *, reserved: bool = False, taken: Collection[str] = ()
) -> tuple[Column, ...]:
    """One column for each name among groups of fields.

    Where one name stands for fields of two types, numbers take the wider kind, and any other goes to a
    second column with its wire type in the name (see `column_name`).

    Args:
        groups: fields, those of one method or content class together.
        reserved: whether reserved fields have columns as well.
        taken: names of other columns beside these; a field with such a name goes to a second column too.
    """
    kinds: dict[str, str] = {}
    for fields in groups:
        for field in fields:
            if field.reserved and not reserved:
                continue
            kind = COLUMN_KINDS[field.type]
            for name in _names(field, taken):
                known = kinds.setdefault(name, kind)
                if _holds(known, kind):
                    kinds[name] = max(kind, known, key=_width)
                    break
    return tuple(Column(name, kind) for name, kind in kinds.items())


def kinds_of(columns: Iterable[Column]) -> dict[str, str]:
    """The kinds of columns by their names."""
    return {column.name: column.kind for column in columns}


def column_name(kinds: Mapping[str, str], field: FieldSpec, taken: Collection[str] = ()) -> str | None:
    """Name of the column, among those of `union`, that holds a field; None if none does.

    Args:
        kinds: of all that `union` gave, see `kinds_of`.
        field: a field.
        taken: as for `union`.
    """
    for name in _names(field, taken):
        known = kinds.get(name)
        if known is None:
            return None
        if _holds(known, COLUMN_KINDS[field.type]):
            return name
    return None


def _names(field: FieldSpec, taken: Collection[str]) -> Iterator[str]:
    """The columns that a field may go to: of its own name, then with its wire type once, twice, ..."""
    name = field.attribute
    while True:
        if name not in taken:
            yield name
        name = f"{name}_{field.type}"


def _holds(known: str, kind: str) -> bool:
    return known == kind or (known.startswith("int") and kind.startswith("int"))


def _width(kind: str) -> int:
    return int(kind[3:]) if kind.startswith("int") else 0


def chosen(columns: Sequence[Column], names: Iterable[str] | None) -> tuple[Column, ...]:
    """The columns asked for, in the order asked for.

    Args:
        columns: all there are.
        names: of columns, or of one in a struct as ``"properties.content_type"``; None for all but the
            optional ones.

    Raises:
        ValueError: no such column, or one named twice.
    """
    if names is None:
        return tuple(column for column in columns if not column.optional)
    by_name = {column.name: column for column in columns}
    picked: dict[str, Column] = {}
    for name in names:
        outer, dot, inner = name.partition(".")
        column = by_name.get(outer)
        parts = {child.name: child for child in column.children} if column else {}
        before = picked.get(outer)
        if column is None or (dot and inner not in parts):
            raise ValueError(f"no column {name!r}; there are {', '.join(_all_names(columns))}")
        if before is not None and (not dot or before == column or parts[inner] in before.children):
            raise ValueError(f"column {name!r} is asked for twice")
        if dot:
            children = (*before.children, parts[inner]) if before else (parts[inner],)
            column = column._replace(children=children)
        picked[outer] = column
    return tuple(picked.values())


def _all_names(columns: Iterable[Column]) -> Iterator[str]:
    for column in columns:
        yield column.name
        yield from (f"{column.name}.{child.name}" for child in column.children)
