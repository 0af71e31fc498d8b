"""``amqpcodec decode``: what is in captures and raw streams, one line a frame or message."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .. import _backend, capture
from .._options import declared, resolve, select
from ..options import (
    DecodeOptions,
    DecodingOptions,
    FrameOptions,
    PrintOptions,
    RawFrameOptions,
    SelectionOptions,
    TrackingOptions,
)
from . import EXIT_FAULTS, EXIT_OK, EXIT_UNUSABLE, inputs, output
from .choosing import Choice, MessageChoice
from .ends import Ends
from .found import Found, FoundLines
from .jsonline import JsonLines
from .moments import moment
from .options import add_options, add_own_options, given
from .progress import Output, progress
from .queues import Queues
from .rendering import escaped, json_text
from .selection import Selection, carry_content, method_glob
from .summary import FrameSummary
from .textline import TextLines

if TYPE_CHECKING:
    from .lines_py import Lines
    from .messages_py import Messages, ShownMessage
else:
    Lines = _backend.load("amqpcodec.cli.lines").Lines
    Messages = _backend.load("amqpcodec.cli.messages").Messages

_MOST_WAITING = 256  # lines written together when nobody watches them appear
_MOST_FOREIGN = 3  # kinds of connections without AMQP that are named


def add_parser(subparsers: Any) -> None:
    """Describe the subcommand's arguments."""
    parser = subparsers.add_parser(
        "decode",
        help="print the frames or messages in captures and raw streams",
        description="Print the AMQP frames in pcap and pcapng files (also in gzip), one line a frame, or one "
        "a message. A pipe that stays open will do: "
        "tcpdump -U --immediate-mode -w - port 5672 | amqpcodec decode -",
        epilog="Exit code: 0 all was read; 1 bytes missing, lost or in error; 2 unusable input or output.",
    )
    inputs.add_files(parser)
    add_options(parser, DecodeOptions)
    add_own_options(parser, PrintOptions)
    own = {"connection": Ends, "since": moment, "until": moment, "method": method_glob}
    add_own_options(parser, SelectionOptions, parse=own)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Decode every file; gives the exit code."""
    refusal = _refusal(arguments)
    if refusal:
        output.complain(refusal)
        return EXIT_UNUSABLE
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    names = list(inputs.expanded(arguments.files))
    left, code = arguments.limit, EXIT_OK
    for name in names:
        decoded = _File(name, arguments, left, alone=len(names) == 1)
        code = max(code, decoded.print())
        if left is not None:
            left -= decoded.shown
            if left <= 0:
                break
    return code


def _refusal(arguments: argparse.Namespace) -> str:
    """Why options do not go together; "" if they do."""
    if arguments.summary and (arguments.count or arguments.messages or arguments.errors):
        return "--summary prints nothing but a summary: it goes without --count, --messages and --errors"
    if arguments.errors and arguments.messages:
        return "--errors shows frames, since a close or a refusal is no message: it goes without --messages"
    if arguments.errors and arguments.trace is not None:
        return "--errors and --trace are two choices; one of them at a time"
    if arguments.before is not None and not arguments.errors:
        return "--before is about what --errors shows"
    if inputs.of_streams(arguments) and (arguments.since or arguments.until):
        return "--since and --until need times, and the bytes of a stream have none"
    if arguments.messages and arguments.method and not carry_content(arguments.method):
        methods = " or ".join(arguments.method)
        return f"no message begins with {methods}; without --messages the frames are shown"
    return ""


class _File:
    """Prints what is in one file.

    Args:
        name: its name, or - for standard input.
        arguments: those of the command.
        limit: how many frames or messages to show; None for all.
        alone: whether it is the only file.

    Attributes:
        shown: how many frames or messages were shown, or counted.
    """

    def __init__(self, name: str, arguments: argparse.Namespace, limit: int | None, alone: bool) -> None:
        self.shown = 0
        self._name, self._arguments = name, arguments
        self._limit, self._alone, self._counts = limit, alone, arguments.count
        self._of_streams = inputs.of_streams(arguments)
        self._any_port = not self._of_streams and getattr(arguments, "port", ()) is None
        credentials = getattr(arguments, "include_credentials", False)
        self._form: JsonLines | TextLines
        if arguments.format == "jsonl":
            self._form = JsonLines(name, arguments.body_bytes, credentials, arguments.messages)
        else:
            self._form = TextLines(_coloured(arguments.color), arguments.body_bytes, credentials)
        # It takes what the choice makes: frames, messages and faults, or what was found wrong.
        self._lines: Any = FoundLines(self._form) if arguments.errors else Lines(self._form)
        self._choice = _choice(arguments)
        self._by_frame = 0 if arguments.messages else 1  # what a frame counts, which then settles a message
        self._summary = FrameSummary() if arguments.summary else None
        self._foreign: Counter[str] = Counter()  # what connections are that are not AMQP
        self._found = False  # whether there is any AMQP, or a fault of it
        self._faults = 0  # of those that are wanted
        self._tracker: capture.StreamTracker | None = None  # None for a stream
        self._out = Output()
        self._most_waiting = _MOST_WAITING

    def print(self) -> int:
        """Print it; gives the exit code."""
        try:
            with (
                inputs.open_file(self._name) as file,
                capture.ByteSource(inputs.awaited(file, self._flush)) as source,
                progress(self._name, source) as self._out,
            ):
                self._most_waiting = 1 if self._out.watched else _MOST_WAITING
                self._print(source)
        except BrokenPipeError:
            raise
        except (capture.CaptureError, OSError) as error:
            output.flush()
            output.complain(f"{self._name!r}: {inputs.unreadable(error)}")
            return EXIT_UNUSABLE
        return EXIT_FAULTS if self._faults else EXIT_OK

    def _print(self, source: capture.ByteSource) -> None:
        ended = False
        try:
            ended = self._show_all(self._items(source))
        except KeyboardInterrupt:
            self._conclude()
            raise
        self._conclude()
        if ended:
            self._explain()

    def _show_all(self, items: Iterator[capture.Item]) -> bool:
        """Show what is wanted; whether it was read to the end."""
        choose = None if self._choice is None else self._choice.feed
        show, limit = self._show, self._limit
        only_counted = choose is None and self._counts and limit is None
        for item in self._out.counting(items):
            if only_counted and type(item) is capture.CapturedFrame:
                self._found = True
                self.shown += 1
                continue
            if isinstance(item, capture.Fault) and self._is_foreign(item):
                continue
            if not self._found and item.connection is not None:
                self._found = True
            if choose is None:
                show(item)
            else:
                for each in choose(item):
                    show(each)
            if self.shown == limit:
                return False
        if self._choice is not None:
            for each in self._choice.finish():
                show(each)
        return True

    def _items(self, source: capture.ByteSource) -> Iterator[capture.Item]:
        if self._of_streams:
            return capture.read_raw_frames(source, **given(self._arguments, RawFrameOptions))
        options = resolve(FrameOptions, given(self._arguments, FrameOptions))
        events: Iterable[capture.Event | capture.Fault]
        self._tracker = capture.StreamTracker(**select(TrackingOptions, options))
        events = capture.read_events(source, self._tracker)
        if self._choice is not None:
            events = self._choice.watching(events)
        return capture.read_items(events, **select(DecodingOptions, options))

    def _is_foreign(self, fault: capture.Fault) -> bool:
        """Return whether a fault is but a connection without AMQP, on a port that nobody has asked for."""
        foreign = self._any_port and fault.connection is not None and fault.direction is None
        if foreign:
            self._foreign[fault.message] += 1
        return foreign

    def _show(self, item: Any) -> None:
        if self.shown == self._limit:
            return
        if type(item) is capture.CapturedFrame:
            self.shown += self._by_frame
        else:
            self._count(item)
        if self._summary is not None:
            self._summary.add(item)
        elif not self._counts and self._lines.add(item) >= self._most_waiting:
            self._flush()

    def _count(self, item: capture.Fault | ShownMessage | Found) -> None:
        if isinstance(item, capture.Fault):
            self._faults += 1
        elif isinstance(item, Found):
            self.shown += item.counts
            self._faults += isinstance(item.item, capture.Fault)
        else:
            self.shown += 1

    def _flush(self) -> None:
        """Write the lines made so far, all the way."""
        lines = self._lines.take()
        if lines:
            self._out.write(lines)
            output.flush()

    def _conclude(self) -> None:
        """Write the rest, and what was counted."""
        self._flush()
        if self._arguments.count:
            self._out.write(self._counted())
        if self._summary is not None:
            self._out.write(self._summed_up(self._summary))

    def _counted(self) -> str:
        if self._arguments.format == "jsonl":
            return json.dumps({"file": self._name, "count": self.shown, "faults": self._faults}) + "\n"
        return f"{self.shown}\n" if self._alone else f"{escaped(self._name)}:{self.shown}\n"

    def _summed_up(self, summary: FrameSummary) -> str:
        if self._arguments.format == "jsonl":
            return json_text({"file": self._name, **summary.row()}) + "\n"
        return summary.text() if self._alone else f"\n{escaped(self._name)}\n{summary.text()}"

    def _explain(self) -> None:
        """Say on standard error why there may be less than was hoped for."""
        reasons = []
        if not self._found and not self._of_streams:
            reasons.append(f"no AMQP found on {inputs.searched(self._arguments, self._tracker)}")
            reasons += [f"{count} x {message}" for message, count in self._foreign.most_common(_MOST_FOREIGN)]
        elif self._choice is not None:
            reasons += [] if self.shown else self._choice.unmet()
            reasons += self._choice.left_out()
        if self._tracker is not None and self._tracker.recorded_twice:
            reasons.append(inputs.recorded_twice(self._tracker.recorded_twice, self._arguments))
        if self._counts and self._faults and not self._arguments.errors:
            reasons.append(f"faults that are not counted: {self._faults}; without --count they are shown")
        if reasons:
            output.flush()
        for reason in reasons:
            output.complain(f"{self._name!r}: {reason}")


def _choice(arguments: argparse.Namespace) -> Choice | None:
    """Return what chooses the lines of a file; None to show all its frames.

    Those that follow messages are imported late: it takes longer than the rest of the command.
    """
    selection = _selection(arguments)
    queues = Queues() if arguments.messages or arguments.queue else None
    messages = Messages(arguments.body_bytes) if arguments.messages else None
    if arguments.errors:
        from .problems import USUAL_BEFORE, ErrorChoice

        before = USUAL_BEFORE if arguments.before is None else arguments.before
        return ErrorChoice(selection, queues, before, arguments.body_bytes)
    if arguments.trace is not None:
        from .tracing import TraceChoice

        return TraceChoice(selection, queues, messages, arguments.trace)
    if messages is not None and queues is not None:
        return MessageChoice(selection, queues, messages)
    return None if selection is None else Choice(selection, queues)


def _selection(arguments: argparse.Namespace) -> Selection | None:
    chosen = {name: getattr(arguments, name) for name in declared(SelectionOptions) if name != "trace"}
    if all(value is None for value in chosen.values()):
        return None
    return Selection(
        connections=chosen["connection"], since=chosen["since"], until=chosen["until"],
        channels=chosen["channel"], methods=chosen["method"], exchanges=chosen["exchange"],
        queues=chosen["queue"],
    )  # fmt: skip


def _coloured(choice: str) -> bool:
    if choice == "auto":
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return choice == "always"
