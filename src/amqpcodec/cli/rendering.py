"""Field values as text that is safe on a terminal, and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from json.encoder import encode_basestring_ascii
from operator import add, attrgetter
from typing import Any, NamedTuple

from .._json import Redacted, inner_value, iso, json_value
from ..capture import CapturedFrame
from ..spec import CREDENTIALS, MethodSpec, PropertiesSpec
from ..types import EPOCH

_NS = 1_000_000_000
LONGEST_TEXT = 240


def method_fields(payload: Any, include_credentials: bool) -> Iterator[tuple[str, Any]]:
    """Names and values of a method's arguments; reserved ones only if something is in them."""
    spec = payload.spec
    for field in spec.fields:
        value = getattr(payload, field.attribute)
        if field.reserved and not value:
            continue
        if (spec.name, field.name) in CREDENTIALS and not include_credentials:
            value = Redacted(len(value))
        yield field.attribute, value


_Getter = Callable[[Any], tuple[Any, ...]]


class FieldLayout(NamedTuple):
    """How the arguments of a method, or the properties of a content, are shown.

    Attributes:
        names: the attributes.
        labels: what is before the value of each.
        reserved: arguments that are shown only if something is in them.
        optional: whether what is None is left out, as properties are.
        values, reserved_values: get the values of `names` and of `reserved`.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    reserved: tuple[str, ...]
    optional: bool
    values: _Getter
    reserved_values: _Getter


class Parts:
    """Shows the arguments of methods and the properties of contents, each as a label and a value.

    How a class is shown is planned when its first instance comes.

    Args:
        label: what is before a value, given its name.
        shown: a value as text.
        include_credentials: whether to show what a client logs in with.
    """

    def __init__(
        self, label: Callable[[str], str], shown: Callable[[Any], str], include_credentials: bool
    ) -> None:
        self._label = label
        self.shown = shown
        self._include_credentials = include_credentials
        self._plans: dict[type, FieldLayout | None] = {}

    def of(self, record: Any) -> list[str]:
        """Return the fields of a method, see `method_fields`, or the properties of a content header."""
        plan, shown = self.plan(record), self.shown
        if plan is None or (plan.reserved and any(plan.reserved_values(record))):
            fields = method_fields(record, self._include_credentials)
            return [self._label(name) + shown(value) for name, value in fields]
        if not plan.optional:
            return list(map(add, plan.labels, map(shown, plan.values(record))))
        return [
            label + shown(value)
            for label, value in zip(plan.labels, plan.values(record), strict=True)
            if value is not None
        ]

    def plan(self, record: Any) -> FieldLayout | None:
        """How what is of this class is shown; None for methods with secrets."""
        try:
            return self._plans[type(record)]
        except KeyError:
            plan = self._plans[type(record)] = self._plan(record.spec)
            return plan

    def _plan(self, spec: MethodSpec | PropertiesSpec) -> FieldLayout | None:
        if any((spec.name, field.name) in CREDENTIALS for field in spec.fields):
            return None
        optional = isinstance(spec, PropertiesSpec)
        reserved = tuple(field.attribute for field in spec.fields if field.reserved and not optional)
        names = tuple(field.attribute for field in spec.fields if field.attribute not in reserved)
        labels = tuple(map(self._label, names))
        return FieldLayout(names, labels, reserved, optional, _getter(names), _getter(reserved))


def _getter(names: tuple[str, ...]) -> _Getter:
    """Gets some attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda record: (getattr(record, names[0]),)) if names else (lambda record: ())


def text(value: Any) -> str:
    """A value for people, on one line, with every control character escaped."""
    kind = type(value)
    if kind is str:
        return repr(value) if len(value) <= LONGEST_TEXT else _long_text(value)
    if kind is int or kind is float:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is dict:
        return _mapping(value)
    if kind is datetime:
        return iso(value)
    return _rare_text(value)


