"""``amqpcodec decode``: what is in captures and raw streams, one line a frame."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import amqpcodec

from .. import capture
from . import EXIT_FAULTS, EXIT_OK, EXIT_UNUSABLE, output
from .jsonline import JsonLines
from .progress import progress
from .selection import Selection
from .textline import TextLines

_STANDARD_INPUT = "-"
_FLUSH_EVERY = 256  # lines written together when nobody watches them appear


def add_parser(subparsers: Any) -> None:
    """Describe the subcommand's arguments."""
    parser = subparsers.add_parser(
        "decode",
        help="print the frames in captures and raw streams",
        description="Print the AMQP frames in pcap and pcapng files (also in gzip), one line a frame.",
        epilog="Exit code: 0 all was read; 1 octets missing, lost or in error; 2 unusable input or output.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a capture; - reads standard input")
    parser.add_argument("--raw", action="store_true", help="files hold the octets of one direction")
    parser.add_argument("--format", choices=("text", "jsonl"), default="text")
    parser.add_argument("--dialect", choices=("auto", *amqpcodec.DIALECTS), default="auto")
    parser.add_argument(
        "--port", action="append", type=_port, metavar="N|any", help="server port, repeatable (default 5672)"
    )
    parser.add_argument("--channel", action="append", type=_channel, metavar="N", help="only this channel")
    parser.add_argument(
        "--method", action="append", metavar="GLOB", help="only such methods and their content: 'basic.*'"
    )
    parser.add_argument(
        "--body", type=_count, default=64, metavar="N", help="octets of a body to show (default 64)"
    )
    parser.add_argument("--show-credentials", action="store_true", help="do not hide login responses")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Decode every file; gives the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    codes = [_decode_file(name, arguments) for name in arguments.files]
    return max(codes)


def _decode_file(name: str, arguments: argparse.Namespace) -> int:
    try:
        with _open(name) as source:
            return _print_items(name, source, arguments)
    except BrokenPipeError:
        raise
    except (capture.CaptureError, OSError) as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        output.flush()
        output.tell(f"{name!r}: {reason}")
        return EXIT_UNUSABLE


def _open(name: str) -> capture.ByteSource:
    return capture.ByteSource(sys.stdin.buffer if name == _STANDARD_INPUT else name)


def _print_items(name: str, source: capture.ByteSource, arguments: argparse.Namespace) -> int:
    selection = Selection(arguments.channel, arguments.method)
    line = _line_maker(name, arguments)
    faults = found = False
    at_once = sys.stdout.isatty()
    pending: list[str] = []
    with progress(name, source) as lines:
        for item in _items(source, arguments):
            lines.advance()
            found = found or item.connection is not None
            if isinstance(item, capture.Fault):
                faults = True
            elif not selection.wants(item):
                continue
            pending.append(line(item))
            if at_once or len(pending) >= _FLUSH_EVERY:
                lines.write("".join(pending))
                pending.clear()
        lines.write("".join(pending))
    if not found and not arguments.raw:
        output.flush()
        output.tell(f"{name!r}: no AMQP found on {_searched(arguments)}")
    return EXIT_FAULTS if faults else EXIT_OK


def _items(source: capture.ByteSource, arguments: argparse.Namespace) -> Iterator[capture.Item]:
    if arguments.raw:
        return capture.read_raw_frames(source, dialect=arguments.dialect)
    return capture.read_frames(source, port=_ports(arguments), dialect=arguments.dialect)


def _ports(arguments: argparse.Namespace) -> list[int] | None:
    """The server ports to look at; None for every one."""
    ports = arguments.port or [capture.AMQP_PORT]
    return None if None in ports else sorted(set(ports))


def _searched(arguments: argparse.Namespace) -> str:
    """Where AMQP was looked for, as the end of a sentence, with what else could be tried."""
    ports = _ports(arguments)
    if ports is None:
        return "any port"
    noun = "port" if len(ports) == 1 else "ports"
    return f"{noun} {', '.join(map(str, ports))}; try --port any"


def _line_maker(name: str, arguments: argparse.Namespace) -> Callable[[capture.Item], str]:
    if arguments.format == "jsonl":
        return JsonLines(name, arguments.body, arguments.show_credentials).line
    return TextLines(_coloured(arguments.color), arguments.body, arguments.show_credentials).line


def _coloured(choice: str) -> bool:
    if choice == "auto":
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return choice == "always"


def _port(text: str) -> int | None:
    return None if text == "any" else _bounded(text, 1, 65535, "a port is a number from 1 to 65535, or any")


def _channel(text: str) -> int:
    return _bounded(text, 0, 65535, "a channel is a number from 0 to 65535")


def _count(text: str) -> int:
    return _bounded(text, 0, sys.maxsize, "a count of octets is needed")


def _bounded(text: str, low: int, high: int, complaint: str) -> int:
    if not (text.isascii() and text.isdecimal() and low <= int(text) <= high):
        raise argparse.ArgumentTypeError(complaint)
    return int(text)
