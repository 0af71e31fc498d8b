"""The options of the data source: text as Spark hands it over, to values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from .. import DIALECTS, Limits
from .._columns.tables import TABLES
from ..capture import AMQP_PORT, FLOW_TIMEOUT, MAX_FRAME, WINDOW_OCTETS, WINDOW_SEGMENTS
from .schemas import CORRUPT

INPUTS = ("auto", "capture", "stream")
MODES = {"permissive": "permissive", "dropmalformed": "drop", "failfast": "fail"}
_SIZE = re.compile(r"(\d+)([kmgt]?)b?")
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}

Options = TypeVar("Options")
Parse = Callable[[str], Any]


@dataclass(frozen=True)
class ReadOptions:
    """What is to be read, and how; docs/spark.md says what each option means."""

    paths: tuple[str, ...] = ()
    table: str = "messages"
    columns: tuple[str, ...] | None = None
    input: str = "auto"
    dialect: str = "auto"
    ports: tuple[int, ...] | None = (AMQP_PORT,)
    direction: int = 0
    mode: str = "permissive"
    corrupt_column: str = CORRUPT
    credentials: bool = False
    max_frame: int = MAX_FRAME
    body_size: int = Limits().body_size
    batch_rows: int = 10_000
    batch_octets: int = 4 << 20
    window_octets: int = WINDOW_OCTETS
    window_segments: int = WINDOW_SEGMENTS
    flow_timeout: float = FLOW_TIMEOUT
    rotated: str = "auto"
    stitch: bool = True
    group_octets: int = 1 << 30
    partition_octets: int = 256 << 20
    recursive: bool = False
    name_pattern: str | None = None
    pushdown: bool = False
    least_age: float = 60.0  # seconds after which a file is complete though no later one is there
    most_files: int | None = None  # to take at a time
    impl: str = "c"

    def decoding(self) -> dict[str, Any]:
        """The arguments that `amqpcodec.arrow` takes for captures and streams alike."""
        return {
            "dialect": self.dialect,
            "mode": self.mode,
            "rows": self.batch_rows,
            "octets": self.batch_octets,
            "credentials": self.credentials,
            "max_frame": self.max_frame,
            "limits": Limits(body_size=self.body_size),
        }

    def following(self) -> dict[str, Any]:
        """Those that it takes for captures only."""
        return {
            "port": self.ports,
            "window_octets": self.window_octets,
            "window_segments": self.window_segments,
            "flow_timeout": self.flow_timeout,
            "impl": self.impl,
        }


def typed(options: Mapping[str, str], known: Mapping[str, tuple[str, Parse]], cls: type[Options]) -> Options:
    """Options as a dataclass.

    Args:
        options: names, in which neither case nor underscores count, to text.
        known: names of options to the field they fill, and what makes its value of the text.
        cls: the dataclass.

    Raises:
        ValueError: an option that is not known, given twice, or whose text is no value of it.
    """
    by_name = {_plain(name): name for name in known}
    values: dict[str, Any] = {}
    for given, text in options.items():
        name = by_name.get(_plain(given))
        if name is None:
            raise ValueError(f"no option {given!r}; there are {', '.join(known)}")
        field, parse = known[name]
        if field in values:
            raise ValueError(f"option {name!r} is given twice")
        try:
            values[field] = parse(text)
        except ValueError as error:
            raise ValueError(f"option {name!r}: {error}") from error
    return cls(**values)


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """The options of reading; errors as for `typed`."""
    return typed(options, _READING, ReadOptions)


def text_of(value: Any) -> str:
    """The text of an option that is given as a value of Python."""
    return value if isinstance(value, str) else json.dumps(value, default=list)


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def one_of(*values: str) -> Parse:
    """A word, in any case, among some."""

    def parse(text: str) -> str:
        if text.lower() not in values:
            raise ValueError(f"{text!r} is none of {', '.join(values)}")
        return text.lower()

    return parse


def boolean(text: str) -> bool:
    """``true`` or ``false`` in any case."""
    return bool(one_of("true", "false")(text) == "true")


def size(text: str) -> int:
    """Octets: a number, which k, m, g or t behind it multiply by 1024 once or more."""
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or not int(found[1]):
        raise ValueError(f"{text!r} is no size; a size is a number above 0, such as 134217728 or 128m")
    return int(found[1]) << _UNITS[found[2]]


def count(text: str) -> int:
    """A number above 0."""
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise ValueError(f"{text!r} is no number above 0")
    return int(text)


def seconds(text: str) -> float:
    """A time, in seconds or with s, m, h or d behind it."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip().lower())
    if found is None:
        raise ValueError(f"{text!r} is no time; a time is a number of seconds, or such as 90s, 30m, 1h")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]


def words(text: str) -> tuple[str, ...]:
    """Words with commas between them."""
    return tuple(word.strip() for word in text.split(","))


def _paths(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def _path(text: str) -> tuple[str, ...]:
    return (text,)


def _ports(text: str) -> tuple[int, ...] | None:
    if text.strip().lower() == "any":
        return None
    ports = tuple(count(port.strip()) for port in text.split(","))
    if max(ports) > 65535:
        raise ValueError(f"{max(ports)} is no port")
    return ports


def _mode(text: str) -> str:
    return MODES[one_of(*MODES)(text)]


_READING: dict[str, tuple[str, Parse]] = {
    "path": ("paths", _path),
    "paths": ("paths", _paths),
    "table": ("table", one_of(*TABLES)),
    "columns": ("columns", words),
    "input": ("input", one_of(*INPUTS)),
    "dialect": ("dialect", one_of("auto", *DIALECTS)),
    "ports": ("ports", _ports),
    "direction": ("direction", lambda text: int(one_of("0", "1")(text))),
    "mode": ("mode", _mode),
    "columnNameOfCorruptRecord": ("corrupt_column", str),
    "includeCredentials": ("credentials", boolean),
    "frameMax": ("max_frame", size),
    "maxMessageBytes": ("body_size", size),
    "batchRows": ("batch_rows", count),
    "batchBytes": ("batch_octets", size),
    "oooWindow": ("window_octets", size),
    "oooSegments": ("window_segments", count),
    "flowTimeout": ("flow_timeout", seconds),
    "rotated": ("rotated", one_of("auto", "true", "false")),
    "stitch": ("stitch", boolean),
    "maxGroupBytes": ("group_octets", size),
    "maxPartitionBytes": ("partition_octets", size),
    "recursiveFileLookup": ("recursive", boolean),
    "pathGlobFilter": ("name_pattern", str),
    "pushdown": ("pushdown", boolean),
    "minFileAge": ("least_age", seconds),
    "maxFilesPerTrigger": ("most_files", count),
    "impl": ("impl", one_of("c", "py")),
}
