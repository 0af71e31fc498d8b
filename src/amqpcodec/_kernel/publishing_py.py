"""Many messages at once, and messages of which little changes. The twin of publishing_c.pyx."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from struct import Struct, pack

from .._typing import TYPE_CHECKING, Any
from ..errors import EncodeError
from .lock_py import Lock
from .rawtable_py import RawTable
from .slots.constructors_py import describe
from .values import Declined, named
from .wire import BODY, FRAME_END, HEADER, METHOD, OVERHEAD
from .write_values import DECLINED, fast_table, long_octets, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from .dialect_py import Dialect
    from .writer_py import WriterRules

PIECE = 65536  # octets of a piece, if more than one message is in it

_method_start = Struct(">BHIHH").pack
_header_start = Struct(">BBHIHHQH").pack
_body_start = Struct(">BBHI").pack
_END = bytes((FRAME_END,))
_NUMBERS = {"octet": ">B", "short": ">H", "long": ">I", "longlong": ">Q"}


class MessagePieces:
    """Iterates over the octets of messages, many of them at a time. Made by `Encoder.encode_messages`.

    Args:
        messages: channel, method, properties and body of each.
        encode: `Encoder.encode_message`.
        dialect: of the encoder.
        rules: likewise.
        frame_max: octets of the largest frame.
        validate: as for `encode`.
    """

    __slots__ = ("_count", "_encode", "_error", "_frame_max", "_left", "_lock", "_messages", "_validate")

    def __init__(
        self,
        messages: Iterable[Any],
        encode: Callable[..., bytes],
        dialect: Dialect,
        rules: WriterRules,
        frame_max: int,
        validate: bool,
    ) -> None:
        self._messages: Iterator[Any] | None = iter(messages)
        self._encode = encode
        self._frame_max = frame_max
        self._validate = validate
        self._count = 0  # messages that were taken
        self._left: bytes | None = None
        self._error: BaseException | None = None
        self._lock = Lock()

    def __iter__(self) -> MessagePieces:
        return self

    def __next__(self) -> bytes:
        lock = self._lock
        if not (lock.acquire() or lock.reclaim()):
            raise ValueError("the next piece is being made")
        try:
            piece = self._piece()
        finally:
            lock.release()
        if piece is not None:
            return piece
        error, self._error = self._error, None
        raise StopIteration if error is None else error

    def _piece(self) -> bytes | None:
        """Return octets of messages up to the size of a piece; None if there are none left."""
        octets, self._left = self._left, None
        held: list[bytes] = []
        size = 0
        try:
            while octets is not None or self._messages is not None:
                if octets is None:
                    octets = self._next_message(self._messages)
                if octets is None:
                    self._messages = None
                elif held and size + len(octets) > PIECE:
                    self._left = octets
                    break
                else:
                    held.append(octets)
                    size += len(octets)
                    octets = None
                    if size >= PIECE:
                        break
        except BaseException as error:
            self._messages = None
            self._error = error
        return b"".join(held) if held else None

    def _next_message(self, messages: Any) -> bytes | None:
        """Return the octets of the next message, or None at the end."""
        try:
            message = next(messages)
        except StopIteration:
            return None
        index = self._count
        self._count += 1
        try:
            if type(message) is not tuple or len(message) != 4:
                what = "a tuple of channel, method, properties and body"
                raise EncodeError(f"expected {what}, not {named(message)}")
            return self._encode(*message, frame_max=self._frame_max, validate=self._validate)
        except EncodeError as error:
            error.index = index
            raise


class PreparedMessage:
    """A message of which most stays as it is from one time to the next. Made by `Encoder.prepare_message`.

    It may be shared by threads.
    """

    __slots__ = (
        "_channel", "_encode", "_fast", "_fields", "_frame_max", "_method", "_names", "_parts", "_properties",
        "_rules",
    )  # fmt: skip

    def __init__(
        self,
        encode: Callable[..., bytes],
        dialect: Dialect,
        rules: WriterRules,
        channel: int,
        method: Any,
        properties: Any,
        frame_max: int,
    ) -> None:
        if hasattr(self, "_fast"):
            raise TypeError("a prepared message is made once: prepare another")
        octets = encode(channel, method, properties, b"", frame_max=frame_max)
        if properties is None:
            properties = dialect.properties[method.spec.class_id]()
        self._encode = encode
        self._rules = rules
        self._channel = channel
        self._method = _kept(method, rules)
        self._properties = _kept(properties, rules)
        self._frame_max = frame_max
        self._names = _names(method), _names(properties)
        self._fast = False
        try:
            self._prepare()
            self._fast = (
                not rules.strict and type(channel) is int and self._assembled(self._parts, b"") == octets
            )
        except DECLINED:
            pass

    def __reduce__(self) -> Any:
        raise TypeError("a prepared message cannot be copied or pickled: prepare another")

    def encode(self, body: Any, /, **changes: Any) -> bytes:
        """Encode the message with a body, and with other values of some fields.

        The octets and the refusals are those of `Encoder.encode_message` of a method and properties with
        these values.

        Args:
            body: bytes-like.
            changes: values of fields of the method or of the properties, by their names. None for a property
                leaves it out.

        Raises:
            EncodeError: a value its field cannot carry, or a method or header over frame_max.
            TypeError: there is no such field.
        """
        if self._fast and type(body) is bytes:
            try:
                parts = self._parts.copy()
                for name, value in changes.items():
                    at, put = self._fields[name]
                    parts[at] = None if value is None else put(value, self._rules)
                return self._assembled(parts, body)
            except DECLINED:
                pass
        return self._changed(body, changes)

    def _prepare(self) -> None:
        """Write each field on its own."""
        self._parts: list[bytes | None] = []
        self._fields: dict[str, tuple[int, Callable[[Any, WriterRules], bytes]]] = {}
        bits: list[bool] = []
        for record in (self._properties, self._method):
            for field in record.spec.fields:
                value = getattr(record, field.attribute)
                if field.type != "bit":
                    put = _PUTTERS[field.type]
                    self._fields[field.attribute] = len(self._parts), put
                    self._parts.append(None if value is None else put(value, self._rules))
                    bits = []
                else:
                    if len(bits) % 8 == 0:
                        self._parts.append(b"")
                        bits = []
                    bits.append(value)
                    self._parts[-1] = bytes((sum(bit << at for at, bit in enumerate(bits)),))

    def _assembled(self, parts: list[bytes | None], body: bytes) -> bytes:
        """Return all frames, of parts that are written."""
        limit = self._frame_max - OVERHEAD
        channel, spec = self._channel, self._method.spec
        count = len(self._properties.spec.fields)
        arguments = b"".join(parts[count:])  # type: ignore[arg-type] # an argument of None is declined so
        flags = 0
        bit = 0x8000
        values = []
        for part in parts[:count]:
            if part is not None:
                flags |= bit
                values.append(part)
            bit >>= 1
        properties = b"".join(values)
        if count > 15 or len(arguments) + 4 > limit or len(properties) + 14 > limit:
            raise Declined
        size = len(body)
        start = _method_start(METHOD, channel, len(arguments) + 4, spec.class_id, spec.method_id)
        header = _header_start(
            FRAME_END, HEADER, channel, len(properties) + 14, spec.class_id, 0, size, flags
        )
        pieces = [start, arguments, header, properties]
        for at in range(0, size, limit):
            piece = body[at : at + limit]
            pieces += (_body_start(FRAME_END, BODY, channel, len(piece)), piece)
        pieces.append(_END)
        return b"".join(pieces)

    def _changed(self, body: Any, changes: dict[str, Any]) -> bytes:
        """Encode the message by way of a method and properties."""
        method, properties = copy(self._method), copy(self._properties)
        for name, value in changes.items():
            if name in self._names[0]:
                setattr(method, name, value)
            elif name in self._names[1]:
                setattr(properties, name, value)
            else:
                raise TypeError(f"PreparedMessage.encode() got an unexpected keyword argument {name!r}")
        return self._encode(self._channel, method, properties, body, frame_max=self._frame_max)


def _kept(record: Any, rules: WriterRules) -> Any:
    """Return a copy of a record that nobody can change: with tables as their octets."""
    kept = copy(record)
    for field in record.spec.fields:
        value = getattr(record, field.attribute)
        if field.type == "table" and value is not None:
            writer = rules.writer()
            writer.table(value, field.name)
            value = RawTable(writer.finish()[4:], rules.profile.name)
        elif isinstance(value, (bytearray, memoryview)):
            value = bytes(value)
        setattr(kept, field.attribute, value)
    return kept


def _names(record: Any) -> frozenset[str]:
    return frozenset(field.attribute for field in record.spec.fields)


def _number(form: str) -> Callable[[Any, WriterRules], bytes]:
    write = Struct(form).pack

    def put(value: Any, rules: WriterRules) -> bytes:
        if type(value) is not int:
            raise Declined
        return write(value)

    return put


def _short(value: Any, rules: WriterRules) -> bytes:
    octets = str.encode(value)
    return bytes((len(octets),)) + octets


def _long(value: Any, rules: WriterRules) -> bytes:
    return long_octets(value)


def _time(value: Any, rules: WriterRules) -> bytes:
    return pack(">Q", seconds(value))


def _table(value: Any, rules: WriterRules) -> bytes:
    out = bytearray()
    fast_table(out, value, rules.depth_limit, rules.fast_writers)
    return bytes(out)


_PUTTERS: dict[str, Callable[[Any, WriterRules], bytes]] = {
    "shortstr": _short, "longstr": _long, "timestamp": _time, "table": _table,
    **{kind: _number(form) for kind, form in _NUMBERS.items()},
}  # fmt: skip

describe([MessagePieces, PreparedMessage])

__all__ = ["PIECE", "MessagePieces", "PreparedMessage"]
