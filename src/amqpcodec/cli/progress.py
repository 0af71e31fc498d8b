"""A progress bar on standard error, when somebody watches and there is much to read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, BinaryIO, TypeVar

from ..capture import ByteSource
from .output import blaming_output

_Item = TypeVar("_Item")

LARGE = 8 * 1024 * 1024
_EVERY = 2048  # items between two looks at how far the file was read


class Output:
    """Standard output, without a bar.

    Attributes:
        watched: whether somebody watches lines appear.
    """

    def __init__(self) -> None:
        self.watched = sys.stdout.isatty()

    def counting(self, items: Iterator[_Item]) -> Iterator[_Item]:
        """Return the items, each of which counts as read once it is asked for."""
        return items

    def write(self, text: str) -> None:
        """Write lines; raises `OutputError` or `BrokenPipeError` if that cannot be done."""
        with blaming_output():
            self._put(text)

    def _put(self, text: str) -> None:
        sys.stdout.write(text)


class _BarOutput(Output):
    """Standard output beside a bar. If both are on the terminal, lines go above the bar."""

    def __init__(self, bar: Any, name: str, total: int, source: ByteSource) -> None:
        super().__init__()
        self._bar = bar
        self._task = bar.add_task(os.path.basename(name), total=total)
        self._source = source

    def counting(self, items: Iterator[_Item]) -> Iterator[_Item]:
        for count, item in enumerate(items, 1):
            if count % _EVERY == 0:
                self._bar.update(self._task, completed=self._source.consumed)
            yield item

    def _put(self, text: str) -> None:
        if self.watched:
            self._bar.console.out(text, end="", highlight=False)
        else:
            super()._put(text)


@contextmanager
def progress(name: str, source: ByteSource) -> Iterator[Output]:
    """Yields the output to write to, which also counts every item read.

    There is no bar when standard error is no terminal, when the file is small or of unknown size, and when
    the package `rich` (extra ``cli``) is not installed.

    Args:
        name: the file's path.
        source: what is read, asked for how far it has got.
    """
    total = size(name)
    bar = _bar(total)
    if bar is None:
        yield Output()
        return
    with bar:
        yield _BarOutput(bar, name, total, source)


@contextmanager
def reading(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the number of octets just read; shown as `progress` does.

    Args:
        name: what to call the work.
        total: how many octets there are; 0 if that is not known.
    """
    bar = _bar(total)
    if bar is None:
        yield lambda octets: None
        return
    task = bar.add_task(name, total=total)
    with bar:
        yield lambda octets: bar.advance(task, octets)


class Watched:
    """A binary file that reports how many octets each call of `read` returns.

    Args:
        file: the file; closed with this one.
        report: is called with that number.
    """

    def __init__(self, file: BinaryIO, report: Callable[[int], None]) -> None:
        self._file = file
        self._report = report

    def read(self, size: int = -1) -> bytes:
        """As the file does."""
        octets = self._file.read(size)
        self._report(len(octets))
        return octets

    def __enter__(self) -> Watched:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def size(name: str) -> int:
    """Octets of a file; 0 where that is not known."""
    try:
        return os.path.getsize(name)
    except OSError:
        return 0


def _bar(total: int) -> Any:
    if total < LARGE or not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
    except ImportError:
        return None
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
