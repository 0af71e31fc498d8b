"""``amqpcodec replay``: publishes what the clients of a capture have published."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .. import capture
from ..errors import AmqpError
from ..options import FrameOptions, RawFrameOptions, ReplayOptions
from . import EXIT_FAULTS, EXIT_INTERRUPTED, EXIT_OK, EXIT_UNUSABLE, inputs, output
from .options import add_options, add_own_options, given
from .rendering import escaped

if TYPE_CHECKING:
    from ..replay import CapturedPublish, Place, ReplayReport

_MOST = 20  # exchanges, or runs of numbers, in a line


def add_parser(subparsers: Any) -> None:
    """Describe the subcommand's arguments."""
    parser = subparsers.add_parser(
        "replay",
        help="publish again what the clients of a capture have published",
        description="Publish what the clients of captures have published: in order on each channel, with "
        "confirms, with the same properties and bodies. Exchanges and queues have to be there.",
        epilog="Exit code: 0 all was published and confirmed; 1 something was not, or the capture lacks "
        "frames of it; 2 unusable input, broker or arguments.",
    )
    inputs.add_files(parser)
    parser.add_argument("url", metavar="URL", help="the broker: amqp://user:password@host/virtual-host")
    add_options(parser, FrameOptions)
    add_own_options(parser, ReplayOptions)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Replay every file; gives the exit code."""
    import asyncio

    from ..replay import Replayer

    try:
        replayer = Replayer(arguments.url, speed=_speed(arguments.speed), drop_user_id=arguments.drop_user_id)
        source = _Source(arguments)
        publishes = _chosen(source, arguments)
        if arguments.dry_run:
            _describe(publishes)
        else:
            asyncio.run(replayer.run(publishes))
    except (AmqpError, OSError, ValueError) as error:
        output.complain(inputs.reason(error))
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        _report(replayer.report)
        return EXIT_INTERRUPTED
    code = EXIT_OK if arguments.dry_run else _report(replayer.report)
    return max(code, source.report())


def _speed(text: str) -> float | None:
    """Return how many times the pace of the capture; None for the pace of the broker."""
    if text == "max":
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise ValueError(f"--speed {text}: it is a positive number, or max")
    return speed


class _Source:
    """The messages of files, one recording after the other. It ends at a file that cannot be read.

    Args:
        arguments: those of the command.

    Raises:
        ValueError: a file of a series cannot be read.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        from ..replay import PublishReader

        streams = inputs.of_streams(arguments)
        options = RawFrameOptions if streams else FrameOptions
        self._read: Any = capture.read_raw_frames if streams else capture.read_frames
        self._options = given(arguments, options)
        self._reader = PublishReader()
        self._last = 0
        self._unread = ""  # why reading has ended early
        rotated = "false" if streams else arguments.rotated
        self._recordings = inputs.recordings(arguments.files, rotated, arguments.series_pattern)

    def __iter__(self) -> Iterator[CapturedPublish]:
        for files in self._recordings:
            try:
                for item in self._read(files, **self._options):
                    publish = self._reader.feed(item)
                    if publish is not None:
                        yield publish
                        self._last = publish.number
            except (capture.CaptureError, OSError) as error:
                self._unread = f"{files.name!r}: {inputs.unreadable(error)}"
            self._reader.finish()
            if self._unread:
                return

    def report(self) -> int:
        """Say what could not be read, and what the captures have in part alone; gives the exit code."""
        if self._unread:
            onward = f"; without it, --from {self._last + 1} goes on" if self._last else ""
            output.complain(f"{self._unread}{onward}")
        if self._reader.incomplete:
            output.complain(f"left out: {self._reader.incomplete} messages of which the capture lacks frames")
        if self._unread:
            return EXIT_UNUSABLE
        return EXIT_FAULTS if self._reader.incomplete else EXIT_OK


def _chosen(publishes: Iterable[CapturedPublish], arguments: argparse.Namespace) -> Iterator[CapturedPublish]:
    """Messages from a number on, to exchanges and queues that are asked for."""
    first, exchanges, queues = (vars(arguments)[name] for name in ("from", "exchange", "queue"))
    for each in publishes:
        if each.number < first:
            continue
        if exchanges and not any(fnmatchcase(each.exchange, glob) for glob in exchanges):
            continue
        # The default exchange alone routes by the name of the queue.
        if queues and (each.exchange or not any(fnmatchcase(each.routing_key, glob) for glob in queues)):
            continue
        yield each


def _describe(publishes: Iterable[CapturedPublish]) -> None:
    """Print what would be published."""
    exchanges: Counter[str] = Counter()
    users: Counter[str] = Counter()
    places: set[Place] = set()
    times: list[int] = []
    octets = 0
    for each in publishes:
        exchanges[each.exchange] += 1
        places.add(each.place)
        octets += len(each.body)
        if each.time_ns is not None:
            times = [times[0] if times else each.time_ns, each.time_ns]
        if each.properties.user_id is not None:
            users[each.properties.user_id] += 1
    seconds = (times[-1] - times[0]) / 1e9 if times else 0.0
    lines = [
        f"would publish {exchanges.total()} messages, {octets} bytes, of {len(places)} channels; "
        f"the capture has {seconds:.3f} s of them"
    ]
    lines += [f"  exchange {name!r}: {count} messages" for name, count in exchanges.most_common(_MOST)]
    if len(exchanges) > _MOST:
        lines.append(f"  {len(exchanges) - _MOST} other exchanges")
    lines += [f"  user_id {name!r}: {count} messages" for name, count in users.most_common(_MOST)]
    with output.blaming_output():
        sys.stdout.write("".join(f"{escaped(line)}\n" for line in lines))


def _report(report: ReplayReport) -> int:
    """Say what was published and what was not; gives the exit code."""
    with output.blaming_output():
        sys.stdout.write(f"{report.confirmed} messages, {report.octets} bytes published and confirmed\n")
    for what, numbers in (
        ("returned, since no queue takes them", report.returned),
        ("refused by the broker", report.refused),
        ("unknown, sent and not confirmed", report.unknown),
    ):
        if numbers:
            output.complain(f"{what}: {len(numbers)}, messages {_runs(numbers)}")
    if report.error is not None:
        output.complain(f"ended early: {inputs.reason(report.error)}; --from {report.last + 1} goes on")
    faults = report.returned or report.refused or report.unknown or report.error
    return EXIT_FAULTS if faults else EXIT_OK


def _runs(numbers: list[int]) -> str:
    """Numbers as text: 3-5, 9."""
    runs = []
    for _, group in groupby(enumerate(sorted(numbers)), lambda each: each[1] - each[0]):
        run = [number for _, number in group]
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(runs)
