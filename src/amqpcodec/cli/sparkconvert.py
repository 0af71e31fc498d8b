"""``amqpcodec spark convert``: a table of what is in captures, as a folder of Parquet files."""

from __future__ import annotations

import argparse
import re
import warnings
from typing import TYPE_CHECKING, Any

from ..options import SparkConversionOptions, TableOptions
from . import output
from .options import add_options, given
from .sparksession import add_session_arguments, run_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_parser(subparsers: Any) -> None:
    """Describe the command's arguments."""
    parser = subparsers.add_parser(
        "convert",
        help="write a table of what is in captures to a folder of Parquet files",
        description="Write a table of what is in captures and raw streams to a folder of Parquet files. "
        "Spark's workers read and write by themselves; the folder is whole or not there.",
        epilog="Exit code: 0 all was written; 2 unusable input, output or arguments, and nothing written.",
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="captures and streams, folders of them, patterns"
    )
    parser.add_argument("out", metavar="OUT", help="the folder to write")
    add_options(parser, TableOptions)
    add_options(parser, SparkConversionOptions)
    add_session_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Convert; gives the exit code."""

    def write(spark: SparkSession) -> str:
        from ..spark import pcap_to_parquet
        from ..spark.chains import UnstitchedWarning
        from ..spark.notices import NothingFoundWarning

        options = given(arguments, TableOptions) | given(arguments, SparkConversionOptions)
        with warnings.catch_warnings(record=True) as caught:
            for ours in (NothingFoundWarning, UnstitchedWarning):
                warnings.simplefilter("always", ours)
            written = pcap_to_parquet(spark, arguments.files, arguments.out, **options).toArrow()
        for warning in caught:
            if issubclass(warning.category, NothingFoundWarning | UnstitchedWarning):
                output.complain(_with_arguments(str(warning.message)))
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        rows, octets = (sum(written[name].to_pylist()) for name in ("rows", "octets"))
        return f"{rows} rows, {octets} bytes in {written.num_rows} files"

    return run_job(arguments, write)


def _with_arguments(text: str) -> str:
    """Return a text with the arguments of the command in place of the options of Spark."""
    return re.sub(r"\b(port|rotated)=", r"--\1 ", text).replace("seriesPattern", "--series-pattern")
