"""``readStream.format("amqp")``: the files that a rotating capture puts into a folder, each once.

An offset says for every series of files which were taken, and where reading stands behind them: the state of
`amqpcodec.arrow.CaptureSession`. So connections go on from file to file, and from run to run.
"""

from __future__ import annotations

import base64
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import chain, islice
from math import inf
from operator import itemgetter
from time import time
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ..capture.series import series, uncompressed
from ..options import SparkReadOptions
from .chains import UnstitchedWarning, against_times, doubted
from .files import File, Location, fingerprint, recognised
from .notices import BadFileWarning, NothingFoundWarning, no_files, warn_of_bad
from .packaging import Packaged
from .planning import FileRange, Part, Place, bad_part, files_of, parts_of, tasks_of
from .positions import Position, Sizes, Step, Stored, by_series, check_offset
from .readers import RowReader
from .reading import states, with_states
from .versions import lack, need

if TYPE_CHECKING or lack("maxFilesPerTrigger") is None:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
else:  # each batch has all that is there, and so has the one batch of Trigger.AvailableNow
    SupportsTriggerAvailableNow = object

Offset = dict[str, Stored]  # a position by series
_BEGINNING = Position()
_GONE = "was to be read again, and is not there any more"


class _Followed(NamedTuple):
    """The work of a step, and where reading stands behind it.

    Attributes:
        parts: to be read.
        state: that of reading behind them, as text.
        known: the file that reading stands in then, and its fingerprint.
    """

    parts: list[Part]
    state: str
    known: tuple[str, int]


