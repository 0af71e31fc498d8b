"""``amqpcodec spark replay``: messages in Parquet files as a folder of streams of frames."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..options import SparkEncodingOptions
from .options import add_options, given
from .sparksession import add_session_arguments, run_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_parser(subparsers: Any) -> None:
    """Describe the command's arguments."""
    parser = subparsers.add_parser(
        "replay",
        help="write messages of Parquet files to a folder of streams of frames",
        description="Write the messages in Parquet files, as `amqpcodec spark convert` makes them, to a "
        "folder of streams of frames, each with an index of offsets and times. Spark's workers read and "
        "write by themselves; the folder is whole or not there.",
        epilog="Exit code: 0 all was written; 2 unusable input, output or arguments, and nothing written.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="Parquet files, folders of them, patterns")
    parser.add_argument("out", metavar="OUT", help="the folder to write")
    add_options(parser, SparkEncodingOptions)
    add_session_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write; gives the exit code."""

    def write(spark: SparkSession) -> str:
        from ..spark import parquet_to_stream

        written = parquet_to_stream(
            spark, arguments.files, arguments.out, **given(arguments, SparkEncodingOptions)
        ).collect()
        streams = [row for row in written if row.path.endswith(".amqp")]
        octets, messages = sum(row.size for row in streams), sum(row.messages for row in written)
        return f"{messages} messages, {octets} bytes in {len(streams)} streams"

    return run_job(arguments, write)
