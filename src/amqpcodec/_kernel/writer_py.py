"""Writing wire types, in pure Python. The twin of writer_c.pyx: same octets, same refusals.

A `Writer` collects one answer and gives it out whole: a value that cannot be carried raises
`EncodeError` before anything has left. Layouts: see reader_py.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache
from math import isfinite
from struct import Struct

from .._typing import Any
from ..errors import EncodeError
from ..profiles import (
    ARRAY,
    BOOL,
    CHARACTER,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    KIND_NAMES,
    LONGSTR,
    OCTETS,
    SHORTSTR,
    TABLE,
    TIMESTAMP,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    VOID,
    TableProfile,
    profiles_with,
    table_profile,
)
from ..types import FieldValue, InlineContent, ReferenceContent, UnreadableTable
from . import fields
from .rawtable_py import RawTable
from .slots.sharing_py import share
from .values import (
    INTEGER_TAGS,
    RANGES,
    exact_int,
    named,
    not_finite,
    octets_of,
    scaled,
    seconds_of,
    shown,
    utf8,
)
from .wire import MAX_PAYLOAD, OVERHEAD
from .write_values import DECLINED, fast_table, fast_writers

_ENVELOPE = Struct(">BHI")
_IDS = Struct(">HH")
_HEADER_START = Struct(">HHQ")
_SHORT = Struct(">H")
_LONG = Struct(">I")
_LONGLONG = Struct(">Q")
_DECIMAL = Struct(">Bi")
_FLOAT = Struct(">f")
_DOUBLE = Struct(">d")
_INTEGERS = {
    INT8: Struct(">b"), UINT8: Struct(">B"), INT16: Struct(">h"), UINT16: Struct(">H"), INT32: Struct(">i"),
    UINT32: Struct(">I"), INT64: Struct(">q"), UINT64: Struct(">Q"),
}  # fmt: skip

_MAX_SIZE = 2**32 - 1


class WriterRules:
    """Rules for everything that an encoder writes, worked out once."""

    __slots__ = ("depth_limit", "fast_writers", "integer_tags", "octets_tag", "profile", "strict")

    def __init__(self, profile: TableProfile, strict: bool, depth_limit: int) -> None:
        self.profile = profile
        self.strict = strict
        self.depth_limit = depth_limit
        self.integer_tags = [(tag, profile.tags[tag]) for tag in INTEGER_TAGS if tag in profile.tags]
        self.octets_tag = "x" if "x" in profile.tags else "S"
        self.fast_writers = fast_writers(profile)

    def writer(self) -> Writer:
        """A writer by these rules, with nothing written yet."""
        return Writer(self)

    def payload_limit(self, frame_max: int) -> int:
        """Octets a frame may carry where whole frames have at most `frame_max`, 0 for no limit."""
        if type(frame_max) is not int:
            frame_max = exact_int(frame_max, "frame_max", "frame_max")
        if frame_max == 0:
            return MAX_PAYLOAD
        if frame_max <= OVERHEAD:
            raise EncodeError(f"frame_max must be 0 or more than {OVERHEAD}, not {frame_max}")
        return min(frame_max - OVERHEAD, MAX_PAYLOAD)


@cache
def writer_rules(profile: str, strict: bool, depth_limit: int) -> WriterRules:
    """The rules of a profile's name, made once: every encoder that writes by them shares them."""
    rules = WriterRules(table_profile(profile), strict, depth_limit)
    share([rules])
    return rules


