"""The text of one dialect: its constants, classes, and the decoders and encoders bound to it."""

from __future__ import annotations

from codecgen.code import Code, sentence, string
from codecgen.emit_records import (
    METHOD_BASE,
    PROPERTIES_BASE,
    emit_base,
    emit_method,
    emit_properties,
)
from codecgen.model import Class, Dialect
from codecgen.naming import SHARED_NAMES
from codecgen.wire_types import WIRE_TYPES

_IMPORTS = """\
from collections.abc import Iterator as _Iterator
from amqpcodec._typing import TYPE_CHECKING
from amqpcodec._typing import Any as _Any
from amqpcodec._backend import require_same as _require_same
from amqpcodec._kernel.dialect_py import Dialect as _Dialect
from amqpcodec._kernel.encoder_py import Encoder as _Encoder
from amqpcodec._kernel.frames_py import FrameDecoder as _FrameDecoder
from amqpcodec._kernel.messages_py import MessageDecoder as _MessageDecoder
from amqpcodec._kernel.publishing_py import PreparedMessage as _PreparedMessage
from amqpcodec._kernel.records_py import Frame as _Frame
from amqpcodec._kernel.records_py import Heartbeat as _Heartbeat
from amqpcodec._kernel.records_py import Message as _Message
from amqpcodec._kernel.records_py import Method as _Method
from amqpcodec._kernel.records_py import Properties as _Properties
from amqpcodec._kernel.slots.constructors_py import describe as _describe
from amqpcodec._kernel.slots.sharing_py import share as _share
from amqpcodec._kernel.tables_py import table_codec as _table_codec
"""

# For type checkers: messages whose properties are of the dialect. The class is the same for all dialects.
_TYPED_MESSAGES = """\
if TYPE_CHECKING:
    def feed(self, data: _Any) -> _Iterator[_DialectMessage | _Frame]: ...
    def buffer_updated(self, nbytes: int) -> _Iterator[_DialectMessage | _Frame]: ...
    def __iter__(self) -> _Iterator[_DialectMessage | _Frame]: ...
    def __next__(self) -> _DialectMessage | _Frame: ...
"""

# For type checkers, likewise: prepared messages that know the fields of the dialect.
_TYPED_PREPARING = """\
if TYPE_CHECKING:
    def prepare_message(
        self, channel: int, method: _Method, properties: _Properties | None = None, *,
        frame_max: int | None = None,
    ) -> _DialectPreparedMessage: ...
"""

_FUNCTIONS = """\
_encoder = Encoder()
encode = _encoder.encode
encode_body = _encoder.encode_body
encode_frame = _encoder.encode_frame
encode_header = _encoder.encode_header
encode_heartbeat = _encoder.encode_heartbeat
encode_message = _encoder.encode_message
encode_message_parts = _encoder.encode_message_parts
encode_messages = _encoder.encode_messages
encode_method = _encoder.encode_method
prepare_message = _encoder.prepare_message
protocol_header = _encoder.protocol_header

_tables = _table_codec(DIALECT.profile.name)
decode_table = _tables.decode_table
encode_table = _tables.encode_table
"""

_BOUND_NAMES = (
    "DIALECT", "METHODS", "PROPERTIES", "FrameDecoder", "MessageDecoder", "Encoder", "encode", "encode_body",
    "encode_frame", "encode_header", "encode_heartbeat", "encode_message", "encode_message_parts",
    "encode_messages", "encode_method", "prepare_message", "protocol_header", "decode_table", "encode_table",
)  # fmt: skip


def render_module(dialect: Dialect, module: str, facts: str, layouts: str) -> str:
    """The text of a dialect's module, which both builds are made of.

    Args:
        dialect: the dialect.
        module: what its users know the module as.
        facts: the module that has its facts.
        layouts: the name, beside this module, of the one with the routines of its layouts.
    """
    code = Code()
    code.docstring([f"{dialect.label or dialect.name}: methods, content headers and constants."])
    code.line()
    _emit_imports(code, dialect, facts, layouts)
    for constant in dialect.constants:
        comment = f"  # {constant.label}" if constant.label else ""
        code.line(f"{constant.python_name} = {constant.value}{comment}")
    _emit_classes(code, dialect, module)
    code.lines("", "")
    _emit_dialect(code, dialect, module)
    _emit_bound(code, dialect)
    code.items("__all__ = [", [string(name) for name in _public_names(dialect)], "]")
    code.line("_share([globals()[name] for name in __all__])")
    code.line("_describe([FrameDecoder, MessageDecoder, Encoder, *METHODS.values(), *PROPERTIES.values()])")
    return code.text()


def _emit_classes(code: Code, dialect: Dialect, module: str) -> None:
    for base in (METHOD_BASE, PROPERTIES_BASE):
        code.lines("", "")
        emit_base(code, base, module)
    for cls in dialect.classes:
        for method in cls.methods:
            code.lines("", "")
            emit_method(code, dialect, method)
        if cls in dialect.content_classes:
            code.lines("", "")
            emit_properties(code, cls)
        code.lines("", "")
        _emit_container(code, cls)


