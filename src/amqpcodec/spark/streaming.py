"""``readStream.format("amqp")``: the files that a rotating capture puts into a folder, each once.

An offset says for every series of files which was the last one taken, and where reading stands behind it: the
state of `amqpcodec.arrow.CaptureSession`. So connections go on from file to file, and from run to run.
"""

from __future__ import annotations

import base64
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice
from math import inf
from operator import itemgetter
from time import time
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ..options import SparkReadOptions
from .files import Location, recognised
from .packaging import Packaged
from .planning import Part, files_of, parts_of
from .reading import states
from .series import natural, series
from .source import AmqpReader
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

Offset = dict[str, dict[str, str]]  # by series: `last`, the path, `files`, how many so far, and `state`


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
        self._options = options
        self._reader = AmqpReader(options, schema)
        self._planned: dict[str, tuple[Part, ...]] = {}  # of the latest offset, not to be followed twice
        self._target: dict[str, str] | None = None  # where to stop: the last file of each series
        self._reached: Offset = {}  # what was asked for last

    def initialOffset(self) -> Offset:  # noqa: N802
        """Nothing is taken yet."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """As many files as the options say."""
        most = self._options["max_files_per_trigger"]
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Stop behind the files that are complete now."""
        self._target = {name: paths[-1] for name, paths in self._complete().items()}

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:  # noqa: N802
        """Take the complete files behind an offset, as many as the limit allows.

        Before PySpark 4.2, both are missing: it continues behind the last batch. After a restart, Spark asks
        for an empty batch where it had stopped.
        """
        if start is None:
            start = self._reached
        end = dict(start)
        self._planned = {}
        for name, new in self._new(start, getattr(limit, "max_files", None)).items():
            parts, state = self._followed(new, start.get(name))
            self._planned[_key(name, start, new[-1])] = parts
            end[name] = {"last": new[-1], "files": str(_taken(start, name) + len(new)), "state": state}
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The files between two offsets, each with the state at its beginning."""
        self._reached = end
        found: list[InputPartition] = []
        for name, position in end.items():
            if position == start.get(name):
                continue
            parts = self._planned.get(_key(name, start, position["last"]))
            if parts is None:  # planned before a restart
                paths = self._behind(self._series().get(name, []), start.get(name), position["last"])
                if paths[-1:] != [position["last"]] or _taken(start, name) + len(paths) != _taken(end, name):
                    raise FileNotFoundError(
                        f"the files up to {position['last']!r}, which are to be read again, are not there "
                        "any more, or others have come between them"
                    )
                parts, _ = self._followed(paths, start.get(name))
            found += parts
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part."""
        return self._reader.read(partition)

    def _new(self, start: Offset, room: int | None) -> dict[str, list[str]]:
        """The complete files behind an offset, by series; the oldest if there is not room for all.

        Among series none has to wait for another that is busier: sooner or later its next file is the oldest.
        """
        # With a target, nothing is taken of a series that is not in it.
        stops, stop = ({}, None) if self._target is None else (self._target, "")
        found = {
            name: self._behind(paths, start.get(name), stops.get(name, stop))
            for name, paths in self._complete().items()
        }
        if room is not None:
            waiting = [_dated(name, paths) for name, paths in found.items()]
            found = {name: [] for name in found}
            for _, name, path in islice(merge(*waiting, key=itemgetter(0)), room):
                found[name].append(path)
        return {name: paths for name, paths in found.items() if paths}

    def _series(self) -> dict[str, list[str]]:
        """The files there are, by series, in order."""
        options = self._options
        try:
            names = files_of(options)
        except FileNotFoundError:
            return {}  # not yet
        found: defaultdict[str, list[str]] = defaultdict(list)
        for path, _ in names:
            found[series(path, options["rotated"])].append(path)
        return {name: sorted(paths, key=natural) for name, paths in sorted(found.items())}

    def _complete(self) -> dict[str, list[str]]:
        """The files that nothing more is written to."""
        found = {}
        for name, paths in self._series().items():
            old = time() - _changed(paths[-1]) >= self._options["min_file_age"]
            complete = paths if old else paths[:-1]
            if complete:
                found[name] = complete
        return found

    def _behind(self, paths: Iterable[str], position: Mapping[str, str] | None, end: str | None) -> list[str]:
        """The files behind a position, up to one."""
        begin = natural(position["last"]) if position else []
        return [
            path for path in paths if natural(path) > begin and (end is None or natural(path) <= natural(end))
        ]

    def _followed(
        self, paths: Sequence[str], position: Mapping[str, str] | None
    ) -> tuple[tuple[Part, ...], str]:
        """What is to be read of files that follow each other, and the state behind them."""
        options = self._options
        sizes = [(path, _size(path)) for path in paths]
        files = [file for file in recognised(sizes, options["input"], times=False) if file.kind != "empty"]
        captures = [file for file in files if file.kind == "capture"]
        alone = [parts_of([file], options) for file in files if file.kind != "capture"]
        if not captures:
            return sum(alone, ()), position["state"] if position else ""
        state = _unpacked(position["state"]) if position and options["rotated"] != "false" else None
        parts = list(parts_of(captures, options))
        parts[0] = replace(parts[0], state=state)
        following = list(states(parts, options))
        kept = [replace(part, last=False) for part in parts]
        for at, each in enumerate(following[:-1], 1):
            kept[at] = replace(kept[at], state=each)
        if options["rotated"] == "false":
            kept[-1] = replace(kept[-1], last=True)
        return (*kept, *sum(alone, ())), _packed(following[-1])


def _key(name: str, start: Offset, last: str) -> str:
    return f"{name}\n{start.get(name, {}).get('last', '')}\n{last}"


def _taken(offset: Offset, name: str) -> int:
    """How many files of a series are behind an offset."""
    return int(offset[name]["files"]) if name in offset else 0


def _size(path: str) -> int:
    location = Location(path)
    return int(location.system.get_file_info(location.inner).size or 0)


def _dated(name: str, paths: Iterable[str]) -> Iterator[tuple[float, str, str]]:
    """The files of a series, each looked at only when it is its turn: those before it are taken first."""
    return ((_changed(path), name, path) for path in paths)


def _changed(path: str) -> float:
    """When a file was last written to, in seconds since 1970; infinite if unknown."""
    location = Location(path)
    changed = location.system.get_file_info(location.inner).mtime
    return inf if changed is None else float(changed.timestamp())


def _packed(state: bytes) -> str:
    return base64.b64encode(zlib.compress(state)).decode()


def _unpacked(text: str) -> bytes | None:
    return zlib.decompress(base64.b64decode(text)) if text else None
