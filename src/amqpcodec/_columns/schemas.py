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

from amqpcodec._nearest import nearest_hint
from amqpcodec._protocol.wire_types import COLUMN_KINDS
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
        label: a few words on its meaning; fields of methods and properties have theirs in the specifications.
    """

    name: str
    kind: str
    children: tuple[Column, ...] = ()
    optional: bool = False
    label: str = ""


# Where a row was found. All but `offset` and `direction` are null for a stream that is no capture.
LEAD = (
    Column("file", "string", label="name of the file, as it was given"),
    Column("flow", "int64", label="number of the TCP conversation, as Wireshark counts"),
    Column("client", "string", label="address and port of the client"),
    Column("server", "string", label="address and port of the server"),
    Column("direction", "int8", label="0 client to server, 1 server to client"),
    Column("ts", "timestamp", label="time of the packet that completed the frame"),
    Column("ts_ns", "int64", label="the same in nanoseconds since 1970, as recorded"),
    Column("offset", "int64", label="octets of this direction before the frame"),
    Column("packet", "int64", label="number of that packet in its file, from 1"),
)
_FAULT = (
    Column("_error", "string", label="code and offset of the first fault, null for a good row"),
    Column(
        "_corrupt_record",
        "binary",
        optional=True,
        label="octets of the frame in error, where its end is known",
    ),
)
_FRAMES = (
    Column("frame_type", "int16", label="type of the frame; 65 for a protocol header"),
    Column("channel", "int32", label="channel of the frame"),
    Column("size", "int64", label="octets of the payload; 8 for a protocol header"),
    Column("class_id", "int32", label="class of a method or content header"),
    Column("method_id", "int32", label="method, by its number in the class"),
    Column("name", "string", label="method with its class, such as basic.publish"),
    Column("payload", "binary", optional=True, label="octets of the payload"),
)
_METHODS = (
    Column("channel", "int32", label="channel of the method"),
    Column("class_id", "int32", label="class of the method"),
    Column("method_id", "int32", label="method, by its number in the class"),
    Column("name", "string", label="method with its class, such as basic.publish"),
)
_MESSAGES = (
    Column("channel", "int32", label="channel of the message"),
    Column("name", "string", label="method that carries it, with its class"),
    Column("kind", "string", label="the same without its class: publish, deliver, get-ok, return"),
)
QUEUE = Column("queue", "string", label="queue that it comes from, as consumers and basic.get name it")
TRACE = (
    Column("trace_id", "string", label="trace that it belongs to, as its headers say"),
    Column("span_id", "string", label="span that sent it, as its headers say"),
)
HEADERS = Column("headers", "map")
_COMPLETE = Column("complete", "bool", label="whether all of it came")
_CONTENT = (
    *TRACE,
    HEADERS._replace(label="property headers, with its values as text"),
    Column("headers_raw", "binary", label="octets of that table, behind its length"),
    Column("body", "binary", label="octets of the body; null if it cannot be shown"),
    Column("body_size", "int64", label="octets of the body, as the content header says"),
    Column("frames", "int32", label="frames of the message, its method included"),
    Column("ts_last", "timestamp", label="time of the packet that completed its last frame"),
    _COMPLETE,
)
# What a field of a method with content must not be called in the table of messages.
MESSAGE_NAMES = frozenset(("properties", *(column.name for column in LEAD + _MESSAGES + _CONTENT + _FAULT)))
PROPERTIES_SHOWN = ("message_id", "correlation_id", "reply_to")  # in `deliveries`
WAITS = (  # where the publish of a delivery was found
    Column("wait_us", "int64", label="microseconds from its publish to its delivery"),
    Column("wait_by", "string", label="how its publish was found: exact, by id, by content, dropped"),
    Column("publish_flow", "int64", label="number of the TCP conversation of its publish"),
    Column("publish_offset", "int64", label="octets before its publish there"),
)
_DELIVERIES = (
    Column("channel", "int32", label="channel of the message"),
    Column("kind", "string", label="method that carries it, without its class"),
    QUEUE,
    Column("consumer_tag", "string", label="consumer that it is delivered to"),
    Column("exchange", "string", label="exchange that it was published to"),
    Column("routing_key", "string", label="routing key that it was published with"),
    Column("delivery_tag", "int64", label="delivery tag; of a publish its number on a channel with confirms"),
    Column("redelivered", "bool", label="whether it was delivered before"),
    Column("body_size", "int64", label="octets of the body, as the content header says"),
    _COMPLETE,
    Column("message_id", "string", label="property message-id"),
    Column("correlation_id", "string", label="property correlation-id"),
    Column("reply_to", "string", label="property reply-to"),
    *TRACE,
    Column("outcome", "string", label="what became of it; null where no answer is due"),
    Column("ts_outcome", "timestamp", label="time of the packet that decided on that"),
    Column("ts_outcome_ns", "int64", label="the same in nanoseconds since 1970, as recorded"),
    Column("packet_outcome", "int64", label="number of that packet in its file, from 1"),
    Column("latency_us", "int64", label="microseconds from the message to its answer"),
    *WAITS,
)
_CONNECTIONS = (
    Column("file", "string", label="name of the file of its last packet"),
    Column("flow", "int64", label="number of the TCP conversation, as Wireshark counts"),
    Column("client", "string", label="address and port of the client"),
    Column("server", "string", label="address and port of the server"),
    Column("dialect", "string", label="dialect that the connection speaks"),
    Column(
        "copy_of",
        "int64",
        label="connection that it repeats with other addresses or in another tunnel, as one recorded twice",
    ),
    Column("ts_first", "timestamp", label="time of its first packet"),
    Column("ts_last", "timestamp", label="time of its last packet"),
    Column("product", "string", label="product of the server, as connection.start says"),
    Column("version", "string", label="its version"),
    Column("platform", "string", label="its platform"),
    Column("client_product", "string", label="product of the client, as connection.start-ok says"),
    Column("client_version", "string", label="its version"),
    Column("client_platform", "string", label="its platform"),
    Column("connection_name", "string", label="name that the client gives it"),
    Column("mechanism", "string", label="mechanism that the client logs in by"),
    Column("user", "string", label="name that it logs in with"),
    Column("vhost", "string", label="virtual host that it opens"),
    Column("channel_max", "int32", label="highest channel that both agreed on"),
    Column("frame_max", "int64", label="octets of the largest frame that both agreed on"),
    Column("heartbeat", "int32", label="seconds between heartbeats that both agreed on"),
    Column("octets_sent", "int64", label="octets from the client, without missing ones"),
    Column("octets_received", "int64", label="octets from the server, without missing ones"),
    Column("frames_sent", "int64", label="frames from the client, those in error included"),
    Column("frames_received", "int64", label="frames from the server, those in error included"),
    Column("messages_sent", "int64", label="methods with content from the client"),
    Column("messages_received", "int64", label="methods with content from the server"),
    Column("gaps", "int64", label="stretches of octets that are missing"),
    Column("octets_missing", "int64", label="octets in these"),
    Column("errors", "int64", label="frames in error"),
    Column("closed_by", "string", label="side that sent the first connection.close"),
    Column("close_code", "int32", label="its reply code"),
    Column("close_text", "string", label="its reply text"),
    Column("proxied_client", "string", label="the client that a proxy has passed on, by the PROXY protocol"),
    Column("proxied_server", "string", label="the end that this client had connected to"),
)
_ERRORS = (
    Column("kind", "string", label="gap, lost, error or file"),
    Column("code", "string", label="GAP, LOST, FILE, or the name of the reply code, such as SYNTAX_ERROR"),
    Column("reply_code", "int32", label="reply code that a peer would get"),
    Column("message", "string", label="what is wrong"),
    Column("length", "int64", label="octets that are missing, lost or in error"),
    Column("octets", "binary", label="these octets, as far as they are known"),
    Column("dropped", "int64", label="packets that the recorder has dropped, as it says itself"),
)
_PACKETS = (
    Column("seq", "int64", label="sequence number in the TCP header"),
    Column("ack", "int64", label="acknowledgement number; null without the flag ACK"),
    Column("flags", "int16", label="flags of the TCP header, FIN 1 to CWR 128"),
    Column("length", "int64", label="octets of payload on the wire"),
    Column("payload", "binary", optional=True, label="octets of payload that were recorded"),
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
    modules = modules_of(table, dialects)
    match table:
        case "frames":
            return LEAD + _FRAMES + _FAULT
        case "methods":
            return (*LEAD, *_METHODS, Column("args", "struct", method_columns(modules)), *_FAULT)
        case "messages":
            kept = tuple(column for column in property_columns(modules) if column != HEADERS)
            properties = Column("properties", "struct", kept)
            return (*LEAD, *_MESSAGES, *content_columns(modules), properties, *_CONTENT, *_FAULT)
        case "deliveries":
            return (*LEAD, *_DELIVERIES, *_FAULT)
        case "connections":
            return _CONNECTIONS
        case "packets":
            return LEAD + _PACKETS
        case _:
            return LEAD + _ERRORS


def modules_of(table: str, dialects: Iterable[str | ModuleType]) -> tuple[ModuleType, ...]:
    """Return the modules of the dialects whose fields a table has columns for.

    Args:
        table: its name. `messages` has those of all five dialects, whichever are read, so that those of
            streams and captures go together.
        dialects: those that are read, by name, or the modules of foreign ones.

    Raises:
        ValueError: no such dialect.
    """
    known = ALL_DIALECTS if table in ("messages", "deliveries") else ()
    return tuple(dict.fromkeys(map(module, (*known, *dialects))))


@lru_cache(maxsize=64)
def method_columns(modules: tuple[Any, ...]) -> tuple[Column, ...]:
    """The columns for the arguments of all methods of some dialects."""
    return union(method.spec.fields for module in modules for method in module.METHODS.values())


@lru_cache(maxsize=64)
def content_columns(modules: tuple[Any, ...]) -> tuple[Column, ...]:
    """The columns for the arguments of those methods that carry content."""
    methods = (method for module in modules for method in module.METHODS.values())
    fields = union((method.spec.fields for method in methods if method.spec.content), taken=MESSAGE_NAMES)
    # Some methods name a queue themselves. For all others `queue` has what consumers and basic.get name.
    return (*(column for column in fields if column.name != QUEUE.name), QUEUE)


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
            there = list(_all_names(columns))
            raise ValueError(f"no column {name!r}; there are {', '.join(there)}{nearest_hint(name, there)}")
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
