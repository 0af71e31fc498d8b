"""``amqpcodec stats``: what a person asks first about captures, as text, JSON, metrics or a page."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import capture
from ..options import ReportOptions, StatsOptions
from . import EXIT_FAULTS, EXIT_OK, EXIT_UNUSABLE, inputs, output
from .options import add_options, add_own_options, given
from .progress import Watched, reading, size
from .replacing import ended_by_sigterm, replacing

if TYPE_CHECKING:
    from ..stats import Summary


def add_parser(subparsers: Any) -> None:
    """Describe the subcommand's arguments."""
    parser = subparsers.add_parser(
        "stats",
        help="who talked, what was carried where, how long answers took, what went wrong",
        description="Summarise captures (pcap, pcapng, also compressed): who talked, which exchanges, "
        "routing keys and queues carried how much, rates, errors, gaps, and how long confirms and "
        "acknowledgements took.",
        epilog="Exit code: 0 all was read; 1 bytes missing, lost or in error; 2 unusable input or output.",
    )
    inputs.add_files(parser)
    add_options(parser, StatsOptions)
    add_own_options(parser, ReportOptions)
    parser.set_defaults(run=run)


_METRICS = {"encoding": "utf-8", "newline": "\n"}


def run(arguments: argparse.Namespace) -> int:
    """Read every file and print the summary; returns the exit code."""
    if hasattr(sys.stdout, "reconfigure"):
        metrics = arguments.format == "prometheus"  # whose encoding and ends of lines are not a choice
        sys.stdout.reconfigure(**_METRICS if metrics else {"errors": "backslashreplace"})
    names = list(inputs.expanded(arguments.files))
    if arguments.html is not None and inputs.is_read(arguments.html, names):
        output.complain(f"{arguments.html!r} is read, so it cannot be written")
        return EXIT_UNUSABLE
    try:
        with ended_by_sigterm(), _page_file(arguments.html) as path:
            summary, unread = _collect(arguments, names)
            if path is not None:
                _write_page(path, summary)
    except ImportError as error:
        output.complain(str(error))
        return EXIT_UNUSABLE
    except OSError as error:
        output.complain(f"{arguments.html!r}: {inputs.reason(error)}")
        return EXIT_UNUSABLE
    with output.blaming_output():
        sys.stdout.write(_shown(summary, arguments.format))
    if unread:
        return EXIT_UNUSABLE
    return EXIT_FAULTS if summary.faults.distinct else EXIT_OK


@contextmanager
def _page_file(path: str | None) -> Iterator[str | None]:
    """Where to write the page; complains before anything is read if that cannot be."""
    if path is None:
        yield None
        return
    try:
        from . import statshtml  # noqa: F401  # can a page be made?
    except ImportError as error:
        raise ImportError('HTML pages need plotly and pyarrow: pip install "amqpcodec[report]"') from error
    with replacing(path) as part:
        yield part


def _write_page(path: str, summary: Summary) -> None:
    from .statshtml import page

    with open(path, "w", encoding="utf-8") as file:
        file.write(page(summary))


def _shown(summary: Summary, form: str) -> str:
    from .statsections import sections
    from .statsprometheus import prometheus
    from .statstext import text

    if form == "json":
        return json.dumps(summary.as_dict(), allow_nan=False) + "\n"
    return prometheus(summary) if form == "prometheus" else text(sections(summary))


def _collect(arguments: argparse.Namespace, names: list[str]) -> tuple[Summary, bool]:
    """Read the files; gives what they hold, and whether one of them could not be read."""
    from .. import stats

    collector = stats.Collector(**given(arguments, StatsOptions))
    unread = False
    with reading("amqpcodec stats", sum(map(size, names))) as report:
        for name in names:
            try:
                with Watched(inputs.open_file(name), report) as file:
                    found = collector.add(file, name)
            except (capture.CaptureError, OSError) as error:
                output.complain(f"{name!r}: {inputs.unreadable(error)}")
                unread = True
            else:
                if not found and not inputs.of_streams(arguments):
                    output.complain(
                        f"{name!r}: no AMQP found on {inputs.searched_in_vain(arguments, collector.tracker)}"
                    )
    return collector.summary(), unread
