"""Replacements in pamqp, which aio-pika, aiormq, AMQPStorm and rabbitpy are built on.

`pamqp.frame.marshal` and `unmarshal`, and the calls of its classes for methods and properties.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType, ModuleType

from .._kernel import fields as field_kinds
from .._kernel.reader_c import ReaderRules
from .._typing import Any
from ..limits import Limits
from ._before import REPLACED, note, own_classes, untouched
from ._facts import KINDS, Record, attributes, characters, known_records, records
from ._fast_c import Counts
from ._fields_c import RecordLayout
from ._guards_c import Guards, ModuleGuard, TypeGuard
from ._looked_up import Expected, guards
from ._odd_times import reads_odd_times
from ._pamqp_c import Codec, PeerClass
from ._patches import Options, Patch, PatchPlan
from ._peer_writer_c import PeerRules
from ._rules import pamqp_profile
from ._unreadable import expected, pamqp_writers

_DEPTH = Limits().table_depth
_FLAG_WORDS = 64
"""More words of property flags than these are refused if tolerant: 1,000 properties."""

_OLDER = ("3.2", "3.3")

_KINDS = KINDS | {
    "longlong": field_kinds.SIGNED_LONGLONG_FIELD,
    "longstr": field_kinds.TEXT_OR_OCTETS_FIELD,
    "timestamp": field_kinds.SHORT_TIME_FIELD,
}
_PEER_CLASSES: dict[tuple[type, str], Any] = {}
_OF_METHODS = ("marshal", "unmarshal", "validate", "amqp_type", "index")
_OF_PROPERTIES = ("marshal", "unmarshal", "validate", "amqp_type", "flags", "encode_property")


def plan(options: Options) -> PatchPlan:
    """Everything that is replaced in pamqp as it is imported, and known."""
    counts = Counts()
    rules = options.known.rules
    facts = known_records("pamqp", rules)
    stock = {record.name: record.leave for record in facts.values() if record.leave}
    if rules.get("pamqp.frame.unmarshal") == "3.2" and sys.version_info >= (3, 12):
        stock["Basic.Properties"] = "warns of each timestamp"
    served = {
        name: _peer_class(facts[name], cls, rules.get("pamqp.frame.unmarshal", ""))
        for name, cls in own_classes(stock, "pamqp", facts).items()
        if name not in stock
    }
    for name in [name for name, peer_class in served.items() if peer_class.layout.replaced]:
        stock[name] = REPLACED
        del served[name]
    patches = _functions(options, counts, served, stock)
    called = [peer_class for peer_class in served.values() if peer_class.layout.names]
    calling = _guards(_CALLED, [])
    for peer_class in called:
        peer_class.serve(counts, calling)

    def undo() -> None:
        for peer_class in called:
            peer_class.stop()

    return PatchPlan(patches, counts, stock, undo, tuple(peer_class.layout.cls for peer_class in called))


def _functions(
    options: Options, counts: Any, served: dict[str, Any], stock: dict[str, str]
) -> tuple[Patch, ...]:
    """Return the patches of the functions that are known."""
    reads, writes = (options.known.rules.get(f"pamqp.frame.{name}") for name in ("unmarshal", "marshal"))
    if not (reads or writes):
        return ()
    if "Basic.Properties" not in served:
        stock.update(
            dict.fromkeys(("pamqp.frame.unmarshal", "pamqp.frame.marshal"), "Basic.Properties stays")
        )
        return ()
    frame = import_module("pamqp.frame")
    hardening = list(_hardening(reads)) if options.tolerant and reads else []
    if options.tolerant and writes:
        hardening += pamqp_writers()
    reading = _guards((*_BOTH, "decode"), hardening) if reads else Guards([])
    writing = _guards((*_BOTH, "encode"), hardening) if writes else Guards([])
    note(stock, (reading, writing))
    rules, properties = (reads or str(writes), writes or str(reads)), options.known.rules["Basic.Properties"]
    fields = _fields(records("pamqp", properties)["Basic.Properties"], reads or "")
    codec = _codec(rules, counts, served, (reading, writing), hardening, stock, fields, options.tolerant)
    patches = hardening
    if reads:
        unmarshal = frame.unmarshal
        if options.tolerant:
            unmarshal = reads_odd_times(_bounded(unmarshal), frame, counts)
        patches.append(Patch(frame, "unmarshal", codec.unmarshal(unmarshal)))
    if writes:
        patches.append(Patch(frame, "marshal", codec.marshal(frame.marshal)))
    return untouched(stock, patches)


def _peer_class(record: Record, cls: type, rules: str) -> Any:
    """Return the facts of a class: one object for good, as its layout is, unless it was replaced."""
    made = _make_peer_class(record, cls, rules)
    return made if made.layout.replaced else _PEER_CLASSES.setdefault((cls, rules), made)


def _fields(record: Record, rules: str) -> list[tuple[str, int, Any]]:
    kinds = _KINDS | {"timestamp": field_kinds.NAIVE_TIME_FIELD} if rules == "3.2" else _KINDS
    return [(field.name, kinds[field.kind], field.default) for field in record.fields]


def _make_peer_class(record: Record, cls: type, rules: str) -> Any:
    own = _OF_METHODS if record.is_method else _OF_PROPERTIES
    guarded = (*own, *(f"_{field.name}" for field in record.fields))
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
    layout = RecordLayout(cls, _fields(record, rules), guarded)
    return PeerClass(layout, f"{cls.__module__}.{cls.__qualname__}", record.index, coercions, checks)


_BOTH = ("base", "body", "commands", "common", "constants", "frame", "header", "heartbeat")
"""The modules in which functions for reading look names up, and those for writing as well."""

_CALLED = ("base", "commands", "constants")
"""The modules in which constructors do."""

_ALTERNATIVE = "DEPRECATED_RABBITMQ_SUPPORT"  # other tags for numbers, which are not written here


def _guards(modules: tuple[str, ...], hardening: list[Patch]) -> Guards:
    """Return guards of all that functions of these modules look up, once those patches are made."""
    coming = expected(hardening)
    if "encode" in modules:
        coming.append(Expected(vars(import_module("pamqp.encode")), _ALTERNATIVE, False))
    there = [
        name for name in modules if find_spec(f"pamqp.{name}") is not None
    ]  # what is known needs no other
    found = guards([import_module(f"pamqp.{name}") for name in there], ("marshal", "unmarshal"), coming)
    if modules is _CALLED:
        return Guards(found)
    basic, formats = import_module("pamqp.commands").Basic, import_module("pamqp.common").Struct
    flags = basic.Properties.flags
    found.append(ModuleGuard(flags, flags, "pamqp.commands.Basic.Properties.flags"))
    names = [name for name in vars(formats) if not name.startswith("__")]
    return Guards(found, [TypeGuard(basic, ("Properties", "frame_id")), TypeGuard(formats, names)])


def _codec(
    rules: tuple[str, str],
    counts: Any,
    served: dict[str, Any],
    guarding: tuple[Guards, Guards],
    hardening: list[Patch],
    stock: dict[str, str],
    fields: list[tuple[str, int, Any]],
    tolerant: bool,
) -> Any:
    body, header, heartbeat = (import_module(f"pamqp.{name}") for name in ("body", "header", "heartbeat"))
    reading, writing = map(pamqp_profile, rules)
    frames = (
        RecordLayout(
            header.ContentHeader,
            attributes("class_id", "weight", "body_size", "properties"),
            ("marshal", "unmarshal", "_get_flags"),
        ),
        RecordLayout(body.ContentBody, attributes("value"), ("marshal", "unmarshal")),
    )
    note(stock, frames)
    for patch in hardening:
        if patch.owner is header.ContentHeader:
            frames[0].expect(patch.name, patch.replacement)
    return Codec(
        ReaderRules(reading, False, Limits(), False),
        ReaderRules(reading, False, Limits(), False, True) if tolerant else None,
        PeerRules(writing, False, _DEPTH),
        counts,
        [peer_class for name, peer_class in served.items() if name != "Basic.Properties"],
        served["Basic.Properties"],
        *frames,
        heartbeat.Heartbeat,
        header.ProtocolHeader,
        *guarding,
        _derivation(served["Basic.Properties"].layout, fields),
    )


def _derivation(layout: Any, fields: list[tuple[str, int, Any]]) -> Callable[[type], Any]:
    """How the layout of a class derived from `Basic.Properties` is found: rabbitpy has one."""
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


# -- tolerant: what pamqp lacks so that it ends at all


# What these raise is struct.error, since both releases make an exception of their own of it.


def _hardening(rules: str) -> Iterator[Patch]:
    """Functions of pamqp that hostile octets can keep busy for ever, with the checks that they lack."""
    decode, header = import_module("pamqp.decode"), import_module("pamqp.header")
    if rules in _OLDER:
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
        if words == 1 or rules not in _OLDER:
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
