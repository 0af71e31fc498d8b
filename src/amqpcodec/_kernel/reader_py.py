"""Reading wire types, in pure Python. The twin of reader_c.pyx: same names, values, errors and offsets.

A `Reader` stands on the payload of one frame and never looks past its end. Layouts: 0-9-1 sections
4.2.3 (frames), 4.2.5 (values) and RabbitMQ's errata for the tags of field tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from struct import Struct

from .._protocol.codes import FRAME_ERROR, RESOURCE_ERROR, SYNTAX_ERROR
from .._typing import Any, TypeAlias
from ..errors import DecodeError
from ..limits import Limits, table_limits
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
    table_profile,
)
from ..types import InlineContent, ReferenceContent, UnreadableTable
from . import fields
from .framing import MORE, TOO_LARGE, WHOLE, frame_at, framing_error
from .rawtable_py import kept_table
from .read_values import DECLINED, FastReader, fast_pairs, fast_readers, timestamp
from .values import Declined
from .wire import ENVELOPE_SIZE, HEADER, PROTOCOL_HEADER

_ValueReader: TypeAlias = "Callable[[Reader, int, int, str], Any]"

_TYPE_AND_CHANNEL = Struct(">BH")
_SHORT = Struct(">H")
_LONG = Struct(">I")
_LONGLONG = Struct(">Q")
_CONTENT_HEAD = Struct(">HHQ")
_DECIMAL = Struct(">Bi")


class ReaderRules:
    """Rules for everything that a decoder reads, worked out once and shared freely."""

    __slots__ = (
        "depth_limit",
        "entries_limit",
        "fast_limit",
        "fast_readers",
        "items_limit",
        "octets_limit",
        "profile",
        "raw_tables",
        "strict",
        "table_limits",
        "tolerant",
        "tolerant_inside",
        "values",
    )  # fmt: skip

    def __init__(
        self, profile: TableProfile, strict: bool, limits: Limits, raw_tables: bool, tolerant: bool = False
    ) -> None:
        self.profile = profile
        self.strict = strict
        self.tolerant = tolerant
        self.tolerant_inside = tolerant and not raw_tables  # of what stays octets, all is refused or nothing
        self.depth_limit = limits.table_depth
        self.octets_limit = limits.table_octets
        self.entries_limit = limits.table_entries
        self.items_limit = limits.array_items
        self.raw_tables = raw_tables
        self.table_limits = table_limits(limits) if raw_tables else None
        # A table of so many octets cannot have too many of anything. Strict mode never takes the fast path.
        self.fast_limit = min(limits.table_octets, limits.table_entries, limits.array_items)
        self.values, self.fast_readers = _readers(profile.name, strict)

    def reader(self, keeps: bool) -> Reader:
        """A reader by these rules; `keeps` tells that it will read many payloads, in which short strings and
        tables will repeat. Only the compiled build makes use of that."""
        return Reader(self)


class Reader:
    """A bounded cursor over one payload, with the rules for making values of what it reads."""

    __slots__ = (
        "_base",
        "_data",
        "_end",
        "_entries",
        "_pos",
        "_rules",
        "_start",
        "body_size",
        "channel",
        "class_id",
        "declined",
        "fast",
        "frame_size",
        "frame_type",
        "header_limit",
        "header_limit_name",
        "limit_name",
        "passed",
        "strict",
        "weight",
    )

    def __init__(self, rules: ReaderRules) -> None:
        self._rules = rules
        self.strict = rules.strict
        self.fast = not rules.strict  # and not while the slow path reads what the fast path declined
        self._data: bytes | bytearray = b""
        self._start = self._pos = self._end = self._base = 0
        self._entries = 0
        self.declined = 0  # octets of the stream up to where the fast path has tried last
        self.passed = 0  # octets of the frames that a fast path took behind that of the method
        self.frame_size = 0
        self.frame_type = 0
        self.channel = 0
        self.class_id = 0
        self.weight = 0
        self.body_size = 0
        self.limit_name = self.header_limit_name = "frame_max"
        self.header_limit = 0

    # -- where the reader stands

    def attach(self, data: bytes | bytearray) -> None:
        """Take the octets that the next calls speak of; of a bytearray, its size must not change."""
        self._data = data
        self.declined = 0

    def aim(self, start: int, end: int, offset: int) -> None:
        """Stand on data[start:end]; `offset` is where data[start] lies in the stream."""
        self._start = start
        self._pos = start
        self._end = end
        self._base = offset - start

    def enter(
        self,
        data: bytes | bytearray,
        at: int,
        end: int,
        types: int,
        size_limit: int,
        offset: int,
        opens: bool,
    ) -> bool:
        """Stand on the payload of the frame at data[at:end]; False where the frame is not whole.

        `offset` is where the frame lies in the stream; for the other arguments see `frame_at`. Either way
        `frame_size` is what `frame_at` tells of the frame's size.

        Raises:
            DecodeError: what lies there is no frame.
        """
        status, size = frame_at(data, at, end, types, size_limit, opens)
        self.frame_size = size
        if status != WHOLE:
            name = self.limit_name
            if status == TOO_LARGE and data[at] == HEADER:
                size_limit, name = self.header_limit, self.header_limit_name
                status, _ = frame_at(data, at, end, types, size_limit, opens)
            if status == MORE:
                return False
            if status != WHOLE:
                raise framing_error(status, size, data, at, size_limit, offset, name)
        self._data = data
        self.frame_type, self.channel = _TYPE_AND_CHANNEL.unpack_from(data, at)
        if self.frame_type == PROTOCOL_HEADER:
            self.aim(at, at + size, offset)
        else:
            self._start = self._pos = at + ENVELOPE_SIZE
            self._end = at + size - 1
            self._base = offset - at
        return True

    def method_index(self) -> int:
        """Class and method id as one number; the caller has seen that four octets are left."""
        pos = self._pos
        self._pos = pos + 4
        return int(_LONG.unpack_from(self._data, pos)[0])

    def head(self) -> bytes:
        """The first four octets of the payload, as far as they are there; errors name the ids in them."""
        start = self._start
        return bytes(self._data[start : min(start + 4, self._end)])

    def offset(self) -> int:
        """Octets of the stream before the cursor."""
        return self._base + self._pos

    def content_head(self) -> int:
        """Read the fixed part of a content header (0-9-1 section 4.2.6.1), and return its class id.

        That is kept, as are weight and body size.
        """
        pos = self._pos
        if self._end - pos >= 12:
            self.class_id, self.weight, self.body_size = _CONTENT_HEAD.unpack_from(self._data, pos)
            self._pos = pos + 12
        else:
            self.class_id = self.short("class-id")
            self.weight = self.short("weight")
            self.body_size = self.longlong("body-size")
        return self.class_id

    def left(self) -> int:
        """Octets not read yet."""
        return self._end - self._pos

    def finish(self) -> None:
        """Refuse octets that nothing has read."""
        if self._pos != self._end:
            left = self._end - self._pos
            raise self._error(FRAME_ERROR, f"{left} octets left over", self._pos, None)

    def _error(self, code: int, message: str, position: int, field: str | None) -> DecodeError:
        """An error at a position of the data."""
        return DecodeError(message, code, self._base + position, field=field)

    def refuse(self, code: int, message: str, back: int) -> DecodeError:
        """An error at `back` octets before the cursor."""
        return self._error(code, message, self._pos - back, None)

    def refuse_frame(self, code: int, message: str) -> DecodeError:
        """An error at the channel of the frame whose payload the reader was aimed at."""
        return self._error(code, message, self._start - 6, None)

    def _short_of(self, field: str | None, what: str, need: int) -> DecodeError:
        message = f"{what} needs {need} octets, {self._end - self._pos} left"
        return self._error(FRAME_ERROR, message, self._pos, field)

    # -- method arguments and properties

    def octet(self, field: str) -> int:
        pos = self._pos
        if pos >= self._end:
            raise self._short_of(field, "octet", 1)
        self._pos = pos + 1
        return self._data[pos]

    def bits(self, field: str) -> int:
        """One octet of packed bits, the first in the lowest place (0-9-1 section 4.2.5.2)."""
        pos = self._pos
        if pos >= self._end:
            raise self._short_of(field, "octet of bits", 1)
        self._pos = pos + 1
        return self._data[pos]

    def short(self, field: str) -> int:
        pos = self._pos
        if self._end - pos < 2:
            raise self._short_of(field, "short", 2)
        self._pos = pos + 2
        return self._data[pos] << 8 | self._data[pos + 1]

    def long(self, field: str) -> int:
        pos = self._pos
        if self._end - pos < 4:
            raise self._short_of(field, "long", 4)
        self._pos = pos + 4
        return int(_LONG.unpack_from(self._data, pos)[0])

    def longlong(self, field: str) -> int:
        pos = self._pos
        if self._end - pos < 8:
            raise self._short_of(field, "longlong", 8)
        self._pos = pos + 8
        return int(_LONGLONG.unpack_from(self._data, pos)[0])

    def timestamp(self, field: str) -> datetime | int:
        if self._end - self._pos < 8:
            raise self._short_of(field, "timestamp", 8)
        return timestamp(self.longlong(field))

    def shortstr(self, field: str) -> str:
        start = self._pos + 1
        if start > self._end:
            raise self._short_of(field, "length of a shortstr", 1)
        end = start + self._data[start - 1]
        if end > self._end:
            message = f"shortstr of {end - start} octets, {self._end - start} left"
            raise self._error(FRAME_ERROR, message, start - 1, field)
        self._pos = end
        return self._text(start, end, field)

    def longstr(self, field: str) -> bytes:
        start = self._pos + 4
        if start > self._end:
            raise self._short_of(field, "length of a longstr", 4)
        end = start + _LONG.unpack_from(self._data, start - 4)[0]
        if end > self._end:
            message = f"longstr of {end - start} octets, {self._end - start} left"
            raise self._error(FRAME_ERROR, message, start - 4, field)
        self._pos = end
        return bytes(self._data[start:end])

    def content(self, field: str) -> InlineContent | ReferenceContent:
        """A 0-9 content: a discriminator, then a longstr (0-9 section 4.2.5.6)."""
        kind = self.octet(field)
        if kind > 1:
            raise self._error(SYNTAX_ERROR, f"content discriminator {kind}, not 0 or 1", self._pos - 1, field)
        octets = self.longstr(field)
        return ReferenceContent(octets) if kind else InlineContent(octets)

    def field(self, kind: int, name: str) -> Any:
        """One method argument or property by the kinds of fields.py, but for bits."""
        return _FIELDS[kind](self, name)

    def fast_table(self, data: bytes | bytearray, start: int, stop: int, end: int) -> Any:
        """Read data[start:stop] as a field table, if it lies before `end`.

        Raises:
            Declined: or any other of `DECLINED`: it is for the slow path.
        """
        rules = self._rules
        if stop > end or stop - start > rules.fast_limit:
            raise Declined
        if rules.raw_tables:
            return kept_table(bytes(data[start:stop]), rules.profile.name, rules.table_limits, rules.tolerant)
        return fast_pairs(data, start, stop, rules.depth_limit, rules.fast_readers)

    def table(self, field: str) -> Mapping[str, Any]:
        """A whole field table: a dict, or a `RawTable` where the reader was asked for those. A tolerant
        reader makes an `UnreadableTable` of one that cannot be read, if its length is good."""
        if self.fast:
            data, pos = self._data, self._pos
            try:
                stop = pos + 4 + _LONG.unpack_from(data, pos)[0]
                table: dict[str, Any] = self.fast_table(data, pos + 4, stop, self._end)
                self._pos = stop
                return table
            except DECLINED:
                pass
        return self._slow_table(field)

    def _slow_table(self, field: str) -> Mapping[str, Any]:
        start = self._pos + 4
        if start > self._end:
            raise self._short_of(field, "length of a table", 4)
        size = _LONG.unpack_from(self._data, start - 4)[0]
        if size > self._end - start:
            message = f"table of {size} octets, {self._end - start} left"
            raise self._error(FRAME_ERROR, message, start - 4, field)
        if not self._rules.tolerant:
            return self._sized_table(start, size, field)
        try:
            return self._sized_table(start, size, field)
        except DecodeError as error:
            return self._unreadable(start, start + size, error)

    def _sized_table(self, start: int, size: int, field: str) -> Mapping[str, Any]:
        """The table whose entries have so many octets from there on."""
        rules = self._rules
        self._check_size(size, start - 4, field)
        self._pos = start
        self._entries = 0
        if not rules.raw_tables:
            return self._pairs(start + size, 1, field)
        if self.strict:
            self._pairs(start + size, 1, field)  # what strict mode refuses must not hide in octets
        self._pos = start + size
        octets = bytes(self._data[start : start + size])
        return kept_table(octets, rules.profile.name, rules.table_limits, rules.tolerant)

    def _unreadable(self, start: int, end: int, error: DecodeError) -> UnreadableTable:
        """The entries data[start:end] as octets, and stand behind them."""
        self._pos = end
        return UnreadableTable(bytes(self._data[start:end]), error.again())

    def _check_size(self, size: int, position: int, field: str) -> None:
        if size > self._rules.octets_limit:
            message = f"table of {size} octets, limit {self._rules.octets_limit}"
            raise self._error(RESOURCE_ERROR, message, position, field)

    def pairs(self, field: str) -> dict[str, Any]:
        """All that is left as the entries of one table, its length known to the caller."""
        start = self._pos
        self._entries = 0
        try:
            self._check_size(self._end - start, start, field)
            return self._pairs(self._end, 1, field)
        except DecodeError as error:
            if not self._rules.tolerant:
                raise
            return self._unreadable(start, self._end, error)

    def rest(self) -> bytes:
        """Everything up to the end, as bytes."""
        octets = self._data[self._pos : self._end]
        self._pos = self._end
        return octets if type(octets) is bytes else bytes(octets)

    def flag_word(self) -> int:
        """One word of property flags (0-9-1 section 4.2.6.1); bit 0 says that another follows."""
        pos = self._pos
        if self._end - pos < 2:
            raise self._short_of(None, "word of property flags", 2)
        self._pos = pos + 2
        return self._data[pos] << 8 | self._data[pos + 1]

    def further_flags(self, last: int, undefined: int) -> None:
        """Pass over flag words beyond those of the class; `last` is the last word read, `undefined`
        those of its bits that stand for no property. Strict mode refuses any bit without a property."""
        if self.strict and undefined:
            raise self.refuse(SYNTAX_ERROR, f"property flags {undefined:#06x} are not defined", 2)
        while last & 1:
            last = self.flag_word()
            if self.strict and last & 0xFFFE:
                raise self.refuse(SYNTAX_ERROR, f"property flags {last & 0xFFFE:#06x} are not defined", 2)

    def _text(self, start: int, end: int, field: str) -> str:
        """Octets as text; what is not UTF-8 becomes surrogate escapes, which encode back unchanged."""
        octets = self._data[start:end]
        try:
            text = octets.decode()
        except UnicodeDecodeError:
            if self.strict:
                raise self._error(SYNTAX_ERROR, "shortstr is not UTF-8", start - 1, field) from None
            return octets.decode("utf-8", "surrogateescape")
        if self.strict and "\0" in text:
            raise self._error(SYNTAX_ERROR, "shortstr holds a zero octet", start - 1, field)
        return text

    # -- field tables

    def _pairs(self, end: int, depth: int, field: str) -> dict[str, Any]:
        """Key, tag and value up to `end`; of two equal keys the later wins."""
        self._enter(depth, field)
        data = self._data
        values = self._rules.values
        table: dict[str, Any] = {}
        while self._pos < end:
            at = self._pos
            start = at + 1
            stop = start + data[at]
            if stop >= end:
                message = f"table key of {stop - start} octets and a tag, {end - start} left"
                raise self._error(SYNTAX_ERROR, message, at, field)
            key = self._text(start, stop, field)
            if self.strict and key in table:
                raise self._error(SYNTAX_ERROR, f"table key {key!r} twice", at, field)
            self._count(at, field)
            self._pos = stop + 1
            table[key] = values[data[stop]](self, end, depth, field)
        return table

    def _items(self, end: int, depth: int, field: str) -> list[Any]:
        """Tag and value up to `end`: a field array has no keys, and its length counts octets."""
        self._enter(depth, field)
        items: list[Any] = []
        while self._pos < end:
            at = self._pos
            if len(items) >= self._rules.items_limit:
                message = f"array of more than {self._rules.items_limit} items"
                raise self._error(RESOURCE_ERROR, message, at, field)
            self._count(at, field)
            self._pos = at + 1
            items.append(self._rules.values[self._data[at]](self, end, depth, field))
        return items

    def _enter(self, depth: int, field: str) -> None:
        if depth > self._rules.depth_limit:
            message = f"tables nested deeper than {self._rules.depth_limit}"
            raise self._error(RESOURCE_ERROR, message, self._pos, field)

    def _count(self, at: int, field: str) -> None:
        self._entries += 1
        if self._entries > self._rules.entries_limit:
            message = f"table of more than {self._rules.entries_limit} entries"
            raise self._error(RESOURCE_ERROR, message, at, field)

    def _take(self, size: int, end: int, field: str) -> int:
        """Pass over `size` octets of a value; where they begin."""
        pos = self._pos
        if size > end - pos:
            message = f"table value needs {size} octets, {end - pos} left"
            raise self._error(SYNTAX_ERROR, message, pos, field)
        self._pos = pos + size
        return pos

    def _take_sized(self, end: int, field: str) -> int:
        """Read a length and pass over as many octets; where they begin."""
        at = self._take(4, end, field)
        size = _LONG.unpack_from(self._data, at)[0]
        if size > end - self._pos:
            message = f"table value of {size} octets, {end - self._pos} left"
            raise self._error(SYNTAX_ERROR, message, at, field)
        self._pos += size
        return at + 4

    def _unknown(self, end: int, depth: int, field: str) -> Any:
        tag = self._data[self._pos - 1]
        message = f"tag {chr(tag)!r} is unknown to table profile {self._rules.profile.name}"
        raise self._error(SYNTAX_ERROR, message, self._pos - 1, field)

    def _bool(self, end: int, depth: int, field: str) -> bool:
        return self._data[self._take(1, end, field)] != 0

    def _decimal(self, end: int, depth: int, field: str) -> Decimal:
        scale, mantissa = _DECIMAL.unpack_from(self._data, self._take(5, end, field))
        return Decimal(f"{mantissa}E-{scale}")

    def _short_text(self, end: int, depth: int, field: str) -> str:
        at = self._take(1, end, field)
        start = self._take(self._data[at], end, field)
        return self._text(start, self._pos, field)

    def _long_text(self, end: int, depth: int, field: str) -> str | bytes:
        """A longstr in a table: text, or the octets themselves where they are not UTF-8."""
        octets = self._data[self._take_sized(end, field) : self._pos]
        try:
            return octets.decode()
        except UnicodeDecodeError:
            return bytes(octets)

    def _octets(self, end: int, depth: int, field: str) -> bytes:
        return bytes(self._data[self._take_sized(end, field) : self._pos])

    def _array(self, end: int, depth: int, field: str) -> list[Any]:
        self._pos, end = self._take_sized(end, field), self._pos
        return self._items(end, depth + 1, field)

    def _table(self, end: int, depth: int, field: str) -> dict[str, Any]:
        start, end = self._take_sized(end, field), self._pos
        self._pos = start
        if not self._rules.tolerant_inside:
            return self._pairs(end, depth + 1, field)
        try:
            return self._pairs(end, depth + 1, field)
        except DecodeError as error:
            return self._unreadable(start, end, error)

    def _time(self, end: int, depth: int, field: str) -> datetime | int:
        return timestamp(_LONGLONG.unpack_from(self._data, self._take(8, end, field))[0])

    def _void(self, end: int, depth: int, field: str) -> None:
        return None

    def _character(self, end: int, depth: int, field: str) -> str:
        return chr(self._data[self._take(1, end, field)])


@lru_cache(maxsize=16)
def _readers(profile: str, strict: bool) -> tuple[list[_ValueReader], list[FastReader]]:
    """Return the readers of a value by its tag: slow path and fast path. Neither changes once made."""
    tags = table_profile(profile).readable(strict)
    values: list[_ValueReader] = [Reader._unknown] * 256
    for tag, kind in tags.items():
        values[ord(tag)] = _VALUES[kind]
    return values, fast_readers(tags)


def _fixed(layout: Struct) -> _ValueReader:
    """A reader of one fixed-size number."""
    size, unpack_from = layout.size, layout.unpack_from

    def read(reader: Reader, end: int, depth: int, field: str) -> Any:
        pos = reader._pos
        if size > end - pos:
            reader._take(size, end, field)
        reader._pos = pos + size
        return unpack_from(reader._data, pos)[0]

    return read


_VALUES: dict[int, _ValueReader] = {
    INT8: _fixed(Struct(">b")),
    UINT8: _fixed(Struct(">B")),
    INT16: _fixed(Struct(">h")),
    UINT16: _fixed(Struct(">H")),
    INT32: _fixed(Struct(">i")),
    UINT32: _fixed(Struct(">I")),
    INT64: _fixed(Struct(">q")),
    UINT64: _fixed(Struct(">Q")),
    FLOAT: _fixed(Struct(">f")),
    DOUBLE: _fixed(Struct(">d")),
    BOOL: Reader._bool,
    DECIMAL: Reader._decimal,
    SHORTSTR: Reader._short_text,
    LONGSTR: Reader._long_text,
    OCTETS: Reader._octets,
    ARRAY: Reader._array,
    TIMESTAMP: Reader._time,
    TABLE: Reader._table,
    VOID: Reader._void,
    CHARACTER: Reader._character,
}

_FIELDS: dict[int, Callable[[Reader, str], Any]] = {
    fields.OCTET_FIELD: Reader.octet,
    fields.SHORT_FIELD: Reader.short,
    fields.LONG_FIELD: Reader.long,
    fields.LONGLONG_FIELD: Reader.longlong,
    fields.SHORTSTR_FIELD: Reader.shortstr,
    fields.OCTETS_FIELD: Reader.longstr,
    fields.TABLE_FIELD: Reader.table,
    fields.TIME_FIELD: Reader.timestamp,
    fields.CONTENT_FIELD: Reader.content,
}
