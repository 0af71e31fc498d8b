"""The states between the parts of recordings, which tasks leave to each other in a folder."""

from __future__ import annotations

import os
import shutil
import time
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4

from pyarrow import fs

from ..options import SparkReadOptions
from .files import Location
from .planning import Part, Place, Recording
from .reading import states

_SCRATCH = "SPARK_LOCAL_DIRS"  # in the environment of workers: folders of their executor, removed at its end
_PREFIX = "amqpcodec-"  # of the names of our folders there
_IDLE_SECONDS = 60.0  # without a batch of any task, behind which a plan is over


class States:
    """The states of one plan, as far as its tasks have come. What is gone, or cannot be left, is found again.

    Args:
        folder: what the tasks share; None for nothing, so that each has to find its state by itself.
        options: how to read.
        parts_of: returns all parts of the recording of a place.
    """

    def __init__(
        self, folder: str | None, options: SparkReadOptions, parts_of: Callable[[Place], Recording]
    ) -> None:
        self._folder = folder
        self._options = options
        self._parts_of = parts_of

    def begun(self, place: Place) -> Part:
        """Return the part at a place with the state at its beginning.

        The task that reads the part before leaves it. Where that is still at work, the recording is scanned
        from the nearest state that there is. So no task waits for another one, which may never run beside it.

        Raises:
            CaptureError, OSError: a file cannot be read.
        """
        recording, at, part = place
        if not at:
            return part
        known, state = self._nearest(recording, at)
        if known < at:
            before = list(self._parts_of(place)[known:at])
            before[0] = replace(before[0], state=state)
            for number, state in enumerate(states(before, self._options), known + 1):
                self._leave(recording, number, state)  # each at once, for tasks that begin meanwhile
        return replace(part, state=state)

    def leave(self, place: Place, state: bytes) -> None:
        """Leave the state behind the part at a place."""
        self._leave(place.recording, place.at + 1, state)

    def _nearest(self, recording: int, at: int) -> tuple[int, bytes | None]:
        """Return the last part up to one whose state is there, and the state; 0 and None for none."""
        known = self._known(recording, at)
        try:
            return known, load(self._path(recording, known)) if known else None
        except FileNotFoundError:
            return 0, None  # another plan has removed it by now

    def _known(self, recording: int, at: int) -> int:
        """Return the last part up to one whose state is there; 0 for none.

        Each is left after the one before it: those that are there have no holes between them.
        """
        if self._folder is None:
            return 0
        parts = range(1, at + 1)
        return bisect_left(parts, True, key=lambda part: not _is_there(self._path(recording, part)))

    def _leave(self, recording: int, part: int, state: bytes) -> None:
        if self._folder is not None:
            with suppress(FileNotFoundError):  # the folder was removed by another plan
                put(self._path(recording, part), state)

    def _path(self, recording: int, part: int) -> str:
        return f"{self._folder}/state-{recording}-{part}"


def scratch(name: str) -> str | None:
    """Return a folder that the tasks of an executor share; None without one.

    The first task of a plan removes those of plans that are over, of whose end no one is told. Spark removes
    the last ones with the executor.

    Args:
        name: of the folder, for one plan.
    """
    folders = os.environ.get(_SCRATCH)
    if not folders:
        return None
    shared = folders.split(",")[0]
    folder = os.path.join(shared, f"{_PREFIX}{name}")
    if not os.path.isdir(folder):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _remove_idle(shared)
    return folder


def touch(folder: str) -> None:
    """Show that a folder of `scratch` is in use."""
    with suppress(FileNotFoundError):
        os.utime(folder)


def _remove_idle(shared: str) -> None:
    """Remove the folders of plans that are over."""
    now = time.time()
    with os.scandir(shared) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # another task is doing the same
                if entry.name.startswith(_PREFIX) and now - entry.stat().st_mtime > _IDLE_SECONDS:
                    shutil.rmtree(entry.path, ignore_errors=True)


def put(path: str, octets: bytes) -> None:
    """Put a file where other tasks look for it, at once; what others put there is as good."""
    location = Location(path)
    attempt = f"{location.inner}-{uuid4().hex}"
    with location.system.open_output_stream(attempt) as file:
        file.write(octets)
    try:
        location.system.move(attempt, location.inner)
    except OSError:
        if not _is_there(path):  # not even by another task
            raise


def load(path: str) -> bytes:
    """Return the octets of a file; raises `OSError`."""
    location = Location(path)
    with location.system.open_input_file(location.inner) as file:
        octets: bytes = file.read()
    return octets


def _is_there(path: str) -> bool:
    location = Location(path)
    return bool(location.system.get_file_info(location.inner).type == fs.FileType.File)
