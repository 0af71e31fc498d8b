"""The plan of a scan: files that are one recording, and the part of it that a task reads."""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeVar

from pyspark.sql.datasource import InputPartition

from ..capture.series import natural, series
from ..options import SparkReadOptions
from .chains import UnstitchedWarning, chains, unstitched
from .files import File, listed, recognised
from .options import VIEW

_LEAST = 4 << 20  # octets for a task: as many as Spark reads in the time in which it begins one
_MOST_OF_FILE, _MOST_TOGETHER = 256 << 20, 1 << 30  # unless options say others


@dataclass(frozen=True)
class FileRange:
    """Octets of one file.

    Attributes:
        path: the file.
        end: records that end by this octet belong to it, from where the range before it ends; None for all
            that are left.
        size: how many octets they are.
        gone: whether the file is not there any more: it ends where reading stands.
    """

    path: str
    end: int | None
    size: int = 0
    gone: bool = False


@dataclass(frozen=True)
class Part:
    """Ranges of a recording that follow each other, and are read by one task.

    Attributes:
        kind: ``"capture"`` or ``"stream"``; ``"bad"`` for what is not read.
        ranges: of one file or several.
        state: that of reading at the beginning of the first; None at the start of the recording.
        last: whether the recording ends behind them.
        fault: of a bad one, why it is not read.
        recording: the name of its recording: its first file, or the series that a stream follows.
    """

    kind: str
    ranges: tuple[FileRange, ...]
    state: bytes | None = field(default=None, repr=False)
    last: bool = True
    fault: str = ""
    recording: str = ""

    @property
    def size(self) -> int:
        """Return the octets of its ranges."""
        return sum(each.size for each in self.ranges)


Recording = tuple[Part, ...]  # its parts, in order


class Place(NamedTuple):
    """A part, and where it is in a plan.

    Attributes:
        recording: the number of its recording.
        at: its own number in there.
        part: what to read.
    """

    recording: int
    at: int
    part: Part

    @property
    def size(self) -> int:
        """Return the octets of its part."""
        return self.part.size


@dataclass(frozen=True)
class Task(InputPartition):
    """The work of one task.

    Attributes:
        places: are read one after the other, each from its own state.
    """

    places: tuple[Place, ...]


Warn = Callable[[str], object]
Work = TypeVar("Work")


def warn_unstitched(text: str) -> None:
    """Issue an `UnstitchedWarning`."""
    warnings.warn(text, UnstitchedWarning, stacklevel=2)


def plan(options: SparkReadOptions, warn: Warn = warn_unstitched) -> list[Recording]:
    """The recordings that are to be read, in parts as large as the options say, still without states.

    Args:
        options: what to read, and how.
        warn: as for `recordings`; not called if nothing is to be stitched.

    Raises:
        ValueError: no path; with ``badFiles=fail``, a file that is nothing that is known.
        OSError: a path means no file; with ``badFiles=fail``, a file cannot be read.
    """
    if not options["paths"]:
        raise ValueError(f"no path: say what to load. Of a table in its catalog, {VIEW}")
    names = files_of(options)
    times = options["rotated"] != "false"
    looked = recognised(names, options["input"], times=times, bad_files=options["bad_files"])
    found: list[Recording] = [(bad_part(file.path, file.fault),) for file in looked if file.kind == "bad"]
    files = [file for file in looked if file.kind not in ("empty", "bad")]
    rule = options["rotated"], options["flow_timeout"], options["series_pattern"]
    total = sum(file.size for file in files)
    for together in recordings(files, *rule, warn if options["stitch"] else str):
        parts = parts_of(together, options, total)
        found += (
            [parts]
            if options["stitch"]
            else [(replace(part, last=True, recording=part.ranges[0].path),) for part in parts]
        )
    return found


def bad_part(path: str, fault: str) -> Part:
    """Return the part of a file that is not read: a row of the table `errors`, and none of others."""
    return Part("bad", (FileRange(path, None),), fault=fault, recording=path)


def files_of(options: SparkReadOptions) -> list[tuple[str, int | None]]:
    """The files that the options mean; as `files.listed`."""
    return listed(
        options["paths"], recursive=options["recursive_file_lookup"], name_pattern=options["path_glob_filter"]
    )


def recordings(
    files: Iterable[File], rotated: str, flow_timeout: float, pattern: str | None, warn: Warn
) -> list[tuple[File, ...]]:
    """Files put together that are one recording, in the order in which they were made.

    Args:
        files: any.
        rotated: ``"false"``: every file is one of its own; ``"true"``: all captures in a folder are one;
            ``"auto"``: those of a series are, if their times follow each other.
        flow_timeout: seconds of silence between two files that make them two recordings with ``"auto"``.
        pattern: as for `series`.
        warn: is called with a text that names files which may belong together and are not put together.
    """
    sets: defaultdict[str, list[File]] = defaultdict(list)
    for file in files:
        alone = file.kind != "capture" or file.first_ns is None
        sets[series(file.path, "false" if alone else rotated, pattern)].append(file)
    found, unsure = [], []
    for together in sets.values():
        if rotated == "auto":
            runs, doubtful = chains(together, flow_timeout)
            found += runs
            unsure += doubtful
        else:
            found.append(tuple(sorted(together, key=lambda file: (file.first_ns or 0, natural(file.name)))))
    if unsure:
        warn(unstitched(unsure))
    return sorted(found, key=lambda recording: recording[0].path)


