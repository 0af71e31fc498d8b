"""How the classes of the pure build read and write themselves.

Each has two ways. The short one is generated, made for the interpreter, and right for nearly everything;
it gives up on whatever is odd. The exact one is here, field by field with the primitives of reader and
writer, and starts over: it says what is wrong, at which octet, or knows what to do with what is odd.
"""

from __future__ import annotations

from .._typing import TYPE_CHECKING, ClassVar
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

    _steps: ClassVar[tuple[tuple[FieldSpec, ...], ...]]  # the fields in wire order, bits by the octet

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "spec"):
            cls._steps = tuple(_steps(cls.spec.fields))

    def _read_exactly(self, reader: Reader) -> None:
        for step in self._steps:
            first = step[0]
            if first.type == "bit":
                bits = reader.bits(first.name)
                for place, field in enumerate(step):
                    setattr(self, field.attribute, bits & 1 << place != 0)
            else:
                setattr(self, first.attribute, getattr(reader, first.type)(first.name))

    def _write_exactly(self, writer: Writer) -> None:
        writer.ids(self.spec.class_id, self.spec.method_id)
        for step in self._steps:
            first = step[0]
            if first.type == "bit":
                bits = 0
                for place, field in enumerate(step):
                    bits |= writer.bit(getattr(self, field.attribute), field.name) << place
                writer.bits(bits)
            else:
                getattr(writer, first.type)(getattr(self, first.attribute), first.name)


class Properties(_Quick, records_py.Properties):
    """Base of the generated properties."""

    __slots__ = ()

    _flags: ClassVar[tuple[tuple[int, int, FieldSpec], ...]]  # word and mask of each field

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "spec"):
            cls._flags = tuple(_flags(cls.spec.fields))

    def _read_exactly(self, reader: Reader) -> None:
        words = [reader.flag_word()]
        while len(words) * _FLAGS_PER_WORD < len(self._flags):
            words.append(reader.flag_word() if words[-1] & 1 else 0)
        # Flags without a property can only be in the last word; those before are full.
        in_last = len(self._flags) - (len(words) - 1) * _FLAGS_PER_WORD
        reader.further_flags(words[-1], words[-1] & 0xFFFE >> in_last & 0xFFFE)
        for word, mask, field in self._flags:
            if field.type == "bit":
                setattr(self, field.attribute, words[word] & mask != 0)
            elif words[word] & mask:
                setattr(self, field.attribute, getattr(reader, field.type)(field.name))
            else:
                setattr(self, field.attribute, None)

    def _write_exactly(self, writer: Writer) -> None:
        words: list[int] = [0]
        given = []
        for word, mask, field in self._flags:
            value = getattr(self, field.attribute)
            if field.type == "bit":
                value = writer.bit(value, field.name) or None
            if value is not None:
                words += [0] * (word + 1 - len(words))
                words[word] |= mask
                given.append(field)
        for further in range(len(words) - 1):
            words[further] |= 1
        for flags in words:
            writer.word(flags)
        for field in given:
            if field.type != "bit":
                # Looked up again: writing one may have called code that takes another away.
                getattr(writer, field.type)(getattr(self, field.attribute), field.name)


def _flags(fields: tuple[FieldSpec, ...]) -> Iterator[tuple[int, int, FieldSpec]]:
    """Fifteen to a word, from bit 15 down (0-9-1 section 4.2.6.1)."""
    for index, field in enumerate(fields):
        yield index // _FLAGS_PER_WORD, 0x8000 >> index % _FLAGS_PER_WORD, field


def _steps(fields: tuple[FieldSpec, ...]) -> Iterator[tuple[FieldSpec, ...]]:
    """Fields one by one, but bits gathered octet by octet (0-9-1 section 4.2.5.2)."""
    run: tuple[FieldSpec, ...] = ()
    for field in fields:
        if run and (field.type != "bit" or len(run) == _BITS_PER_OCTET):
            yield run
            run = ()
        if field.type == "bit":
            run += (field,)
        else:
            yield (field,)
    if run:
        yield run
