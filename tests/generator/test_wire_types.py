"""The one table of wire types: what follows from an entry, and what has to be written beside it."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from codecgen import output
from codecgen.emit import render_package
from codecgen.load import load_dialect
from codecgen.wire_types import WIRE_TYPES, WireType
from support.implementation import wanted

from amqpcodec import DecodeError, EncodeError, _backend, _records, arrow
from amqpcodec._columns import buffers_py
from amqpcodec._kernel import fields, reader_py, writer_py
from amqpcodec._protocol import wire_types
from amqpcodec.types import EPOCH, NO_CONTENT

SOURCE = Path(__file__).resolve().parent.parent.parent / "src" / "amqpcodec"
WRITTEN_BY_HAND = {
    "_kernel/reader_py.py": r"    def {}\(self, field: str\)",
    "_kernel/reader_c.pyx": r"    cdef object {}\(self, object field\)",
    "_kernel/reader_c.pxd": r"    cdef object {}\(self, object field\)",
    "_kernel/writer_py.py": r"    def {}\(self, value: Any, field: str\)",
    "_kernel/writer_c.pyx": r"    cdef int {}\(self, (object|PyObject \*)\s*value, object field\)",
    "_kernel/writer_c.pxd": r"    cdef int {}\(self, (object|PyObject \*)\s*value, object field\)",
}
SPEC = """\
<amqp name="made-up" major="1" minor="2" revision="3" port="5999" table-profile="rabbitmq">
  <constant name="frame-end" value="206"/>
  <class name="demo" handler="channel" index="10">
    <field name="depth" type="signed-short"/>
    <method name="dive" index="1">
      <field name="before" type="octet"/>
      <field name="depth" type="signed-short"/>
    </method>
    <method name="send" index="2" content="1">
      <field name="height" type="signed-short"/>
    </method>
  </class>
</amqp>
"""


@pytest.mark.parametrize("path", WRITTEN_BY_HAND)
def test_every_wire_type_is_read_and_written_by_a_method_of_its_name(path: str) -> None:
    text = (SOURCE / path).read_text(encoding="utf-8")
    names = sorted(WIRE_TYPES.keys() - {"bit"})  # `bits` reads eight of those at once
    missing = [name for name in names if not re.search(WRITTEN_BY_HAND[path].format(name), text)]
    assert not missing, f"{path} has no method for {', '.join(missing)}"


def test_every_wire_type_has_a_kind_of_column_that_there_is() -> None:
    unknown = {each.column for each in WIRE_TYPES.values()} - buffers_py._FILLERS.keys()
    assert not unknown, f"_columns/buffers_py.py and buffers_c.pyx fill no columns of {', '.join(unknown)}"


def test_constructors_of_both_builds_have_the_same_defaults() -> None:
    names = {"_EPOCH": EPOCH, "_NO_CONTENT": NO_CONTENT}
    assert {name: eval(each.default, names) for name, each in WIRE_TYPES.items()} == _records.DEFAULTS


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A dialect with a wire type that is in the table, and in the reader and writer of the pure build."""

    def read(reader: reader_py.Reader, field: str) -> int:
        number = reader.short(field)
        return number - 0x10000 if number & 0x8000 else number

    def write(writer: writer_py.Writer, value: Any, field: str) -> None:
        if type(value) is not int or not -0x8000 <= value < 0x8000:
            raise EncodeError(f"a signed-short must be -32768 to 32767, not {value!r}", field)
        writer.short(value & 0xFFFF, field)

    kind = WireType("signed_short", "int", "0", "2 octets", "int16", "z", "h")
    monkeypatch.setitem(WIRE_TYPES, kind.name, kind)
    monkeypatch.setitem(wire_types.COLUMN_KINDS, kind.name, kind.column)
    monkeypatch.setitem(wire_types.NUMBERS, kind.name, 99)
    monkeypatch.setitem(wire_types.LETTERS, kind.name, kind.letter)
    monkeypatch.setitem(_records.DEFAULTS, kind.name, 0)
    monkeypatch.setitem(fields.FIELD_KINDS, kind.name, 99)
    monkeypatch.setitem(reader_py._FIELDS, 99, read)
    monkeypatch.setitem(writer_py._FIELDS, 99, write)
    monkeypatch.setattr(reader_py.Reader, kind.name, read, raising=False)
    monkeypatch.setattr(writer_py.Writer, kind.name, write, raising=False)
    spec = tmp_path / "made_up.xml"
    spec.write_text(SPEC.replace("signed-short", kind.name), encoding="utf-8")
    output.write(tmp_path, render_package(load_dialect(spec), "made_up_wire_type"), None)
    monkeypatch.syspath_prepend(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the package is not compiled
        module = importlib.import_module("made_up_wire_type.methods_py")
    yield module
    for name in [name for name in sys.modules if name.startswith("made_up_wire_type")]:
        del sys.modules[name]


def test_a_made_up_type_is_read_and_written_by_both_paths_of_the_pure_build(made_up: Any) -> None:
    octets = made_up.encode_method(5, made_up.DemoDive(1, -2))
    assert octets.hex() == "01 0005 00000007 000a 0001 01 fffe ce".replace(" ", "")
    for strict in (False, True):  # strict mode never takes the fast path
        [frame] = made_up.FrameDecoder(strict=strict).feed(octets)
        assert frame.payload == made_up.DemoDive(1, -2)
    with pytest.raises(EncodeError, match="a signed-short must be -32768 to 32767, not 40000"):
        made_up.encode_method(5, made_up.DemoDive(1, 40000))
    with pytest.raises(DecodeError, match="short needs 2 octets, 1 left"):
        list(made_up.FrameDecoder().feed(bytes.fromhex("01 0005 00000006 000a 0001 01 ff ce")))


@pytest.mark.parametrize("build", wanted())
def test_a_made_up_type_has_columns_in_both_builds(
    made_up: Any, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = _backend.load("amqpcodec._columns.encode", build).MessageEncoder
    monkeypatch.setattr("amqpcodec.arrow.encoding._MessageEncoder", encoder)
    octets = made_up.encode_method(5, made_up.DemoDive(1, -2))
    [row] = arrow.decode_methods(octets, dialect=made_up, _impl=build).to_pylist()
    assert (row["args"], row["_error"]) == ({"before": 1, "depth": -2, "height": None}, None)
    octets = made_up.encode_message(5, made_up.DemoSend(-3), made_up.DemoProperties(-4), b"body")
    rows = arrow.decode_messages(octets, dialect=made_up, _impl=build)
    [row] = rows.to_pylist()
    # Those of the five dialects have columns, too, as in any table of messages.
    properties = {name: value for name, value in row["properties"].items() if value is not None}
    assert (row["height"], properties, row["_error"]) == (-3, {"depth": -4}, None)
    assert arrow.encode_messages(rows, dialect=made_up) == octets
