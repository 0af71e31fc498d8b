"""What is one recording, and which part of it a task reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql.datasource import InputPartition

from ..options import SparkReadOptions
from .files import File, listed, recognised, side_by_side
from .series import natural, series


@dataclass(frozen=True)
class FileRange:
    """Octets of one file.

    Attributes:
        path: the file.
        end: records that begin before this octet belong to it, from where the range before it ends; None for
            all that are left.
    """

    path: str
    end: int | None


@dataclass(frozen=True)
class Part(InputPartition):
    """What one task reads: ranges of a recording that follow each other.

    Attributes:
        kind: ``"capture"`` or ``"stream"``; ``"bad"`` for what is not read.
        ranges: of one file or several.
        state: that of reading at the beginning of the first; None at the start of the recording.
        last: whether the recording ends behind them.
        fault: of a bad one, why it is not read.
    """

    kind: str
    ranges: tuple[FileRange, ...]
    state: bytes | None = field(default=None, repr=False)
    last: bool = True
    fault: str = ""


Recording = tuple[Part, ...]  # its parts, in order


def plan(options: SparkReadOptions) -> list[Recording]:
    """The recordings that are to be read, in parts as large as the options say, still without states.

    Raises:
        ValueError: no path; with ``badFiles=fail``, a file that is nothing that is known.
        OSError: a path means no file; with ``badFiles=fail``, a file cannot be read.
    """
    if not options["paths"]:
        raise ValueError("no path: say what to load")
    names = files_of(options)
    times = options["rotated"] != "false"
    looked = recognised(names, options["input"], times=times, bad_files=options["bad_files"])
    found: list[Recording] = [(bad_part(file.path, file.fault),) for file in looked if file.kind == "bad"]
    files = [file for file in looked if file.kind not in ("empty", "bad")]
    rule = options["rotated"], options["flow_timeout"], options["series_pattern"]
    for together in recordings(files, *rule):
        parts = parts_of(together, options)
        found += [parts] if options["stitch"] else [(replace(part, last=True),) for part in parts]
    return found


def bad_part(path: str, fault: str) -> Part:
    """Return the part of a file that is not read: a row of the table `errors`, and none of others."""
    return Part("bad", (FileRange(path, None),), fault=fault)


def files_of(options: SparkReadOptions) -> list[tuple[str, int | None]]:
    """The files that the options mean; as `files.listed`."""
    return listed(
        options["paths"], recursive=options["recursive_file_lookup"], name_pattern=options["path_glob_filter"]
    )


def recordings(
    files: Iterable[File], rotated: str, flow_timeout: float, pattern: str | None = None
) -> list[tuple[File, ...]]:
    """Files put together that are one recording, in the order in which they were made.

    Args:
        files: any.
        rotated: ``"false"``: every file is one of its own; ``"true"``: all captures in a folder are one;
            ``"auto"``: those of a series are, if their times follow each other.
        flow_timeout: seconds of silence between two files that make them two recordings with ``"auto"``.
        pattern: as for `series`.
    """
    sets: defaultdict[str, list[File]] = defaultdict(list)
    for file in files:
        alone = file.kind != "capture" or file.first_ns is None
        sets[series(file.path, "false" if alone else rotated, pattern)].append(file)
    found = []
    for together in sets.values():
        ordered = sorted(together, key=lambda file: (file.first_ns or 0, natural(file.name)))
        found += list(_following(ordered, flow_timeout)) if rotated == "auto" else [tuple(ordered)]
    return sorted(found, key=lambda recording: recording[0].path)


def _following(files: Sequence[File], flow_timeout: float) -> Iterator[tuple[File, ...]]:
    """Runs of files of which each begins when the one before it has ended.

    If two of them overlap, they were made side by side whatever their names say, and all are on their own.
    """
    ends = side_by_side(File.last_ns, files[:-1], [file.path for file in files])
    begins = [file.first_ns or 0 for file in files[1:]]
    pauses = [None if end is None else begin - end for begin, end in zip(begins, ends, strict=True)]
    apart = any(pause is not None and pause < 0 for pause in pauses)
    run = [files[0]]
    for file, pause in zip(files[1:], pauses, strict=True):
        if apart or pause is None or pause > flow_timeout * 1e9:
            yield tuple(run)
            run = []
        run.append(file)
    yield tuple(run)


def parts_of(files: Sequence[File], options: SparkReadOptions) -> Recording:
    """One recording in parts: ranges of large files, and small files in groups."""
    groups: list[list[FileRange]] = []
    room = 0
    for file in files:
        ranges = list(_ranges(file, options["max_partition_bytes"] if options["stitch"] else file.size))
        if len(ranges) > 1:
            groups += [[each] for each in ranges]
            room = 0
        elif room >= file.size:
            groups[-1] += ranges
            room -= file.size
        else:
            groups.append(ranges)
            room = options["max_group_bytes"] - file.size
    kind = files[0].kind
    return tuple(Part(kind, tuple(group), last=group is groups[-1]) for group in groups)


def _ranges(file: File, most: int) -> Iterator[FileRange]:
    """The ranges of a file. Streams are kept whole: nothing in them says where a frame begins."""
    begin = 0
    if file.kind == "capture" and not file.compressed:
        while file.size - begin > most:
            yield FileRange(file.path, begin + most)
            begin += most
    yield FileRange(file.path, None)
