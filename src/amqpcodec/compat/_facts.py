"""Facts about the classes of the libraries we accelerate, and a comparison with those at hand.

The facts come from `spec/peers`. Compiled code fills and reads the libraries' classes by them, so they are
compared with the live classes first: names, order, types and defaults by looking, coercions and checks by
trying them out. A class that differs in anything stays as it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module

from .._generated import peers
from .._typing import Any, NamedTuple

REQUIRED = ...
"""The default of an argument that has none."""


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
        default: of the constructor, or `REQUIRED`.
        coerce: which values the constructor replaces: ``"falsy"``, ``"none"`` or ``""`` for none of them.
        instead: by what; a dict stands for a new one each time.
        checks: what `validate` insists on.
    """

    name: str
    kind: str
    default: Any
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
    def validated(self) -> bool:
        """Return whether the constructor ends with `validate`."""
        return any(field.checks for field in self.fields)

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


def known_records(peer: str, rules: Mapping[str, str]) -> dict[str, Record]:
    """The classes of a library that are known, by name.

    Args:
        peer: ``"pamqp"`` or ``"pika"``.
        rules: of each class, see `_relied.Known`.
    """
    by_rules = {each: records(peer, each) for each in set(rules.values())}
    return {name: by_rules[rules[name]][name] for name in records(peer, peers.NEWEST[peer]) if name in rules}


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


def live(peer: str, names: Iterable[str]) -> dict[str, type]:
    """The classes of the library as imported, by the names of the facts; those it lacks are left out."""
    module = import_module({"pamqp": "pamqp.commands", "pika": "pika.spec"}[peer])
    found = {}
    for name in names:
        target: Any = module
        for part in name.split("."):
            target = getattr(target, part, None)
        if isinstance(target, type):
            found[name] = target
    return found


def differing(peer: str, facts: Mapping[str, Record]) -> dict[str, str]:
    """Which live classes are not what the facts say, with the first difference."""
    classes = live(peer, facts)
    compare = {"pamqp": _differing_in_pamqp, "pika": _differing_in_pika}[peer]
    found = {}
    for record in facts.values():
        if record.name not in classes:
            found[record.name] = "it is missing"
            continue
        difference = _differing_class(record, classes[record.name], compare)
        if difference:
            found[record.name] = difference
    return found


# -- classes

Compare = Callable[[Record, Any], Iterator[str]]


