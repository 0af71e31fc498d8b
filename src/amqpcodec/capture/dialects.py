"""Which dialect a connection speaks, from its protocol header and its connection.start."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from types import ModuleType
from typing import Any, NamedTuple

import amqpcodec

from .resync import FrameTest

DEFAULT = "rabbitmq-0-9-1"
HEADER_PREFIX = b"AMQP"
HEADER_SIZE = 8
NEGOTIATING = frozenset(("connection.start", "connection.tune-ok"))  # they say how to read what follows
# In this order: today's brokers first. No header selects qpid-0-8, which has that of amqp-0-8.
_ORDER = (DEFAULT, "amqp-0-8", "amqp-0-9", "amqp-0-9-1")
_START_VERSIONS = {(8, 0): "amqp-0-8", (0, 8): "amqp-0-8"}
_RABBITMQ = "RabbitMQ"  # the product, as the broker says in connection.start
_QPID = "qpid"  # part of it, in small letters
TLS = (
    "it looks like TLS, which hides the frames: record where the octets are not encrypted, or decrypt the "
    "capture first (docs/capture.md, TLS)"
)
_AMQP_1_0 = (b"\0\1\0\0", b"\2\1\0\0", b"\3\1\0\0")  # plain, over TLS, over SASL
_MQTT = "it looks like MQTT"
# What others begin with, by a pattern; the first that fits counts.
_OTHERS = (
    (rb"[\x14-\x17]\x03[\x00-\x04]", TLS),
    (rb"(?:GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH|TRACE) |HTTP/|PRI \* |CONNECT [^\n]", "it looks like HTTP"),
    (rb"\x10(?:[\x80-\xff]{1,3})?[\x00-\x7f]\x00(?:\x04MQTT|\x06MQIsdp)", _MQTT),
    (
        rb"\x20(?:\x02[\x00\x01][\x00-\x05]|[\x03-\x7f][\x00\x01][\x00\x80-\xa2])",
        _MQTT,
    ),  # the broker's answer
    (rb"(?:CONNECT|STOMP|CONNECTED|ERROR)\r?\n", "it looks like STOMP"),
    # The first command and its answer, behind their length.
    (rb"\x00[\x00-\x10]..[\x00\x80]\x11\x00\x01", "it looks like RabbitMQ's stream protocol, of port 5552"),
)


def module(dialect: str | ModuleType) -> Any:
    """The module of a dialect, given its name or the module itself.

    Raises:
        ValueError: no such dialect.
    """
    return _named(dialect) if isinstance(dialect, str) else dialect


@cache  # asked for with every connection, and importing again takes as long as reading a message
def _named(name: str) -> ModuleType:
    return amqpcodec.dialect(name)


def readable(name: str, dialect: str | ModuleType) -> Any:
    """The module of a dialect that a connection may speak.

    Args:
        name: its name.
        dialect: how connections are decoded: a dialect's name or module, or ``"auto"``.

    Raises:
        ValueError: there is none, or connections are decoded as another one.
    """
    found = module(name if dialect == "auto" else dialect)
    if found.DIALECT.name != name:
        raise ValueError(f"connections are read as {found.DIALECT.name}, not as {name}")
    return found


def for_header(octets: bytes) -> str | None:
    """Name of the dialect that a client asks for with a protocol header; None for a version not known."""
    for name in _ORDER:
        if module(name).DIALECT.protocol_header == octets:
            return name
    for name in _ORDER:
        if octets in module(name).DIALECT.accepted_headers:
            return name
    return None


class Spoken(NamedTuple):
    """The dialects that a connection speaks.

    Attributes:
        dialect: name of the dialect that its frames are decoded as.
        alternate: name of another dialect, for methods whose ids the first one lacks.
    """

    dialect: str
    alternate: str | None = None


def for_start(start: Any, assumed: Spoken) -> Spoken:
    """Return the dialects that a broker's connection.start announces, given those assumed so far.

    RabbitMQ accepts clients that greet with 0-9, and answers them in 0-9-1. It answers clients that greet
    with 0-8 in 0-8, but with methods of its own: queue.unbind, basic.recover 110. (`rabbit_reader`,
    `rabbit_framing_amqp_0_8` of RabbitMQ 3.10.) Brokers of Qpid speak their own 0-8, and take its further
    methods in 0-9 and 0-9-1 as well: exchange.bound. (Broker-J 10.1.)
    """
    dialect = _START_VERSIONS.get((start.version_major, start.version_minor))
    product = start.server_properties.get("product")
    if isinstance(product, str) and _QPID in product.lower():
        return Spoken("qpid-0-8") if dialect == "amqp-0-8" else Spoken(assumed.dialect, "qpid-0-8")
    if product != _RABBITMQ:
        return assumed if dialect in (None, assumed.dialect) else Spoken(dialect)
    if (dialect or assumed.dialect) == "amqp-0-8":
        return Spoken("amqp-0-8", DEFAULT)
    return Spoken(DEFAULT, "amqp-0-9") if assumed.dialect == "amqp-0-9" else assumed


@cache
def additions(dialect: Any, alternate: Any) -> frozenset[tuple[int, int]]:
    """Ids of the methods that only the alternate dialect has.

    Methods with content are excluded: their content headers would be decoded by the first dialect.
    """
    return frozenset(
        ids for ids, cls in alternate.METHODS.items() if ids not in dialect.METHODS and not cls.spec.content
    )


@cache
def negotiating_class(dialect: Any) -> int | None:
    """Id of the class with the methods that negotiate; None if they are of several, or of none."""
    classes = {ids[0] for ids, cls in dialect.METHODS.items() if cls.spec.name in NEGOTIATING}
    return classes.pop() if len(classes) == 1 else None


@lru_cache(64)  # of thousands of connections most agree on the same; a peer may ask for any size
def frame_test(dialect: Any, alternate: Any, frame_max: int) -> FrameTest:
    """The test for frames that can be trusted, for the modules of a dialect and its alternate, or None."""
    methods = {*dialect.METHODS, *additions(dialect, alternate)} if alternate else dialect.METHODS
    return FrameTest(methods, dialect.PROPERTIES, dialect.DIALECT.frame_types, frame_max)


def is_foreign_header(octets: bytes) -> bool:
    """Return whether a protocol header asks for, or offers, AMQP 1.0, which has other frames."""
    return octets[:4] == HEADER_PREFIX and octets[4:8] in _AMQP_1_0


def foreign(octets: bytes) -> str:
    """Guess the protocol of a stream without a single frame, as the end of a sentence; "" if unknown."""
    if is_foreign_header(octets):
        return "it is AMQP 1.0, another protocol"
    if octets[:4] == HEADER_PREFIX:
        return f"it asks for AMQP version {'.'.join(map(str, octets[4:8]))}, which is not known here"
    return next((what for pattern, what in _OTHERS if re.match(pattern, octets, re.DOTALL)), "")
