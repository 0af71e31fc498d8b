# cython: nonecheck=True
"""Properties kept as octets. One text for both builds: rawproperties_c is this file, compiled."""

from __future__ import annotations

from operator import index

from .._pickle import restore_raw_properties
from .._typing import PURE, TYPE_CHECKING, Any
from ..errors import DecodeError
from ..limits import Limits, table_limits
from ..profiles import table_profile
from .dialect_py import Dialect
from .lookup_py import headers_in, look_up
from .reader_py import ReaderRules
from .records_py import Properties
from .slots.constructors_py import describe

if PURE:
    from .memo import MEMO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# How `headers_in` passes over a property of a type: so many octets, or what lookup_py and lookup_c call it.
_HEADERS = 101
_SIZES = {"octet": 1, "short": 2, "long": 4, "longlong": 8, "timestamp": 8, "shortstr": 100}


class PropertiesReading:
    """How raw properties are read once somebody asks for a value: the same for all of one decoder."""

    __slots__ = ("dialect", "dispatch", "limits", "options", "plans", "rules")

    def __init__(
        self,
        dialect: Dialect,
        profile: str,
        strict: bool,
        limits: Limits,
        raw_tables: bool,
        tolerant: bool = False,
    ) -> None:
        self.dialect = dialect
        self.dispatch = dialect.properties_dispatch
        self.options = profile, strict, limits, raw_tables, tolerant
        self.rules = ReaderRules(table_profile(profile), strict, limits, raw_tables, tolerant)
        self.limits = table_limits(limits)
        self.plans: dict[int, bytes | None] = {}  # by class; all None in strict mode, which refuses more

    def plan(self, class_id: int) -> bytes | None:
        """How `headers_in` passes over the properties of a class; None where it cannot."""
        try:
            return self.plans[class_id]
        except KeyError:
            sizes = [
                _HEADERS if field.attribute == "headers" and field.type == "table" else _SIZES.get(field.type)
                for field in self.dialect.properties[class_id].spec.fields
            ]
            known = [size for size in sizes if size is not None]
            fits = len(known) == len(sizes) < 16 and _HEADERS in known and not self.options[1]
            plan = self.plans[class_id] = bytes(known) if fits else None
            return plan

    def keep(self, octets: bytes, class_id: int, offset: int, channel: int) -> RawProperties:
        """Properties that stay octets, without the cost of a constructor call.

        Args:
            octets: what follows the body size in the content header.
            class_id: the class of the content, one of the dialect.
            offset: octets of the stream before them.
            channel: the channel of the content header.
        """
        properties = RawProperties.__new__(RawProperties)
        properties._octets = octets
        properties._class = class_id
        properties._reading = self
        properties._offset = offset
        properties._channel = channel
        properties._decoded = None
        return properties