class AmqpStreamReader(Packaged, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans on the driver, where it follows new files without making rows; reads in the workers.

    Args:
        options: what to read, and how.
        schema: the columns wanted.

    Raises:
        ValueError: the table does not have these columns; no path.
        NotImplementedError: this PySpark cannot take files bit by bit, as the options ask for.
    """

    def __init__(self, options: SparkReadOptions, schema: StructType) -> None:
        if not options["paths"]:
            raise ValueError("no path: say what to load")
        if options["max_files_per_trigger"] is not None:
            need("maxFilesPerTrigger")
        self._reader = RowReader(options, schema)
        self._options = self._reader.options
        # Of the latest offset, not to be followed twice.
        self._planned: dict[tuple[str, str, str], list[Part]] = {}
        self._target: frozenset[str] | None = None  # the only files to take
        self._reached: Offset = {}  # what was asked for last
        self._nowhere: set[str] = set()  # paths that meant nothing, and were warned of

    def initialOffset(self) -> Offset:  # noqa: N802
        """Nothing is taken yet."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """As many files as the options say."""
        most = self._options["max_files_per_trigger"]
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Stop behind the files that are complete now."""
        complete = (self._complete(Step(new=files)) for files in self._series().values())
        self._target = frozenset(chain.from_iterable(step.new for step in complete))

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:  # noqa: N802
        """Take the complete files that were not taken before an offset, as many as the limit allows.

        Before PySpark 4.2, both are missing: it continues behind the last batch. After a restart, Spark asks
        for an empty batch where it had stopped.

        Raises:
            OSError: with ``badFiles=fail``, a file cannot be read, or has changed since it was read; or files
                have come too late.
            ValueError: with ``badFiles=fail``, a file is nothing that is known; an offset that was made with
                other options.
        """
        if start is None:
            start = self._reached
        self._check(start)
        there = self._series()
        end = dict(start)
        self._planned = {}
        for name, step in self._new(start, there, getattr(limit, "max_files", None)).items():
            before = Position.stored(start.get(name))
            _warn_of_late(step, before)
            found = self._followed(step, before)
            warn_of_bad(found.parts)
            end[name] = before.behind(step, there[name], found.state, found.known).text()
            self._planned[_key(name, start, end)] = found.parts
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the work on the files between two offsets: parts with the state at their beginning.

        Raises:
            OSError, ValueError: as for `latestOffset`; with ``badFiles=fail``, also where a file is gone that
                was planned before a restart.
        """
        self._check(start)
        self._reached = end
        found: list[Part] = []
        for name, position in end.items():
            if position == start.get(name):
                continue
            parts = self._planned.get(_key(name, start, end))
            if parts is None:  # planned before a restart
                before = Position.stored(start.get(name))
                there = self._series().get(name, {})
                parts = self._followed(
                    Position.stored(position).since(before).located(there, before), before
                ).parts
                warn_of_bad(part for part in parts if part.fault == _GONE)  # of others when they were planned
            found += parts
        return tasks_of([Place(0, 0, part) for part in found], self._options)  # each has its state

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        return self._reader.read(partition)

    def _check(self, offset: Offset) -> None:
        check_offset(offset, self._options["rotated"], self._options["series_pattern"])

    def _new(self, start: Offset, there: dict[str, Sizes], room: int | None) -> dict[str, Step]:
        """Return the complete files behind an offset, by series; the oldest if there is not room for all.

        Among series none has to wait for another that is busier: sooner or later its next file is the oldest.
        """
        positions = {name: Position.stored(start.get(name)) for name in there}
        found = {
            name: self._complete(positions[name].step(files), positions[name])
            for name, files in there.items()
        }
        if self._target is not None:
            found = {name: step.only(self._target) for name, step in found.items()}
        if room is not None:
            waiting = [_dated(chain(step.late, step.new)) for step in found.values()]
            taken = {path for _, path in islice(merge(*waiting, key=itemgetter(0)), room)}
            taken.update(chain.from_iterable(step.resumed for step in found.values()))
            found = {name: step.only(taken) for name, step in found.items()}
        return {name: step for name, step in found.items() if step}

    def _series(self) -> dict[str, Sizes]:
        """Return the files there are, by series, in order; warn once of a path that means none."""
        options = self._options
        found: Sizes = {}
        for path in options["paths"]:
            try:
                files = dict(files_of(options | {"paths": (path,)}))
            except FileNotFoundError:
                files = {}  # not yet
            if not files and path not in self._nowhere:
                self._nowhere.add(path)
                warnings.warn(no_files([path]), NothingFoundWarning, stacklevel=2)
            found |= files
        return by_series(found.items(), options["rotated"], options["series_pattern"])

    def _complete(self, step: Step, before: Position = _BEGINNING) -> Step:
        """Return the step without files that may still be written to.

        A later file of the series shows that, if it was not there before; else its age. The newest one may
        be empty for long, since recorders write their first octets late. One whose age shows it is read as
        far as it is, and goes on if more is written to it.
        """
        late = {path: size for path, size in step.late.items() if self._is_done(path, size)}
        new = dict(step.new)
        resumed = {
            path: size
            for path, size in step.resumed.items()
            if new or path != before.open or (size != before.taken[path] and self._is_done(path, size))
        }
        last = next(reversed(new or resumed), "")
        if new and not self._is_done(last, new[last]):
            del new[last]
            last = ""
        # An empty one is late once there is something in it.
        new = {path: size for path, size in new.items() if size != 0}
        return replace(
            step, late=late, new=new, resumed=resumed, open=last if uncompressed(last) == last else ""
        )

    def _is_done(self, path: str, size: int | None) -> bool:
        """Return whether a file by itself shows that it is complete; what is no file does not grow."""
        return size is None or (size > 0 and time() - _changed(path) >= self._options["min_file_age"])

    def _followed(self, step: Step, before: Position) -> _Followed:
        """Return the parts to read of a step, and where reading stands behind them."""
        options = self._options
        parts, captures = self._looked_at(step, before)
        read = {file.path for file in captures}
        ended = [FileRange(path, None, gone=True) for path in step.resumed if path not in read]
        if not captures and not ended:
            return _Followed(parts, before.state, (before.open, before.known_by))
        following = list(parts_of(captures, options)) if captures else [Part("capture", ())]
        ranges = (*ended, *following[0].ranges)
        name = series(ranges[0].path, options["rotated"], options["series_pattern"])
        following[0] = replace(following[0], ranges=ranges, state=_unpacked(before.state))
        known = list(states(following, options))
        parts += (
            replace(part, state=state, last=False, recording=name)
            for part, state in zip(following, [following[0].state, *known[:-1]], strict=True)
        )
        growing = [(file.path, fingerprint(file.path, file.size)) for file in captures if file.grows]
        return _Followed(parts, _packed(known[-1]), *growing or [("", 0)])

    def _looked_at(self, step: Step, before: Position) -> tuple[list[Part], list[File]]:
        """Return the parts of a step that need no state of the series, and the captures that do."""
        options = self._options
        parts = [self._bad(path, _GONE) for path in step.missing]
        parts += [self._bad(path, _change(path, size, before)) for path, size in step.changed.items()]
        there = {path: size for path, size in step.resumed.items() if size is not None}
        named = chain(there.items(), step.late.items(), step.new.items())
        captures: list[File] = []
        times = options["rotated"] == "auto"
        for file in recognised(named, options["input"], times=times, bad_files=options["bad_files"]):
            if file.kind == "bad":
                parts.append(bad_part(file.path, file.fault))
            elif file.path in there and not _is_known(file, before):
                parts.append(self._bad(file.path, _change(before.open, file.size, before)))
            elif file.kind == "capture" and options["rotated"] != "false" and file.path not in step.late:
                captures.append(_begun(file, step, before))
            elif file.kind != "empty":
                parts += with_states(parts_of([file], options), options)
        if times and captures:
            self._warn_of_order(captures, before)
        return parts, captures

    def _warn_of_order(self, captures: list[File], before: Position) -> None:
        """Warn of captures that a batch would not put together as their names do."""
        last = Location(before.last) if before.last and captures[0].path != before.last else None
        size = last.system.get_file_info(last.inner).size if last is not None else None
        if size and size == before.taken.get(before.last):  # it need not be there any more
            found = recognised([(before.last, size)], "auto", times=True, bad_files="skip")
            captures = [*(file for file in found if file.kind == "capture"), *captures]
        doubtful = doubted(captures, self._options["flow_timeout"])
        if doubtful:
            warnings.warn(against_times(doubtful), UnstitchedWarning, stacklevel=4)

    def _bad(self, path: str, fault: str) -> Part:
        """Return the part of a file that is not read; raise `OSError` unless bad files are skipped."""
        if self._options["bad_files"] == "fail":
            raise OSError(f"{path!r} {fault}; badFiles=skip goes on without it")
        return bad_part(path, fault)


def _is_known(file: File, before: Position) -> bool:
    """Return whether a file begins as the one that reading stands in did."""
    return fingerprint(file.path, before.taken[before.open] or 0) == before.known_by


def _begun(file: File, step: Step, before: Position) -> File:
    """Return a file of the series, with what was read of it before, and whether it goes on."""
    begin = (before.taken[before.open] or 0) if file.path in step.resumed else 0
    # The octets of a compressed one tell nothing about those in it.
    countable = not file.compressed or uncompressed(file.path) != file.path
    return replace(file, begin=begin, grows=file.path == step.open and countable)


def _change(path: str, size: int | None, before: Position) -> str:
    """Return what is wrong with a file that has changed."""
    return (
        f"has changed since it was read: it had {before.taken[path]} octets, and has {size}; a longer "
        "minFileAge keeps files from being read too early, and a seriesPattern from being put together"
    )


def _key(name: str, start: Offset, end: Offset) -> tuple[str, str, str]:
    """Return what a step of a series is known by."""
    return name, str(start.get(name)), str(end[name])


def _warn_of_late(step: Step, before: Position) -> None:
    for path in step.late:
        message = (
            f"{path!r} came after {before.last!r} was read: it is read on its own, not as part of its series"
        )
        warnings.warn(message, BadFileWarning, stacklevel=3)


def _dated(paths: Iterable[str]) -> Iterator[tuple[float, str]]:
    """Yield the files of a series, each looked at only when those before it are taken."""
    return ((_changed(path), path) for path in paths)


def _changed(path: str) -> float:
    """Return when a file was last written to, in seconds since 1970; infinite if unknown."""
    location = Location(path)
    changed = location.system.get_file_info(location.inner).mtime
    return inf if changed is None else float(changed.timestamp())


def _packed(state: bytes) -> str:
    return base64.b64encode(zlib.compress(state)).decode()


def _unpacked(text: str) -> bytes | None:
    return zlib.decompress(base64.b64decode(text)) if text else None
