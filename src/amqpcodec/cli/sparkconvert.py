"""``amqpcodec spark convert``: a table of what is in captures, as a folder of Parquet files."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .._columns.tables import TABLES
from . import EXIT_OK, EXIT_UNUSABLE, inputs, output
from .sparksession import NoSessionError, add_session_arguments, pair, session, told

_MODES = {"permissive": "permissive", "drop": "dropmalformed", "fail": "failfast"}


def add_parser(subparsers: Any) -> None:
    """Describe the command's arguments."""
    parser = subparsers.add_parser(
        "convert",
        help="write a table of what is in captures to a folder of Parquet files",
        description="Write a table of what is in captures and raw streams to a folder of Parquet files. "
        "Spark's workers read and write by themselves; the folder is whole or not there.",
        epilog="Exit code: 0 all was written; 2 unusable input, output or arguments, and nothing written.",
    )
    inputs.add_input_arguments(parser)
    parser.add_argument("out", metavar="OUT", help="the folder to write")
    parser.add_argument("--table", choices=TABLES, default="messages")
    parser.add_argument("--columns", metavar="A,B.C,...", help="only these columns, in this order")
    parser.add_argument("--mode", choices=_MODES, default="permissive", help="as for `amqpcodec convert`")
    parser.add_argument("--compression", choices=("zstd", "snappy", "gzip", "none"), default="zstd")
    parser.add_argument(
        "--save",
        choices=("errorifexists", "append", "overwrite"),
        default="errorifexists",
        help="what to do if OUT is there (default: end with an error)",
    )
    parser.add_argument("--show-credentials", action="store_true", help="do not hide login responses")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=pair,
        metavar="NAME=VALUE",
        help="another option of the data source, see docs/spark.md; repeatable",
    )
    add_session_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Convert; gives the exit code."""
    try:
        with session(arguments) as spark:
            from pyspark.errors import PySparkException

            from ..spark import pcap_to_parquet

            try:
                found = pcap_to_parquet(spark, arguments.files, arguments.out, **_asked(arguments))
                written = found.toArrow()
            except (PySparkException, ValueError) as error:
                output.tell(f"{arguments.out!r} was not written: {told(error)}")
                return EXIT_UNUSABLE
    except NoSessionError as error:
        output.tell(str(error))
        return EXIT_UNUSABLE
    rows, octets = (sum(written[name].to_pylist()) for name in ("rows", "octets"))
    sys.stdout.write(f"{arguments.out}: {rows} rows, {octets} octets in {written.num_rows} files\n")
    return EXIT_OK


def _asked(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `pcap_to_parquet`."""
    ports = inputs.ports(arguments)
    return {
        "table": arguments.table,
        "columns": arguments.columns.split(",") if arguments.columns is not None else None,
        "mode": _MODES[arguments.mode],
        "compression": arguments.compression,
        "save": arguments.save,
        "dialect": arguments.dialect,
        "ports": "any" if ports is None else ",".join(map(str, ports)),
        "input": "stream" if arguments.raw else "auto",
        "includeCredentials": arguments.show_credentials,
        **dict(arguments.option),
    }
