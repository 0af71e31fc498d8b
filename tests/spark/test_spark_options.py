"""Options are text, and what is wrong with them is said before anything is read."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import types as spark_types
from pyspark.sql.pandas.types import to_arrow_schema

from amqpcodec import arrow
from amqpcodec._columns.schemas import TABLES
from amqpcodec.spark import options, parquet_to_stream, pcap_to_parquet, schemas, table_schema
from amqpcodec.spark.files import Location
from amqpcodec.spark.options import write_options


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"TABLE": "Frames"}, "table", "frames"),
        ({"maxgroupbytes": "2g"}, "max_group_bytes", 2 << 30),
        ({"max_partition_bytes": "1000"}, "max_partition_bytes", 1000),
        ({"maxPartitionBytes": "64MB"}, "max_partition_bytes", 64 << 20),
        ({"mode": "FAILFAST"}, "mode", "fail"),
        ({"mode": "dropMalformed"}, "mode", "drop"),
        ({"port": "5672, 5671"}, "port", [5671, 5672]),
        ({"port": "any"}, "port", None),
        ({"columns": "ts, properties.content_type"}, "columns", ("ts", "properties.content_type")),
        ({"flowTimeout": "1.5h"}, "flow_timeout", 5400.0),
        ({"include_credentials": "TRUE"}, "include_credentials", True),
        ({"path": "a"}, "paths", ("a",)),
        ({"paths": '["a", "b"]'}, "paths", ("a", "b")),
        ({"direction": "1"}, "direction", 1),
    ],
)
def test_an_option_is_taken_by_its_name_in_any_case(given: dict[str, str], field: str, value: Any) -> None:
    assert options.read_options(given)[field] == value  # type: ignore[literal-required]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tabel": "frames"}, "no option 'tabel'; there are paths, table"),
        ({"tabel": "frames"}, "; the nearest option is 'table'"),
        ({"table": "frame"}, "option 'table': 'frame' is none of frames, methods"),
        ({"mode": "strict"}, "option 'mode': 'strict' is none of permissive, dropmalformed, failfast"),
        ({"maxGroupBytes": "0"}, "option 'maxGroupBytes': '0' is no size"),
        ({"maxGroupBytes": "1.5g"}, "is no size"),
        ({"batchRows": "many"}, "option 'batchRows': 'many' is no number"),
        ({"flowTimeout": "soon"}, "is no time"),
        ({"port": "70000"}, "'70000' is no port"),
        ({"stitch": "yes"}, "option 'stitch': 'yes' is none of true, false"),
        ({"batchrows": "1", "batch_rows": "2"}, "option 'batchRows' is given twice"),
        ({"impl": "rust"}, "option 'impl'"),
        ({"dialect": "amqp-1-0"}, "option 'dialect'"),
        ({"paths": "a.pcap"}, "option 'paths': 'a.pcap' is no JSON list of paths; for one path, give 'path'"),
        ({"paths": '{"a": 1}'}, "option 'paths': '{\"a\": 1}' is no JSON list of paths"),
        ({"paths": "[1]"}, "option 'paths': '[1]' is no JSON list of paths"),
        ({"paths": "[" * 100_000}, "is no JSON list of paths"),
        ({"path": "a", "provider": "amqp", "owner": "me", "option.table": "frames"}, "CREATE TEMPORARY VIEW"),
    ],
)
def test_a_wrong_option_is_refused_with_what_there_is(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        options.read_options(given)


def in_batches(schema: spark_types.StructType) -> Any:
    """What Spark makes of a schema for batches. Before PySpark 4.2, times are in UTC anyway."""
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)


@pytest.mark.parametrize("table", TABLES)
def test_the_schema_is_exactly_that_of_the_batches(table: str) -> None:
    columns = [*arrow.schema(table).names, *schemas.optional_columns(table)]
    theirs = in_batches(table_schema(table, columns=columns))
    assert theirs.equals(arrow.schema(table, columns=columns))


def struct(**columns: spark_types.DataType) -> spark_types.StructType:
    return spark_types.StructType([spark_types.StructField(name, kind) for name, kind in columns.items()])


def test_a_schema_asks_for_columns_and_parts_of_structs() -> None:
    text = spark_types.StringType()
    wanted = struct(
        exchange=text, properties=struct(user_id=text, content_type=text), bad=spark_types.BinaryType()
    )
    found = schemas.project(wanted, "messages", "auto", corrupt="bad")
    assert found.columns == ("exchange", "properties.user_id", "properties.content_type", "_corrupt_record")
    assert in_batches(wanted).equals(found.schema)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            struct(exchnage=spark_types.StringType()),
            "table 'messages' has no column 'exchnage'; there are file, .*; the nearest name is 'exchange'$",
        ),
        (struct(channel=spark_types.LongType()), "column 'channel' is int, and cannot be read as bigint"),
        (struct(properties=spark_types.StringType()), "cannot be read as string"),
        (
            struct(properties=struct(colour=spark_types.StringType())),
            "column 'properties' has no field 'colour'; there are content_type",
        ),
        (
            spark_types.StructType([spark_types.StructField("ts", spark_types.TimestampType(), False)]),
            "column 'ts' may be null, and cannot be read as NOT NULL",
        ),
    ],
)
def test_a_schema_that_does_not_fit_says_where(wanted: spark_types.StructType, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        schemas.project(wanted, "messages", "auto")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no path"),
        ({"path": "out", "keys": "flow"}, "is for the output rows, not stream"),
        ({"path": "out", "output": "rows", "keys": "flow, ts, flow"}, "names a column twice"),
    ],
)
def test_options_of_writing_that_cannot_be_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_options(given)


SECRET = "wJalrXUtn"
SECRETS = [
    f"s3://KEY:{SECRET}@b/a", f"s3://KEY:{SECRET}/x@b", f"S3A:/KEY:{SECRET}@b", f"gs://:{SECRET}@b/*",
    f"s3://KEY:/{SECRET}@b", f"s3://KEY%3a{SECRET}@b", f"fsspec+s3://KEY:{SECRET}%40@b",
]  # fmt: skip


@pytest.mark.parametrize("path", SECRETS)
def test_a_path_with_a_secret_is_refused_without_showing_it(path: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: options.read_options({"path": path}),
        lambda: options.read_options({"paths": json.dumps(["a", path])}),
        lambda: options.read_options({"paths": path}),
        lambda: options.read_options({"paths": f'["{path}"'}),
        lambda: write_options({"path": path}),
        lambda: pcap_to_parquet(None, [path], "out"),  # type: ignore[arg-type]
        lambda: pcap_to_parquet(None, "in", path),  # type: ignore[arg-type]
        lambda: parquet_to_stream(None, path, "out"),  # type: ignore[arg-type]
        lambda: parquet_to_stream(None, ["in"], path),  # type: ignore[arg-type]
        lambda: Location(path),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="has a secret in it") as caught:
            call()
        assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "path",
    [
        "/a:b/c@d", "eth0:1@x.pcap", "hdfs://alice@node:8020/x@y", "hdfs://node:8020/a:b@c", "s3://b/a:b@c",
        "abfss://box@account.dfs.core.windows.net/a:b", "hdfs://[::1]:8020/a",
    ],
)  # fmt: skip
def test_users_ports_and_names_are_no_secrets(path: str) -> None:
    assert options.read_options({"path": path})["paths"] == (path,)
