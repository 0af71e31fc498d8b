"""Facts about the classes of the libraries we accelerate.

They come from `spec/peers`. Compiled code fills and reads the libraries' classes by them, where the source of
a class is known (`_relied`) and nobody has changed it since (`_before`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from .._generated import peers
from .._kernel import fields
from .._typing import Any, NamedTuple

REQUIRED = ...
"""The default of an argument that has none."""

KINDS = {
    "bit": fields.BIT_FIELD,
    "octet": fields.OCTET_FIELD,
    "short": fields.SHORT_FIELD,
    "long": fields.LONG_FIELD,
    "shortstr": fields.SHORTSTR_FIELD,
    "table": fields.TABLE_FIELD,
}
"""How fields of these wire types are read and written, whatever the library."""

_OWN = 0  # of none of these kinds


class Check(NamedTuple):
    """One condition that `validate` of a class puts on a field.

    Attributes:
        kind: ``"length"`` (at most), ``"pattern"`` (of all of it), ``"equals"``, ``"is"`` or ``"in"``.
        operand: what the value is compared with.
        skips_none: None passes.
    """

    kind: str
    operand: Any
    skips_none: bool


class Field(NamedTuple):
    """One attribute of a class, in wire order.

    Attributes:
        name: the attribute.
        kind: the wire type: bit, octet, short, long, longlong, shortstr, longstr, timestamp or table.
        default: of the constructor where its calls are served, or `REQUIRED`.
        coerce: which values the constructor replaces: ``"falsy"``, ``"none"`` or ``""`` for none of them.
        instead: by what; a dict stands for a new one each time.
        checks: what `validate` insists on.
    """

    name: str
    kind: str
    default: Any = None
    coerce: str = ""
    instead: Any = None
    checks: tuple[Check, ...] = ()


class Record(NamedTuple):
    """One class for a method or for content properties.

    Attributes:
        name: such as ``"Basic.Deliver"``, as the library writes it.
        index: the class id in the high and the method id in the low 16 bits, which are zero for properties.
        leave: why the class is left to the library in any case, or nothing.
        fields: its attributes in wire order, which is also that of the constructor.
    """

    name: str
    index: int  # type: ignore[assignment]  # the libraries' name for it; nobody looks facts up in facts
    leave: str
    fields: tuple[Field, ...]

    @property
    def is_method(self) -> bool:
        """Return whether it is a method rather than content properties."""
        return bool(self.index & 0xFFFF)


class Formats(NamedTuple):
    """The formats that py-amqp has in place of classes.

    Attributes:
        methods: by index, one letter per argument of the methods that a client receives.
        properties: name and letter of each content property in wire order.
    """

    methods: dict[int, str]
    properties: tuple[tuple[str, str], ...]


def attributes(*names: str) -> list[tuple[str, int, None]]:
    """Return fields for `RecordLayout` that compiled code reads and writes itself."""
    return [(name, _OWN, None) for name in names]


def known_records(peer: str, rules: Mapping[str, str]) -> dict[str, Record]:
    """The classes of a library that are known, by name.

    Args:
        peer: ``"pamqp"`` or ``"pika"``.
        rules: of each class, and of functions: see `_relied.Known`.
    """
    known = [name for name in records(peer, peers.NEWEST[peer]) if name in rules]
    by_rules = {each: records(peer, each) for each in {rules[name] for name in known}}
    return {name: by_rules[rules[name]][name] for name in known}


def records(peer: str, rules: str) -> dict[str, Record]:
    """The classes of a library by name.

    Args:
        peer: ``"pamqp"`` or ``"pika"``.
        rules: by which all of them go.
    """
    by_rules = peers.CLASSES[peer]
    chosen = {cls[0]: cls for cls in (*by_rules[peers.NEWEST[peer]], *by_rules[rules])}
    return {
        name: Record(name, index, leave, tuple(_field(*field) for field in fields))
        for name, index, leave, fields in chosen.values()
    }


def _field(*said: Any) -> Field:
    field = Field(*said)
    return field._replace(checks=tuple(Check(*check) for check in field.checks))


def formats(peer: str) -> Formats:
    """The formats of a library that has them in place of classes: ``"amqp"``."""
    return Formats(peers.FORMATS[peer], peers.PROPERTIES[peer])


@cache
def characters(pattern: str) -> str:
    """The ASCII characters that match a pattern one by one."""
    import re  # seldom needed, and a sixth of the time of an import

    return "".join(each for each in map(chr, range(128)) if re.fullmatch(pattern, each))
