"""How options are declared, checked, documented, and read from text.

An option is a key of a `TypedDict` in `amqpcodec.options`, with an `Option` in its annotation. Everything
that takes options asks that list, so a new one is declared there and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from math import inf
from numbers import Integral, Real
from textwrap import wrap
from types import ModuleType
from typing import Any, TypeVar, get_args

from ._protocol.index import DIALECTS
from .limits import MAX_LIMIT

AUTO = "auto"  # the dialect that connections and streams show themselves
_SIZE = re.compile(r"([0-9]{1,20})([kmgt]?)b?")
_NUMBER = re.compile(r"[0-9]{1,20}")
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_TIME = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DOC_COLUMNS = 108

Target = TypeVar("Target", bound=Callable[..., Any])


class Kind:
    """The kind of values that an option takes.

    Attributes:
        metavar: what stands for a value in the help of commands.
        repeats: whether a value is a list, of which commas separate the parts.
        several: whether a command collects the values of an argument that is given several times.
        choices: the only values; empty for any.
    """

    metavar = "TEXT"
    repeats = False
    several = False
    choices: tuple[str, ...] = ()

    def check(self, value: Any) -> Any:
        """The value to use for one that a program gives.

        Raises:
            TypeError: it is of another type.
            ValueError: it is out of range.
        """
        if not isinstance(value, str):
            raise TypeError(f"must be text, not {type(value).__name__}")
        return value

    def parse(self, text: str) -> Any:
        """The value for text of a command line, or of an option of Spark.

        Raises:
            ValueError: the text is none.
        """
        return self.check(text)

    def parse_spark(self, text: str) -> Any:
        """As `parse`, where case does not count in words."""
        return self.parse(text)

    def show(self, value: Any) -> str:
        """A value as text that `parse` takes."""
        return str(value)


class Choice(Kind):
    """One of some words.

    Args:
        words: the words.
        spark: the words that Spark has for them, if those are others.
    """

    def __init__(self, *words: str, spark: Iterable[str] = ()) -> None:
        self.choices = words
        self._spark = dict(zip(spark or words, words, strict=True))

    def check(self, value: Any) -> str:
        if super().check(value) not in self.choices:
            raise ValueError(f"{value!r} is none of {', '.join(self.choices)}")
        return str(value)

    def parse_spark(self, text: str) -> str:
        if text.lower() not in self._spark:
            raise ValueError(f"{text!r} is none of {', '.join(self._spark)}")
        return self._spark[text.lower()]


class Dialect(Kind):
    """A dialect, by name or as the module of a foreign one.

    Args:
        auto: whether it may be detected from the stream.
    """

    def __init__(self, auto: bool) -> None:
        self.choices = (AUTO, *DIALECTS) if auto else tuple(DIALECTS)

    def check(self, value: Any) -> Any:
        if isinstance(value, ModuleType):
            if not hasattr(value, "DIALECT"):
                raise ValueError(f"module {value.__name__!r} is no dialect")
            return value
        if not isinstance(value, str):
            raise TypeError(f"must be a name or a module, not {type(value).__name__}")
        if value not in self.choices:
            raise ValueError(f"no dialect {value!r}; there are {', '.join(self.choices)}")
        return value

    def parse_spark(self, text: str) -> Any:
        return self.check(text.lower())


class Number(Kind):
    """A whole number.

    Args:
        low, high: the range.
        what: what it is, for messages.
    """

    metavar = "N"

    def __init__(self, low: int = 1, high: int = MAX_LIMIT, what: str = "number") -> None:
        self._low, self._high, self._what = low, high, what

    def check(self, value: Any) -> int:
        if not isinstance(value, Integral) or isinstance(value, bool):  # those of NumPy are as good
            raise TypeError(f"must be a whole number, not {type(value).__name__}")
        number = int(value)
        if not self._low <= number <= self._high:
            raise ValueError(f"must be {self._low} to {self._high}, not {number}")
        return number

    def parse(self, text: str) -> int:
        found = _NUMBER.fullmatch(text.strip())
        number = int(found[0]) if found else -1
        if not self._low <= number <= self._high:
            raise ValueError(f"{text!r} is no {self._what}: it is a whole number, {self._range()}")
        return number

    def _range(self) -> str:
        return f"at least {self._low}" if self._high == MAX_LIMIT else f"{self._low} to {self._high}"


class Size(Number):
    """A number of bytes; text may have k, m, g or t behind it, which multiply by 1024 once or more."""

    metavar = "BYTES"

    def parse(self, text: str) -> int:
        found = _SIZE.fullmatch(text.strip().lower())
        size = int(found[1]) << _UNITS[found[2]] if found else -1
        if not self._low <= size <= self._high:
            raise ValueError(
                f"{text!r} is no size: it is {self._range()} bytes, as a number or such as 64k, 128m, 1g"
            )
        return size

    def show(self, value: int) -> str:
        unit = next(
            (unit for unit, bits in reversed(_UNITS.items()) if value and not value % (1 << bits)), ""
        )
        return f"{value >> _UNITS[unit]}{unit}"


class Seconds(Kind):
    """A time in seconds; text may have s, m, h or d behind it."""

    metavar = "TIME"

    def check(self, value: Any) -> float:
        if not isinstance(value, Real) or isinstance(value, bool):
            raise TypeError(f"must be a number of seconds, not {type(value).__name__}")
        try:
            seconds = float(value)
        except OverflowError:
            seconds = inf if value > 0 else -inf  # type: ignore[operator]
        if not seconds >= 0:
            raise ValueError(f"must be at least 0 seconds, not {seconds}")
        return seconds

    def parse(self, text: str) -> float:
        found = _TIME.fullmatch(text.strip().lower())
        if found is None:
            raise ValueError(f"{text!r} is no time; a time is a number of seconds, or such as 90s, 30m, 1h")
        return float(found[1]) * _SECONDS[found[2]]

    def show(self, value: float) -> str:
        unit = next(unit for unit, each in reversed(_SECONDS.items()) if not value % each or each == 1)
        return f"{value / _SECONDS[unit]:g}{unit}"


class Flag(Kind):
    """True or False."""

    def check(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise TypeError(f"must be True or False, not {type(value).__name__}")
        return value

    def parse(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{text!r} is none of true, false")
        return text.lower() == "true"

    def show(self, value: bool) -> str:
        return str(value).lower()


class Words(Kind):
    """Names, in an order."""

    metavar = "A,B.C,..."
    repeats = True

    def check(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise TypeError(f"must be several names, not {type(value).__name__}")
        names = tuple(value)
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"must be names, not {type(name).__name__}")
        return names

    def parse(self, text: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in text.split(","))

    def show(self, value: Iterable[str]) -> str:
        return ",".join(value)


class Text(Kind):
    """Text that a command reads in its own way.

    Args:
        metavar: what stands for it in the help of commands.
    """

    def __init__(self, metavar: str) -> None:
        self.metavar = metavar


class Each(Kind):
    """Values of a kind, one for each time that an argument is given.

    Args:
        kind: of each.
    """

    several = True

    def __init__(self, kind: Kind) -> None:
        self._kind, self.metavar = kind, kind.metavar

    def check(self, value: Any) -> Any:
        return [self._kind.check(each) for each in value]

    def parse(self, text: str) -> Any:
        return self._kind.parse(text)


class Pattern(Kind):
    """A regular expression."""

    metavar = "REGEX"

    def check(self, value: Any) -> str:
        pattern: str = super().check(value)
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return pattern


class Ports(Kind):
    """Ports, each once and in ascending order; None for every one."""

    metavar = "N,...|any"
    repeats = True
    _port = Number(1, 65535, "port")

    def check(self, value: Any) -> list[int] | None:
        if value is None:
            return None
        several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
        ports = sorted({self._port.check(port) for port in (value if several else [value])})
        if not ports:
            raise ValueError("there is no port in it; None is for every one")
        return ports

    def parse(self, text: str) -> list[int] | None:
        ports = {port.strip().lower() for port in text.split(",")}
        if ports == {"any"}:
            return None
        if "any" in ports:
            raise ValueError("'any' is every port, and goes with no other")
        return sorted({self._port.parse(port) for port in ports})


@dataclass(frozen=True)
class Option:
    """An option, but for its name and type.

    Attributes:
        kind: the values that it takes.
        default: the value to use where none is given; None may stand for none.
        doc: what it means, in a sentence or two.
        letter: its short name in commands.
    """

    kind: Kind
    default: Any
    doc: str
    letter: str = ""

    def check(self, value: Any) -> Any:
        """As `Kind.check`; None is a value where it is the default."""
        return None if value is None and self.default is None else self.kind.check(value)


@cache
def declared(options: type) -> dict[str, Option]:
    """The options in a `TypedDict`, by name."""
    found = {name: get_args(annotation) for name, annotation in options.__annotations__.items()}
    return {name: next(each for each in args if isinstance(each, Option)) for name, args in found.items()}


def resolve(
    options: type, given: Mapping[str, Any], function: str = "options", **defaults: Any
) -> dict[str, Any]:
    """The value of every option.

    Args:
        options: the `TypedDict` of the options that there are.
        given: the values given, by name.
        function: who takes them, for messages.
        defaults: defaults that are others than those declared.

    Raises:
        TypeError: a name that is no option, or a value of another type.
        ValueError: a value out of range.
    """
    known = declared(options)
    for name in given:
        if name not in known:
            raise unexpected(function, name, _public(known))
    values = {}
    for name, option in known.items():
        value = given[name] if name in given else defaults.get(name, option.default)
        try:
            values[name] = option.check(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from None
    return values


def unexpected(function: str, name: str, known: Iterable[str]) -> TypeError:
    """Return the error for a keyword that a function does not take, with the nearest that it does."""
    from ._nearest import nearest_hint

    message = f"{function}() got an unexpected keyword argument {name!r}"
    return TypeError(message + nearest_hint(name, known, 0.6, "option"))


def select(options: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Select the values that belong to a `TypedDict` of options."""
    return {name: value for name, value in values.items() if name in declared(options)}


