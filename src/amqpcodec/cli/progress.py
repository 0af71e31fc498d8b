"""A progress bar on standard error, when somebody watches and there is much to read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..capture import ByteSource

LARGE = 8 * 1024 * 1024
_EVERY = 2048  # items between two looks at how far the file was read


@contextmanager
def progress(name: str, source: ByteSource) -> Iterator[Callable[[], None]]:
    """Gives a function to call for every item read.

    There is no bar when standard error is no terminal, when the file is small or of unknown size, and when
    the package `rich` (extra ``cli``) is not installed.
    """
    total = _size(name)
    bar = _bar() if total >= LARGE and sys.stderr.isatty() else None
    if bar is None:
        yield lambda: None
        return
    with bar:
        task = bar.add_task(os.path.basename(name), total=total)
        count = 0

        def advance() -> None:
            nonlocal count
            count += 1
            if count % _EVERY == 0:
                bar.update(task, completed=source.consumed)

        yield advance
        bar.update(task, completed=total)


def _size(name: str) -> int:
    try:
        return os.path.getsize(name)
    except OSError:
        return 0


def _bar() -> Any:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    return Progress(*columns, console=Console(stderr=True), transient=True)
