"""Facts of the specification about a method: the `spec` attribute of every generated class."""

from __future__ import annotations

from ._typing import Any, NamedTuple


class Assert(NamedTuple):
    """One check of the specification on a field.

    Attributes:
        check: ``notnull``, ``null``, ``length``, ``regexp``, ``syntax``, ``ne``, ``le`` or ``enum``.
        value: what the check compares with: a length, a pattern, a number, or the names of an enum.
        reference: for ``le``, the ``method.field`` of an earlier method that bounds this one.
    """

    check: str
    value: str = ""
    reference: str = ""

    def holds(self, value: Any) -> bool:
        """Return whether a field's value passes.

        Checks that need more than the value itself (``le`` looks at an earlier method, ``syntax`` and
        ``enum`` have no wire meaning of their own) always pass, and so does a value of a type the check
        does not know: that it is no value for the field is for the encoder to say. Text that no octets
        stand for has no length that passes. Of a subclass, what it holds counts, not what it says.
        """
        match self.check:
            case "notnull":
                return value is not None and not _is_empty(value)  # zero is a number like any other
            case "null":
                return value is None or _is_empty(value) or (_is_a(value, int) and int.__eq__(value, 0))
            case "length" if _is_a(value, str):
                try:  # PyPy asks a subclass for its length where it has surrogates
                    octets = str.encode(str.__add__(value, ""), "utf-8", "surrogateescape")
                    return len(octets) <= int(self.value)
                except UnicodeEncodeError:
                    return False
            case "length" if _is_a(value, bytes):
                return bytes.__len__(value) <= int(self.value)
            case "regexp" if _is_a(value, str, bytes):
                import re  # seldom needed, and a sixth of the time of an import

                return re.fullmatch(self.value, _text(value)) is not None
            case "ne" if _is_a(value, int):
                return int.__ne__(value, int(self.value))
            case _:
                return True

    def __str__(self) -> str:
        return f"{self.check} {self.value or self.reference}".rstrip()


class FieldSpec(NamedTuple):
    """One argument of a method, or one property of a content header.

    Attributes:
        name: the name in the specification, such as ``"routing-key"``.
        attribute: its Python name, such as ``"routing_key"``.
        type: the wire type, such as ``"shortstr"``.
        domain: the domain the specification gives it; the type's own name where it gives none.
        reserved: True for fields the dialect no longer uses; they stay on the wire.
        label: a few words on its meaning.
        asserts: the checks of its domain, then its own.
    """

    name: str
    attribute: str
    type: str
    domain: str
    reserved: bool = False
    label: str = ""
    asserts: tuple[Assert, ...] = ()


class MethodSpec(NamedTuple):
    """All facts of one method in one dialect.

    Attributes:
        name: ``"basic.deliver"``.
        class_id: AMQP class index.
        method_id: index of the method inside its class.
        synchronous: the specification's flag of that name; whether a sender waits follows from `responses`.
        content: True when a content header and body follow.
        deprecated: True when the specification says so.
        responses: names of the methods that may answer it, in our dialects all of the same class.
        server: whether a server must accept it: ``"MUST"``, ``"SHOULD"``, ``"MAY"`` or None.
        client: the same for a client.
        label: a few words on its purpose.
        fields: its arguments in wire order.
    """

    name: str
    class_id: int
    method_id: int
    synchronous: bool = False
    content: bool = False
    deprecated: bool = False
    responses: tuple[str, ...] = ()
    server: str | None = None
    client: str | None = None
    label: str = ""
    fields: tuple[FieldSpec, ...] = ()

    @property
    def index(self) -> int:  # type: ignore[override]  # the field's name for it; nobody looks facts up in facts
        """The first four octets of the method on the wire, as one number."""
        return self.class_id << 16 | self.method_id


class PropertiesSpec(NamedTuple):
    """The properties of one content class in one dialect.

    Attributes:
        name: the class, such as ``"basic"``.
        class_id: AMQP class index.
        label: a few words on the class.
        fields: its properties in wire order; the first is the highest bit of the flags.
    """

    name: str
    class_id: int
    label: str = ""
    fields: tuple[FieldSpec, ...] = ()


# Arguments that carry passwords and their like, as (method, field): not shown unless asked for.
CREDENTIALS = frozenset(
    (
        ("connection.start-ok", "response"),
        ("connection.secure-ok", "response"),
        ("connection.update-secret", "new-secret"),
    )
)


def violation(spec: MethodSpec, record: Any) -> tuple[FieldSpec, Assert] | None:
    """The first assert of the specification that a method's values break, or None.

    Args:
        spec: the method's facts.
        record: the method instance.
    """
    for field in spec.fields:
        for check in field.asserts:
            if not check.holds(getattr(record, field.attribute)):
                return field, check
    return None


def _is_a(value: Any, *classes: type) -> bool:
    """Return whether a value is of one of the classes; what it says of its own class may be anything."""
    return issubclass(type(value), classes)


def _is_empty(value: Any) -> bool:
    """Return whether a value is text or octets, and there is none of it."""
    if _is_a(value, str):
        return str.__len__(value) == 0
    return _is_a(value, bytes, bytearray, memoryview) and memoryview(value).nbytes == 0


def _text(value: str | bytes) -> str:
    return value if _is_a(value, str) else bytes.decode(value, "utf-8", "surrogateescape")  # type: ignore


__all__ = ["Assert", "FieldSpec", "MethodSpec", "PropertiesSpec"]
