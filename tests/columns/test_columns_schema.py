"""The columns of the tables: computed from the specifications, and of types that Spark takes."""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import amqpcodec
from amqpcodec import arrow
from amqpcodec._columns.schemas import (
    ALL_DIALECTS,
    MESSAGE_NAMES,
    TABLES,
    Column,
    column_name,
    content_columns,
    kinds_of,
    method_columns,
    property_columns,
    union,
)
from amqpcodec.spec import FieldSpec

SPARK_TYPES = {
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.string(), pa.binary(),
    pa.timestamp("us", tz="UTC"), pa.map_(pa.string(), pa.string()),
}  # fmt: skip


def leaves(fields: Any) -> Iterator[pa.DataType]:
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from leaves(field.type)
        else:
            assert field.nullable
            yield field.type


@pytest.mark.parametrize("table", TABLES)
def test_all_types_are_those_of_spark(table: str) -> None:
    assert set(leaves(arrow.schema(table))) <= SPARK_TYPES


def test_every_name_of_a_table_is_there_once() -> None:
    for table in TABLES:
        names = arrow.schema(table).names
        assert len(names) == len(set(names))


def test_the_schema_of_one_dialect_is_part_of_that_of_all(dialect: str) -> None:
    for table in ("frames", "connections", "errors"):
        assert arrow.schema(table, dialects=[dialect]) == arrow.schema(table)
    own, every = arrow.schema("messages", dialects=[dialect]), arrow.schema("messages")
    assert set(own.names) <= set(every.names)
    assert {field.name for field in own.field("properties").type} <= {
        field.name for field in every.field("properties").type
    }


def test_every_field_has_a_column_that_holds_it(dialect: str) -> None:
    modules = tuple(amqpcodec.dialect(name) for name in ALL_DIALECTS)
    codec = amqpcodec.dialect(dialect)
    for method in codec.METHODS.values():
        for field in method.spec.fields:
            assert field.reserved or column_name(kinds_of(method_columns(modules)), field)
            if method.spec.content and not field.reserved:
                assert column_name(kinds_of(content_columns(modules)), field, MESSAGE_NAMES)
    for properties in codec.PROPERTIES.values():
        assert all(
            column_name(kinds_of(property_columns(modules)), field) for field in properties.spec.fields
        )


def test_numbers_of_several_widths_share_the_widest_column() -> None:
    fields = [FieldSpec("n", "n", kind, kind) for kind in ("octet", "longlong", "short")]
    columns = union([fields[:1], fields[1:]])
    assert columns == (Column("n", "int64"),)
    assert {column_name(kinds_of(columns), field) for field in fields} == {"n"}


def test_names_that_stand_for_two_kinds_get_two_columns() -> None:
    text, number, table = (FieldSpec("n", "n", kind, kind) for kind in ("shortstr", "short", "table"))
    columns = union([[text], [number], [table]])
    assert columns == (Column("n", "string"), Column("n_short", "int32"), Column("n_table", "map"))
    names = [column_name(kinds_of(columns), field) for field in (text, number, table)]
    assert names == ["n", "n_short", "n_table"]
    assert column_name(kinds_of(columns[:1]), number) is None


def test_fields_with_the_name_of_a_column_of_the_table_go_beside_it() -> None:
    field = FieldSpec("offset", "offset", "longlong", "longlong")
    columns = union([[field]], taken=MESSAGE_NAMES)
    assert columns == (Column("offset_longlong", "int64"),)
    assert column_name(kinds_of(columns), field, MESSAGE_NAMES) == "offset_longlong"


def test_columns_come_in_the_order_asked_for() -> None:
    schema = arrow.schema("messages", columns=["body", "properties.priority", "ts", "properties.app_id"])
    assert schema.names == ["body", "properties", "ts"]
    assert [field.name for field in schema.field("properties").type] == ["priority", "app_id"]


@pytest.mark.parametrize(
    "columns",
    [["x"], ["properties.x"], ["body.x"], ["ts", "ts"], ["properties", "properties.type"], ["properties."]],
)
def test_columns_that_cannot_be_are_refused(columns: list[str]) -> None:
    with pytest.raises(ValueError, match=r"no column|asked for twice"):
        arrow.schema("messages", columns=columns)


def test_optional_columns_come_only_when_asked_for() -> None:
    assert "payload" not in arrow.schema("frames").names
    assert "_corrupt_record" not in arrow.schema("messages").names
    assert arrow.schema("frames", columns=["payload", "_corrupt_record"]).types == [pa.binary()] * 2


def test_without_pyarrow_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("amqpcodec.arrow")]:
        monkeypatch.delitem(sys.modules, name)
    found = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.split(".")[0] == "pyarrow":
            raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")
        return found(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'needs pyarrow: pip install "amqpcodec\[arrow\]"'):
        importlib.import_module("amqpcodec.arrow")
