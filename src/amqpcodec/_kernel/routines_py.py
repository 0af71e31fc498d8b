"""How the classes of the pure build read and write themselves.

Each has two ways. The short one is generated, made for the interpreter, and right for nearly everything;
it gives up on whatever is odd. The exact one is here, field by field with the primitives of reader and
writer, and starts over: it says what is wrong, at which octet, or knows what to do with what is odd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import records_py
from .quick_reader_py import ODD, OddError
from .quick_writer_py import ODD as ODD_VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..spec import FieldSpec
    from .quick_reader_py import Octets
    from .reader_py import Reader
    from .writer_py import Writer, WriterRules

_BITS_PER_OCTET = 8
_FLAGS_PER_WORD = 15  # bit 0 of every word says whether another follows


class _Quick(records_py.Record):
    """What methods and properties share: the short way first."""

    __slots__ = ()

    def _take(self, reader: Reader, data: Octets, pos: int, end: int) -> int:
        """Fill the attributes from data[pos:end] by the short way; where what was read ends.

        Classes whose fields are rare on the wire have no short way.
        """
        raise OddError

    def _put(self, out: bytearray, rules: WriterRules) -> None:
        """Write the attributes by the short way."""
        raise OddError

    def _read(self, reader: Reader) -> None:
        if not reader.strict:
            try:
                if self._take(reader, reader._data, reader._pos, reader._end) == reader._end:
                    reader._pos = reader._end
                    return
            except ODD:
                pass
        self._read_exactly(reader)

    def _write(self, writer: Writer) -> None:
        if not writer._rules.strict:
            out = writer._out
            size = len(out)
            try:
                self._put(out, writer._rules)
                return
            except ODD_VALUES:
                del out[size:]
        self._write_exactly(writer)

    def _read_exactly(self, reader: Reader) -> None:
        raise NotImplementedError

    def _write_exactly(self, writer: Writer) -> None:
        raise NotImplementedError


class Method(_Quick, records_py.Method):
    """Base of the generated methods."""

    __slots__ = ()

    def _read_exactly(self, reader: Reader) -> None:
        for run in _steps(self.spec.fields):
            if run[0].type == "bit":
                bits = reader.bits(run[0].name)
                for place, field in enumerate(run):
                    setattr(self, field.attribute, bits & 1 << place != 0)
            else:
                setattr(self, run[0].attribute, getattr(reader, run[0].type)(run[0].name))

    def _write_exactly(self, writer: Writer) -> None:
        writer.ids(self.spec.class_id, self.spec.method_id)
        for run in _steps(self.spec.fields):
            if run[0].type == "bit":
                bits = 0
                for place, field in enumerate(run):
                    bits |= writer.bit(getattr(self, field.attribute), field.name) << place
                writer.bits(bits)
            else:
                getattr(writer, run[0].type)(getattr(self, run[0].attribute), run[0].name)


class Properties(_Quick, records_py.Properties):
    """Base of the generated properties."""

    __slots__ = ()

    def _read_exactly(self, reader: Reader) -> None:
        fields = self.spec.fields
        words = [reader.flag_word()]
        while len(words) * _FLAGS_PER_WORD < len(fields):
            words.append(reader.flag_word() if words[-1] & 1 else 0)
        # Flags without a property can only be in the last word; those before are full.
        in_last = len(fields) - (len(words) - 1) * _FLAGS_PER_WORD
        reader.further_flags(words[-1], words[-1] & 0xFFFE >> in_last & 0xFFFE)
        for index, field in enumerate(fields):
            value: Any = words[index // _FLAGS_PER_WORD] & _mask(index) != 0
            if field.type != "bit":
                value = getattr(reader, field.type)(field.name) if value else None
            setattr(self, field.attribute, value)

    def _write_exactly(self, writer: Writer) -> None:
        words = [0]
        given = []
        for index, field in enumerate(self.spec.fields):
            if index and index % _FLAGS_PER_WORD == 0:
                words.append(0)
            value = getattr(self, field.attribute)
            present = writer.bit(value, field.name) != 0 if field.type == "bit" else value is not None
            if present:
                words[-1] |= _mask(index)
                if field.type != "bit":
                    given.append((field, value))
        while len(words) > 1 and words[-1] == 0:
            del words[-1]
        for word in words[:-1]:
            writer.word(word | 1)
        writer.word(words[-1])
        for field, value in given:
            getattr(writer, field.type)(value, field.name)


def _mask(index: int) -> int:
    """The flag of a property in its word: from bit 15 down (0-9-1 section 4.2.6.1)."""
    return 0x8000 >> index % _FLAGS_PER_WORD


def _steps(fields: tuple[FieldSpec, ...]) -> Iterator[list[FieldSpec]]:
    """Fields one by one, but bits gathered octet by octet (0-9-1 section 4.2.5.2)."""
    run: list[FieldSpec] = []
    for field in fields:
        if run and (field.type != "bit" or len(run) == _BITS_PER_OCTET):
            yield run
            run = []
        if field.type == "bit":
            run.append(field)
        else:
            yield [field]
    if run:
        yield run
