"""Make programs on aio-pika, aiormq, AMQPStorm, rabbitpy, pika, kombu and Celery faster by one line.

`install` does what `gevent.monkey` and `uvloop.install` do: the library that a client is built on stays
imported, and a few of its functions are replaced in place by compiled ones. These fill and read the library's
own classes. Whatever is not the common case goes to the library's own function with the same arguments, so
values, exceptions and their texts stay what they were.

    import amqpcodec.compat
    amqpcodec.compat.install("pamqp")       # aio-pika, aiormq, AMQPStorm, rabbitpy
    amqpcodec.compat.install("pika")
    amqpcodec.compat.install("amqp")        # py-amqp: kombu, Celery

`from amqpcodec.compat import pamqp` installs as well, and has the library's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType, ModuleType

from .. import _backend
from .._typing import Any, NamedTuple
from ..errors import UnknownReleaseError
from ._learnt import RELEASES
from ._patches import WATCH, Options, PatchTarget, locked, parts_of, warn_once, warn_pure
from ._relied import REASON, Known, recognise

PEERS = ("pamqp", "pika", "amqp")
"""The libraries that `install` knows."""

# What clients are built on: a user may know the one and not the other.
_BUILT_ON = {
    "aio-pika": "pamqp", "aio_pika": "pamqp", "aiormq": "pamqp", "amqpstorm": "pamqp", "rabbitpy": "pamqp",
    "celery": "amqp", "kombu": "amqp", "py-amqp": "amqp",
}  # fmt: skip
_PURE = "the pure build changes nothing"
_UNKNOWN = "nothing of it is known"
_MOST_NAMED = 4  # of what is not known, in a warning


class Status(NamedTuple):
    """The state of one library.

    Attributes:
        name: of the library.
        wanted: whether it is to be accelerated.
        active: whether its functions are replaced now.
        why: why it is not active, in words; empty if it is, or is not wanted.
        version: of the library; empty if not wanted or not known.
        loops: whether it uses sockets in another way too.
        tolerant: whether tables that cannot be read are delivered.
        originals: the library's own functions by dotted name, for each that is replaced.
        fast: calls that the compiled functions served since then.
        fallbacks: calls that went to the library's own functions, counted by reason.
        tolerated: of these, calls that the library refused, and that were served with an
            `amqpcodec.UnreadableTable`.
        stock: functions and classes that are left as they are, with the reason.
    """

    name: str
    wanted: bool = False
    active: bool = False
    why: str = ""
    version: str = ""
    loops: bool = False
    tolerant: bool = False
    originals: Mapping[str, Any] = MappingProxyType({})
    fast: int = 0
    fallbacks: Mapping[str, int] = MappingProxyType({})
    tolerated: int = 0
    stock: Mapping[str, str] = MappingProxyType({})


class _Peer:
    """One library: who wants it accelerated, and what is replaced for that."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._wants: dict[object, Options] = {}  # the last counts
        self._options: Options | None = None
        self._parts: list[PatchTarget] = []

    def want(self, token: object, options: Options) -> None:
        """Replace, from now on by these options."""
        self._wants.pop(token, None)
        self._wants[token] = options
        self._change()

    def drop(self, token: object) -> None:
        """Go back to what others want, if anything."""
        self._wants.pop(token, None)
        self._change()

    def drop_all(self) -> None:
        """Put everything back."""
        self._wants.clear()
        self._change()

    def _change(self) -> None:
        options = next(reversed(self._wants.values()), None)
        if options == self._options and all(part.is_intact() for part in self._parts):
            return
        for part in reversed(self._parts):
            WATCH.remove(part)
            part.revert()
        self._options, self._parts = None, []
        if options is not None and _backend.IMPL == "c":
            self._parts = parts_of(self.name, options)
            for part in self._parts:
                WATCH.add(part)
        self._options = options

    def status(self) -> Status:
        """Return the state of the library."""
        options = self._options
        if options is None:
            return Status(self.name)
        known = options.known
        unknown = dict.fromkeys(known.unknown, REASON)
        plans = [part.plan for part in self._parts if part.plan is not None]
        fallbacks: dict[str, int] = {}
        for plan in plans:
            for reason, times in plan.counts.declined.items():
                fallbacks[reason] = fallbacks.get(reason, 0) + times
        why = self._why(known)
        return Status(
            self.name,
            wanted=True,
            active=not why,
            why=why,
            version=known.version,
            loops=options.loops,
            tolerant=options.tolerant,
            originals={key: held for part in self._parts for key, held in part.originals().items()},
            fast=sum(plan.counts.fast for plan in plans),
            fallbacks=fallbacks,
            tolerated=sum(plan.counts.tolerated for plan in plans),
            stock=unknown | {name: reason for plan in plans for name, reason in plan.stock.items()},
        )

    def _why(self, known: Known) -> str:
        if _backend.IMPL != "c":
            return _PURE
        if known.why or not known.rules:
            return known.why or _UNKNOWN
        part = self._parts[0]
        if part.plan is not None:
            return ""
        if part.fault or self.name not in known.modules:
            return part.fault or _UNKNOWN  # of the library; something is of a client on top of it
        return f"not imported yet: {', '.join(part.waiting_for)}"


