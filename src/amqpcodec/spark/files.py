"""Which files paths mean, what each of them is, and how to open it; on any file system that pyarrow knows."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import unquote
from zlib import crc32

from pyarrow import ArrowInvalid, fs

from .._kernel.framing import MORE, WHOLE, frame_at, type_mask
from .._kernel.wire import BODY, HEADER, HEARTBEAT, METHOD, OVERHEAD
from ..capture import ByteSource, read_packets
from ..capture.container import first_time
from ..capture.pcap import MAGICS
from ..capture.pcapng import SECTION_HEADER
from ..capture.tails import last_time
from .ahead import ReadAhead
from .progress import shown

INDEX_ENDING = ".index.arrow"  # of what `amqpcodec.arrow.StreamWriter` writes beside a stream
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(.*)", re.DOTALL)
_ONE_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/", re.IGNORECASE)
# A port stands after a colon, too, and folders may have any name.
_SECRET = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]+):/+[^/@:]*?(?::|%3A)(?!\d+(?:/|$))[^@]*@", re.DOTALL | re.IGNORECASE
)
_SETTINGS = re.compile(r"\?[A-Za-z_]+=[^/]*\Z")  # of a URI, not a wildcard for one character
_SAME = {"s3a": "s3", "s3n": "s3"}  # schemes of Hadoop
_STORES = 64  # buckets
_ENVIRONMENT = (
    "credentials, region and endpoint of a store come from the environment of the driver and of workers "
    "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL; spark.executorEnv.NAME sets "
    "one for workers), since Spark gives its spark.hadoop.fs.* to no source of Python"
)
_BRACES = re.compile(r"\{([^{}]*)\}")  # the innermost
_SLASH_IN_BRACES = re.compile(r"\{[^}]*/")
_WILD = re.compile(r"[*?\[{]")
_FRAME_TYPES = type_mask((METHOD, HEADER, BODY, HEARTBEAT))
_SIZE_LIMIT = (1 << 24) - OVERHEAD  # octets of the payload of the first frame
_LOOKERS = 16  # files that are looked at side by side, where looking is waiting for a network
_KNOWN_BY = 4096  # octets at the start of a file: one that is written again has packets of other times there

Looked = TypeVar("Looked")
Found = TypeVar("Found")


@dataclass(frozen=True)
class File:
    """A file to be read.

    Attributes:
        path: as it is named in rows: absolute, or a URI.
        size: its octets.
        kind: ``"capture"`` or ``"stream"``; ``"empty"`` for a file with nothing in it, ``"bad"`` for one that
            cannot be read.
        compressed: whether it can only be read from its start.
        first_ns: when its first packet came; None if that is not known.
        fault: of a bad one, what is wrong.
        begin: how many of its octets were read before.
        grows: whether more than its `size` may be written to it.
    """

    path: str
    size: int
    kind: str
    compressed: bool = False
    first_ns: int | None = None
    fault: str = ""
    begin: int = 0
    grows: bool = False

    @property
    def name(self) -> str:
        """Its name in that folder."""
        return self.path.rpartition("/")[2]

    def last_ns(self) -> int | None:
        """When its last packet came; None if that cannot be known without reading all of it."""
        if self.compressed:
            return None
        with closing(open_file(self.path)) as file:
            return last_time(file, self.size)


class Location:
    """A path on its file system.

    Args:
        path: a path of this machine, or a URI.

    `s3a://` and `s3n://` are `s3://`, and `dbfs:/` is where Databricks shows it on the machine.

    Raises:
        ValueError: it names nothing, as `file://folder` does: `folder` stands where a machine is named; or it
            has one slash after a scheme, as `hdfs:/folder`, which would be a folder here called `hdfs:`; or
            its scheme is none that pyarrow knows; or it has settings after a question mark; or
            `without_secret` refuses it.
        OSError: the store cannot be reached.
    """

    def __init__(self, path: str) -> None:
        without_secret(path)
        scheme, machine, rest = _divided(path)
        if scheme == "file":
            if not rest or machine not in ("", "localhost"):
                raise ValueError(f"{path!r} is no path: it is /folder/name, or file:///folder/name")
            self.system: Any = fs.LocalFileSystem()
            self.inner = os.path.abspath(rest)
            self._outer = self._root = ""
            return
        if _SETTINGS.search(rest):
            raise ValueError(f"{path!r} has settings after a question mark: {_ENVIRONMENT}")
        self._outer = f"{scheme}://{machine}"
        try:
            self.system, root = _store(self._outer)
        except ArrowInvalid as error:
            raise ValueError(f"{path!r} is no path: {error}") from error
        self._root = root.rstrip("/")
        self.inner = f"{self._root}{rest}".rstrip("/") or "/"

    def shown(self, inner: str) -> str:
        """How a path of this file system is named outside of it."""
        return f"{self._outer}{inner[len(self._root) :]}"


def _divided(path: str) -> tuple[str, str, str]:
    """Return the scheme of a path, the machine or bucket, and the rest; `file` for local paths."""
    found = _URI.fullmatch(path)
    if found is None and path.lower().startswith(("file:", "dbfs:")):
        found = _URI.fullmatch(path.replace(":", "://", 1))
    if found is None:
        if _ONE_SLASH.match(path):
            raise ValueError(f"{path!r} is no path: two slashes stand after a scheme, as in hdfs:///folder")
        return "file", "", path
    scheme = found[1].lower()
    if scheme == "dbfs":
        return "file", found[2], found[3] if found[3].startswith("/Volumes/") else f"/dbfs{found[3]}"
    return _SAME.get(scheme, scheme), found[2], unquote(found[3]) if scheme == "file" else found[3]


@lru_cache(_STORES)
def _store(root: str) -> tuple[Any, str]:
    """Return the file system of a URI and the path in it; one for each bucket, since it keeps connections."""
    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(f"{root}/")
    except OSError as error:
        raise OSError(f"{root} cannot be reached: {error}; {_ENVIRONMENT}") from error
    return found


def without_secret(path: str) -> str:
    """Return a path; refuse one with a password, as ``s3://key:secret@bucket``: paths are shown everywhere.

    Raises:
        ValueError: it has one, which is not in the text.
    """
    found = _SECRET.search(path)
    if found is not None:
        raise ValueError(
            f"a path {found[1]}://... has a secret in it, and paths stand in rows, states and logs: "
            "credentials come from the environment"
        )
    return path


def resolved(path: str) -> str:
    """A path as `listed` names it, but the same for all symbolic links of this machine that lead there."""
    return os.path.realpath(path) if path.startswith("/") else path


def open_file(path: str, end: int | None = None) -> BinaryIO:
    """Open a file to be read from its start to its end.

    Args:
        path: the file.
        end: the octet where reading will end; None for the end of the file.

    Raises:
        OSError: it cannot be opened.
    """
    file = open_anywhere(path)
    return file if isinstance(file, io.FileIO) else cast(BinaryIO, ReadAhead(file, end))


def open_anywhere(path: str) -> Any:
    """Open a file to be read here and there: a `FileIO`, or pyarrow's; raises `OSError`."""
    location = Location(path)
    if isinstance(location.system, fs.LocalFileSystem):
        return open(location.inner, "rb", 0)
    return location.system.open_input_file(location.inner)


