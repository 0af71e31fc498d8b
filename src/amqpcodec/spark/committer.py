"""How a folder gets files that workers write: all of them at once, or none."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyarrow import fs

from .files import Location, resolved, side_by_side

SAVE_MODES = ("errorifexists", "append", "overwrite")
SUCCESS = "_SUCCESS"
_STAGING = "_temporary-"


@dataclass(frozen=True)
class Committer:
    """Commits the files of a job to a folder: all of them at once, or none.

    Attributes:
        target: the folder.
        save: what to do if it is there: one of `SAVE_MODES`.
        name: a name that no other writing of it has.
    """

    target: str
    save: str
    name: str

    @property
    def staging(self) -> str:
        """The folder for what is not committed; readers pass over names that begin so."""
        return f"{self.target.rstrip('/')}/{_STAGING}{self.name}"

    def staged(self, name: str) -> tuple[str, str]:
        """Where a file is written, which no other attempt does, and where it is to go."""
        return f"{self.staging}/{uuid4().hex}-{name}", f"{self.target.rstrip('/')}/{name}"

    def prepare(self, read: Iterable[str] = ()) -> None:
        """Make the folder for what will be written.

        Args:
            read: files that must not be overwritten, since the rows come from them.

        Raises:
            FileExistsError, ValueError: the target cannot be written.
        """
        if self.is_begun():
            return
        target, staging = Location(self.target), Location(self.staging)
        if self.save == "overwrite":
            self._keep(read, target.shown(target.inner))
        staging.system.create_dir(staging.inner, recursive=True)

    def is_begun(self) -> bool:
        """Return whether an attempt before this one has made the folder for what will be written.

        Raises:
            FileExistsError: the target is there, and must not be.
        """
        target, staging = Location(self.target), Location(self.staging)
        if staging.system.get_file_info(staging.inner).type == fs.FileType.Directory:
            return True
        there = target.system.get_file_info(target.inner).type
        if there == fs.FileType.File or (there != fs.FileType.NotFound and self.save == "errorifexists"):
            raise FileExistsError(
                f"{self.target!r} is there already; save says what to do then: append or overwrite"
            )
        return False

    def _keep(self, read: Iterable[str], target: str) -> None:
        """Make sure that no file lies in the target, neither by its name nor through symbolic links."""
        inside = f"{target}/", f"{resolved(target)}/"
        for path in read:
            if path.startswith(inside) or resolved(path).startswith(inside):
                raise ValueError(f"{path!r} is read, so {self.target!r} cannot be overwritten")

    def commit(self, files: Iterable[tuple[str, str]]) -> None:
        """Move files that `staged` named to where they go; done twice it does no more than once."""
        target, moved = Location(self.target), list(files)
        system, success = target.system, f"{target.inner}/{SUCCESS}"
        _delete(system, success)
        # On an object store each is copied, which takes long one after the other.
        side_by_side(
            lambda names: _move(system, *(Location(name).inner for name in names)),
            moved,
            [self.target],
            "files moved",
        )
        if self.save == "overwrite":
            ours = {Location(path).inner for _, path in moved}
            for info in system.get_file_info(fs.FileSelector(target.inner)):
                if info.path not in ours and not info.base_name.startswith(_STAGING):
                    _delete(system, info.path)
        with system.open_output_stream(success):
            pass
        _delete(system, Location(self.staging).inner)

    def abort(self) -> None:
        """Remove what was written, and the target if nothing else is in it."""
        target, staging = Location(self.target), Location(self.staging)
        system = target.system
        if system.get_file_info(staging.inner).type == fs.FileType.Directory:
            _delete(system, staging.inner)
            if not system.get_file_info(fs.FileSelector(target.inner)):
                system.delete_dir(target.inner)


def _move(system: Any, source: str, target: str) -> None:
    try:
        system.move(source, target)
    except FileNotFoundError:
        # An attempt before this one has moved it, or nothing will do.
        if system.get_file_info(target).type != fs.FileType.File:
            raise


def _delete(system: Any, path: str) -> None:
    """Delete a file or folder, if it is there; tasks that were given up may still be writing in a folder."""
    for wait in (0.1, 0.5, 2.0, 0.0):
        kind = system.get_file_info(path).type
        if kind == fs.FileType.NotFound:
            return
        try:
            (system.delete_file if kind == fs.FileType.File else system.delete_dir)(path)
        except OSError:
            if not wait:
                raise
            time.sleep(wait)