class RawProperties(Properties):
    """The properties of a content header as the octets they came in: what ``properties="raw"`` gives.

    Every property is an attribute, as of the ordinary class. The first one that is asked for decodes all of
    them, by the rules of the decoder. Encoders of the same dialect write the octets as they are, on any
    channel. They cannot be changed: `decoded` and `amqpcodec.replace` make ordinary properties of them. What
    is changed inside of a value, such as an entry of `headers`, does not change the octets.

    Args:
        octets: bytes-like: what follows the body size in a content header: property flags and properties.
        class_id: the class of the content, such as 60 for basic.
        dialect: the dialect, such as ``rabbitmq.DIALECT``. Its default rules read the octets.

    Raises:
        ValueError: the dialect has no content of this class.
        TypeError: octets are not bytes-like, class_id is no int, or dialect no `Dialect`.
        DecodeError: when a property is asked for, and the octets do not follow the dialect. It is the error
            that the decoder would have raised, with its offset in the stream. For an instance made by this
            constructor the offset counts from the start of `octets`.
    """

    __slots__ = ("_channel", "_class", "_decoded", "_octets", "_offset", "_reading")

    def __init__(self, octets: ReadableBuffer, class_id: int, dialect: Dialect) -> None:
        if not isinstance(dialect, Dialect):
            raise TypeError(f"dialect must be a Dialect of this build, not {type(dialect).__name__}")
        class_id = index(class_id)
        if class_id not in dialect.properties:
            raise ValueError(f"{dialect.name} has no content of class {class_id!r}")
        reading = PropertiesReading(dialect, dialect.profile.name, False, Limits(), False)
        kept = octets if type(octets) is bytes else memoryview(octets).tobytes()
        self._octets = kept
        self._class = class_id
        self._reading = reading
        self._offset = 0
        self._channel = 0
        self._decoded: Any = None

    @property
    def octets(self) -> bytes:
        """Property flags and properties as they came."""
        return self._octets

    @property
    def class_id(self) -> int:
        """The class of the content."""
        return self._class

    @property
    def spec(self) -> Any:  # type: ignore[override]  # of the class whose properties these are
        """Return the facts of the specification about these properties."""
        return self._dialect().properties[self._class].spec

    def decoded(self) -> Any:
        """Ordinary properties of the same values, to be changed at will.

        Raises:
            DecodeError: the octets do not follow the dialect.
        """
        return self._decode()

    def header(self, key: str, default: Any = None) -> Any:
        """The value of one of the `headers`, or the default: as `headers.get`, without decoding the others.

        Raises:
            DecodeError: the octets do not follow the dialect.
            AttributeError: the class has no property `headers`.
        """
        reading = self._reading
        if reading is None:
            reading = self._known()
        plan = None if self._values() is not None else reading.plan(self._class)
        headers = None if plan is None else headers_in(self._octets, plan)
        if headers is not None:
            found = look_up(headers, key, reading.options[0], reading.limits)
            if found is not None:
                return found[0] if found else default
        table = self._values_of().headers
        return default if table is None else table.get(key, default)

    def __getattr__(self, name: str) -> Any:
        # Asked only for what is no attribute otherwise, which may be what an empty instance lacks.
        if not name.startswith("_"):
            fields = self._dialect().properties[self._class].spec.fields
            if name in [field.attribute for field in fields]:
                return getattr(self._values_of(), name)
        raise AttributeError(f"'RawProperties' object has no attribute {name!r}")

    def _known(self) -> PropertiesReading:
        reading = self._reading
        if reading is None:
            raise AttributeError("these properties were not initialised")
        return reading

    @property
    def _module(self) -> str:  # type: ignore[override]
        return self._dialect().module

    def _dialect(self) -> Dialect:
        reading = self._reading
        if reading is None:
            reading = self._known()
        dialect: Dialect = reading.dialect
        return dialect

    if PURE:

        def _values(self) -> Any:
            """Return what was decoded before, or None."""
            return self._decoded

        def _remember(self, decoded: Any) -> Any:
            """Keep what was decoded, and return what is kept: another thread may have come first."""
            with MEMO:
                if self._decoded is None:
                    self._decoded = decoded
                return self._decoded

    def _values_of(self) -> Any:
        """The ordinary properties that the octets stand for."""
        decoded = self._values()
        return self._remember(self._decode()) if decoded is None else decoded

    def _decode(self) -> Any:
        reading = self._known()
        octets = self._octets
        reader = reading.rules.reader(False)
        reader.attach(octets)
        reader.aim(0, len(octets), self._offset)
        decoded = reading.dispatch.read_fast(self._class, reader)
        if decoded is not None:
            return decoded
        decoded = reading.dispatch.create(self._class)
        try:
            reading.dispatch.read(decoded, reader)
            reader.finish()
        except DecodeError as error:
            error.dialect = reading.dialect.name
            error._definition = reading.dialect
            error.method = decoded.spec.name
            error.channel = self._channel
            error.class_id = self._class
            raise
        return decoded

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RawProperties):
            return self._equals(other)
        if not isinstance(other, Properties):
            return NotImplemented
        try:
            return bool(self._values_of() == other)
        except DecodeError:
            return False

    def _equals(self, other: RawProperties) -> bool:
        if self._class != other._class or self._dialect() is not other._dialect():
            return False
        if self._octets == other._octets:
            return True
        try:
            return bool(self._values_of() == other._values_of())
        except DecodeError:
            return False  # octets that nobody can read equal only themselves

    __hash__ = None  # type: ignore[assignment]  # equal to ordinary properties, which have no hash either

    def __repr__(self) -> str:
        return f"RawProperties({self._octets!r}, {self._class!r}, {self._dialect()!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        reading = self._known()
        place = self._offset, self._channel
        return restore_raw_properties, (
            self._octets, self._class, reading.dialect.module, reading.options, place,
        )  # fmt: skip

    def __copy__(self) -> RawProperties:
        return self


def restored(
    octets: bytes,
    class_id: int,
    dialect: Dialect,
    options: tuple[str, bool, Limits, bool, bool],
    place: tuple[int, int],
) -> RawProperties:
    """Raw properties with the rules and the place in the stream that they had before."""
    made = RawProperties(octets, class_id, dialect)
    reading = PropertiesReading(dialect, *options)
    offset, channel = place
    return reading.keep(made.octets, made.class_id, offset, channel)


describe([RawProperties])

__all__ = ["RawProperties"]
