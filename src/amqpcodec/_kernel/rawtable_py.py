"""Field tables kept as octets. One text for both builds: rawtable_c is this file, compiled."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView

from .._pickle import restore_public
from .._typing import PURE, TYPE_CHECKING, Any
from ..errors import DecodeError
from ..limits import DEFAULT_LIMITS, Limits, checked_limits, table_limits
from ..types import UnreadableTable
from .lookup_py import look_up
from .slots.constructors_py import describe

if PURE:
    from .memo import MEMO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_MOST_LOOKED_UP = 3  # keys of a table; then decoding all of it costs less


class RawTable(Mapping[str, Any]):
    """A field table kept as the octets it came in: what ``tables="raw"`` gives in place of a dict.

    A read-only mapping, decoded on access, by the limits of the decoder that made it. The first few keys that
    are looked up have their values decoded alone, once all octets were checked. Encoders write the octets
    back unchanged, so that duplicate keys, chosen tags and even tags nobody knows survive.

    Args:
        octets: bytes-like: the key-tag-value entries, without the length before them.
        profile: name of the table profile that reads them.
        limits: what is refused when they are read; of `Limits`, those of tables and arrays count.
        tolerant: read octets that cannot be read as no entries; a table inside that cannot be read is an
            `UnreadableTable`.

    Raises:
        TypeError: octets are not bytes-like, profile no str, or limits no `Limits`.
        DecodeError: on first access, when the octets do not follow the profile, and it is not tolerant; its
            offset counts from the start of `octets`.
    """

    __slots__ = ("_limits", "_looked_up", "_octets", "_profile", "_table", "_tolerant")

    def __init__(
        self,
        octets: ReadableBuffer,
        profile: str = "rabbitmq",
        limits: Limits = DEFAULT_LIMITS,
        tolerant: bool = False,
    ) -> None:
        kept = octets if type(octets) is bytes else memoryview(octets).tobytes()
        if not issubclass(type(profile), str):
            raise TypeError(f"profile must be a str, not {type(profile).__name__}")
        own = table_limits(checked_limits(limits))
        self._octets = kept
        self._profile = str.__str__(profile)  # of a subclass too, the text itself
        self._limits = own
        self._tolerant = bool(tolerant)
        self._table: dict[str, Any] | None = None
        self._looked_up = 0

    @property
    def octets(self) -> bytes:
        """The entries as they came."""
        return self._octets

    @property
    def profile(self) -> str:
        """Name of the table profile that reads them."""
        return self._profile

    @property
    def error(self) -> DecodeError | None:
        """Return why the octets cannot be read; None if they can."""
        try:
            table = self._decoded()
        except DecodeError as error:
            return error
        return table.error if isinstance(table, UnreadableTable) else None

    if PURE:

        def _known(self) -> dict[str, Any] | None:
            """Return what was decoded before, if it was."""
            return self._table

        def _remember(self, table: dict[str, Any]) -> dict[str, Any]:
            """Keep what was decoded, and return what is kept: another thread may have come first."""
            with MEMO:
                if self._table is None:
                    self._table = table
                return self._table

        def _look_ups(self) -> int:
            """Count one more look-up, and return how many there were."""
            self._looked_up += 1
            return self._looked_up

    def _decoded(self) -> dict[str, Any]:
        table = self._known()
        if table is None:
            table = self._remember(_read(self._octets, self._profile, self._limits, self._tolerant))
        return table

    def _found(self, key: object) -> tuple[Any, ...] | None:
        """The value of a key, see `look_up`; None once all is decoded, or has to be."""
        if self._known() is not None or self._look_ups() > _MOST_LOOKED_UP:
            return None
        return look_up(self._octets, key, self._profile, self._limits)

    def __getitem__(self, key: str) -> Any:
        found = self._found(key)
        return found[0] if found else self._decoded()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())

    def __contains__(self, key: object) -> bool:
        found = self._found(key)
        return key in self._decoded() if found is None else bool(found)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or the default."""
        found = self._found(key)
        if found is None:
            return self._decoded().get(key, default)
        return found[0] if found else default

    def keys(self) -> KeysView[str]:
        """The keys, in the order of the octets."""
        return self._decoded().keys()

    def values(self) -> ValuesView[Any]:
        """The values, in the order of the octets."""
        return self._decoded().values()

    def items(self) -> ItemsView[str, Any]:
        """Keys and values, in the order of the octets."""
        return self._decoded().items()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        if isinstance(other, RawTable) and (self.octets, self.profile) == (other.octets, other.profile):
            return True
        try:
            return self._decoded() == dict(other)
        except DecodeError:
            return False  # octets that nobody can read equal only themselves

    __hash__ = None  # type: ignore[assignment]  # equal to dicts, which have no hash either

    def __repr__(self) -> str:
        limits = "" if self._limits is None else f", {self._limits!r}"
        tolerant = ", tolerant=True" if self._tolerant else ""
        return f"RawTable({self._octets!r}, {self._profile!r}{limits}{tolerant})"

    def __reduce__(self) -> tuple[Any, ...]:
        given: tuple[Any, ...] = ()
        if self._tolerant:
            given = (DEFAULT_LIMITS if self._limits is None else self._limits, True)
        elif self._limits is not None:
            given = (self._limits,)
        return restore_public, ("RawTable", (self._octets, self._profile, *given))


def kept_table(octets: bytes, profile: str, limits: Limits | None, tolerant: bool) -> RawTable:
    """A table from the wire, without the cost of a constructor call.

    Args:
        octets: its entries.
        profile: name of the table profile that reads them.
        limits: what `table_limits` makes of those of the decoder.
        tolerant: as for `RawTable`.
    """
    table = RawTable.__new__(RawTable)
    table._octets = octets
    table._profile = profile
    table._limits = limits
    table._tolerant = tolerant
    table._table = None
    table._looked_up = 0
    return table


def read_by(read: Callable[[bytes, str, Limits | None, bool], dict[str, Any]]) -> None:
    """Have the entries of all tables read by a function: the reader makes tables, so it cannot be below.

    Args:
        read: called with octets, profile, limits and whether tolerant, as a table keeps them.
    """
    global _read
    _read = read


_read: Any = None  # until `tables` is imported, as every dialect does

Mapping.register(RawTable)
describe([RawTable])

__all__ = ["RawTable"]
