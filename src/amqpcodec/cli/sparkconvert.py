"""``amqpcodec spark convert``: a table of what is in captures, as a folder of Parquet files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .._columns.tables import TABLES
from . import inputs
from .sparksession import add_output_arguments, add_session_arguments, pair, run_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODES = {"permissive": "permissive", "drop": "dropmalformed", "fail": "failfast"}

# Options of the data source, and arguments of `pcap_to_parquet`, that the command has arguments for.
_TAKEN = frozenset((
    "path", "paths", "src", "dst", "spark", "table", "columns", "mode", "compression", "save", "dialect",
    "ports", "includecredentials",
))  # fmt: skip


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
    add_output_arguments(parser)
    parser.add_argument("--table", choices=TABLES, default="messages")
    parser.add_argument("--columns", metavar="A,B.C,...", help="only these columns, in this order")
    parser.add_argument("--mode", choices=_MODES, default="permissive", help="as for `amqpcodec convert`")
    parser.add_argument("--compression", choices=("zstd", "snappy", "gzip", "none"), default="zstd")
    parser.add_argument("--show-credentials", action="store_true", help="do not hide login responses")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="NAME=VALUE",
        help="another option of the data source, see docs/spark.md; repeatable",
    )
    add_session_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Convert; gives the exit code."""

    def write(spark: SparkSession) -> str:
        from ..spark import pcap_to_parquet

        written = pcap_to_parquet(spark, arguments.files, arguments.out, **_asked(arguments)).toArrow()
        rows, octets = (sum(written[name].to_pylist()) for name in ("rows", "octets"))
        return f"{rows} rows, {octets} octets in {written.num_rows} files"

    return run_job(arguments, write)


def _option(text: str) -> tuple[str, str]:
    """A name and a value for an option that no other argument of the command is for."""
    name, value = pair(text)
    if name.lower().replace("_", "") in _TAKEN:
        raise argparse.ArgumentTypeError(f"{name!r} is given by an argument of its own, see --help")
    return name, value


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
