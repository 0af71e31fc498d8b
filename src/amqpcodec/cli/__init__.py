"""The `amqpcodec` command: picks a subcommand and hands over. Each subcommand is a module of this package
with two functions, ``add_parser(subparsers)`` and ``run(arguments) -> exit code``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import amqpcodec

from . import output
from .parsing import Parser

SUBCOMMANDS = ("decode", "convert", "stats", "record", "replay", "spark")
EXIT_OK, EXIT_FAULTS, EXIT_UNUSABLE, EXIT_INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: its arguments; those of the process if None.

    Returns:
        the exit code: 0 everything was read, 1 something was missing or damaged, 2 unusable input,
        output or arguments, 130 interrupted.
    """
    output.stand_in()
    try:
        arguments = _parser().parse_args(argv)
        code = int(arguments.run(arguments))
        output.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        output.discard(sys.stdout)
        return EXIT_OK
    except output.OutputError as error:
        output.discard(sys.stdout)
        output.complain(f"standard output: {error}")
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        output.complain("interrupted; lines printed are whole, and files to be written are as they were")
        return EXIT_INTERRUPTED
    return code


def _parser() -> Parser:
    parser = Parser(prog="amqpcodec", description="Read and record AMQP 0-8, 0-9 and 0-9-1.")
    version = f"amqpcodec {amqpcodec.__version__} ({amqpcodec.IMPL})"
    parser.add_argument("--version", action="version", version=version)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in SUBCOMMANDS:
        import_module(f"{__name__}.{name}").add_parser(subparsers)
    return parser
