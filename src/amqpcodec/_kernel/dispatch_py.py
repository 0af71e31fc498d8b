"""From the ids on the wire to the generated class, in pure Python. The twin of dispatch_c.pyx."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from struct import Struct

from .._typing import TYPE_CHECKING, Any
from .fields import layout_of
from .read_values import DECLINED
from .slow_py import read_slowly, write_slowly
from .values import Declined
from .wire import BODY, ENVELOPE_SIZE, FRAME_END, HEADER, METHOD
from .write_values import DECLINED as DECLINED_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable

    from .read_values import Octets
    from .reader_py import Reader
    from .records_py import Record
    from .routines_py import ReadRoutine, Routines, WriteRoutine
    from .writer_py import Writer, WriterRules

_envelope = Struct(">BHI").pack
_size_into = Struct(">I").pack_into
_header_start = Struct(">BHIHHQ").pack
_END = bytes((FRAME_END,))
_ids = Struct(">I").pack
_new = object.__new__


class Dispatch:
    """Makes an empty instance of the class registered under a number, and has instances read and written.

    Attributes:
        classes: class by number.
        readers: by number, the class, the names of its fields, and the routine that reads their values. A
            class with rare fields has none.
        writers: by class, the ids that come first, a function that returns the values of an instance, and the
            routine that writes them.
        before_content: the numbers of methods that a content follows.
        content_classes: class id by class, of properties and of methods that a content follows.
    """

    __slots__ = ("before_content", "classes", "content_classes", "readers", "writers")

    def __init__(self, classes: Mapping[int, type[Any]], routines: Mapping[str, Routines]) -> None:
        self.classes = dict(classes)
        self.readers: dict[int, tuple[type[Any], list[str], ReadRoutine]] = {}
        self.writers: dict[type[Any], tuple[bytes, Callable[[Any], tuple[Any, ...]], WriteRoutine]] = {}
        self.before_content = {n for n, cls in classes.items() if getattr(cls.spec, "content", False)}
        self.content_classes = {
            cls: cls.spec.class_id for cls in classes.values() if getattr(cls.spec, "content", True)
        }
        for number, cls in classes.items():
            found = routines.get(layout_of(cls.spec))
            if found is not None:
                names = [field.attribute for field in cls.spec.fields]
                ids = _ids(cls.spec.index) if hasattr(cls.spec, "method_id") else b""
                self.readers[number] = cls, names, found.read
                self.writers[cls] = ids, _values_of(names), found.write

    def has(self, index: int) -> bool:
        """Return whether something is registered."""
        return index in self.classes

    def create(self, index: int) -> Any:
        """A new, unfilled instance, or None where nothing is registered."""
        cls = self.classes.get(index)
        return None if cls is None else _new(cls)

    def read_fast(self, index: int, reader: Reader) -> Any:
        """Return an instance read from the payload that the reader is aimed at, or None where `create` and
        `read` must do that: the fast path declines, or nothing is registered."""
        if not reader.fast or reader.offset() < reader.declined:
            return None
        try:
            record = self.read_at(index, reader, reader._data, reader._pos, reader._end)
        except DECLINED:
            return None
        reader._pos = reader._end
        return record

    def read_at(self, index: int, reader: Reader, data: Octets, pos: int, end: int) -> Any:
        """Return an instance whose fields are data[pos:end].

        Args:
            index: the number of its class.
            reader: reads its tables, by its rules.
            data: the octets; more may follow.
            pos: where the first field begins.
            end: where the last field ends.

        Raises:
            KeyError: no class of that number has a fast path.
            Declined: or any other of `DECLINED`: it is for the slow path.
        """
        cls, names, read = self.readers[index]
        stop, values = read(reader, data, pos, end)
        if stop != end:
            raise Declined
        record = _new(cls)
        for name, value in zip(names, values):  # noqa: B905  # `strict` would cost as much as two fields
            setattr(record, name, value)
        return record

    def content_class(self, method: Any) -> int:
        """Return the class of the content that follows a method of this dialect; -1 where none does."""
        found: int = self.content_classes.get(type(method), -1)
        return found

    def read(self, record: Record, reader: Reader) -> None:
        """Fill an instance from the payload that the reader is aimed at: the slow path after `read_fast`."""
        fast, reader.fast = reader.fast, reader.fast and type(record) not in self.writers
        try:
            if not hasattr(record.spec, "method_id"):
                record.__init__()  # type: ignore[misc]  # the slow path sets no property that is absent
            read_slowly(record, reader)
        finally:
            reader.fast = fast

    def put(self, record: Any, out: bytearray, rules: WriterRules) -> None:
        """Append the octets of an instance.

        Raises:
            KeyError: its class has no fast path.
            Declined: or any other of `DECLINED_VALUES`: it is for the slow path, and `out` may have grown.
        """
        ids, values, write = self.writers[type(record)]
        out += ids
        write(values(record), out, rules)

    def write(self, record: Record, writer: Writer) -> None:
        """Write the attributes of an instance: fast path first, then slow path."""
        if writer.fast:
            out = writer._out
            size = len(out)
            try:
                self.put(record, out, writer._rules)
                return
            except DECLINED_VALUES:
                del out[size:]
        fast, writer.fast = writer.fast, writer.fast and type(record) not in self.writers
        try:
            write_slowly(record, writer)
        finally:
            writer.fast = fast

    def frame(self, channel: Any, method: Any, limit: int, rules: WriterRules) -> bytes | None:
        """Return a whole method frame in one go, or None where `write` must make its payload.

        Args:
            channel: its channel.
            method: what to write.
            limit: octets of the largest payload.
            rules: those of the encoder.
        """
        if type(channel) is not int or rules.strict:
            return None
        out = bytearray()
        try:
            self.put(method, out, rules)
            size = len(out)
            return _envelope(METHOD, channel, size) + out + _END if size <= limit else None
        except DECLINED_VALUES:
            return None

    def header(
        self, channel: Any, properties: Any, body_size: Any, weight: Any, limit: int, rules: WriterRules
    ) -> bytes | None:
        """Return a whole header frame in one go, or None likewise."""
        if type(channel) is not int or type(body_size) is not int or type(weight) is not int or weight:
            return None
        if rules.strict:
            return None
        out = bytearray()
        try:
            class_id = self.content_classes[type(properties)]
            self._put_header(out, channel, properties, class_id, body_size, limit, rules)
            return bytes(out)
        except DECLINED_VALUES:
            return None

    def message(
        self,
        channel: Any,
        method: Any,
        properties: Any,
        octets: Any,
        limit: int,
        rules: WriterRules,
        contents: Dispatch,
        kept: bytes | None,
        kept_class: int,
    ) -> bytes | None:
        """Return all frames of a message in one go, or None likewise.

        Args:
            channel, method, limit, rules: as for `frame`.
            properties: what its content header has; None for nothing.
            octets: the body, in frames of at most `limit` octets each.
            contents: what writes the properties.
            kept, kept_class: the properties as octets, and their class; None where they are not kept so.
        """
        if type(channel) is not int or channel == 0 or rules.strict:
            return None
        size = len(octets)
        out = bytearray()
        try:
            out += _envelope(METHOD, channel, 0)
            class_id = self.content_classes[type(method)]
            if kept is not None and kept_class != class_id:
                return None
            self.put(method, out, rules)
            _end_frame(out, 0, limit)
            contents._put_header(out, channel, properties, class_id, size, limit, rules, kept)
        except DECLINED_VALUES:
            return None
        if not size:
            return bytes(out)
        # Joined, since a long body would be copied once more on the way into `out`.
        parts: list[bytes | bytearray] = [out]
        for at in range(0, size, limit):
            piece = octets[at : at + limit] if size > limit else octets
            parts += (_envelope(BODY, channel, len(piece)), piece, _END)
        return b"".join(parts)

    def _put_header(
        self,
        out: bytearray,
        channel: int,
        properties: Any,
        class_id: int,
        size: int,
        limit: int,
        rules: WriterRules,
        kept: bytes | None = None,
    ) -> None:
        at = len(out)
        out += _header_start(HEADER, channel, 0, class_id, 0, size)
        if kept is not None:
            out += kept
        else:
            if properties is None:
                properties = self.classes[class_id]()
            if self.content_classes[type(properties)] != class_id:
                raise Declined
            self.put(properties, out, rules)
        _end_frame(out, at, limit)

    def decline(self, record: Any, writer: Writer) -> None:
        """Have the slow path write what the above declined, and not try the fast path once more."""
        writer.fast = writer.fast and type(record) not in self.writers


def _end_frame(out: bytearray, at: int, limit: int) -> None:
    """Fill in the size of a frame that begins at `at`, and end it."""
    size = len(out) - at - ENVELOPE_SIZE
    if size > limit:
        raise Declined
    _size_into(out, at + 3, size)
    out.append(FRAME_END)


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the attributes of these names."""
    get: Any = attrgetter(*names) if names else None
    if len(names) > 1:
        return get  # type: ignore[no-any-return]
    return (lambda record: (get(record),)) if names else lambda record: ()