def listed(
    paths: Iterable[str], *, recursive: bool, name_pattern: str | None
) -> list[tuple[str, int | None]]:
    """Return the files that paths mean, each once, in order: path and size, None for what is no file.

    Args:
        paths: of files and folders, with ``*``, ``?``, ``[...]`` and ``{a,b}`` in them.
        recursive: whether folders in folders are looked into.
        name_pattern: names of files have to fit this one, in addition.

    Names that begin with ``_`` or ``.`` are passed over unless they are named, as Spark does; so are the
    indexes of stream files.

    Raises:
        FileNotFoundError: a path means no file at all.
        ValueError: a path or pattern that cannot be.
        OSError: a store does not answer, or does not let its files be listed.
    """
    found: dict[str, int | None] = {}
    fits = re.compile(_expression(name_pattern) if name_pattern else ".*", re.DOTALL)
    for path in paths:
        location = Location(path)
        try:
            there = _meant(location, recursive)
        except OSError as error:
            if isinstance(location.system, fs.LocalFileSystem):
                raise
            raise OSError(f"{path!r} cannot be listed: {error}; {_ENVIRONMENT}") from error
        if there is None:
            raise FileNotFoundError(f"there is no file {path!r}")
        found |= {location.shown(info.path): info.size for info in there if fits.fullmatch(info.base_name)}
    return sorted(found.items())


