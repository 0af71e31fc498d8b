"""Warnings where there is nothing of what was asked for, or a file is skipped.

Mostly, the broker has another port.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator

import pyarrow as pa

from ..options import SparkReadOptions
from .planning import Part, Recording


class NothingFoundWarning(UserWarning):
    """Captures have no AMQP on the ports that were asked for, or there are none."""


class BadFileWarning(UserWarning):
    """A file is skipped, or not read as part of its series."""


def warn_of_bad(parts: Iterable[Part], stacklevel: int = 2) -> None:
    """Warn of each file that is skipped; `stacklevel` as for `warnings.warn`."""
    for part in parts:
        if part.kind == "bad":
            message = f"skipped {part.ranges[0].path!r}: {part.fault}"
            warnings.warn(message, BadFileWarning, stacklevel + 1)


def warn_of_files(recordings: Iterable[Recording], paths: Iterable[str], stacklevel: int = 2) -> None:
    """Warn of each file that is skipped, or if paths mean nothing that could be read."""
    parts = [part for recording in recordings for part in recording]
    warn_of_bad(parts, stacklevel + 1)
    if not parts:
        warnings.warn(no_files(paths), NothingFoundWarning, stacklevel + 1)


def no_files(paths: Iterable[str]) -> str:
    """Return the message where paths mean no file, or only empty ones."""
    return f"nothing to read: no file, or only empty ones, in {', '.join(map(repr, paths))}"


def nothing_found(options: SparkReadOptions, hint: str, where: str = "") -> str:
    """The message, with what else to try.

    Args:
        options: what was read.
        hint: where else to look, see `capture.elsewhere.hint`.
        where: the files, as the end of a sentence.
    """
    ports = options["port"]
    listed = [ports] if isinstance(ports, int) else list(ports or ())
    noun = "port" if len(listed) == 1 else "ports"
    searched = f"{noun} {', '.join(map(str, listed))}{hint}" if listed else "any port"
    return f"no {options['table']} found{where} on {searched}"


def warning_if_empty(
    part: Part, batches: Iterable[pa.RecordBatch], options: SparkReadOptions, hints: list[str]
) -> Iterator[pa.RecordBatch]:
    """The batches of a part; warns in the log of the worker if a recording begins without a row.

    Args:
        part: what is read.
        batches: its rows.
        options: how it is read.
        hints: has where else to look, once the batches are exhausted.
    """
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        yield batch
    # A later part of a recording may well be without rows. Connections have theirs at its end, errors perhaps
    # none at all.
    expected = part.state is None and (part.last or options["table"] != "connections")
    expected = expected and options["table"] != "errors"
    if rows or not expected or part.kind != "capture" or options["mode"] == "drop":
        return
    files = ", ".join(repr(each.path) for each in part.ranges[:3])
    warnings.warn(nothing_found(options, "".join(hints), f" in {files}"), NothingFoundWarning, stacklevel=2)
