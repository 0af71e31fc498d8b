"""A line on what has become of accelerated libraries, for programs that cannot be edited to ask."""

from __future__ import annotations

import os
import sys

from . import Status, status


def line() -> str:
    """Return the line: which libraries are accelerated in this process, and how many calls were."""
    told = [_told(each) for each in status().values() if each.wanted]
    return f"amqpcodec, process {os.getpid()}: {'; '.join(told) or 'no library is to be accelerated'}"


def _told(library: Status) -> str:
    options = "".join(f"+{name}" for name in ("loops", "tolerant") if getattr(library, name))
    name = f"{library.name}{options} {library.version}".rstrip()
    if not library.active:
        return f"{name} not active: {library.why if library.name in sys.modules else 'never imported'}"
    replaced, fell_back = len(library.originals), sum(library.fallbacks.values())
    functions = f"{replaced} of {replaced + len(library.stock)} functions replaced"
    told = f"{name} active, {functions}, {library.fast} calls fast, {fell_back} fell back"
    if fell_back:
        told += f", mostly for {max(library.fallbacks, key=library.fallbacks.__getitem__)}"
    return told


__all__ = ["line"]
