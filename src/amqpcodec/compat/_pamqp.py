"""Replacements in pamqp, which aio-pika, aiormq, AMQPStorm and rabbitpy are built on.

`pamqp.frame.marshal` and `unmarshal`, and the calls of its classes for methods and properties.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from types import FunctionType, ModuleType

from .._kernel import fields as field_kinds
from .._kernel.fields_c import RecordLayout
from .._kernel.guards_c import Guards, ModuleGuard, TypeGuard
from .._kernel.peer_writer_c import PeerRules
from .._kernel.reader_c import ReaderRules
from .._typing import Any
from ..limits import Limits
from ._before import REPLACED, note, untouched
from ._counts_c import Counts
from ._facts import Record, characters, differing, live, records
from ._looked_up import Expected, guards
from ._pamqp_c import Codec, PeerClass
from ._patches import Options, Patch, PatchPlan
from ._rules import pamqp_profile

MODULES = ("pamqp.frame",)

_DEPTH = Limits().table_depth
_FLAG_WORDS = 64
"""More words of property flags than these are refused if hardened: 1,000 properties."""

_KINDS = {
    "bit": field_kinds.BIT_FIELD,
    "octet": field_kinds.OCTET_FIELD,
    "short": field_kinds.SHORT_FIELD,
    "long": field_kinds.LONG_FIELD,
    "longlong": field_kinds.SIGNED_LONGLONG_FIELD,
    "shortstr": field_kinds.SHORTSTR_FIELD,
    "longstr": field_kinds.TEXT_OR_OCTETS_FIELD,
    "table": field_kinds.TABLE_FIELD,
    "timestamp": field_kinds.SHORT_TIME_FIELD,
}
_PEER_CLASSES: dict[tuple[type, str], Any] = {}
_OWN = 0  # the C code reads and writes it itself
_OF_METHODS = ("marshal", "unmarshal", "validate", "amqp_type", "index")
_OF_PROPERTIES = ("marshal", "unmarshal", "validate", "amqp_type", "flags", "encode_property")


def plan(options: Options) -> PatchPlan:
    """Everything that is replaced in pamqp as it is imported."""
    counts = Counts()
    frame = import_module("pamqp.frame")
    stock = differing("pamqp", options.rules)
    facts = records("pamqp", options.rules)
    stock.update({record.name: record.leave for record in facts.values() if record.leave})
    classes = live("pamqp", options.rules)
    served = {
        name: _peer_class(facts[name], cls, options.rules)
        for name, cls in classes.items()
        if name not in stock
    }
    for name in [name for name, peer_class in served.items() if peer_class.layout.replaced]:
        stock[name] = REPLACED
        del served[name]
    if "Basic.Properties" not in served:
        return PatchPlan((), counts, stock)
    hardening = list(_hardening(options.rules)) if options.hardened else []
    reading, writing = _guards((*_BOTH, "decode"), hardening), _guards((*_BOTH, "encode"), hardening)
    calling = _guards(_CALLED, hardening)
    note(stock, (reading, writing))
    codec = _codec(options, counts, served, (reading, writing), hardening, stock)
    unmarshal = _bounded(frame.unmarshal) if options.hardened else frame.unmarshal
    patches = untouched(
        stock,
        (
            *hardening,
            Patch(frame, "unmarshal", codec.unmarshal(unmarshal)),
            Patch(frame, "marshal", codec.marshal(frame.marshal)),
        ),
    )
    called = [peer_class for peer_class in served.values() if peer_class.layout.names]
    for peer_class in called:
        peer_class.serve(counts, calling)

    def undo() -> None:
        for peer_class in called:
            peer_class.stop()

    return PatchPlan(patches, counts, stock, undo, tuple(peer_class.layout.cls for peer_class in called))


def _peer_class(record: Record, cls: type, rules: str) -> Any:
    """Return the facts of a class: one object for good, as its layout is, unless it was replaced."""
    made = _make_peer_class(record, cls)
    return made if made.layout.replaced else _PEER_CLASSES.setdefault((cls, rules), made)


def _make_peer_class(record: Record, cls: type) -> Any:
    own = _OF_METHODS if record.is_method else _OF_PROPERTIES
    guarded = (*own, *(f"_{field.name}" for field in record.fields))
    fields = [(field.name, _KINDS[field.kind], field.default) for field in record.fields]
    checks = [
        (
            at,
            check.kind,
            characters(check.operand) if check.kind == "pattern" else check.operand,
            check.skips_none,
        )
        for at, field in enumerate(record.fields)
        for check in field.checks
    ]
    coercions = [(field.coerce, field.instead) for field in record.fields]
    layout = RecordLayout(cls, fields, guarded)
    return PeerClass(layout, f"{cls.__module__}.{cls.__qualname__}", record.index, coercions, checks)


_BOTH = ("base", "body", "commands", "common", "constants", "frame", "header", "heartbeat")
"""The modules in which functions for reading look names up, and those for writing as well."""

_CALLED = ("base", "commands", "constants")
"""The modules in which constructors do."""

_ALTERNATIVE = "DEPRECATED_RABBITMQ_SUPPORT"  # other tags for numbers, which are not written here


def _guards(modules: tuple[str, ...], hardening: list[Patch]) -> Guards:
    """Return guards of all that functions of these modules look up, once those patches are made."""
    basic, common = import_module("pamqp.commands").Basic, import_module("pamqp.common")
    expected = [
        Expected(
            patch.owner if isinstance(patch.owner, dict) else vars(patch.owner), patch.name, patch.replacement
        )
        for patch in hardening
    ]
    expected.append(Expected(vars(import_module("pamqp.encode")), _ALTERNATIVE, False))
    found = guards([import_module(f"pamqp.{name}") for name in modules], ("marshal", "unmarshal"), expected)
    flags = basic.Properties.flags
    found.append(ModuleGuard(flags, flags, "pamqp.commands.Basic.Properties.flags"))
    formats = [name for name in vars(common.Struct) if not name.startswith("__")]
    return Guards(found, [TypeGuard(basic, ("Properties", "frame_id")), TypeGuard(common.Struct, formats)])


def _codec(
    options: Options,
    counts: Any,
    served: dict[str, Any],
    guarding: tuple[Guards, Guards],
    hardening: list[Patch],
    stock: dict[str, str],
) -> Any:
    body, header, heartbeat = (import_module(f"pamqp.{name}") for name in ("body", "header", "heartbeat"))
    profile = pamqp_profile(options.rules)
    attributes = [(name, _OWN, None) for name in ("class_id", "weight", "body_size", "properties")]
    frames = (
        RecordLayout(header.ContentHeader, attributes, ("marshal", "unmarshal", "_get_flags")),
        RecordLayout(body.ContentBody, [("value", _OWN, None)], ("marshal", "unmarshal")),
    )
    note(stock, frames)
    for patch in hardening:
        if patch.owner is header.ContentHeader:
            frames[0].expect(patch.name, patch.replacement)
    return Codec(
        ReaderRules(profile, False, Limits(), False),
        PeerRules(profile, False, _DEPTH),
        counts,
        [peer_class for name, peer_class in served.items() if name != "Basic.Properties"],
        served["Basic.Properties"],
        *frames,
        heartbeat.Heartbeat,
        header.ProtocolHeader,
        *guarding,
        _derivation(served["Basic.Properties"].layout, options.rules),
    )


def _derivation(layout: Any, rules: str) -> Callable[[type], Any]:
    """How the layout of a class derived from `Basic.Properties` is found: rabbitpy has one."""
    record = records("pamqp", rules)["Basic.Properties"]
    fields = [(field.name, _KINDS[field.kind], field.default) for field in record.fields]
    names = (*_OF_PROPERTIES, *layout.names, *(f"_{name}" for name in layout.names), "__slots__")

    def derive(cls: type) -> Any:
        heritage = cls.__mro__[: -len(layout.cls.__mro__)]
        if layout.cls not in cls.__mro__ or any(name in vars(base) for base in heritage for name in names):
            return None
        try:
            return RecordLayout(cls, fields, names)
        except TypeError:
            return None

    return derive


# -- hardened


# What these raise is struct.error, since both releases make an exception of their own of it.


def _hardening(rules: str) -> Iterator[Patch]:
    """Functions of pamqp that hostile octets can keep busy for ever, with the checks that they lack."""
    decode, header = import_module("pamqp.decode"), import_module("pamqp.header")
    if rules == "3.3":
        field_array = _checked_array(decode)
        yield Patch(decode, "field_array", field_array)
        yield Patch(decode.METHODS, "array", field_array, "pamqp.decode.METHODS['array']")
        yield Patch(decode.TABLE_MAPPING, b"A", field_array, "pamqp.decode.TABLE_MAPPING[b'A']")
    yield Patch(header.ContentHeader, "_get_flags", staticmethod(_checked_flags(header, rules)))


def _checked_array(decode: ModuleType) -> Callable[[bytes], Any]:
    """pamqp 3.3 adds None for ever where an array says that it is longer than its octets."""
    original: FunctionType = decode.field_array

    @wraps(original)
    def field_array(value: bytes) -> Any:
        end = 4 + int.from_bytes(value[:4], "big")
        if len(value) < 4 or end <= len(value):
            return original(value)
        offset, items = 4, []
        while offset < end:
            if offset >= len(value):
                raise struct.error("Field array length exceeds available data")
            consumed, item = decode.embedded_value(value[offset:])
            offset += consumed
            items.append(item)
        return offset, items

    return field_array


def _checked_flags(header: ModuleType, rules: str) -> Callable[[bytes], tuple[int, int]]:
    """pamqp 4 takes time that grows with the square of the words; 3.3 reads the first one for ever."""
    original: FunctionType = header.ContentHeader._get_flags

    @wraps(original)
    def _get_flags(data: bytes) -> Any:
        words = 1
        while data[2 * words - 1 : 2 * words] and data[2 * words - 1] & 1:
            words += 1
        if words > _FLAG_WORDS:
            raise struct.error(f"Content header has more than {_FLAG_WORDS} words of flags")
        if words == 1 or rules != "3.3":
            return original(data)
        if len(data) < 2 * words:
            raise struct.error("Content header flags are truncated")
        # The first word is the lowest, as in pamqp 4.
        return 2 * words, int.from_bytes(
            b"".join(data[at : at + 2] for at in range(2 * words - 2, -1, -2)), "big"
        )

    return _get_flags


def _bounded(unmarshal: FunctionType) -> Callable[[bytes], Any]:
    """The function, which raises pamqp's own exception for tables nested without end."""
    exceptions = import_module("pamqp.exceptions")

    @wraps(unmarshal)
    def bounded(data_in: bytes) -> Any:
        try:
            return unmarshal(data_in)
        except RecursionError as error:
            raise exceptions.UnmarshalingException("Unknown", "nested too deeply") from error

    return bounded
