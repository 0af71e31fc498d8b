"""Which files of a folder one recorder wrote, and in which order: their names tell.

A series is a name without its tail: the serial number and the time that recorders add when they go on to the
next file. Digits in front of the tail name the recorder. docs/spark.md has the table.
"""

from __future__ import annotations

import re

_COMPRESSED = re.compile(r"\.(?:gz|zst)$", re.IGNORECASE)
# `trace.pcap7`, `trace.pcap.1732370000`: tcpdump puts its number behind all of the name.
_ENDING = re.compile(r"(?P<ending>\.[a-z]+)(?:\.?\d+)?$", re.IGNORECASE)
_DATE = r"(?:19|20)\d\d(?P<d>[-_.]?)(?:0[1-9]|1[0-2])(?P=d)(?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]\d|2[0-3])(?:(?P<c>[-_:.h]?)[0-5]\d(?:(?P=c)[0-6]\d)?)?(?:Z|[-+]\d\d:?\d\d)?"
_SECONDS = r"[01]\d{9}"  # since 1970; netsniff-ng writes its numbers with as many digits
_TIME = rf"(?:{_DATE}(?:[-_.T ]?{_CLOCK})?|{_SECONDS})"
_ANY_TIME = re.compile(rf"(?<!\d){_TIME}(?!\d)")
# A time, perhaps with a number beside it, or a number alone.
_TAIL = re.compile(
    rf"(?:(?:^|[-_. ])\d{{5,}}[-_. ])?(?:^|[-_. ])?{_TIME}(?:[-_. ]\d{{5,}})?$"
    r"|[-. ]\d{5,}$|(?:^|_)(?P<number>\d+)$"
)
_ADDRESS = re.compile(r"(?<!\d)(?<!\d[-_.])\d{1,3}([-_.])\d{1,3}\1\d{1,3}\1\d{1,3}$")
_COUNTED = re.compile(r"(?<=[a-z])\d+$", re.IGNORECASE)  # `trace7`: tcpdump, of a name without an ending
# What two files may have in common: a part of the shorter, a part of the longer, or nanoseconds.
_OF_SHORTER, _OF_LONGER, _JITTER = 1 / 2, 1 / 10, 10e6
_NUMBER_FIRST = re.compile(r"\d{5,}[-_. ](\d{14})(?!\d)")


def series(path: str, rotated: str, pattern: str | None = None) -> str:
    """Return what the files of one recorder have in common.

    Args:
        path: of a file.
        rotated: ``"false"``: every file is a series of its own; ``"true"``: all of a folder are one;
            ``"auto"``: the name without its tail.
        pattern: a regular expression for the name without ``.gz`` or ``.zst``, unless `rotated` is
            ``"false"``. Its first group is the series; without a group, what is left when the match is
            removed. A name in which it is not found is a series of its own.
    """
    if rotated == "false":
        return path
    folder, slash, name = uncompressed(path).rpartition("/")
    if pattern is not None:
        return folder + slash + _by_pattern(name, pattern)
    return folder + slash + ("" if rotated == "true" else _without_tail(name))


def uncompressed(path: str) -> str:
    """Return the name that a file had before it was compressed."""
    return _COMPRESSED.sub("", path)


def natural(name: str) -> list[tuple[str, int]]:
    """Return a key that orders names by the numbers in them; no two names have the same.

    The time counts before the number in front of it, which begins again when the recorder does.
    """
    words = [*re.split(r"(\d+)", uncompressed(name)), ""]
    order = [(text, int(number or 0)) for text, number in zip(words[::2], words[1::2], strict=False)]
    begun = _NUMBER_FIRST.search(name, name.rfind("/") + 1)
    return [("", int(begun[1]) if begun else 0), *order, (name, 0)]


def serials(name: str) -> list[int]:
    """Return the numbers in a name that are no times, in order."""
    return [int(number) for number in re.findall(r"\d+", _ANY_TIME.sub(" ", uncompressed(name)))]


def may_overlap(length: float, following: float) -> float:
    """Return how much two files that count on may have in common, if one recorder wrote both.

    Clocks are set back, and packets are not always in order. Captures made side by side have more in common.

    Args:
        length, following: nanoseconds from the first packet of each file to its last.
    """
    shorter, longer = sorted((length, following))
    return max(shorter * _OF_SHORTER, longer * _OF_LONGER, _JITTER)


def _by_pattern(name: str, pattern: str) -> str:
    found = re.search(pattern, name)
    if found is None:
        return name
    if found.re.groups:
        return found[1] or ""
    return name[: found.start()] + name[found.end() :]


def _without_tail(name: str) -> str:
    """Return a name with ``#`` for the tail in front of its ending; what is behind the ending is removed."""
    found = _ENDING.search(name)
    stem, ending = (name[: found.start()], found["ending"]) if found else (_COUNTED.sub("", name), "")
    tail = _TAIL.search(stem)
    if tail is None or (tail["number"] and _ADDRESS.search(stem)):
        return stem + ending
    return f"{stem[: tail.start()]}#{ending}"
