"""``amqpcodec spark replay``: messages in Parquet files as a folder of streams of frames."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .. import DIALECTS
from .sparksession import add_output_arguments, add_session_arguments, run_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FRAME_MAX = 131072


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
    add_output_arguments(parser)
    parser.add_argument("--dialect", choices=DIALECTS, default="rabbitmq-0-9-1", help="to write")
    parser.add_argument("--frame-max", type=int, default=_FRAME_MAX, metavar="OCTETS", help="0 for no limit")
    parser.add_argument(
        "--skip-incomplete", action="store_true", help="leave out rows in error and incomplete ones"
    )
    add_session_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write; gives the exit code."""

    def write(spark: SparkSession) -> str:
        from ..spark import parquet_to_stream

        written = parquet_to_stream(
            spark,
            arguments.files,
            arguments.out,
            dialect=arguments.dialect,
            frame_max=arguments.frame_max,
            skip_incomplete=arguments.skip_incomplete,
            save=arguments.save,
        ).collect()
        streams = [row for row in written if row.path.endswith(".amqp")]
        messages, octets = (sum(row[name] for row in streams) for name in ("messages", "size"))
        return f"{messages} messages, {octets} octets in {len(streams)} streams"

    return run_job(arguments, write)
