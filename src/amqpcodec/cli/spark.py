"""``amqpcodec spark``: conversions by Spark. Each command is a module of this package, as subcommands are."""

from __future__ import annotations

from importlib import import_module
from typing import Any

COMMANDS = ("sparkconvert", "sparkreplay")


def add_parser(subparsers: Any) -> None:
    """Describe the subcommand and those below it."""
    parser = subparsers.add_parser(
        "spark",
        help="convert captures by Spark, on this machine or a cluster",
        description="Convert captures by Spark: in a session of this machine, of a cluster (spark-submit), "
        "or of a Spark Connect server.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        import_module(f"{__package__}.{name}").add_parser(commands)