def _meant(location: Location, recursive: bool) -> list[Any] | None:
    """Return the files that a path means; None if there is nothing of its name."""
    system = location.system
    there = [info for pattern in _alternatives(location.inner) for info in _globbed(system, pattern)]
    return [file for info in there for file in _inside(system, info, recursive)] if there else None


def recognised(
    files: Iterable[tuple[str, int | None]], kind: str, *, times: bool, bad_files: str = "fail"
) -> list[File]:
    """Return what files are.

    Args:
        files: path and size.
        kind: what all of them are, or ``"auto"``: detected from their first octets.
        times: whether the time of first packets is wanted.
        bad_files: ``"skip"`` finds those that cannot be read, and says why; ``"fail"`` raises.

    Raises:
        ValueError: a file is nothing that is known.
        OSError: a file cannot be read.
    """
    named = list(files)
    look = _look if bad_files == "fail" else _look_at_any
    paths = [path for path, _ in named]
    return side_by_side(lambda file: look(*file, kind, times), named, paths, "files looked at")


def fingerprint(path: str, size: int) -> int:
    """Return a number by which a file is known again while it grows, and when it was compressed.

    Args:
        path: the file.
        size: how many octets of it there were, uncompressed.

    Raises:
        OSError: it cannot be read.
    """
    with closing(open_file(path)) as file:
        return crc32(ByteSource(file).peek(min(size, _KNOWN_BY)))


def check_regular(path: str, size: int | None) -> int:
    """Return the size of what was listed.

    Raises:
        FileNotFoundError: it is no file.
    """
    if size is None:
        raise FileNotFoundError(f"{path!r} is no file: a link to what is not there, a pipe or a device")
    return size


def side_by_side(
    look: Callable[[Looked], Found], looked: Iterable[Looked], paths: Sequence[str], what: str
) -> list[Found]:
    """Call a function for each file; return its results in order.

    Args:
        look: the function.
        looked: its arguments.
        paths: the files. For those on this machine it is called for one after the other: threads gain
            nothing, and each takes address space, which a worker may have little of.
        what: what is done, for the lines that say how many files are.
    """
    if all(isinstance(Location(path).system, fs.LocalFileSystem) for path in paths):
        return list(shown(map(look, looked), len(paths), what))
    with ThreadPoolExecutor(_LOOKERS) as threads:
        return list(shown(threads.map(look, looked), len(paths), what))


def _look_at_any(path: str, size: int | None, kind: str, times: bool) -> File:
    """Look at a file that may be bad. Captures are bad if nothing can be read of them."""
    try:
        found = _look(path, size, kind, times)
        if found.kind == "capture":
            with closing(open_file(path)) as file:
                next(iter(read_packets(ByteSource(file))), None)
    except (ValueError, OSError) as error:
        return File(path, size or 0, "bad", fault=str(error))
    return found


def _look(path: str, size: int | None, kind: str, times: bool) -> File:
    octets = check_regular(path, size)
    if not octets:
        return File(path, 0, "empty")
    with closing(open_file(path)) as file:
        source = ByteSource(file)
        found = _kind(source) if kind == "auto" else kind
        if not found:
            raise ValueError(
                f"{path!r} is neither a capture nor a stream of frames; leave it out, by pathGlobFilter or "
                "badFiles, or say what it is by the option input"
            )
        first = first_time(source) if times and found == "capture" else None
        return File(path, octets, found, bool(source.compression), first)


