"""The arguments that say what to read, the same for every subcommand that reads captures."""

from __future__ import annotations

import argparse
import errno
import glob
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from select import select
from typing import Any, BinaryIO, NamedTuple, cast

from .._nearest import nearest_hint
from ..capture import ByteSource, CaptureError, StreamTracker
from ..capture.container import first_time
from ..capture.elsewhere import hint
from ..capture.series import may_overlap, natural, series, uncompressed
from ..capture.tails import last_time
from ..options import AMQP_PORT, KEEP
from . import output

STANDARD_INPUT = "-"
_LEAST_LIKENESS = 0.75  # of names of files, of which any may be there
_NO_CAPTURE = (
    "; tcpdump -w, tshark -w and Wireshark write captures; the bytes of one direction alone are "
    "read with --input stream"
)

PATIENCE = 5.0  # seconds without anything from a pipe, until there is a hint
_FEW = 1024  # octets: the beginning of a capture, and hardly a packet
_HELD_BACK = "if there is traffic, tcpdump holds it back: have it run with -U --immediate-mode"
_OTHERS = "; amqpcodec decode --port any says what its connections are, such as TLS"


def add_files(parser: argparse.ArgumentParser) -> None:
    """Describe the argument `files`."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a file, or a pattern of names; - reads standard input"
    )


def of_streams(arguments: argparse.Namespace) -> bool:
    """Return whether the files hold the octets of one direction."""
    return getattr(arguments, "input", None) == "stream"


def expanded(names: Iterable[str]) -> Iterator[str]:
    """The files meant by names and patterns; a pattern that fits none is given as it is."""
    for name in names:
        found = [] if os.path.lexists(name) else sorted(glob.glob(name, recursive=True))
        yield from found or (name,)


class Recording:
    """The files that one recorder has written, opened one after the other.

    Attributes:
        names: of the files.
        name: of the file that was opened last.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self.name = names, names[0]

    def shown(self) -> str:
        """Return its name in messages."""
        more = f" and {len(self.names) - 1} more" if len(self.names) > 1 else ""
        return f"{self.names[0]!r}{more}"

    def __iter__(self) -> Iterator[BinaryIO]:
        for name in self.names:
            self.name = name
            with open_file(name) as file:
                yield file


class _Span(NamedTuple):
    """A file of a series, with the times of its first and last packet in nanoseconds.

    The last one is None where it is not known without reading all of the file, since that is compressed.
    """

    name: str
    begin: int
    end: int | None

    def is_beside(self, following: _Span) -> bool:
        """Return whether two files have more in common than those that one recorder wrote in turn."""
        if self.end is None or following.end is None:
            return self.begin == following.begin
        allowed = may_overlap(self.end - self.begin, following.end - following.begin)
        return self.end - following.begin > allowed


def recordings(names: Iterable[str], rotated: str, pattern: str | None) -> list[Recording]:
    """Return the recordings that names and patterns mean: the files of a series, in the order of their times.

    A file that is named again begins another recording. A pipe is one of its own, since it cannot be read
    twice. Files that only look like a series, since they were recorded side by side, are each one of their
    own; that is said. So is an order of times that is not that of the names.

    Args:
        names: of files, and patterns.
        rotated, pattern: as for `series`. Files that a pattern or ``"true"`` puts together stay so.

    Raises:
        ValueError: a file of a series cannot be opened or read; the text names it.
    """
    found: dict[tuple[str, int], list[str]] = {}
    seen: Counter[str] = Counter()
    for name in expanded(names):
        own = not os.path.isfile(name)
        of = name if own else series(os.path.normpath(name).replace(os.sep, "/"), rotated, pattern)
        found.setdefault((of, seen[name]), []).append(name)
        seen[name] += 1
    by_names_alone = rotated == "auto" and pattern is None
    return [each for names in found.values() for each in _of_series(names, by_names_alone)]


def _of_series(names: list[str], by_names_alone: bool) -> list[Recording]:
    """Return the files of a series as one recording, or each as one where they were recorded side by side."""
    if len(names) == 1:
        return [Recording(names)]
    spans = sorted(map(_span, names), key=lambda span: (span.begin, natural(span.name)))
    ordered = [span.name for span in spans]
    if by_names_alone and (beside := [one for one, other in pairwise(spans) if one.is_beside(other)]):
        output.complain(
            f"{beside[0].name!r} and others of its series overlap in time, so each is read alone; "
            "--rotated true takes them as one recording"
        )
        return [Recording([name]) for name in names]
    by_names = sorted(names, key=natural)
    first = by_names.index(ordered[0])  # a ring begins anywhere
    if by_names[first:] + by_names[:first] != ordered:
        shown = Recording(ordered).shown()
        output.complain(f"{shown}: read in the order of their times, which is not that of their names")
    return [Recording(ordered)]


def _span(name: str) -> _Span:
    try:
        with open_file(name) as file:
            begin = first_time(ByteSource(file)) or 0
            file.seek(0)
            end = None if uncompressed(name) != name else last_time(file, os.path.getsize(name))
    except OSError as error:
        raise ValueError(f"{name!r}: {unreadable(error)}") from error
    return _Span(name, begin, None if end is None else max(begin, end))


