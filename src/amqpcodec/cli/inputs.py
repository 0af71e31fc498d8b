"""The arguments that say what to read, the same for every subcommand that reads captures."""

from __future__ import annotations

import argparse
import errno
import glob
import os
import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from ..options import AMQP_PORT

STANDARD_INPUT = "-"


def add_files(parser: argparse.ArgumentParser) -> None:
    """Describe the argument `files`."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a file, or a pattern of names; - reads standard input"
    )


def of_streams(arguments: argparse.Namespace) -> bool:
    """Whether the files hold the octets of one direction."""
    return getattr(arguments, "input", None) == "stream"


def expanded(names: Iterable[str]) -> Iterator[str]:
    """The files meant by names and patterns; a pattern that fits none is given as it is."""
    for name in names:
        found = [] if os.path.lexists(name) else sorted(glob.glob(name, recursive=True))
        yield from found or (name,)


def open_file(name: str) -> BinaryIO:
    """Open a file by name, or standard input.

    Raises:
        OSError: it cannot be opened.
    """
    if name == STANDARD_INPUT:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "it is closed", "standard input")
        return open(sys.stdin.fileno(), "rb", 0, closefd=False)
    return open(name, "rb", 0)


def searched(arguments: argparse.Namespace) -> str:
    """Where AMQP was looked for, as the end of a sentence, with what else could be tried."""
    chosen = getattr(arguments, "port", [AMQP_PORT])
    if chosen is None:
        return "any port"
    noun = "port" if len(chosen) == 1 else "ports"
    return f"{noun} {', '.join(map(str, chosen))}; try --port any"


def reason(error: Exception) -> str:
    """Why something could not be read or written, without the name of the file."""
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def bounded(text: str, low: int, high: int, complaint: str) -> int:
    """A number in an argument.

    Raises:
        argparse.ArgumentTypeError: no number from `low` to `high`; `complaint` is its text.
    """
    if not (text.isascii() and text.isdecimal() and low <= int(text) <= high):
        raise argparse.ArgumentTypeError(complaint)
    return int(text)