def _kind(source: ByteSource) -> str:
    """Return the kind of a file; empty text if it is not known."""
    head = source.peek(8)
    if head[:4] in MAGICS or head[:4] == SECTION_HEADER:
        return "capture"
    if head[:4] == b"AMQP":
        return "stream"
    status, size = frame_at(head, 0, len(head), _FRAME_TYPES, _SIZE_LIMIT, opens=False)
    if status == MORE:
        frame = source.peek(size)
        status, _ = frame_at(frame, 0, len(frame), _FRAME_TYPES, _SIZE_LIMIT, opens=False)
    if status == WHOLE:
        return "stream"
    return "" if head or source.fault else "empty"


def _globbed(system: Any, pattern: str) -> list[Any]:
    """Return the files that a path with wildcards means."""
    parts = pattern.split("/")
    wild = next((at for at, part in enumerate(parts) if _WILD.search(part)), None)
    if wild is None:
        info = system.get_file_info(pattern)
        is_link = isinstance(system, fs.LocalFileSystem) and os.path.islink(pattern)
        return [info] if is_link or info.type != fs.FileType.NotFound else []
    found = [system.get_file_info("/".join(parts[:wild]) or "/")]
    for part in parts[wild:]:
        fits = re.compile(_expression(part), re.DOTALL)
        inside = [info for folder in found for info in _children(system, folder)]
        found = [
            info
            for info in inside
            if fits.fullmatch(info.base_name) and (part[:1] in ("_", ".") or not _hidden(info))
        ]
    return found


def _inside(system: Any, info: Any, recursive: bool) -> Iterator[Any]:
    """A file itself; of a folder, the files in it."""
    if info.type != fs.FileType.Directory:
        yield info
        return
    for child in _children(system, info):
        folder = child.type == fs.FileType.Directory
        if not (_hidden(child) or (folder and not recursive) or child.base_name.endswith(INDEX_ENDING)):
            yield from _inside(system, child, recursive)


def _children(system: Any, info: Any) -> list[Any]:
    if info.type != fs.FileType.Directory:
        return []
    found = list(system.get_file_info(fs.FileSelector(info.path)))
    if isinstance(system, fs.LocalFileSystem):
        found += _dangling(info.path)
    try:
        return sorted(found, key=lambda child: str(child.path))
    except UnicodeDecodeError as error:
        raise ValueError(f"the name {error.object!r} is not UTF-8: name others, or rename it") from error


def _dangling(folder: str) -> Iterator[Any]:
    """Yield the symbolic links in a folder that lead nowhere, which Arrow leaves out."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink() and not os.path.exists(entry.path):
                yield fs.FileInfo(entry.path, fs.FileType.NotFound)


def _hidden(info: Any) -> bool:
    return bool(info.base_name[:1] in ("_", "."))


def _expression(pattern: str) -> str:
    """A pattern of names as a regular expression; raises ValueError."""
    out: list[str] = []
    depth = 0
    for token in re.findall(r"\[[^\]]+\]|\\.|.", pattern, re.DOTALL):
        if token[0] == "[" and len(token) > 1:
            out.append(_character(token[1:-1]))
        elif token == "{":
            depth += 1
            out.append("(?:")
        elif token == "}" and depth:
            depth -= 1
            out.append(")")
        elif token == "," and depth:
            out.append("|")
        else:
            out.append({"*": ".*", "?": "."}.get(token) or re.escape(token[-1]))
    return "".join(out) + ")" * depth


def _character(inside: str) -> str:
    """Turn the text between square brackets into a regular expression."""
    negated = inside[0] in "!^"
    some = "".join(each if each == "-" else re.escape(each) for each in inside[negated:])
    expression = f"[{'^' * negated}{some}]"
    try:
        re.compile(expression)
    except re.error as error:
        raise ValueError(f"[{inside}] is no pattern: {error.msg}") from error
    return expression


def _alternatives(pattern: str) -> list[str]:
    """A pattern with slashes in braces as several without, since each folder is searched by itself."""
    found = _BRACES.search(pattern) if _SLASH_IN_BRACES.search(pattern) else None
    if found is None:
        return [pattern]
    before, behind = pattern[: found.start()], pattern[found.end() :]
    return [each for word in found[1].split(",") for each in _alternatives(f"{before}{word}{behind}")]
