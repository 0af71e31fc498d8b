"""``python -m amqpcodec.bench``: see the package."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import capture
from ..cli import EXIT_INTERRUPTED, inputs, output
from ..cli.options import add_options, given
from ..cli.parsing import Parser
from ..options import FrameOptions, InputOptions, RawFrameOptions
from .comparing import (
    OURS,
    IncomparableError,
    Row,
    compare,
    figures,
    markdown,
    nanoseconds,
    processor,
    table,
    yardsticks,
)
from .recording import Recording, record
from .timing import measure
from .works import WrongResultError, our_works
from .works import yardsticks as yardstick_works

EXIT_OK, EXIT_SLOWER, EXIT_UNUSABLE = 0, 1, 2
_CHUNK = 1 << 16
DESCRIPTION = """\
Time the codec on octets of your own: decoding of frames and of messages, and encoding again of what was
decoded. pamqp and pika are timed beside it where they are installed, and a loop of the standard library
always: ratios to them hold on a slow machine as well."""
EPILOG = """\
  python -m amqpcodec.bench traffic.pcap --json > before.json
  python -m amqpcodec.bench traffic.pcap --json --compare before.json --margin 10% > now.json
  python -m amqpcodec.bench now.json --compare before.json

Exit code: 0 nothing is slower by more than the margin; 1 the rows in capitals are; 2 unusable input, or runs
that cannot be compared. docs/benchmarks.md has a workflow."""


def main(argv: Sequence[str] | None = None, timer: Callable[[], float] = time.process_time) -> int:
    """Run the command.

    Args:
        argv: its arguments; those of the process if None.
        timer: the clock.

    Returns:
        the exit code.
    """
    output.stand_in()
    code = EXIT_OK
    try:
        arguments = _parser().parse_args(argv)
        old = None if arguments.compare is None else _stored(arguments.compare)
        run = _run(arguments, timer)
        rows = None if old is None else compare(old, run)
        if any(row.fails(arguments.margin) for row in rows or ()):
            code = EXIT_SLOWER
        _print(run, old, rows, arguments)
    except BrokenPipeError:
        output.discard(sys.stdout)  # whoever read it has seen enough
    except output.OutputError as error:
        output.discard(sys.stdout)
        print(f"amqpcodec.bench: standard output: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except (IncomparableError, WrongResultError) as error:
        print(f"amqpcodec.bench: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        print("amqpcodec.bench: interrupted; nothing is written", file=sys.stderr)
        return EXIT_INTERRUPTED
    return code


def _print(
    run: dict[str, Any],
    old: dict[str, Any] | None,
    rows: Sequence[Row] | None,
    arguments: argparse.Namespace,
) -> None:
    """Print the times or what has changed, and with ``--json`` the run."""
    text = (
        _times(run) if old is None or rows is None else _changes(rows, yardsticks(old, run), arguments.margin)
    )
    with output.blaming_output():
        print(text, end="", file=sys.stderr if arguments.json else sys.stdout)
        if old is not None and processor(old) != processor(run):
            note = (
                f"The runs are of {processor(old)} and of {processor(run)}. Ratios differ between processors."
            )
            print(note, file=sys.stderr)
        if arguments.json:
            print(json.dumps(run, indent=1))
    output.flush()


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m amqpcodec.bench",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", metavar="FILE", help="a capture; or JSON of an earlier run, which is compared as it is"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the run as JSON, as pytest-benchmark does; tables go to stderr",
    )
    parser.add_argument("--compare", metavar="OLD.json", help="an earlier run")
    parser.add_argument(
        "--margin",
        type=_margin,
        default=0.1,
        metavar="N%",
        help="by how much a work may be slower (default 10%%)",
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=1.0, help="how long each work is timed (default 1)"
    )
    parser.add_argument(
        "--max-bytes",
        type=_max_bytes,
        default=1 << 20,
        metavar="N",
        help="bytes of frames that are timed, from the first one (default 1 MiB)",
    )
    add_options(parser, InputOptions)
    return parser


def _margin(text: str) -> float:
    return _amount(text.removesuffix("%"), "a margin is a number of per cent, such as 10%") / 100


def _seconds(text: str) -> float:
    return _amount(text, "a number of seconds is needed, such as 0.5")


def _amount(text: str, complaint: str) -> float:
    """A number that is finite and not negative: beside NaN nothing is ever slower."""
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise argparse.ArgumentTypeError(complaint)
    return amount


def _max_bytes(text: str) -> int:
    return inputs.bounded(text, 1, sys.maxsize, "a number of bytes is needed, at least 1")


def _run(arguments: argparse.Namespace, timer: Callable[[], float]) -> dict[str, Any]:
    """Measure, unless the file is of an earlier run.

    Raises:
        IncomparableError: the file is neither a capture with AMQP nor a run.
        WrongResultError: what is to be timed does not do its work.
    """
    name = arguments.file
    try:
        with inputs.open_file(name) as file, capture.ByteSource(file) as source:
            if source.peek(1) == b"{":
                return _parsed(name, source)
            recording = record(_items(source, arguments), arguments.max_bytes)
    except (capture.CaptureError, OSError, ValueError) as error:
        raise IncomparableError(f"{name!r}: {inputs.unreadable(error)}") from error
    if not recording.streams:
        raise IncomparableError(f"{name!r}: {_nothing(recording, arguments)}")
    if recording.left_out:
        print(f"left out, as damaged or incomplete: {recording.left_out}", file=sys.stderr)
    if not recording.is_whole:
        print(
            f"only the first {arguments.max_bytes} bytes of frames are timed (--max-bytes)", file=sys.stderr
        )
    others, missing = yardstick_works(recording)
    run = measure([*our_works(recording), *others], arguments.seconds, timer)
    return {**run, "octets": recording.digest, "missing": missing}


def _nothing(recording: Recording, arguments: argparse.Namespace) -> str:
    """Why there is nothing to time."""
    if not recording.is_whole:
        return f"the first frame has more than {arguments.max_bytes} bytes (--max-bytes)"
    where = "" if inputs.of_streams(arguments) else f" on {inputs.searched(arguments)}"
    why = f"; {recording.first_fault}" if recording.first_fault else ""
    return f"no AMQP found{where}{why}"


def _items(source: capture.ByteSource, arguments: argparse.Namespace) -> Iterator[capture.Item]:
    if inputs.of_streams(arguments):
        return capture.read_raw_frames(source, **given(arguments, RawFrameOptions))
    return capture.read_frames(source, **given(arguments, FrameOptions))


def _stored(name: str) -> dict[str, Any]:
    """A run from a file.

    Raises:
        IncomparableError: the file holds none, or cannot be read.
    """
    try:
        with inputs.open_file(name) as file, capture.ByteSource(file) as source:
            return _parsed(name, source)
    except (capture.CaptureError, OSError) as error:
        raise IncomparableError(f"{name!r}: {inputs.reason(error)}") from error


def _parsed(name: str, source: capture.ByteSource) -> dict[str, Any]:
    try:
        run: dict[str, Any] = json.loads(b"".join(iter(lambda: source.read(_CHUNK), b"")))
        figures(run)
    except UnicodeDecodeError:
        raise IncomparableError(f"{name!r}: not a run of amqpcodec.bench, which is JSON") from None
    except (ValueError, IncomparableError) as error:
        raise IncomparableError(f"{name!r}: {error}") from None
    return run


def _times(run: dict[str, Any]) -> str:
    lines = [("work", "by", "time", "times ours")]
    for item, peers in figures(run).items():
        ours = next((peers[name] for name in OURS if name in peers), 0.0)
        for peer, shortest in peers.items():
            ratio = f"{shortest / ours:.1f}" if ours and peer not in OURS else ""
            lines.append((item, peer, nanoseconds(shortest), ratio))
    absent = "".join(f"{name} is no yardstick: {why}\n" for name, why in run.get("missing", {}).items())
    return f"{markdown(lines)}{absent}"


def _changes(rows: Sequence[Row], beside: Sequence[str], margin: float) -> str:
    failed = [row.work for row in rows if row.fails(margin)]
    last = f"Slower, or gone: {'; '.join(failed)}." if failed else "Nothing is slower."
    note = f"The change is that of the ratio to {', '.join(beside)}, in the same run; margin {margin:.0%}."
    return f"{table(rows, margin, nanoseconds)}\n{note} {last}\n"


if __name__ == "__main__":
    sys.exit(main())
