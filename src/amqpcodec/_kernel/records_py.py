"""Records: values that decoders return and encoders take. One text for both builds, compiled as records_c."""

from __future__ import annotations

from .._pickle import restore_public, restore_record, restore_subclass
from .._records import body_repr, replaced
from .._typing import Any, ClassVar
from ..errors import EncodeError
from ..spec import MethodSpec, PropertiesSpec, violation
from .slots.constructors_py import describe, expose, set_fields
from .slots.sharing_py import share


class Record:
    """Base of the generated classes: one attribute per field of `spec`, in wire order.

    Equal when of the same class with equal values; mutable, so not hashable; can be copied and pickled
    (a pickle made by one build loads in the other).
    """

    __slots__ = ()

    spec: ClassVar[Any]
    _module: ClassVar[str]  # import path of the dialect's namespace

    def __init__(self, *positional: Any, **named: Any) -> None:
        """Set every field. In the compiled build this is the constructor of subclasses."""
        set_fields(self, positional, named)

    def _values(self) -> list[Any]:
        return [getattr(self, field.attribute) for field in self.spec.fields]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self._values() == other._values())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [
            f"{field.attribute}={getattr(self, field.attribute)!r}"
            for field in self.spec.fields
            if not (field.reserved and not getattr(self, field.attribute))
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        if hasattr(self, "__dict__"):  # of a subclass that a caller wrote
            return restore_subclass, (type(self), self._values(), self.__dict__)
        return restore_record, (self._module, type(self).__name__, self._values())

    def __copy__(self) -> Any:
        return restore_subclass(type(self), self._values(), getattr(self, "__dict__", {}))

    __replace__ = replaced


class Method(Record):
    """Base of every method class."""

    __slots__ = ()

    spec: ClassVar[MethodSpec]

    def validate(self) -> None:
        """Check the asserts of the specification, which encoders leave alone unless told to check.

        Raises:
            EncodeError: naming the first field whose value breaks an assert.
        """
        broken = violation(self.spec, self)
        if broken is not None:
            field, check = broken
            raise EncodeError(f"breaks the assert {check}", field.name, method=self.spec.name)


class Properties(Record):
    """Base of the properties of a content class: None stands for a property that is absent.

    A bit property is True or False and cannot be absent: its flag is its value (0-9-1 section 4.2.6.1).
    """

    __slots__ = ()

    spec: ClassVar[PropertiesSpec]

    def __repr__(self) -> str:
        given = [
            f"{field.attribute}={getattr(self, field.attribute)!r}"
            for field in self.spec.fields
            if getattr(self, field.attribute) is not None
        ]
        return f"{type(self).__name__}({', '.join(given)})"


class Frame:
    """One frame.

    Attributes:
        type: the frame type on the wire: 1 method, 2 header, 3 body, 8 heartbeat; in 0-8 and 0-9 also
            4, 5, 6 (out-of-band method, header, body) and 7 (trace). A protocol header has 65.
        channel: channel number, 0 to 65535.
        payload: a method, a `ContentHeader`, `bytes` for a body, a `Heartbeat`, an `OpaquePayload` for
            types 4 to 7, or a `ProtocolHeader`. From a decoder with ``payloads="raw"``, `bytes` for all.
    """

    __slots__ = ("channel", "payload", "type")
    __match_args__ = ("type", "channel", "payload")

    def __init__(
        self,
        type: int,
        channel: int,
        payload: Method | ContentHeader | bytes | Heartbeat | OpaquePayload | ProtocolHeader,
    ) -> None:
        self.type = type
        self.channel = channel
        self.payload = payload

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame):
            return NotImplemented
        ours = (self.type, self.channel, self.payload)
        return ours == (other.type, other.channel, other.payload)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Frame(type={self.type!r}, channel={self.channel!r}, payload={body_repr(self.payload)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_public, ("Frame", (self.type, self.channel, self.payload))

    __replace__ = replaced


class ContentHeader:
    """The payload of a header frame.

    Attributes:
        properties: the properties of the content's class.
        body_size: octets of the body that follows, over all its frames.
        weight: number of child contents in 0-8, unused and zero since.
    """

    __slots__ = ("body_size", "properties", "weight")
    __match_args__ = ("properties", "body_size", "weight")

    def __init__(self, properties: Any, body_size: int, weight: int = 0) -> None:
        self.properties = properties
        self.body_size = body_size
        self.weight = weight

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ContentHeader):
            return NotImplemented
        ours = (self.properties, self.body_size, self.weight)
        return ours == (other.properties, other.body_size, other.weight)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = f"{self.properties!r}, body_size={self.body_size!r}, weight={self.weight!r}"
        return f"ContentHeader(properties={values})"

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_public, ("ContentHeader", (self.properties, self.body_size, self.weight))

    __replace__ = replaced


class Heartbeat:
    """The payload of a heartbeat frame: nothing."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Heartbeat)

    def __hash__(self) -> int:
        return 8

    def __repr__(self) -> str:
        return "Heartbeat()"

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_public, ("Heartbeat", ())

    __replace__ = replaced


class OpaquePayload:
    """The payload of a trace or out-of-band frame of 0-8 and 0-9, which the protocol leaves undefined.

    Attributes:
        octets: the payload as it came.
    """

    __slots__ = ("octets",)
    __match_args__ = ("octets",)

    def __init__(self, octets: bytes) -> None:
        self.octets = octets

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaquePayload) and bool(self.octets == other.octets)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"OpaquePayload({self.octets!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_public, ("OpaquePayload", (self.octets,))

    __replace__ = replaced


class ProtocolHeader:
    """The eight octets that open a connection.

    Attributes:
        octets: ``b"AMQP"`` and the four octets of a version.
    """

    __slots__ = ("octets",)
    __match_args__ = ("octets",)

    def __init__(self, octets: bytes) -> None:
        self.octets = octets

    @property
    def version(self) -> tuple[int, ...]:
        """The last four octets, such as ``(0, 0, 9, 1)``."""
        return tuple(self.octets[4:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProtocolHeader) and bool(self.octets == other.octets)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ProtocolHeader({self.octets!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_public, ("ProtocolHeader", (self.octets,))

    __replace__ = replaced


class Message:
    """A method with its content: what `MessageDecoder` makes of a method, a header and body frames.

    Attributes:
        channel: channel number.
        method: the content-bearing method, such as basic.deliver.
        properties: the properties of its content header, of the method's class; None if the content was cut
            off before it.
        body: the body as `bytes`, or as the list of its chunks where the decoder was asked for those.
        complete: False when another method cut the content off.
    """

    __slots__ = ("body", "channel", "complete", "method", "properties")
    __match_args__ = ("channel", "method", "properties", "body", "complete")

    def __init__(
        self,
        channel: int,
        method: Method,
        properties: Properties | None,
        body: bytes | list[bytes],
        complete: bool = True,
    ) -> None:
        self.channel = channel
        self.method = method
        self.properties = properties
        self.body = body
        self.complete = complete

    def _values(self) -> tuple[Any, ...]:
        return self.channel, self.method, self.properties, self.body, self.complete

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = f"{self.channel!r}, {self.method!r}, {self.properties!r}, {body_repr(self.body)}"
        return f"Message({shown}, complete={self.complete!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_public, ("Message", self._values())

    __replace__ = replaced


expose([ContentHeader, Frame, Message, OpaquePayload, ProtocolHeader])
share([ContentHeader, Frame, Heartbeat, Message, Method, OpaquePayload, Properties, ProtocolHeader, Record])
describe([ContentHeader, Frame, Heartbeat, Message, Method, OpaquePayload, Properties, ProtocolHeader])

__all__ = [
    "ContentHeader",
    "Frame",
    "Heartbeat",
    "Message",
    "Method",
    "OpaquePayload",
    "Properties",
    "ProtocolHeader",
]