_PEERS = {name: _Peer(name) for name in PEERS}


def _peer(name: str) -> _Peer:
    if name not in _PEERS:
        given = name.__name__ if isinstance(name, ModuleType) else str(name)
        library = _BUILT_ON.get(given.lower())
        hint = f": {given} is built on {library}" if library else ""
        if given.lower() in PEERS:
            hint = f": the name is {given.lower()!r}"
        raise ValueError(f"no fast path for {name!r}; there are {', '.join(PEERS)}{hint}")
    return _PEERS[name]


def known(name: str, loops: bool, strict: bool) -> Known:
    """Return what is known of a library that is to be accelerated; warn, or raise, of what is not.

    Args:
        name: as for `install`.
        loops: as for `install`.
        strict: as for `install`.

    Raises:
        ModuleNotFoundError, UnknownReleaseError: as `install`.
    """
    found = recognise(name, loops=loops)
    if found.why and strict:
        raise ModuleNotFoundError(found.why, name=name)
    if found.unknown and strict:
        raise UnknownReleaseError(_said_of(name, found))
    if found.why or found.unknown:
        warn_once(found.why or f"{_said_of(name, found)}; compat.status()[{name!r}].stock has all")
    return found


def _said_of(name: str, found: Known) -> str:
    shown = ", ".join(found.unknown[:_MOST_NAMED])
    more = len(found.unknown) - _MOST_NAMED
    listed = f"{shown} and {more} more" if more > 0 else shown
    return f"{name} {found.version or 'of unknown version'}: not known, and left as it is: {listed}"


def _options(name: str, loops: bool, tolerant: bool, strict: bool) -> Options:
    if _backend.IMPL == "c":
        return Options(known(name, loops, strict), loops, tolerant)
    warn_pure(name)
    return Options(Known(), loops, tolerant)


def install(name: str, *, loops: bool = False, tolerant: bool = False, strict: bool = False) -> Status:
    """Replace the hot functions of a library by compiled ones, now or as soon as it is imported.

    A function whose source, or that of what it relies on, is not known stays as it is: a warning and the
    returned status name it. Doing it again changes nothing but the options. Where amqpcodec itself is not
    compiled, it replaces nothing: a warning and the status say so.

    Args:
        name: ``"pamqp"``, ``"pika"`` or ``"amqp"``.
        loops: use sockets with fewer calls of the system as well. py-amqp then reads ahead from the first
            delivery on, which a program that polls the socket itself would notice. pika sends at once, and
            may notice a millisecond later what the broker has sent meanwhile. It changes nothing for pamqp.
        tolerant: where the library refuses a frame for what is in a field table, deliver it with an
            `amqpcodec.UnreadableTable` in the place of the smallest table around that. Where it would hang or
            recurse without bound, raise its own exceptions.
        strict: raise an exception where something is not known, and replace nothing.

    Returns:
        What has become of the library.

    Raises:
        ModuleNotFoundError: ``strict``, and the library is not installed.
        UnknownReleaseError: ``strict``, and not all that would be replaced is known; the text names it.
        ValueError: no such library.
    """
    peer = _peer(name)
    options = _options(name, loops, tolerant, strict)
    with locked():
        peer.want(install, options)
        return peer.status()


def uninstall(name: str) -> Status:
    """Put a library back as it was, whoever installed it. What others have replaced since stays.

    Args:
        name: as for `install`.

    Returns:
        What has become of the library.

    Raises:
        ValueError: no such library.
    """
    peer = _peer(name)
    with locked():
        peer.drop_all()
        return peer.status()


@contextmanager
def installed(
    *names: str, loops: bool = False, tolerant: bool = False, strict: bool = False
) -> Iterator[Mapping[str, Status]]:
    """Libraries are accelerated inside the `with` block, in all threads, and are as before after it.

    Args:
        names: as for `install`.
        loops: as for `install`.
        tolerant: as for `install`.
        strict: as for `install`.

    Raises:
        ModuleNotFoundError, UnknownReleaseError, ValueError: as `install`.
    """
    wanted = [(_peer(name), _options(name, loops, tolerant, strict)) for name in names]
    token = object()
    try:
        with locked():
            for peer, options in wanted:
                peer.want(token, options)
        yield {name: _PEERS[name].status() for name in names}
    finally:
        with locked():
            for peer, _ in wanted:
                peer.drop(token)


def supported(name: str) -> tuple[str, ...]:
    """The releases of a library that were learnt: most functions are known in them, such as ``"1.4.4"``.

    Args:
        name: as for `install`.

    Raises:
        ValueError: no such library.
    """
    return RELEASES[_peer(name).name]


def status() -> dict[str, Status]:
    """Return the state of each library, by name."""
    with locked():
        return {name: peer.status() for name, peer in _PEERS.items()}


__all__ = [
    "PEERS",
    "Status",
    "UnknownReleaseError",
    "install",
    "installed",
    "status",
    "supported",
    "uninstall",
]
