"""Captures and frames in Spark, through PySpark 4.0 and later.

    from amqpcodec.spark import pcap_to_parquet, register

    register(spark)  # not needed where Spark finds the package `pyspark_amqp` by itself
    spark.read.format("amqp").option("table", "messages").load("captures/*.pcap*")
    pcap_to_parquet(spark, "captures", "messages.parquet", table="messages")

It needs the extra `spark`. `amqpcodec.arrow` does the decoding; this layer assigns parts of recordings to
Spark's workers. docs/spark.md has the options.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .convert import pcap_to_parquet
    from .decoding import decode_captures, decode_frames, decode_streams
    from .functions import from_amqp, to_amqp
    from .replay import parquet_to_stream
    from .schemas import table_schema
    from .source import register

# PySpark is imported when one of these names is used.
_HOMES = {
    "decode_captures": "decoding",
    "decode_frames": "decoding",
    "decode_streams": "decoding",
    "from_amqp": "functions",
    "parquet_to_stream": "replay",
    "pcap_to_parquet": "convert",
    "register": "source",
    "table_schema": "schemas",
    "to_amqp": "functions",
}

__all__ = [
    "decode_captures",
    "decode_frames",
    "decode_streams",
    "from_amqp",
    "parquet_to_stream",
    "pcap_to_parquet",
    "register",
    "table_schema",
    "to_amqp",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import pyarrow  # noqa: F401  # are they here?
        import pyspark  # noqa: F401
    except ImportError as error:
        message = 'amqpcodec.spark needs PySpark and pyarrow: pip install "amqpcodec[spark]"'
        raise ImportError(message) from error
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
