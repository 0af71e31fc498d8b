"""Values of the wire that plain Python types cannot express."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from ._typing import TYPE_CHECKING, Any, NoReturn
from .errors import DecodeError, EncodeError

if TYPE_CHECKING:
    from _collections_abc import dict_items

_WRITERS = frozenset({"amqp.serialization", "pamqp.encode", "pika.data"})
"""Modules of other libraries that write tables. They know of dicts alone, and ask for their items."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The timestamp of zero; the default of timestamp arguments."""


class FieldValue:
    """A field-table value with its tag chosen by hand, such as ``FieldValue("u", 40000)``.

    Encoders write exactly this tag, if the table profile has it and the value fits; decoders
    never produce it. Takes the place of a plain value anywhere in a table or array.

    Attributes:
        tag: the one character of the wire (see `amqpcodec.profiles`).
        value: the Python value: int, bool, float, Decimal, str, bytes, datetime, dict, list or None.
    """

    __slots__ = ("tag", "value")
    __match_args__ = ("tag", "value")

    def __init__(self, tag: str, value: Any) -> None:
        self.tag = tag
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldValue):
            return NotImplemented
        return bool((self.tag, self.value) == (other.tag, other.value))

    __hash__ = None  # type: ignore[assignment]  # the value may be a dict

    def __repr__(self) -> str:
        return f"FieldValue({self.tag!r}, {self.value!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return FieldValue, (self.tag, self.value)


class _NotWrittenError(EncodeError, TypeError):
    """A table that a writer would lose; of the classes to which py-amqp and pamqp add the key before it."""


class UnreadableTable(dict[str, Any]):
    """A field table that could not be read: its octets, and why.

    Decoders with ``tolerant=True`` put it in the place of the smallest table around what they cannot read.
    It reads as a table without entries. Yet it is true, so that ``headers or {}`` keeps it, and it equals
    only a table of the same octets. Encoders write the octets back unchanged; the writers of pamqp, pika and
    py-amqp, which would write an empty table, get an `EncodeError`. Nothing can be added, since that would be
    lost.

    Args:
        octets: the entries as they came, without the length before them.
        error: why they cannot be read; its offset is that of the stream.
    """

    __slots__ = ("error", "octets")

    def __init__(self, octets: bytes, error: DecodeError) -> None:
        super().__init__()
        self.octets = octets
        self.error = error

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnreadableTable) and self.octets == other.octets

    def __ne__(self, other: object) -> bool:
        return not self == other

    def items(self) -> dict_items[str, Any]:
        """Return no items.

        Raises:
            EncodeError: a writer of tables asks that would write none. It is a TypeError as well.
        """
        writer = sys._getframe(1).f_globals.get("__name__")
        if writer in _WRITERS:
            raise _NotWrittenError(f"{writer} would lose a table that could not be read: {self.error}")
        return super().items()

    def __repr__(self) -> str:
        return f"UnreadableTable({self.octets!r}, {self.error!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return UnreadableTable, (self.octets, self.error)

    def _refuse(self, *entries: Any, **more: Any) -> NoReturn:
        raise TypeError("a table that could not be read takes no entries; make another")

    __setitem__ = __ior__ = update = setdefault = _refuse


class _Content:
    """The base of the two kinds of content."""

    __slots__ = ("octets",)
    __match_args__ = ("octets",)

    octets: bytes

    def __init__(self, octets: bytes) -> None:
        object.__setattr__(self, "octets", octets)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a content cannot be changed; make another")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.octets == other.octets)

    def __hash__(self) -> int:
        return hash(self.octets)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.octets!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.octets,)


class InlineContent(_Content):
    """Body of a 0-9 message.transfer carried in the method itself (0-9 section 4.2.5.6).

    Attributes:
        octets: the body.
    """

    __slots__ = ()


class ReferenceContent(_Content):
    """Body of a 0-9 message.transfer named by a reference opened before (0-9 section 4.2.5.6).

    Attributes:
        octets: the name of the reference.
    """

    __slots__ = ()


NO_CONTENT = InlineContent(b"")
"""The default of content arguments."""


class UnreadableTime(datetime):
    """A timestamp in the place of one that another library refuses: the last second of the year 9999.

    `timestamp` returns what came, so that such a library writes it unchanged.

    Attributes:
        seconds: what came. Its sender may have meant another unit, such as microseconds.
    """

    seconds: int

    @classmethod
    def of(cls, seconds: int) -> UnreadableTime:
        """Return one for what came."""
        made = cls(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
        made.seconds = seconds
        return made

    def timestamp(self) -> float:
        """Return what came; of another moment that was made of this one, its seconds since 1970."""
        return getattr(self, "seconds", None) or super().timestamp()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (self.of, (self.seconds,)) if hasattr(self, "seconds") else super().__reduce_ex__(protocol)


__all__ = [
    "EPOCH", "NO_CONTENT", "FieldValue", "InlineContent", "ReferenceContent", "UnreadableTable",
    "UnreadableTime",
]  # fmt: skip
