"""Replacements in pika: `decode_frame`, `marshal` of frames, and with `loops` how connections receive."""

from __future__ import annotations

from importlib import import_module

from .._backend import load
from .._kernel import fields as field_kinds
from .._kernel.guards_c import Guards
from .._kernel.wire import BODY, HEADER, HEARTBEAT, METHOD
from .._typing import Any
from ..limits import Limits
from . import _facts
from ._before import REPLACED, note, untouched
from ._looked_up import guards
from ._patches import Options, Patch, PatchPlan
from ._rules import pika_profile

MODULES = ("pika.spec", "pika.frame", "pika.connection", "pika.adapters.utils.io_services_utils")
"""Modules to import before anything is replaced."""

_FRAMES = (
    ("Method", METHOD, ("method",)),
    ("Header", HEADER, ("body_size", "properties")),
    ("Body", BODY, ("fragment",)),
    ("Heartbeat", HEARTBEAT, ()),
)
"""The classes of frames, their types, and what `__init__` sets after type and channel."""

_KINDS = {
    "bit": field_kinds.BIT_FIELD,
    "octet": field_kinds.OCTET_FIELD,
    "short": field_kinds.SHORT_FIELD,
    "long": field_kinds.LONG_FIELD,
    "longlong": field_kinds.LONGLONG_FIELD,
    "shortstr": field_kinds.SHORTSTR_FIELD,
    "longstr": field_kinds.OCTETS_FIELD,
    "table": field_kinds.TABLE_FIELD,
    "timestamp": field_kinds.LONGLONG_FIELD,
}

_OWN = 0  # the C code reads and writes it itself

_RECEIVED = 65536
"""Octets that one call to the socket may bring."""

_DEPTH = 32
"""Tables nested deeper are left to pika, which may run out of stack."""


def plan(options: Options) -> PatchPlan:
    """Plan the replacements in the pika that is imported.

    Args:
        options: what `install` was asked for.
    """
    frame = import_module("pika.frame")
    compiled: Any = load("amqpcodec.compat._pika", "c")
    stock = _facts.differing("pika", options.rules)
    frames = [_frame_layout(getattr(frame, name), others) for name, _, others in _FRAMES]
    guarding = Guards(guards([import_module(f"pika.{name}") for name in ("data", "frame", "spec")]))
    note(stock, (guarding, *frames))
    codec = _codec(options, stock, frames, guarding)
    decode_frame = compiled.fast_decode_frame(codec)
    patches = [Patch(frame, "decode_frame", decode_frame)]
    for layout, (_, kind, _) in zip(frames, _FRAMES, strict=True):
        patches.append(Patch(layout.cls, "marshal", compiled.fast_marshal(codec, layout, kind)))
    if options.loops:
        patches += _loop(codec, decode_frame, stock)
    return PatchPlan(untouched(stock, patches), codec.counts, stock)


def _codec(options: Options, stock: dict[str, str], frames: list[Any], guarding: Any) -> Any:
    """Return the state that the functions share."""
    profile = pika_profile(options.rules)
    layouts = _layouts(options.rules, stock)
    exceptions = import_module("pika.exceptions")
    return load("amqpcodec.compat._pika", "c").Codec(
        load("amqpcodec._kernel.reader", "c").ReaderRules(profile, False, Limits(table_depth=_DEPTH), False),
        load("amqpcodec._kernel.peer_writer", "c").PeerRules(profile, False, _DEPTH),
        {index: layout for index, layout in layouts.items() if index & 0xFFFF},
        next((layout for index, layout in layouts.items() if not index & 0xFFFF), None),
        frames,
        guarding,
        import_module("pika.frame").decode_frame,
        exceptions.InvalidFrameError if options.hardened else None,
    )


def _layouts(rules: str, stock: dict[str, str]) -> dict[int, Any]:
    """How the classes of methods and properties are filled and read, by index."""
    layout = load("amqpcodec.compat._pika", "c").ClassLayout
    classes, records = _facts.live("pika", rules), _facts.records("pika", rules)
    layouts = {
        record.name: layout(
            classes[record.name],
            [(field.name, _KINDS[field.kind], None) for field in record.fields],
            record.index,
            all(field.default is not _facts.REQUIRED for field in record.fields),
        )
        for record in records.values()
        if record.name not in stock
    }
    stock.update({name: REPLACED for name, made in layouts.items() if made.replaced})
    return {records[name].index: made for name, made in layouts.items() if name not in stock}


def _frame_layout(cls: type, others: tuple[str, ...]) -> Any:
    names = ("frame_type", "channel_number", *others)
    layout = load("amqpcodec._kernel.fields", "c").RecordLayout
    return layout(cls, [(name, _OWN, None) for name in names], ("_marshal",))


def _loop(codec: Any, decode_frame: Any, stock: dict[str, str]) -> list[Patch]:
    """Frames are read from a buffer that is cut once a read, reads are larger, and callbacks found sooner."""
    compiled: Any = load("amqpcodec.compat._pika_loops", "c")
    callback, connection = import_module("pika.callback"), import_module("pika.connection").Connection
    transport = import_module("pika.adapters.utils.io_services_utils")._AsyncTransportBase
    used = (connection._on_data_available, connection._read_frame, connection._trim_frame_buffer)
    receiving = Guards(guards(used))
    names = (callback.CallbackManager.pending, callback.name_or_value)
    pending = Guards(guards((*names, *map(import_module, ("pika.amqp_object", "pika.frame")))))
    loop = compiled.Loop(codec, vars(import_module("pika.frame")), decode_frame, connection, receiving)
    note(stock, [loop, pending])
    return [
        Patch(connection, "_on_data_available", compiled.fast_on_data_available(loop)),
        Patch(callback.CallbackManager, "pending", compiled.fast_pending(codec, callback, pending)),
        Patch(transport, "_MAX_RECV_BYTES", _RECEIVED),
    ]