class Writer:
    """Collects octets, checking every value against its wire type. Made by `WriterRules.writer`."""

    __slots__ = ("_out", "_rules", "fast")

    def __init__(self, rules: WriterRules) -> None:
        self._rules = rules
        self.fast = not rules.strict  # and not while the slow path writes what the fast path declined
        self._out = bytearray()

    # -- frames

    def begin_frame(self, frame_type: int, channel: int) -> int:
        """Write an envelope whose size is not known yet; where it begins."""
        number = self._integer(channel, 0xFFFF, "short", "channel")
        at = len(self._out)
        self._out += _ENVELOPE.pack(frame_type, number, 0)
        return at

    def end_frame(self, at: int, size_limit: int) -> None:
        """Fill in the size of the frame begun at `at` and end it; `size_limit` octets of payload at most."""
        size = len(self._out) - at - 7
        if size > size_limit:
            raise EncodeError(f"frame of {size + 8} octets, frame_max {size_limit + 8}")
        _LONG.pack_into(self._out, at + 3, size)
        self._out.append(0xCE)

    def put_envelope(self, frame_type: int, channel: Any, size: int) -> None:
        """Write an envelope whose payload of `size` octets follows elsewhere."""
        number = self._integer(channel, 0xFFFF, "short", "channel")
        self._out += _ENVELOPE.pack(frame_type, number, size)

    def ids(self, class_id: int, method_id: int) -> None:
        """Write the ids that begin a method."""
        self._out += _IDS.pack(class_id, method_id)

    def weight(self, value: Any) -> int:
        """The weight of a content header, checked."""
        return self._integer(value, 0xFFFF, "short", "weight")

    def body_size(self, value: Any) -> int:
        """The body size of a content header, checked."""
        return self._integer(value, 0xFFFFFFFFFFFFFFFF, "longlong", "body-size")

    def header_start(self, class_id: int, weight: int, body_size: int) -> None:
        """Write what comes before the property flags of a content header."""
        self._out += _HEADER_START.pack(class_id, weight, body_size)

    def finish(self) -> bytes:
        """Everything written."""
        return bytes(self._out)

    def finish_with(
        self, frame_type: int, channel: Any, octets: bytes | memoryview, size_limit: int
    ) -> bytes:
        """Everything written, then `octets` in frames of at most `size_limit` each: all in one copy."""
        number = self._integer(channel, 0xFFFF, "short", "channel")
        parts: list[bytes | bytearray | memoryview] = [self._out]
        for at in range(0, len(octets), size_limit):
            piece = octets[at : at + size_limit]
            parts += (_ENVELOPE.pack(frame_type, number, len(piece)), piece, b"\xce")
        return b"".join(parts)

    # -- method arguments and properties

    def octet(self, value: Any, field: str) -> None:
        self._out.append(self._integer(value, 0xFF, "octet", field))

    def short(self, value: Any, field: str) -> None:
        self._out += _SHORT.pack(self._integer(value, 0xFFFF, "short", field))

    def long(self, value: Any, field: str) -> None:
        self._out += _LONG.pack(self._integer(value, 0xFFFFFFFF, "long", field))

    def longlong(self, value: Any, field: str) -> None:
        self._out += _LONGLONG.pack(self._integer(value, 0xFFFFFFFFFFFFFFFF, "longlong", field))

    def bit(self, value: Any, field: str) -> int:
        """A bit's value for `bits`: only True and False, so that no other value slips into a flag."""
        if value is True:
            return 1
        if value is False:
            return 0
        raise EncodeError(f"a bit must be True or False, not {named(value)}", field)

    def bits(self, octet: int) -> None:
        """Write one octet of packed bits."""
        self._out.append(octet)

    def octets(self, octets: bytes) -> None:
        """Write octets as they are."""
        self._out += octets

    def word(self, word: int) -> None:
        """Write 16 bits that need no check: property flags, ids."""
        self._out += _SHORT.pack(word)

    def timestamp(self, value: Any, field: str) -> None:
        if isinstance(value, datetime):
            value = seconds_of(value, field)
        self.longlong(value, field)

    def shortstr(self, value: Any, field: str) -> None:
        octets = self._short_octets(value, field)
        self._out.append(len(octets))
        self._out += octets

    def longstr(self, value: Any, field: str) -> None:
        octets = utf8(value, field) if issubclass(type(value), str) else octets_of(value, field)
        self._sized(octets, field)

    def content(self, value: Any, field: str) -> None:
        if not isinstance(value, (InlineContent, ReferenceContent)):
            raise EncodeError(f"expected InlineContent or ReferenceContent, not {named(value)}", field)
        self._out.append(1 if isinstance(value, ReferenceContent) else 0)
        self.longstr(value.octets, field)

    def table(self, value: Any, field: str) -> None:
        """A whole field table from a mapping; a `RawTable` or `UnreadableTable` goes out as it came in."""
        out = self._out
        size = len(out)
        if self.fast:
            try:
                fast_table(out, value, self._rules.depth_limit, self._rules.fast_writers)
                return
            except DECLINED:
                del out[size:]
        if not _is_mapping(value):
            raise EncodeError(f"expected a mapping, not {named(value)}", field)
        try:
            self._table(value, 1, field)
        except RecursionError:
            raise  # the stack was full before the limit on depth was reached: no fault of the table
        except RuntimeError as error:
            raise EncodeError("the table was changed while being encoded", field) from error

    def field(self, kind: int, value: Any, name: str) -> None:
        """One method argument or property by the kinds of fields.py, but for bits."""
        _FIELDS[kind](self, value, name)

    # -- checks shared by the above

    def _integer(self, value: Any, most: int, what: str, field: str) -> int:
        number = value if type(value) is int else exact_int(value, what, field)
        if not 0 <= number <= most:
            raise EncodeError(f"{what} must be 0 to {most}, not {shown(number)}", field)
        return number

    def _short_octets(self, value: Any, field: str) -> bytes:
        if not issubclass(type(value), str):
            raise EncodeError(f"shortstr must be a str, not {named(value)}", field)
        octets = utf8(value, field)
        if len(octets) > 255:
            raise EncodeError(f"shortstr must have at most 255 octets, not {len(octets)}", field)
        if self._rules.strict and 0 in octets:
            raise EncodeError("shortstr holds a zero octet", field)
        return octets

    def _sized(self, octets: bytes, field: str) -> None:
        if len(octets) > _MAX_SIZE:
            raise EncodeError(f"longstr must have at most {_MAX_SIZE} octets, not {len(octets)}", field)
        self._out += _LONG.pack(len(octets))
        self._out += octets

    # -- field tables

    def _table(self, table: Mapping[str, Any], depth: int, field: str) -> None:
        if type(table) is not dict and isinstance(table, RawTable):
            self._sized(table.octets, field)
            return
        if type(table) is not dict and isinstance(table, UnreadableTable):
            self._sized(octets_of(table.octets, field), field)
            return
        at = self._begin(depth, field)
        key: Any = None
        keys = list(table) if type(table) is dict else None
        try:
            for key, value in table.items():
                octets = self._short_octets(key, field)
                self._out.append(len(octets))
                self._out += octets
                self._value(value, depth, field)
            # PyPy goes on where keys were replaced by as many others.
            if keys is not None and keys != list(table):
                raise RuntimeError("dictionary keys changed during iteration")
        except EncodeError as error:
            error.path = (key, *error.path)
            raise
        self._end(at, field)

    def _array(self, items: Any, depth: int, field: str) -> None:
        at = self._begin(depth, field)
        index = 0
        try:
            size = len(items)
            for value in items:
                if index == size:
                    break
                self._value(value, depth, field)
                index += 1
            if index != size or len(items) != size:
                raise RuntimeError("list changed size during iteration")
        except EncodeError as error:
            error.path = (index, *error.path)
            raise
        self._end(at, field)

    def _begin(self, depth: int, field: str) -> int:
        if depth > self._rules.depth_limit:
            raise EncodeError(f"tables nested deeper than {self._rules.depth_limit}", field)
        self._out += b"\0\0\0\0"
        return len(self._out)

    def _end(self, at: int, field: str) -> None:
        size = len(self._out) - at
        if size > _MAX_SIZE:
            raise EncodeError(f"table must have at most {_MAX_SIZE} octets, not {size}", field)
        _LONG.pack_into(self._out, at - 4, size)

    def _value(self, value: Any, depth: int, field: str) -> None:
        """A tag chosen from the value's Python type, then the value."""
        kind_and_tag = _TAG_OF_TYPE.get(type(value))
        if kind_and_tag is None and isinstance(value, FieldValue):
            kind, tag = self._tag_given(value, field)
            value = value.value  # not in a call of its own, which would cost a level of the stack
        else:
            kind_and_tag = kind_and_tag or _tag_by_instance(value)
            if kind_and_tag is None:
                raise EncodeError(f"no table tag carries {named(value)}", field)
            kind, tag = kind_and_tag
            if kind == INT32:
                kind, tag = self._integer_tag(value, field)
            elif kind == OCTETS:
                tag = self._rules.octets_tag
            if tag not in self._rules.profile.tags:
                raise self._not_in_profile(f"{named(value)} (tag {tag!r})", kind, field)
        self._out.append(ord(tag))
        _WRITERS[kind](self, value, kind, depth, field)

    def _tag_given(self, wrapper: FieldValue, field: str) -> tuple[int, str]:
        tag = wrapper.tag
        tag = str.__str__(tag) if issubclass(type(tag), str) else tag
        kind = self._rules.profile.tags.get(tag) if type(tag) is str else None
        if kind is None:
            raise EncodeError(f"table profile {self._rules.profile.name} has no tag {tag!r}", field)
        return kind, tag

    def _integer_tag(self, value: int, field: str) -> tuple[int, str]:
        number = exact_int(value, "int", field)
        for tag, kind in self._rules.integer_tags:
            least, most = RANGES[kind]
            if least <= number <= most:
                return kind, tag
        if not -(2**63) <= number < 2**64:
            raise EncodeError("no table tag carries an int of more than 64 bits", field)
        raise self._not_in_profile(str(number), INT64 if number < 2**63 else UINT64, field)

    def _not_in_profile(self, what: str, kind: int, field: str) -> EncodeError:
        able = profiles_with(kind)
        return EncodeError(f"table profile {self._rules.profile.name} cannot carry {what}; {able} can", field)

    def _write_integer(self, value: Any, kind: int, depth: int, field: str) -> None:
        number = exact_int(value, KIND_NAMES[kind], field)
        least, most = RANGES[kind]
        if not least <= number <= most:
            raise EncodeError(f"{KIND_NAMES[kind]} must be {least} to {most}, not {shown(number)}", field)
        self._out += _INTEGERS[kind].pack(number)

    def _write_bool(self, value: Any, kind: int, depth: int, field: str) -> None:
        self._out.append(self.bit(value, field))

    def _write_real(self, value: Any, kind: int, depth: int, field: str) -> None:
        if not issubclass(type(value), float):
            raise EncodeError(f"{KIND_NAMES[kind]} must be a float, not {named(value)}", field)
        if self._rules.profile.finite and not isfinite(value):
            raise not_finite(self._rules.profile.name, value, field)
        try:
            self._out += (_FLOAT if kind == FLOAT else _DOUBLE).pack(value)
        except OverflowError:
            raise EncodeError(f"float cannot hold {float(value)!r}", field) from None

    def _write_decimal(self, value: Any, kind: int, depth: int, field: str) -> None:
        scale, mantissa = scaled(value, field)
        self._out += _DECIMAL.pack(scale, mantissa)

    def _write_short_text(self, value: Any, kind: int, depth: int, field: str) -> None:
        self.shortstr(value, field)

    def _write_long_text(self, value: Any, kind: int, depth: int, field: str) -> None:
        self.longstr(value, field)

    def _write_octets(self, value: Any, kind: int, depth: int, field: str) -> None:
        self._sized(octets_of(value, field), field)

    def _write_array(self, value: Any, kind: int, depth: int, field: str) -> None:
        if not issubclass(type(value), (list, tuple)):
            raise EncodeError(f"expected a list or tuple, not {named(value)}", field)
        self._array(value, depth + 1, field)

    def _write_table(self, value: Any, kind: int, depth: int, field: str) -> None:
        if not _is_mapping(value):
            raise EncodeError(f"expected a mapping, not {named(value)}", field)
        self._table(value, depth + 1, field)

    def _write_time(self, value: Any, kind: int, depth: int, field: str) -> None:
        self.timestamp(value, field)

    def _write_void(self, value: Any, kind: int, depth: int, field: str) -> None:
        if value is not None:
            raise EncodeError(f"void must be None, not {named(value)}", field)

    def _write_character(self, value: Any, kind: int, depth: int, field: str) -> None:
        text = str.__str__(value) if issubclass(type(value), str) else ""
        if len(text) != 1 or ord(text) > 255:
            raise EncodeError("character must be a str of one character up to U+00FF", field)
        self._out.append(ord(text))


