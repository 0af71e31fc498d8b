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
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from .files import Place, listed, recognised
from .options import ReadOptions
from .planning import Part, natural, parts_of, series
from .reading import states
from .source import AmqpReader

Offset = dict[str, dict[str, str]]  # by series: `last`, the path, `files`, how many so far, and `state`


class AmqpStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans on the driver, where it follows new files without making rows; reads in the workers.

    Args:
        options: what to read, and how.
        schema: the columns wanted.

    Raises:
        ValueError: the table does not have these columns; no path.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        if not options.paths:
            raise ValueError("no path: say what to load")
        self._options = options
        self._reader = AmqpReader(options, schema)
        self._planned: dict[str, tuple[Part, ...]] = {}  # of the latest offset, not to be followed twice
        self._target: dict[str, str] | None = None  # where to stop: the last file of each series

    def initialOffset(self) -> Offset:  # noqa: N802
        """Nothing is taken yet."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """As many files as the options say."""
        most = self._options.most_files
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Stop behind the files that are complete now."""
        self._target = {name: paths[-1] for name, paths in self._complete().items()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Take the complete files behind an offset, as many as the limit allows."""
        room = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        end = dict(start)
        self._planned = {}
        # With a target, nothing is taken of a series that is not in it.
        stops, stop = ({}, None) if self._target is None else (self._target, "")
        for name, paths in self._complete().items():
            new = self._behind(paths, start.get(name), stops.get(name, stop))[:room]
            if room is not None:
                room -= len(new)
            if new:
                parts, state = self._followed(new, start.get(name))
                self._planned[_key(name, start, new[-1])] = parts
                end[name] = {"last": new[-1], "files": str(_taken(start, name) + len(new)), "state": state}
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The files between two offsets, each with the state at its beginning."""
        found: list[InputPartition] = []
        for name, place in end.items():
            if place == start.get(name):
                continue
            parts = self._planned.get(_key(name, start, place["last"]))
            if parts is None:  # planned before a restart
                paths = self._behind(self._series().get(name, []), start.get(name), place["last"])
                if paths[-1:] != [place["last"]] or _taken(start, name) + len(paths) != _taken(end, name):
                    raise FileNotFoundError(
                        f"the files up to {place['last']!r}, which are to be read again, are not there any "
                        "more, or others have come between them"
                    )
                parts, _ = self._followed(paths, start.get(name))
            found += parts
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part."""
        return self._reader.read(partition)

    def _series(self) -> dict[str, list[str]]:
        """The files there are, by series, in order."""
        options = self._options
        try:
            names = listed(options.paths, recursive=options.recursive, name_pattern=options.name_pattern)
        except FileNotFoundError:
            return {}  # not yet
        found: defaultdict[str, list[str]] = defaultdict(list)
        for path, _ in names:
            found[series(path, options.rotated)].append(path)
        return {name: sorted(paths, key=natural) for name, paths in sorted(found.items())}

    def _complete(self) -> dict[str, list[str]]:
        """The files that nothing more is written to."""
        found = {}
        for name, paths in self._series().items():
            place = Place(paths[-1])
            changed = place.system.get_file_info(place.inner).mtime
            old = changed is not None and _age(changed) >= self._options.least_age
            complete = paths if old else paths[:-1]
            if complete:
                found[name] = complete
        return found

    def _behind(self, paths: Iterable[str], place: Mapping[str, str] | None, end: str | None) -> list[str]:
        """The files behind a place, up to one."""
        begin = natural(place["last"]) if place else []
        return [
            path for path in paths if natural(path) > begin and (end is None or natural(path) <= natural(end))
        ]

    def _followed(
        self, paths: Sequence[str], place: Mapping[str, str] | None
    ) -> tuple[tuple[Part, ...], str]:
        """What is to be read of files that follow each other, and the state behind them."""
        options = self._options
        sizes = [(path, _size(path)) for path in paths]
        files = [file for file in recognised(sizes, options.input, times=False) if file.kind != "empty"]
        captures = [file for file in files if file.kind == "capture"]
        alone = [parts_of([file], options) for file in files if file.kind != "capture"]
        if not captures:
            return sum(alone, ()), place["state"] if place else ""
        state = _unpacked(place["state"]) if place and options.rotated != "false" else None
        parts = list(parts_of(captures, options))
        parts[0] = replace(parts[0], state=state)
        following = list(states(parts, options))
        kept = [replace(part, last=False) for part in parts]
        for at, each in enumerate(following[:-1], 1):
            kept[at] = replace(kept[at], state=each)
        if options.rotated == "false":
            kept[-1] = replace(kept[-1], last=True)
        return (*kept, *sum(alone, ())), _packed(following[-1])


def _key(name: str, start: Offset, last: str) -> str:
    return f"{name}\n{start.get(name, {}).get('last', '')}\n{last}"


def _taken(offset: Offset, name: str) -> int:
    """How many files of a series are behind an offset."""
    return int(offset[name]["files"]) if name in offset else 0


def _size(path: str) -> int:
    place = Place(path)
    return int(place.system.get_file_info(place.inner).size or 0)


def _age(changed: datetime) -> float:
    return (datetime.now(UTC) - changed).total_seconds()


def _packed(state: bytes) -> str:
    return base64.b64encode(zlib.compress(state)).decode()


def _unpacked(text: str) -> bytes | None:
    return zlib.decompress(base64.b64decode(text)) if text else None