def _rare_text(value: Any) -> str:
    if value is None:
        return "void"
    if isinstance(value, str):
        return _long_text(value) if len(value) > LONGEST_TEXT else repr(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return octets(bytes(value))
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return "[" + ", ".join(map(text, value)) + "]"
    if isinstance(value, Redacted):
        return f"<redacted, {value.size} bytes>"
    inner = inner_value(value)
    return f"{escaped(inner[0])}:{text(inner[1])}" if inner else escaped(str(value))


def _mapping(value: Mapping[Any, Any]) -> str:
    return "{" + ", ".join([f"{escaped(str(key))}: {text(inner)}" for key, inner in value.items()]) + "}"


def _long_text(value: str) -> str:
    return f"{value[:LONGEST_TEXT]!r}...(+{len(value) - LONGEST_TEXT})"


def octets(value: bytes, limit: int = LONGEST_TEXT) -> str:
    """Octets for people: as quoted text where all of it can be printed, else in hex; the first ones only,
    if there are many."""
    return first_octets(value[:limit], len(value))


def first_octets(shown: bytes, size: int) -> str:
    """As `octets`, for the first ones of `size`."""
    more = f"...(+{size - len(shown)})" if size > len(shown) else ""
    readable = shown.decode("utf-8", "ignore")
    if readable and readable.isprintable():
        missing = len(shown) - len(readable.encode())
        if not missing or (more and missing < 4):  # the cut may have gone through a character
            return repr(readable) + more
    return (f"0x{shown.hex()}" if shown else "''") + more


def escaped(string: str) -> str:
    """Text without quotes, with everything escaped that is not printable."""
    return string if string.isprintable() else repr(string)[1:-1]


def clock(time_ns: int | None) -> str:
    """Time of day in UTC with microseconds."""
    if time_ns is None:
        return "--:--:--.------"
    seconds, rest = divmod(time_ns, _NS)
    minutes, second = divmod(seconds % 86400, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}.{rest // 1000:06}"


class Stamps:
    """Times as text, of which many follow each other within a second.

    Args:
        between: what is between date and time of day.
        digits: how many of a second's fraction, up to nine.
        end: what is behind.
        none: what is shown where there is no time.
    """

    def __init__(self, between: str, digits: int, end: str = "", none: str = "") -> None:
        self._between = between
        self._digits = digits
        self._unit = 10 ** (9 - digits)
        self._end = end
        self._none = none
        self._second: int | None = None
        self._shown = ""  # up to the second
        self._time_ns: int | None = None  # the last one, which the frames of a packet have in common
        self._text = none

    def text(self, time_ns: int | None) -> str:
        """Date and time of day in UTC."""
        if time_ns == self._time_ns:
            return self._text
        if time_ns is None:
            return self._none
        second, rest = divmod(time_ns, _NS)
        if second != self._second:
            try:
                moment = EPOCH + timedelta(seconds=second)
            except OverflowError:
                return self._none  # beyond what there are dates for
            self._second, self._shown = second, f"{moment:%Y-%m-%d}{self._between}{moment:%H:%M:%S}."
        self._time_ns = time_ns
        self._text = f"{self._shown}{rest // self._unit:0{self._digits}}{self._end}"
        return self._text


def json_text(value: Any) -> str:
    """Return a value as JSON in ASCII."""
    kind = type(value)
    if kind is str:
        return encode_basestring_ascii(value)
    if kind is int:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is dict:
        return _json_object(value)
    if kind is list:
        return "[" + ", ".join(map(json_text, value)) + "]"
    if kind is datetime:
        return f'"{iso(value)}"'
    if kind is float and math.isfinite(value):
        return repr(value)
    return json.dumps(json_value(value), allow_nan=False)


def _json_object(value: Mapping[Any, Any]) -> str:
    inner = [f"{encode_basestring_ascii(str(key))}: {json_text(inner)}" for key, inner in value.items()]
    return "{" + ", ".join(inner) + "}"


def frame_kind(item: CapturedFrame) -> str:
    """Name of a frame's type."""
    return _KINDS.get(item.frame.type, f"type-{item.frame.type}")


_KINDS = {
    1: "method",
    2: "header",
    3: "body",
    4: "oob-method",
    5: "oob-header",
    6: "oob-body",
    7: "trace",
    8: "heartbeat",
    65: "protocol",
}
