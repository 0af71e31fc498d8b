"""Calls by which one sees whether a function of a library is used, and wrappers that note it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any


def wrapped(function: Any, calls: list[str]) -> Callable[..., Any]:
    """A wrapper that gives itself out for the function, and notes its calls."""

    @wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        calls.append(function.__name__)
        return function(*arguments, **named)

    return wrapper


def owner_of(path: str) -> tuple[Any, str]:
    """The module or class that holds what a dotted name names, and the name there."""
    module, _, rest = path.partition(":")
    *owners, name = rest.split(".")
    owner: Any = import_module(module)
    for each in owners:
        owner = getattr(owner, each)
    return owner, name


def pamqp_reads() -> None:
    octets = b"\1\0\1\0\0\0\x0d\0\x3c\0\x50\0\0\0\0\0\0\0\7\0\xce"
    import_module("pamqp.frame").unmarshal(octets)


def pamqp_reads_header() -> None:
    octets = b"\2\0\1\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\0\1\0\0\xce"
    import_module("pamqp.frame").unmarshal(octets)


def pamqp_writes() -> None:
    properties = import_module("pamqp.commands").Basic.Properties(headers={"a": 1})
    header = import_module("pamqp.header").ContentHeader(0, 1, properties)
    import_module("pamqp.frame").marshal(header, 1)


def pika_writes() -> None:
    frame, spec = import_module("pika.frame"), import_module("pika.spec")
    frame.Method(1, spec.Basic.Ack(7)).marshal()
    frame.Body(1, b"body").marshal()
    frame.Header(1, 4, spec.BasicProperties(headers={"a": 1})).marshal()


def pika_receives() -> None:
    connection = import_module("pika.connection").Connection
    quiet: Any = type("Quiet", (connection,), {})
    quiet.__abstractmethods__ = frozenset()
    own = quiet.__new__(quiet)
    own.bytes_received, own._frame_buffer, own._process_frame = 0, b"", lambda frame: None
    own._on_data_available(b"\x08\0\0\0\0\0\0\xce")


def amqp_writes() -> None:
    message = import_module("amqp.basic_message").Message("", application_headers={"a": 1})
    message._serialize_properties()


def amqp_reads() -> None:
    serialization = import_module("amqp.serialization")
    octets = import_module("amqp.basic_message").Message("", content_type="text")._serialize_properties()
    serialization.decode_properties_basic(octets, 0)
    serialization.loads("s", b"\1a", 0)