def takes(options: type, **defaults: Any) -> Callable[[Target], Target]:
    """Let a function or class, which has ``**options``, take the options of a `TypedDict`.

    They are checked, and those that are not given are there with their default. `help` and
    `inspect.signature` show each as a parameter: in the docstring, their lines replace that of ``options:``.

    Args:
        options: the `TypedDict`.
        defaults: defaults that are others than those declared.
    """

    def decorate(target: Any) -> Any:
        made = vars(target)["__init__"] if isinstance(target, type) else target
        own = [each for each in signature(made).parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        names = {each.name for each in own}

        @wraps(made)
        def checked(*arguments: Any, **given: Any) -> Any:
            keywords = {name: given.pop(name) for name in names.intersection(given)}
            return made(*arguments, **keywords, **resolve(options, given, target.__name__, **defaults))

        checked.__signature__ = _signature(made, own, options, defaults)  # type: ignore[attr-defined]
        if not isinstance(target, type):
            checked.__doc__ = _documented(target.__doc__, options)
            return checked
        setattr(target, "__init__", checked)  # noqa: B010  # to type checkers, a class keeps its own
        target.__doc__ = _documented(target.__doc__, options)
        return target

    return decorate


def _public(known: Iterable[str]) -> list[str]:
    return [name for name in known if not name.startswith("_")]


def _signature(made: Any, own: list[Parameter], options: type, defaults: Mapping[str, Any]) -> Signature:
    known = declared(options)
    listed = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=defaults.get(name, known[name].default),
            annotation=get_args(options.__annotations__[name])[0],
        )
        for name in _public(known)
    ]
    return signature(made).replace(parameters=[*own, *listed])


def _documented(doc: str | None, options: type) -> str | None:
    """A docstring with a line for each option in place of ``options:``; None if there are no docstrings."""
    if doc is None:
        return None
    found = re.search(r"^( +)options: .*\n(?:\1 +.*\n)*", doc, re.MULTILINE)
    if found is None:
        raise ValueError("the docstring has no line for options")
    margin = found[1]
    lines = []
    for name in _public(declared(options)):
        text = f"{name}: {declared(options)[name].doc}."
        lines += wrap(text, _DOC_COLUMNS, initial_indent=margin, subsequent_indent=margin + "    ")
    return doc[: found.start()] + "\n".join(lines) + "\n" + doc[found.end() :]
