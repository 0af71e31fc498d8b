"""What a work item asks of a library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Protocol

from corpus import Content, FrameValues


class MissingError(Exception):
    """The library is not installed in the required form."""


class NotOfferedError(Exception):
    """The library has no function for this work."""


class Peer(Protocol):
    """One library. What its methods do besides calling the library is what its users do as well."""

    name: str
    version: str

    def decode(self, data: bytes) -> Iterator[Any]:
        """Every frame of a whole stream, decoded in full, in the library's own form."""

    def values(self, frame: Any) -> FrameValues:
        """A frame from `decode` as Python values; not timed."""

    def feed(self, chunks: Iterable[bytes]) -> Iterator[Any]:
        """As `decode`, from a stream cut anywhere."""

    def consume(self, chunks: Iterable[bytes]) -> int:
        """Loop over the frames of a stream that comes in chunks, as a program does, and read a field of each.

        Gives the sum of all delivery tags, lengths of message ids, and lengths of bodies.
        """

    def messages(self, data: bytes) -> Iterator[Any]:
        """Whole messages of a stream, all arguments and properties decoded."""

    def body(self, message: Any) -> bytes:
        """The body of a message from `messages`; not timed."""

    def publish(self, content: Content) -> bytes:
        """Make a method and properties and encode them with the body: all frames of a basic.publish."""

    def ack(self, tag: int, multiple: bool) -> bytes:
        """Make and encode a basic.ack."""

    def nack(self, tag: int, multiple: bool, requeue: bool) -> bytes:
        """Make and encode a basic.nack."""

    def setup(self, queue: str) -> bytes:
        """Make and encode what a client sends to consume: qos, queue.declare, queue.bind, basic.consume."""

    def header_writer(self, properties: dict[str, Any]) -> Callable[[], bytes]:
        """A call that makes properties of these values and encodes their content header (body of 256)."""

    def start(self, server_properties: dict[str, Any], mechanisms: bytes, locales: bytes) -> bytes:
        """Make and encode a connection.start."""

    def decode_table(self, octets: bytes) -> dict[str, Any]:
        """A field table with its length in front."""

    def encode_table(self, table: dict[str, Any]) -> bytes:
        """The octets of a field table, its length in front."""


def shared_values(value: Any) -> Any:
    """A decoded value with times as seconds since 1970, naive ones taken as UTC, nested ones as well."""
    if isinstance(value, datetime):
        return round((value.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds())
    if isinstance(value, dict):
        return {key: shared_values(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [shared_values(entry) for entry in value]
    return value


def shared_properties(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Decoded properties that are there; see `corpus.without_reserved`."""
    return {name: shared_values(value) for name, value in pairs if value is not None and name != "reserved"}


def shared_name(name: str) -> str:
    """A method's name as in the specification, whatever a library makes of it ("Queue.DeclareOk")."""
    cls, _, method = name.partition(".")
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in method)
    return f"{cls.lower()}.{words.lstrip('-')}"


def as_octets(value: str | bytes) -> bytes:
    """A longstr that a library may return as text."""
    return value.encode() if isinstance(value, str) else value