def is_read(out: str, names: Iterable[str]) -> bool:
    """Return whether a file to be written is one of those that are read."""
    return os.path.exists(out) and any(os.path.exists(name) and os.path.samefile(name, out) for name in names)


def open_file(name: str) -> BinaryIO:
    """Open a file by name, or standard input.

    Raises:
        OSError: it cannot be opened.
    """
    if name == STANDARD_INPUT:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "it is closed", "standard input")
        return open(sys.stdin.fileno(), "rb", 0, closefd=False)
    if os.path.isdir(name):  # which on Windows is merely not permitted
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return open(name, "rb", 0)


def awaited(file: BinaryIO, before: Callable[[], None]) -> BinaryIO:
    """A file that calls a function before each read, where reading may have to wait for who writes it.

    Whoever watches a pipe from which hardly anything comes gets a hint, once.

    Args:
        file: a file, not buffered.
        before: is called then; what it raises goes to who reads.
    """
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISREG(mode):
        return file
    return cast(BinaryIO, _Awaited(file, before, stat.S_ISFIFO(mode) and sys.stderr.isatty()))


class _Awaited:
    """A pipe or the like; see `awaited`."""

    def __init__(self, file: BinaryIO, before: Callable[[], None], hints: bool) -> None:
        self._file: Any = file
        self._before = before
        self._hints = hints  # whether there is still one to give
        self._came = 0  # octets

    def read(self, size: int = -1) -> bytes:
        """As the file does."""
        self._wait()
        octets: bytes = self._file.read(size)
        self._came += len(octets)
        return octets

    def readinto(self, buffer: memoryview) -> int:
        """As the file does."""
        self._wait()
        count: int = self._file.readinto(buffer)
        self._came += count
        return count

    def _wait(self) -> None:
        self._before()
        if not self._hints:
            return
        self._hints = self._came < _FEW
        if self._hints and not _readable(self._file.fileno(), PATIENCE):
            self._hints = False
            output.complain(f"nothing has come from the pipe for {PATIENCE:g} s; {_HELD_BACK}")


def _readable(file: int, seconds: float) -> bool:
    """Return whether a pipe has something to read, or ends, within a time; True where nobody can tell."""
    try:
        return bool(select([file], [], [], seconds)[0])
    except (OSError, ValueError):  # on Windows, where only sockets can be asked
        return True


def _hint(error: Exception) -> str:
    """Suggest a remedy, as the end of a sentence; "" for none."""
    if isinstance(error, CaptureError):
        return _NO_CAPTURE if error.message.startswith("neither pcap") else ""
    if isinstance(error, PermissionError):
        return "; change its permissions, or work as a user who may"
    if isinstance(error, IsADirectoryError):
        return "; name the files in it, or a pattern: 'FOLDER/*.pcap'"
    if isinstance(error, FileNotFoundError):
        return _near_file(error.filename)
    return ""


def searched(arguments: argparse.Namespace, tracker: StreamTracker | None = None) -> str:
    """Where AMQP was looked for, as the end of a sentence, with what else could be tried.

    Args:
        arguments: those of the command.
        tracker: has followed the connections; None if nobody knows what is on other ports.
    """
    chosen = getattr(arguments, "port", [AMQP_PORT])
    if chosen is None:
        return "any port"
    noun = "port" if len(chosen) == 1 else "ports"
    where = f"{noun} {', '.join(map(str, chosen))}"
    return where + hint(tracker, "--port ")


def searched_in_vain(arguments: argparse.Namespace, tracker: StreamTracker | None = None) -> str:
    """As `searched`, for commands that say nothing of connections without AMQP."""
    where = searched(arguments, tracker)
    return where if getattr(arguments, "port", ()) is not None else f"{where}{_OTHERS}"


def recorded_twice(count: int, arguments: argparse.Namespace) -> str:
    """Say that connections are copies of others."""
    were = f"{count} connection{'s were' if count > 1 else ' was'} recorded twice"
    were += ", with other addresses or in another tunnel"
    if getattr(arguments, "copies", KEEP) == KEEP:
        return f"{were}, so that messages count twice: --copies drop leaves the copies out"
    return f"{were}: the copies are left out"


def _near_file(name: Any) -> str:
    """The file with the name most like one that is not there."""
    folder, file = os.path.split(os.fsdecode(name)) if isinstance(name, (str, bytes)) else ("", "")
    try:
        return nearest_hint(file, os.listdir(folder or "."), _LEAST_LIKENESS)
    except OSError:
        return ""


def reason(error: Exception) -> str:
    """Why something could not be read or written, without the name of the file."""
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def unreadable(error: Exception) -> str:
    """Why an input could not be read, without its name, and what could be done."""
    return reason(error) + _hint(error)


def bounded(text: str, low: int, high: int, complaint: str) -> int:
    """A number in an argument.

    Raises:
        argparse.ArgumentTypeError: no number from `low` to `high`; `complaint` is its text.
    """
    if not (text.isascii() and text.isdecimal() and low <= int(text) <= high):
        raise argparse.ArgumentTypeError(complaint)
    return int(text)
