"""A user's use of what stands between this package and others: compat, Spark, options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, assert_type

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from amqpcodec import arrow, capture, compat, options, spark
from amqpcodec.compat.kombu import transport_options


def accelerated() -> Mapping[str, Any]:
    """Other libraries made faster."""
    for name in compat.PEERS:
        assert_type(compat.supported(name), tuple[str, ...])
    try:
        found = compat.install("pamqp", loops=True, tolerant=True, strict=False)
    except compat.UnknownReleaseError:
        found = compat.uninstall("pamqp")
    assert_type(found, compat.Status)
    assert_type(found.active, bool)
    assert_type(found.fallbacks, Mapping[str, int])
    with compat.installed("pika", "amqp", loops=True) as both:
        assert_type(both, Mapping[str, compat.Status])
    assert_type(compat.status(), dict[str, compat.Status])
    assert_type(transport_options(loops=True), dict[str, Any])
    return found._asdict()


def spark_tables(session: SparkSession, frame: DataFrame) -> list[DataFrame]:
    """Captures and columns of octets in Spark."""
    spark.register(session)
    assert_type(spark.table_schema("messages", dialect="rabbitmq-0-9-1"), StructType)
    decoded: Column = spark.from_amqp("octets", "methods", columns=["exchange"])
    encoded: Column = spark.to_amqp("message", mode="permissive", frame_max=4096)
    return [
        frame.select(decoded, encoded),
        spark.decode_frames(frame, "octets", keys=["id"], table="frames", mode="permissive"),
        spark.decode_captures(frame, "content", "path", table="connections", port=None),
        spark.decode_streams(frame, "connection", "offset", "octets", table="messages"),
        spark.pcap_to_parquet(session, "captures", "messages.parquet", table="messages", rotated="auto"),
        spark.parquet_to_stream(session, "messages.parquet", "frames", save="overwrite"),
    ]


def own_reader(path: str, **given: Unpack[options.CaptureOptions]) -> arrow.CaptureReader:
    """A function with the options of another."""
    return arrow.read_capture(path, **given)


def own_frames(path: str, **given: Unpack[options.FrameOptions]) -> int:
    """The same for frames."""
    return len([*capture.read_frames(path, **given)])


def typed() -> list[Mapping[str, Any]]:
    """Options by name, each list by itself."""
    batch: options.BatchOptions = {"batch_rows": 10}
    captures: options.CaptureOptions = {"port": 5672, "columns": ["ts"], "mode": "permissive"}
    column: options.ColumnOptions = {"direction": capture.CLIENT_TO_SERVER, "max_body_bytes": 1 << 20}
    convert: options.ConvertOptions = {"table": "frames", "compression": "zstd"}
    decode: options.DecodeOptions = {"input": "capture", "include_credentials": True}
    decoding: options.DecodingOptions = {"dialect": "auto", "frame_max": 131072}
    encoding: options.EncodingOptions = {"skip_incomplete": True}
    file: options.FileOptions = {"row_group_rows": 1000}
    frame: options.FrameOptions = {"flow_timeout": 60.0}
    inputs: options.InputOptions = {"direction": capture.SERVER_TO_CLIENT}
    parquet: options.ParquetOptions = {"compression": "none"}
    recorder: options.RecorderOptions = {"rotate_bytes": 1 << 30}
    raw: options.RawFrameOptions = {"direction": capture.SERVER_TO_CLIENT}
    save: options.SaveOptions = {"save": "errorifexists"}
    conversion: options.SparkConversionOptions = {"save": "overwrite"}
    spark_decoding: options.SparkDecodingOptions = {"mode": "fail"}
    spark_encoding: options.SparkEncodingOptions = {"save": "append"}
    message: options.SparkMessageOptions = {"dialect": "rabbitmq-0-9-1"}
    read: options.SparkReadOptions = {"paths": ["a.pcap"], "recursive_file_lookup": True}
    spark_stream: options.SparkStreamOptions = {"batch_rows": 10}
    write: options.SparkWriteOptions = {"path": "folder"}
    summary: options.StatsOptions = {"top": 10}
    stream: options.StreamOptions = {"batch_rows": 10}
    table: options.TableOptions = {"table": "errors"}
    tracking: options.TrackingOptions = {"out_of_order_segments": 100}
    return [
        *(batch, captures, column, convert, decode, decoding, encoding, file, frame, inputs, parquet, raw),
        *(
            recorder,
            save,
            conversion,
            spark_decoding,
            spark_encoding,
            message,
            read,
            spark_stream,
            write,
            summary,
        ),
        *(stream, table, tracking),
    ]
