"""The codec of AMQP 0-8, 0-9, 0-9-1 and RabbitMQ: octets to frames and messages, and back.

A dialect is a module: ``from amqpcodec import rabbitmq`` (or ``amqp091``, ``amqp09``, ``amqp08``,
``qpid08``) gives its method classes, encoders and decoders. What all dialects share is here.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from . import _backend
from ._backend import IMPL
from ._protocol.index import DIALECTS
from ._records import asdict, replace
from ._typing import TYPE_CHECKING
from ._version import __version__
from .errors import AmqpError, DecodeError, DecoderInUseError, EncodeError, LocalProtocolError, ReplyError
from .limits import Limits
from .spec import Assert, FieldSpec, MethodSpec, PropertiesSpec
from .types import FieldValue, InlineContent, ReferenceContent, UnreadableTable, UnreadableTime

if TYPE_CHECKING:
    from ._kernel.dialect_py import Dialect
    from ._kernel.rawproperties_py import RawProperties
    from ._kernel.rawtable_py import RawTable
    from ._kernel.records_py import (
        ContentHeader,
        Frame,
        Heartbeat,
        Message,
        Method,
        OpaquePayload,
        Properties,
        ProtocolHeader,
    )
    from ._kernel.tables_py import decode_pairs, decode_table, encode_table
else:
    _backend.export("amqpcodec._kernel.rawproperties", globals())
    _backend.export("amqpcodec._kernel.rawtable", globals())
    _backend.export("amqpcodec._kernel.records", globals())
    _backend.export("amqpcodec._kernel.tables", globals())
    Dialect = _backend.load("amqpcodec._kernel.dialect").Dialect


def dialect(name: str) -> ModuleType:
    """The module of a dialect, imported when asked for.

    Args:
        name: the name in the specification: one of `DIALECTS`, such as ``"rabbitmq-0-9-1"``.

    Raises:
        ValueError: no such dialect.
    """
    if not isinstance(name, str) or name not in DIALECTS:
        full = next((full for full, module in DIALECTS.items() if module == name), None)
        hint = f": the module amqpcodec.{name} has {full!r}" if full else ""
        raise ValueError(f"no dialect {name!r}; there are {', '.join(DIALECTS)}{hint}")
    return import_module(f"amqpcodec.{DIALECTS[name]}")


__all__ = [
    "DIALECTS",
    "IMPL",
    "AmqpError",
    "Assert",
    "ContentHeader",
    "DecodeError",
    "DecoderInUseError",
    "Dialect",
    "EncodeError",
    "FieldSpec",
    "FieldValue",
    "Frame",
    "Heartbeat",
    "InlineContent",
    "Limits",
    "LocalProtocolError",
    "Message",
    "Method",
    "MethodSpec",
    "OpaquePayload",
    "Properties",
    "PropertiesSpec",
    "ProtocolHeader",
    "RawProperties",
    "RawTable",
    "ReferenceContent",
    "ReplyError",
    "UnreadableTable",
    "UnreadableTime",
    "__version__",
    "asdict",
    "decode_pairs",
    "decode_table",
    "dialect",
    "encode_table",
    "replace",
]