_WRITERS: dict[int, Callable[[Writer, Any, int, int, str], None]] = {
    **dict.fromkeys(_INTEGERS, Writer._write_integer),
    BOOL: Writer._write_bool,
    FLOAT: Writer._write_real,
    DOUBLE: Writer._write_real,
    DECIMAL: Writer._write_decimal,
    SHORTSTR: Writer._write_short_text,
    LONGSTR: Writer._write_long_text,
    OCTETS: Writer._write_octets,
    ARRAY: Writer._write_array,
    TIMESTAMP: Writer._write_time,
    TABLE: Writer._write_table,
    VOID: Writer._write_void,
    CHARACTER: Writer._write_character,
}

# Kind and tag of a plain value; ints and octets choose theirs by value and profile.
_TAG_OF_TYPE: dict[type, tuple[int, str]] = {
    str: (LONGSTR, "S"),
    bool: (BOOL, "t"),
    int: (INT32, "I"),
    float: (DOUBLE, "d"),
    type(None): (VOID, "V"),
    dict: (TABLE, "F"),
    RawTable: (TABLE, "F"),
    list: (ARRAY, "A"),
    tuple: (ARRAY, "A"),
    bytes: (OCTETS, "x"),
    bytearray: (OCTETS, "x"),
    memoryview: (OCTETS, "x"),
    datetime: (TIMESTAMP, "T"),
    Decimal: (DECIMAL, "D"),
}


def _is_mapping(value: Any) -> bool:
    """Return whether a value is a mapping, by its class where a decoder made it: asking an abstract base
    class takes as long as writing a small table."""
    return type(value) in (dict, RawTable) or isinstance(value, Mapping)


def _tag_by_instance(value: Any) -> tuple[int, str] | None:
    """Return the tag of a value of a subclass, or of a mapping of any kind."""
    for base, kind_and_tag in _TAG_OF_TYPE.items():
        if issubclass(type(value), base):
            return kind_and_tag
    return (TABLE, "F") if isinstance(value, Mapping) else None


_FIELDS: dict[int, Callable[[Writer, Any, str], None]] = {
    fields.OCTET_FIELD: Writer.octet,
    fields.SHORT_FIELD: Writer.short,
    fields.LONG_FIELD: Writer.long,
    fields.LONGLONG_FIELD: Writer.longlong,
    fields.SHORTSTR_FIELD: Writer.shortstr,
    fields.OCTETS_FIELD: Writer.longstr,
    fields.TABLE_FIELD: Writer.table,
    fields.TIME_FIELD: Writer.timestamp,
    fields.CONTENT_FIELD: Writer.content,
}
