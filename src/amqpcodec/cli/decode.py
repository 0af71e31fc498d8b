"""``amqpcodec decode``: what is in captures and raw streams, one line a frame."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .. import capture
from ..options import DecodeOptions, FrameOptions, RawFrameOptions
from . import EXIT_FAULTS, EXIT_OK, EXIT_UNUSABLE, inputs, output
from .jsonline import JsonLines
from .options import add_options, given
from .progress import progress
from .rendering import escaped
from .selection import Selection
from .summary import Summary
from .textline import TextLines

_FLUSH_EVERY = 256  # lines written together when nobody watches them appear


def add_parser(subparsers: Any) -> None:
    """Describe the subcommand's arguments."""
    parser = subparsers.add_parser(
        "decode",
        help="print the frames in captures and raw streams",
        description="Print the AMQP frames in pcap and pcapng files (also in gzip), one line a frame.",
        epilog="Exit code: 0 all was read; 1 octets missing, lost or in error; 2 unusable input or output.",
    )
    inputs.add_files(parser)
    add_options(parser, DecodeOptions)
    parser.add_argument("--format", choices=("text", "jsonl"), default="text")
    parser.add_argument("--channel", action="append", type=_channel, metavar="N", help="only this channel")
    parser.add_argument(
        "--method", action="append", metavar="GLOB", help="only such methods and their content: 'basic.*'"
    )
    parser.add_argument(
        "--body-bytes", type=_count, default=64, metavar="N", help="bytes of a body to show (default 64)"
    )
    parser.add_argument(
        "--summary", action="store_true", help="end with counts of what is in each file (format text)"
    )
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Decode every file; gives the exit code."""
    if arguments.summary and arguments.format != "text":
        output.complain("--summary is for people: it goes with --format text")
        return EXIT_UNUSABLE
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    codes = [_decode_file(name, arguments) for name in inputs.expanded(arguments.files)]
    return max(codes)


def _decode_file(name: str, arguments: argparse.Namespace) -> int:
    try:
        with inputs.open_file(name) as file, capture.ByteSource(file) as source:
            return _print_items(name, source, arguments)
    except BrokenPipeError:
        raise
    except (capture.CaptureError, OSError) as error:
        output.flush()
        output.complain(f"{name!r}: {inputs.reason(error)}")
        return EXIT_UNUSABLE


def _print_items(name: str, source: capture.ByteSource, arguments: argparse.Namespace) -> int:
    selection = Selection(arguments.channel, arguments.method)
    line = _line_maker(name, arguments)
    summary = Summary() if arguments.summary else None
    faults = found = False
    at_once = sys.stdout.isatty()
    pending: list[str] = []
    with progress(name, source) as lines:
        for item in _items(source, arguments):
            lines.advance()
            found = found or item.connection is not None
            if summary is not None:
                summary.add(item)
            if isinstance(item, capture.Fault):
                faults = True
            elif not selection.wants(item):
                continue
            pending.append(line(item))
            if at_once or len(pending) >= _FLUSH_EVERY:
                lines.write("".join(pending))
                pending.clear()
        lines.write("".join(pending))
        if summary is not None:
            lines.write(f"\n{escaped(name)}\n{summary.text()}")
    if not found and not inputs.of_streams(arguments):
        output.flush()
        output.complain(f"{name!r}: no AMQP found on {inputs.searched(arguments)}")
    return EXIT_FAULTS if faults else EXIT_OK


def _items(source: capture.ByteSource, arguments: argparse.Namespace) -> Iterator[capture.Item]:
    if inputs.of_streams(arguments):
        return capture.read_raw_frames(source, **given(arguments, RawFrameOptions))
    return capture.read_frames(source, **given(arguments, FrameOptions))


def _line_maker(name: str, arguments: argparse.Namespace) -> Callable[[capture.Item], str]:
    credentials = getattr(arguments, "include_credentials", False)
    if arguments.format == "jsonl":
        return JsonLines(name, arguments.body_bytes, credentials).line
    return TextLines(_coloured(arguments.color), arguments.body_bytes, credentials).line


def _coloured(choice: str) -> bool:
    if choice == "auto":
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return choice == "always"


def _channel(text: str) -> int:
    return inputs.bounded(text, 0, 65535, "a channel is a number from 0 to 65535")


def _count(text: str) -> int:
    return inputs.bounded(text, 0, sys.maxsize, "a number of bytes is needed")