def _differing_class(record: Record, cls: Any, compare: Compare) -> str:
    """The first difference, or nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return next(compare(record, cls), "")
    except Exception as error:
        return f"trying it out gives {type(error).__name__}: {error}"


def _differing_signature(record: Record, cls: Any) -> Iterator[str]:
    if cls.__init__ is object.__init__:
        if record.fields:
            yield "it has no constructor"
        return
    code = cls.__init__.__code__
    names = code.co_varnames[1 : code.co_argcount]
    if (
        names != tuple(field.name for field in record.fields)
        or code.co_kwonlyargcount
        or code.co_flags & 0x0C
    ):
        yield f"its constructor takes {names}"
        return
    given = cls.__init__.__defaults__ or ()
    defaults = (REQUIRED,) * (len(names) - len(given)) + given
    for field, default in zip(record.fields, defaults, strict=True):
        if not _same(default, field.default):
            yield f"the default of {field.name} is {default!r}"


def _same(left: Any, right: Any) -> bool:
    """Equality that distinguishes False from 0; a str that is also a member of an enum counts as a str."""
    return left == right and isinstance(left, type(right))


def _differing_in_pamqp(record: Record, cls: Any) -> Iterator[str]:
    if list(cls.__slots__) != [field.name for field in record.fields]:
        yield f"its attributes are {list(cls.__slots__)}"
    if cls.index not in (record.index, record.index >> 16):
        yield f"its index is {cls.index:#x}"
    for at, field in enumerate(record.fields):
        kind = cls.amqp_type(field.name)
        if kind != field.kind:
            yield f"the type of {field.name} is {kind}"
        if not record.is_method and cls.flags[field.name] != 0x8000 >> at:
            yield f"the flag of {field.name} is {cls.flags[field.name]:#x}"
    for name in ("marshal", "unmarshal", "__setattr__", "__getattribute__"):
        own = [each.__name__ for each in cls.__mro__[:-1] if name in vars(each)]
        if own not in ([], ["Frame"], ["BasicProperties"]):
            yield f"{own[0]} has a {name} of its own"
    yield from _differing_signature(record, cls)
    for field in record.fields:
        yield from _differing_coercion(field, cls)
        yield from _differing_checks(field, cls)
    if record.is_method and import_module(cls.__module__).INDEX_MAPPING.get(record.index) is not cls:
        yield "its index leads to another class"


def _differing_coercion(field: Field, cls: Any) -> Iterator[str]:
    """Make instances of what a constructor may replace, one that is empty and None."""
    blank = {"table": {}, "shortstr": "", "longstr": "", "bit": 0}.get(field.kind, 0)
    if field.kind == "bit" and any(check.kind == "is" for check in field.checks):
        blank = False  # the only value there is
    for value, replaced in ((None, field.coerce != ""), (blank, field.coerce == "falsy")):
        if any(not _passes(check, value) for check in field.checks):
            continue
        became = getattr(cls(**{field.name: value}), field.name)
        wanted = field.instead if replaced else value
        if not _same(became, wanted) or (replaced and wanted == {} and became is value):
            yield f"{value!r} as {field.name} becomes {became!r}"


def _passes(check: Check, value: Any) -> bool:
    """Return whether a value that is None or empty passes; no empty one is too long, or fails a pattern."""
    if value is None:
        return check.skips_none
    if check.kind == "in":
        return value in check.operand
    return check.kind in ("length", "pattern") or _same(value, check.operand)


def _differing_checks(field: Field, cls: Any) -> Iterator[str]:
    """Make instances of values on either side of each check."""
    right, wrong = list(_examples(field))
    for value, passes in (*((value, True) for value in right), *((value, False) for value in wrong)):
        try:
            cls(**{field.name: value})
        except ValueError:
            if passes:
                yield f"{value!r} as {field.name} is refused"
        else:
            if not passes:
                yield f"{value!r} as {field.name} is accepted"


def _examples(field: Field) -> tuple[list[Any], list[Any]]:
    """Values that a field takes, and values that it refuses."""
    kinds = {check.kind: check for check in field.checks}
    right: list[Any] = []
    wrong: list[Any] = []
    if any(not check.skips_none for check in field.checks):
        wrong.append(None)
    if "length" in kinds:
        longest = kinds["length"].operand
        right, wrong = ["a" * longest], [*wrong, "a" * (longest + 1)]
    elif not kinds and field.kind == "shortstr":
        right = ["a" * 300 + "*"]
    if "pattern" in kinds:
        allowed = characters(kinds["pattern"].operand)
        right.append(allowed)
        wrong += [each for each in "*+%~;?\n\xe9" if each not in allowed]
    elif "length" in kinds:
        right.append("*" * longest)
    if "equals" in kinds:
        right, wrong = [kinds["equals"].operand], [*wrong, *("1x" if field.kind != "short" else (1, 65535))]
    if "is" in kinds:
        right, wrong = [kinds["is"].operand], [*wrong, True, 0]
    if "in" in kinds:
        right, wrong = [*kinds["in"].operand], [*wrong, 0, max(kinds["in"].operand) + 1]
    return right, wrong


@cache
def characters(pattern: str) -> str:
    """The ASCII characters that match a pattern one by one."""
    import re  # seldom needed, and a sixth of the time of an import

    return "".join(each for each in map(chr, range(128)) if re.fullmatch(pattern, each))


def _differing_in_pika(record: Record, cls: Any) -> Iterator[str]:
    if cls.INDEX not in (record.index, record.index >> 16):
        yield f"its INDEX is {cls.INDEX:#x}"
    yield from _differing_signature(record, cls)
    values, octets = _sample(record)
    made = cls(**values)
    if vars(made) != values or list(vars(made)) != list(values):
        yield f"its attributes are {vars(made)}"
    if b"".join(made.encode()) != octets:
        yield "it does not encode to the octets of its fields"
    # Where an argument is required, pika cannot decode it either: it makes an instance without any first.
    if not any(field.default is REQUIRED for field in record.fields):
        read = cls()
        read.decode(octets)
        if vars(read) != values or list(vars(read)) != list(values):
            yield "it does not decode from the octets of its fields"
    spec = import_module(cls.__module__)
    if (spec.methods if record.is_method else spec.props).get(cls.INDEX) is not cls:
        yield "its INDEX leads to another class"


def _sample(record: Record) -> tuple[dict[str, Any], bytes]:
    """Values for all fields, of which no two are alike, and how they are written."""
    values: dict[str, Any] = {}
    octets = b""
    bits = 0
    for at, field in enumerate(record.fields):
        before = record.fields[at - 1].kind if at else ""
        bits = bits + 1 if field.kind == before == "bit" else 0
        values[field.name], written = _sample_value(field.kind, at, bits)
        if field.kind == "bit" and bits:
            octets, written = octets[:-1], bytes([octets[-1] | written[0]])
        octets += written
    if not record.is_method:
        octets = (0xFFFF << 16 - len(record.fields) & 0xFFFF).to_bytes(2, "big") + octets
    return values, octets


_SIZES = {"octet": 1, "short": 2, "long": 4, "longlong": 8, "timestamp": 8}


def _sample_value(kind: str, at: int, bit: int) -> tuple[Any, bytes]:
    """A value of a kind that differs by position, and its octets; a bit is the octet that holds it alone."""
    if kind == "bit":
        return at % 2 == 0, bytes([(at % 2 == 0) << bit])
    if kind == "shortstr":
        return f"\xe9{at}", bytes([2 + len(str(at))]) + f"\xe9{at}".encode()
    if kind == "longstr":
        return b"%d" % at, len(str(at)).to_bytes(4, "big") + b"%d" % at
    if kind == "table":
        return {"k": at % 2 == 0}, b"\0\0\0\4\1kt" + bytes([at % 2 == 0])
    size = _SIZES[kind]
    number = int.from_bytes(bytes(range(0xF0 - at - size, 0xF0 - at)), "big")
    return number, number.to_bytes(size, "big")
