"""The states between the parts of recordings, which tasks leave to each other in a folder."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

from pyarrow import fs

from ..options import SparkReadOptions
from .files import Location
from .planning import Part, Place, Recording
from .reading import states

_SCRATCH = "SPARK_LOCAL_DIRS"  # in the environment of workers: folders of their executor, removed at its end


class States:
    """The states of one plan, as far as its tasks have come.

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
        known = self._known(recording, at)
        state = load(self._path(recording, known)) if known else None
        if known < at:
            before = list(self._parts_of(place)[known:at])
            before[0] = replace(before[0], state=state)
            for number, state in enumerate(states(before, self._options), known + 1):
                self._leave(recording, number, state)  # each at once, for tasks that begin meanwhile
        return replace(part, state=state)

    def leave(self, place: Place, state: bytes) -> None:
        """Leave the state behind the part at a place."""
        self._leave(place.recording, place.at + 1, state)

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
            put(self._path(recording, part), state)

    def _path(self, recording: int, part: int) -> str:
        return f"{self._folder}/state-{recording}-{part}"


def scratch(name: str) -> str | None:
    """Return a folder that the tasks of an executor share, which Spark removes with it; None without one.

    Args:
        name: of the folder, for one plan.
    """
    folders = os.environ.get(_SCRATCH)
    if not folders:
        return None
    folder = os.path.join(folders.split(",")[0], f"amqpcodec-{name}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


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