def _emit_imports(code: Code, dialect: Dialect, facts: str, layouts: str) -> None:
    holders = (*(method.fields for method in dialect.methods), *(cls.properties for cls in dialect.classes))
    used = {WIRE_TYPES[field.type] for fields in holders for field in fields}
    needed = sorted({line for kind in used for line in kind.imports}.difference(_IMPORTS.splitlines()))
    code.lines("from __future__ import annotations", "", *needed, *_IMPORTS.splitlines())
    package, name = facts.rsplit(".", 1)
    code.line(f"from {package} import {name} as _facts")
    code.lines(f"from .{layouts}_py import ROUTINES as _ROUTINES", "")
    code.lines(f"_require_same(__name__, {string(dialect.digest)}, _facts.DIGEST)", "")


def _emit_bound(code: Code, dialect: Dialect) -> None:
    """Emit the names bound to the dialect: decoders, encoders and their functions."""
    code.lines("METHODS = DIALECT.methods", "PROPERTIES = DIALECT.properties", "")
    names = [cls.properties_name for cls in dialect.content_classes]
    with code.block("if TYPE_CHECKING:"), code.block("class _DialectMessage(_Message):"):
        code.line(f"properties: {' | '.join(names) or 'None'}")
    with code.block("else:"):
        code.line("_DialectMessage = _Message")
    _emit_prepared(code, dialect)
    for name in _shared_names(dialect):
        code.line(f"{name} = {'_Dialect' if 'Message' in name else '_'}{name}")
    for name in ("FrameDecoder", "MessageDecoder", "Encoder"):
        code.lines("", "")
        with code.block(f"class {name}(_{name}):"):
            code.lines("__slots__ = ()", f"__doc__ = _{name}.__doc__", "dialect = DIALECT")
            if name == "MessageDecoder":
                code.lines("", *_TYPED_MESSAGES.splitlines())
            if name == "Encoder":
                code.lines("", *_TYPED_PREPARING.splitlines())
    code.lines("", "", *_FUNCTIONS.splitlines(), "")


def _emit_prepared(code: Code, dialect: Dialect) -> None:
    """Emit the prepared messages that type checkers see, whose `encode` takes the fields of the dialect."""
    fields: dict[str, set[str]] = {}
    for method in dialect.methods:
        for field in method.fields if method.content else ():
            fields.setdefault(field.attribute, set()).add(WIRE_TYPES[field.type].annotation)
    for cls in dialect.content_classes:
        for field in cls.properties:
            absent = [] if field.type == "bit" else ["None"]
            fields.setdefault(field.attribute, set()).update([WIRE_TYPES[field.type].annotation, *absent])
    with code.block("if TYPE_CHECKING:"):
        code.lines("from typing import TypedDict, Unpack", "")
        entries = [
            f"{string(name)}: {' | '.join(sorted(kinds, key=lambda kind: (kind == 'None', kind)))}"
            for name, kinds in fields.items()
        ]
        head = '_Changes = TypedDict("_Changes", {  # noqa: UP013  # many on a line'
        code.items(head, entries, "}, total=False)  # fmt: skip")
        code.line()
        with code.block("class _DialectPreparedMessage(_PreparedMessage):"):
            code.line("def encode(  # type: ignore[override]")
            code.line("    self, body: _Any, /, **changes: Unpack[_Changes]")
            code.line(") -> bytes: ...")
    with code.block("if not TYPE_CHECKING:"):
        code.line("_DialectPreparedMessage = _PreparedMessage")


def _emit_container(code: Code, cls: Class) -> None:
    with code.block(f"class {cls.python_name}:"):
        code.docstring([sentence(f"The methods of class {cls.name} ({cls.class_id})", cls.label)])
        if cls.methods:
            code.line()
        # A short name that is also the long name of another would hide it from the lines below: those last.
        long_names = {method.python_name for method in cls.methods}
        for method in sorted(cls.methods, key=lambda m: len(m.short_name) * (m.short_name in long_names)):
            code.line(f"{method.short_name} = {method.python_name}")


def _emit_dialect(code: Code, dialect: Dialect, module: str) -> None:
    with code.block("DIALECT = _Dialect("):
        code.lines(
            f"name={string(dialect.name)},",
            f"module={string(module)},",
            f"version=({dialect.major}, {dialect.minor}, {dialect.revision}),",
            f"port={dialect.port},",
            f"profile={string(dialect.table_profile)},",
        )
        code.line(f"accepted_headers=({', '.join(map(repr, dialect.accepted_headers))},),")
        with code.block("constants={"):
            for constant in dialect.constants:
                code.line(f"{string(constant.name)}: {constant.python_name},")
        code.line("},")
        with code.block("methods=("):
            for method in dialect.methods:
                code.line(f"{method.python_name},")
        code.line("),")
        with code.block("properties=("):
            for cls in dialect.content_classes:
                code.line(f"{cls.properties_name},")
        code.line("),")
        code.lines("facts=_facts,", "routines=_ROUTINES,")
    code.line(")")


def _shared_names(dialect: Dialect) -> list[str]:
    """Return the names of a module that all dialects share: a class of the dialect keeps its name."""
    own = {cls.python_name for cls in dialect.classes} | {method.python_name for method in dialect.methods}
    return [name for name in SHARED_NAMES if name not in own]


def _public_names(dialect: Dialect) -> list[str]:
    names = [*_BOUND_NAMES, *_shared_names(dialect)]
    names += [constant.python_name for constant in dialect.constants]
    names += [method.python_name for method in dialect.methods]
    names += [cls.properties_name for cls in dialect.content_classes]
    names += [cls.python_name for cls in dialect.classes]
    return sorted(names)
