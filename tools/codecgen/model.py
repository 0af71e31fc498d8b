"""The parts of a dialect, once its XML has been read, checked and corrected.

Everything here is immutable and resolved: names are lower case with hyphens, every field knows its
wire type, and every Python name has already been chosen. The emitters only read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from codecgen.naming import class_name


@dataclass(frozen=True, slots=True)
class Assert:
    """One condition the XML puts on a value: `check` is its kind, the rest its operands.

    `labels` has the short description of each of `values`, empty where there is none.
    """

    check: str
    value: str | None = None
    rule: str | None = None
    method: str | None = None
    field: str | None = None
    values: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A method argument or a content property; `asserts` has those of its domain first, then its own.

    `see` names the parts of the specification's prose that the XML refers to.
    """

    name: str
    attribute: str
    type: str
    domain: str
    reserved: bool
    label: str
    asserts: tuple[Assert, ...]
    see: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Method:
    """A method; `server` and `client` say how strongly that side must accept it (None: it need not)."""

    class_name: str
    class_id: int
    name: str
    method_id: int
    python_name: str
    short_name: str
    synchronous: bool
    content: bool
    deprecated: bool
    responses: tuple[str, ...]
    server: str | None
    client: str | None
    label: str
    fields: tuple[Field, ...]

    @property
    def index(self) -> int:
        """The class id in the high and the method id in the low 16 bits, as on the wire."""
        return self.class_id << 16 | self.method_id

    @property
    def full_name(self) -> str:
        """The name with its class, such as `basic.deliver`."""
        return f"{self.class_name}.{self.name}"


@dataclass(frozen=True, slots=True)
class Class:
    """A class: its methods, and the properties of its contents in wire order (the first is flag bit 15)."""

    name: str
    class_id: int
    python_name: str
    handler: str | None
    server: str | None
    client: str | None
    label: str
    properties: tuple[Field, ...]
    methods: tuple[Method, ...]

    @property
    def properties_name(self) -> str:
        """The Python name of the class of content properties, such as `BasicProperties`."""
        return class_name(self.name, "properties")


@dataclass(frozen=True, slots=True)
class Constant:
    """A number with a name; `kind` is soft (closes the channel), hard (closes the connection) or None."""

    name: str
    value: int
    kind: str | None
    label: str
    python_name: str


@dataclass(frozen=True, slots=True)
class Domain:
    """A named type; `type` is the wire type it comes down to, `asserts` those along the way."""

    name: str
    type: str
    label: str
    asserts: tuple[Assert, ...]


@dataclass(frozen=True, slots=True)
class Correction:
    """One thing an overlay changed: in `element`, `attribute` was `was` and is now `now`, for `reason`."""

    element: str
    attribute: str
    was: str
    now: str
    reason: str


@dataclass(frozen=True, slots=True)
class Source:
    """A file the dialect was read from, and the SHA-256 of its octets in hexadecimal."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """A whole dialect; `accepted_headers` lists the protocol headers a peer may open with, ours first."""

    name: str
    module: str
    major: int
    minor: int
    revision: int | None
    port: int
    label: str
    table_profile: str
    accepted_headers: tuple[bytes, ...]
    constants: tuple[Constant, ...]
    domains: tuple[Domain, ...]
    classes: tuple[Class, ...]
    sources: tuple[Source, ...]
    corrections: tuple[Correction, ...]

    @property
    def digest(self) -> str:
        """Return a digest of the files that it was read from, as they are now."""
        return sha256("".join(source.sha256 for source in self.sources).encode()).hexdigest()[:16]

    @property
    def protocol_header(self) -> bytes:
        """The eight octets this dialect opens a connection with."""
        return protocol_header(self.major, self.minor, self.revision)

    @property
    def content_classes(self) -> tuple[Class, ...]:
        """The classes whose methods carry content, or that have properties for it."""
        return tuple(
            cls for cls in self.classes if cls.properties or any(method.content for method in cls.methods)
        )

    @property
    def methods(self) -> tuple[Method, ...]:
        """The methods of all classes, in file order."""
        return tuple(method for cls in self.classes for method in cls.methods)


def protocol_header(major: int, minor: int, revision: int | None) -> bytes:
    """The protocol header of a version: until 0-9 two ones and two numbers, since then a zero and three."""
    if revision is None:
        return b"AMQP\x01\x01" + bytes((major, minor))
    return b"AMQP\x00" + bytes((major, minor, revision))
