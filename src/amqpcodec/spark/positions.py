"""Where a stream stands in a series of files, and what the files that are there mean to it.

A position names the files that were taken last, so that one which comes late is told from one that was read.
It names `_NAMED` of them; of those that sort before these, it knows how many there are.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..capture.series import natural, series, uncompressed

_NAMED = 1024
Sizes = dict[str, int | None]  # octets by path, in the order of the series; None of what is no file
Stored = dict[str, str]  # a position as an offset of Spark has it


@dataclass(frozen=True)
class Step:
    """Files of a series in the order in which they are read, each with its size.

    Attributes:
        late: those that sort before the last one taken, and were not there.
        new: those behind it.
        changed: those that have another size than when they were taken.
        resumed: the one that reading stands in, with None for its size if it is not there any more.
        open: the last one, if more may be written to it; else empty.
        missing: those that were planned and are not there any more.
    """

    late: Sizes = field(default_factory=dict)
    new: Sizes = field(default_factory=dict)
    changed: Sizes = field(default_factory=dict)
    resumed: Sizes = field(default_factory=dict)
    open: str = ""
    missing: tuple[str, ...] = ()

    def located(self, there: Sizes, before: Position) -> Step:
        """Return the step with the names and sizes that its files have now; one that grows keeps its size.

        Args:
            there: the files of the series that are there.
            before: where the step began.
        """
        names = {uncompressed(path): path for path in there}

        def now(files: Sizes) -> Sizes:
            found = {path: names.get(uncompressed(path)) for path in files}
            return {
                name: files[path] if path == self.open else there[name]
                for path, name in found.items()
                if name
            }

        there_still: Sizes = {path: size for path, size in self.resumed.items() if size is not None}
        grown = [path for path, size in there_still.items() if size != before.taken[path]]
        planned = [*self.late, *self.new, *grown]
        return replace(
            self,
            late=now(self.late),
            new=now(self.new),
            resumed=now(there_still) or dict.fromkeys(self.resumed),
            open=names.get(self.open, self.open),
            missing=tuple(path for path in planned if uncompressed(path) not in names),
        )

    def only(self, paths: Collection[str]) -> Step:
        """Return the step that takes only some files; what has changed or is gone is in any."""
        late = {path: size for path, size in self.late.items() if path in paths}
        new = {path: size for path, size in self.new.items() if path in paths}
        resumed = {path: size for path, size in self.resumed.items() if size is None or path in paths}
        return replace(
            self, late=late, new=new, resumed=resumed, open=self.open if self.open in new | resumed else ""
        )

    def __bool__(self) -> bool:
        return bool(self.late or self.new or self.changed or self.resumed)


@dataclass(frozen=True)
class Position:
    """The files taken of a series.

    Attributes:
        last: the file among them that sorts last.
        files: how many they are.
        state: that of reading behind them, as text; empty at the beginning.
        taken: the last ones of them in the order of the series, with their sizes.
        older: how many that sort before those may be there.
        open: the one that reading stands in, since more may be written to it; else empty.
        known_by: the fingerprint of that one.
    """

    last: str = ""
    files: int = 0
    state: str = ""
    taken: Sizes = field(default_factory=dict)
    older: int = 0
    open: str = ""
    known_by: int = 0

    @classmethod
    def stored(cls, text: Stored | None) -> Position:
        """Return what an offset has of a series; the beginning if it has nothing."""
        if text is None:
            return cls()
        taken = json.loads(zlib.decompress(base64.b64decode(text["taken"])))
        # Those of the first version have no open file.
        standing = text.get("open", ""), int(text.get("known_by", 0))
        return cls(text["last"], int(text["files"]), text["state"], taken, int(text["older"]), *standing)

    def text(self) -> Stored:
        """Return it as an offset has it."""
        taken = base64.b64encode(zlib.compress(json.dumps(self.taken).encode())).decode()
        return {
            "last": self.last,
            "files": str(self.files),
            "state": self.state,
            "taken": taken,
            "older": str(self.older),
            "open": self.open,
            "known_by": str(self.known_by),
        }

    def step(self, there: Sizes) -> Step:
        """Return what is to be done about the files that are there.

        Raises:
            OSError: one came late, and so far down that it cannot be told which.
        """
        found = Step(resumed={self.open: None} if self.open else {})
        known = {uncompressed(path): path for path in self.taken}
        older = self._older(path for path, size in there.items() if size != 0)  # those are not taken
        last = natural(self.last) if self.last else []
        for path, size in there.items():
            before = known.get(uncompressed(path))
            if before is not None:
                # A file that was compressed since has another name.
                grown = 0 if before != path else (size or 0) - (self.taken[path] or 0)
                if before == self.open and grown >= 0:
                    found.resumed.clear()
                    found.resumed[path] = size
                elif grown:
                    found.changed[path] = size
            elif natural(path) > last:
                found.new[path] = size
            elif path not in older:
                found.late[path] = size
        if len(older) > self.older:
            raise OSError(
                f"{len(older) - self.older} files have come late: they sort before "
                f"{next(iter(self.taken))!r}, and so far down cannot be told from those that were read; move "
                "them to a folder of their own"
            )
        return found

    def behind(
        self, step: Step, there: Iterable[str], state: str, known: tuple[str, int] = ("", 0)
    ) -> Position:
        """Return the position behind a step.

        Args:
            step: what is taken.
            there: the files of the series that are there.
            state: that of reading behind the step.
            known: the file that reading stands in then, and its fingerprint.
        """
        now = step.late | step.new | step.changed
        now |= {path: size for path, size in step.resumed.items() if path in self.taken and size is not None}
        every = dict(sorted((self.taken | now).items(), key=lambda item: natural(item[0])))
        names = list(every)
        # After a restart, the files of this step are those that are named here and were not before.
        first = next((at for at, path in enumerate(names) if path in now), len(names))
        cut = max(0, min(len(names) - _NAMED, first))
        plain = set(map(uncompressed, there))
        older = min(self.older, len(self._older(plain)))
        older += sum(uncompressed(path) in plain for path in names[:cut])
        files = self.files + len(step.late) + len(step.new)
        return Position(names[-1], files, state, {path: every[path] for path in names[cut:]}, older, *known)

    def since(self, before: Position) -> Step:
        """Return the step that led here from a position before."""
        found = Step(open=self.open)
        last = natural(before.last) if before.last else []
        for path, size in self.taken.items():
            if path not in before.taken:
                (found.new if natural(path) > last else found.late)[path] = size
            elif path == before.open and (before.taken[path] or 0) <= (size or 0):
                if before.taken[path] != size or self.open != path:
                    found.resumed[path] = size
            elif before.taken[path] != size:
                found.changed[path] = size
        if before.open and before.open != self.open and not found.resumed:
            found.resumed[before.open] = None
        return found

    def _older(self, paths: Iterable[str]) -> set[str]:
        """Return the files that sort before all that are named; none where these are all that were taken."""
        if self.files == len(self.taken):
            return set()
        first = natural(next(iter(self.taken)))
        return {path for path in paths if natural(path) < first}


def check_offset(offset: Mapping[str, Stored], rotated: str, pattern: str | None) -> None:
    """Make sure that an offset was made with the same series.

    Raises:
        ValueError: it was made with other options, or by a version that had other series.
    """
    for name, position in offset.items():
        if "taken" not in position:
            raise ValueError(
                "the checkpoint is of an earlier version, which put files together in another way: begin "
                "with a new one, in a folder of the files that were not read"
            )
        if series(position["last"], rotated, pattern) != name:
            raise ValueError(
                f"the checkpoint was made with another rotated or seriesPattern: {position['last']!r} was of "
                f"the series {name!r}"
            )


def by_series(files: Iterable[tuple[str, int | None]], rotated: str, pattern: str | None) -> dict[str, Sizes]:
    """Return the files of each series in order. Of a file that is being compressed, only one counts."""
    listed = sorted(files, key=lambda file: natural(file[0]))
    names = {path for path, _ in listed}
    found: dict[str, Sizes] = {}
    for path, size in listed:
        if (plain := uncompressed(path)) == path or plain not in names:
            found.setdefault(series(path, rotated, pattern), {})[path] = size
    return dict(sorted(found.items()))