def cores() -> int:
    """Return how many cores this process may use: where Spark plans a query, it tells Python no more."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def places(recordings: Iterable[Recording]) -> list[Place]:
    """Return the parts of recordings, each with where it is among them."""
    return [
        Place(number, at, part) for number, parts in enumerate(recordings) for at, part in enumerate(parts)
    ]


def tasks_of(works: Sequence[Place], options: SparkReadOptions) -> list[InputPartition]:
    """Return the tasks that read parts; small ones as in `together`."""
    return [Task(group) for group in together(works, attrgetter("size"), options)]


def together(
    works: Sequence[Work], size_of: Callable[[Work], int], options: SparkReadOptions
) -> list[tuple[Work, ...]]:
    """Put small neighbours together, since each task takes time to begin; large works stay alone.

    Args:
        works: need nothing of each other.
        size_of: gives the octets of a work.
        options: how to read. A group has no more than was asked for, or else about the share of a core.
    """
    sizes = list(map(size_of, works))
    most = _most_of_part(options, sum(sizes))
    most = min(most, options["max_group_bytes"] or most)
    small = [size for size in sizes if 2 * size <= most]
    room = most
    if options["max_group_bytes"] or options["max_partition_bytes"]:
        room -= max(small, default=0)  # half a work may stand out on each side of a group
    # As many groups as it takes, of about the same size.
    even = sum(small) / max(-(-sum(small) // room), 1) or 1
    groups = groupby(zip(_places(sizes, most, even), works, strict=True), itemgetter(0))
    return [tuple(work for _, work in group) for _, group in groups]


def _places(sizes: Iterable[int], most: int, even: float) -> Iterator[tuple[bool, float]]:
    """Yield the group of each work: its own, or that in which its middle lies."""
    before = 0
    for number, size in enumerate(sizes):
        if 2 * size > most:
            yield True, number
        else:
            yield False, (before + size / 2) // even
            before += size


def parts_of(files: Sequence[File], options: SparkReadOptions, total: int | None = None) -> Recording:
    """One recording in parts: ranges of large files, and small files in groups.

    Args:
        files: of the recording.
        options: how to read.
        total: octets of all recordings that are read at the same time; None if this is the only one.
    """
    most, most_together = _sizes(files, options, total)
    groups: list[list[FileRange]] = []
    room = 0
    for file in files:
        ranges = list(_ranges(file, most))
        if len(ranges) > 1:
            groups += [[each] for each in ranges]
            room = 0
        elif room >= file.size:
            groups[-1] += ranges
            room -= file.size
        else:
            groups.append(ranges)
            room = most_together - file.size
    first = files[0]
    return tuple(
        Part(first.kind, tuple(group), last=group is groups[-1], recording=first.path) for group in groups
    )


def _sizes(files: Sequence[File], options: SparkReadOptions, total: int | None) -> tuple[int, int]:
    """Return the octets of a large file for a task, and those of small files.

    As Spark does with its own files, each core gets its share. But a recording in parts has to be scanned for
    the states between them. So one that is no more than a share is left whole, if its files are small.
    """
    size = sum(file.size for file in files)
    if not options["stitch"]:
        # Where groups end decides which rows there are, so it must not depend on the machine.
        return size, options["max_group_bytes"] or _MOST_TOGETHER
    share = _share(options, total or size)
    most = _most_of_part(options, total or size)
    if options["max_group_bytes"]:
        return most, options["max_group_bytes"]
    if size <= min(options["max_partition_bytes"] or _MOST_TOGETHER, share):
        return most, size
    # As many groups as it takes, of about the same size: else the last one would be small.
    count = -(-size // min(most, share))
    return most, -(-size // count) + max((file.size for file in files if file.size <= most), default=0) - 1


def _share(options: SparkReadOptions, total: int) -> int:
    """Return the octets of a core, if all are to have the same."""
    return max(_LEAST, -(-total // (options["min_partitions"] or cores())))


def _most_of_part(options: SparkReadOptions, total: int) -> int:
    """Return the octets of a task, as asked for or as cores tell."""
    return options["max_partition_bytes"] or min(_MOST_OF_FILE, _share(options, total))


def _ranges(file: File, most: int) -> Iterator[FileRange]:
    """The ranges of a file. Streams are kept whole: nothing in them says where a frame begins."""
    begin = file.begin
    if file.kind == "capture" and not file.compressed:
        while file.size - begin > most:
            yield FileRange(file.path, begin + most, most)
            begin += most
    yield FileRange(file.path, file.size if file.grows else None, file.size - begin)
