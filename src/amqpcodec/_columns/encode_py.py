"""Messages in columns back to frames. The pure build: row by row, by the encoder of the dialect."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any, NamedTuple

from amqpcodec import EncodeError, InlineContent, RawTable, ReferenceContent
from amqpcodec.types import EPOCH

from .buffers_py import Batch, values
from .schemas import (
    HEADERS,
    MESSAGE_NAMES,
    Column,
    column_name,
    content_columns,
    kinds_of,
    property_columns,
)
from .text import clean

_KIND = "publish"
_CHANNEL = 1
_MICROSECOND = timedelta(microseconds=1)


class Encoded(NamedTuple):
    """The frames of messages.

    Attributes:
        octets: all of them, in order.
        ends: where the frames of each message end in them.
        rows: the row of each message in its batch.
    """

    octets: bytes
    ends: array[int]
    rows: array[int]


class MessageEncoder:
    """Writes the messages of batches that have the same columns.

    Args:
        columns: those of `messages` that the batches have; what is missing takes its default.
        dialect: module of the dialect to write.
        frame_max: octets of the largest frame; bodies are cut to it. 0 for no limit.
        skip_incomplete: whether to leave out rows in error and incomplete ones, rather than refuse them.
    """

    def __init__(
        self, columns: Sequence[Column], dialect: ModuleType, *, frame_max: int, skip_incomplete: bool
    ) -> None:
        self.columns = tuple(columns)
        self._dialect: Any = dialect
        self._frame_max = frame_max
        self._skip = skip_incomplete
        methods = [method for method in dialect.METHODS.values() if method.spec.content]
        self.methods = {method.spec.name: method for method in methods}
        arguments, properties = kinds_of(content_columns((dialect,))), kinds_of(property_columns((dialect,)))
        self.fields = {
            method: _sources(method.spec, lambda field: column_name(arguments, field, MESSAGE_NAMES))
            for method in methods
        }
        self.properties = {
            cls: _sources(cls.spec, lambda field: column_name(properties, field))
            for cls in dialect.PROPERTIES.values()
        }

    def encode(self, batch: Batch, first: int = 0) -> Encoded:
        """The frames of a batch.

        Args:
            batch: the memory of its columns.
            first: number of its first row, for errors.

        Raises:
            EncodeError: a value that cannot be written, naming row and column; a row in error or incomplete.
        """
        lists = self.lists(batch)
        parts: list[bytes] = []
        ends, rows = array("q"), array("q")
        end = 0
        for index in range(batch.rows):
            octets = self.row(lists, index, first)
            if octets:
                parts.append(octets)
                end += len(octets)
                ends.append(end)
                rows.append(index)
        return Encoded(b"".join(parts), ends, rows)

    def lists(self, batch: Batch) -> dict[str, list[Any]]:
        """The values of a batch by the name of their column."""
        filled = zip(self.columns, batch.columns, strict=True)
        return {column.name: values(column, memory) for column, memory in filled}

    def row(self, lists: dict[str, list[Any]], index: int, first: int) -> bytes:
        """The frames of one row of `lists`; none where it is to be left out. Errors are those of `encode`."""
        cells = {name: cell for name, column in lists.items() if (cell := column[index]) is not None}
        try:
            return self._message(cells)
        except EncodeError as error:
            error.message = f"row {first + index}: {error.message}"
            raise

    def _message(self, cells: dict[str, Any]) -> bytes:
        """The frames of one row; none where it is to be left out."""
        fault = _fault(cells)
        if fault is not None:
            if self._skip:
                return b""
            raise fault
        method = self._method(cells)
        properties = self._content_properties(cells, method.spec.class_id)
        body = cells.get("body", b"")
        if not body and cells.get("body_size"):
            raise EncodeError(f"the body of {cells['body_size']} octets is not there", "body")
        try:
            octets = self._dialect.encode_message(
                cells.get("channel", _CHANNEL), method, properties, body, frame_max=self._frame_max
            )
        except EncodeError as error:
            error.field = self._column_of(error, method, properties)
            raise
        return bytes(octets)

    def _method(self, cells: dict[str, Any]) -> Any:
        name = cells.get("name") or f"basic.{cells.get('kind') or _KIND}"
        method = self.methods.get(name)
        if method is None:
            column = "name" if cells.get("name") else "kind"
            raise EncodeError(
                f"{self._dialect.DIALECT.name} has no method {clean(name)} with content", column
            )
        return method(**_arguments(self.fields[method], cells, ""))

    def _content_properties(self, cells: dict[str, Any], class_id: int) -> Any:
        properties = self._dialect.PROPERTIES[class_id]
        given = _arguments(self.properties[properties], cells.get("properties", {}), "properties.")
        if HEADERS.name not in self.properties[properties]:
            return properties(**given)  # of a class that has no headers
        if "headers_raw" in cells:
            given[HEADERS.name] = RawTable(cells["headers_raw"], self._dialect.DIALECT.profile.name)
        elif HEADERS.name in cells:
            given[HEADERS.name] = dict(cells[HEADERS.name])
        return properties(**given)

    def _column_of(self, error: EncodeError, method: Any, properties: Any) -> str | None:
        """The column that holds the field an error is about."""
        for record, prefix, sources in (
            (method, "", self.fields[type(method)]),
            (properties, "properties.", self.properties[type(properties)]),
        ):
            if error.method == record.spec.name:
                for field in record.spec.fields:
                    if field.name == error.field and field.attribute in sources:
                        name = sources[field.attribute][0]
                        return name if name == HEADERS.name else prefix + name
        return error.field


# The column of a field by the field's attribute, and what makes the field's value of a cell.
_Sources = dict[str, tuple[str, Callable[[Any], Any]]]


def _sources(spec: Any, column_of: Callable[[Any], str | None]) -> _Sources:
    sources: _Sources = {}
    for field in spec.fields:
        name = column_of(field)
        if name is not None:
            sources[field.attribute] = name, _VALUES.get(field.type, _as_it_is)
    return sources


def _arguments(sources: _Sources, cells: dict[str, Any], prefix: str) -> dict[str, Any]:
    given = {}
    for attribute, (name, value) in sources.items():
        cell = cells.get(name)
        if cell is not None:
            given[attribute] = value(cell)
    return given


def _fault(cells: dict[str, Any]) -> EncodeError | None:
    """Why a row is no message to be written, if so."""
    if "_error" in cells:
        return EncodeError(f"the row is in error: {clean(cells['_error'])}", "_error")
    if cells.get("complete") is False:
        return EncodeError("the message is not complete", "complete")
    return None


def _as_it_is(cell: Any) -> Any:
    return cell


def _timestamp(cell: int) -> datetime | int:
    """Microseconds as a time, or as seconds where that is before the year 1 or beyond the year 9999."""
    try:
        return EPOCH + cell * _MICROSECOND
    except OverflowError:
        return cell // 1_000_000


def _content(cell: dict[str, Any]) -> InlineContent | ReferenceContent:
    inline = cell.get("inline")
    return InlineContent(inline) if inline is not None else ReferenceContent(cell.get("reference") or b"")


_VALUES: dict[str, Callable[[Any], Any]] = {"timestamp": _timestamp, "table": dict, "content": _content}
