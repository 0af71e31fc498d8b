"""Replacements in pika: of its codec, of what connections do with frames, and with `loops` with sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from logging import DEBUG
from time import monotonic

from .._backend import load
from .._kernel import fields as field_kinds
from .._kernel.reader_c import ReaderRules
from .._kernel.wire import BODY, HEADER, HEARTBEAT, METHOD
from .._typing import Any
from ..limits import Limits
from ._before import REPLACED, note, own_classes, untouched
from ._facts import KINDS, REQUIRED, Record, attributes, known_records
from ._fast_c import Counts
from ._fields_c import RecordLayout
from ._guards_c import Guards
from ._looked_up import guards
from ._patches import Options, Patch, PatchPlan
from ._peer_writer_c import PeerRules
from ._rules import pika_profile
from ._unreadable import expected, pika_writers

compiled: Any = load("amqpcodec.compat._pika", "c")

DECODE = "pika.frame.decode_frame"
RECEIVE = "pika.connection.Connection._on_data_available"
OUTPUT = "pika.connection.Connection._output_marshaled_frames"
PENDING = "pika.callback.CallbackManager.pending"
WRITABLE = "pika.adapters.utils.io_services_utils._AsyncPlaintextTransport._on_socket_writable"
WRITE = "pika.adapters.utils.io_services_utils._AsyncPlaintextTransport.write"
MOST_RECEIVED = "pika.adapters.utils.io_services_utils._AsyncTransportBase._MAX_RECV_BYTES"

_FRAMES = (
    ("Method", METHOD, ("method",)),
    ("Header", HEADER, ("body_size", "properties")),
    ("Body", BODY, ("fragment",)),
    ("Heartbeat", HEARTBEAT, ()),
)
"""The classes of frames, their types, and what `__init__` sets after type and channel."""

_FUNCTIONS = (DECODE, *(f"pika.frame.{name}.marshal" for name in ("Header", "Method", "Body", "Heartbeat")))

_KINDS = KINDS | {
    "longlong": field_kinds.LONGLONG_FIELD,
    "longstr": field_kinds.OCTETS_FIELD,
    "timestamp": field_kinds.LONGLONG_FIELD,
}

_RECEIVED = 65536
"""Octets that one call to the socket may bring."""

_WATCHED = "_amqpcodec_watched"
"""Attribute of a transport: when pika's loop was last left to send what was written."""

_AT_ONCE = 0.001
"""Seconds from then on in which pika's loop need not run for what is written."""

_DEPTH = 32
"""Tables nested deeper are left to pika, which may run out of stack."""


def plan(options: Options) -> PatchPlan:
    """Plan the replacements in the pika that is imported, of what is known in it.

    Args:
        options: what `install` was asked for.
    """
    rules = options.known.rules
    if not any(name in rules for name in _FUNCTIONS):
        return PatchPlan((), Counts(), {})
    frame = import_module("pika.frame")
    stock: dict[str, str] = {}
    layouts = _layouts(known_records("pika", rules), stock)
    frames = [_frame_layout(getattr(frame, name, None), others) for name, _, others in _FRAMES]
    writers = list(pika_writers()) if options.tolerant else []
    looking = [import_module(f"pika.{name}") for name in ("data", "frame", "spec")]
    guarding = Guards(guards(looking, (), expected(writers)))
    note(stock, (guarding, *filter(None, frames)))
    codec = _codec(options, layouts, frames, guarding)
    decode_frame = compiled.fast_decode_frame(codec)
    patches = [Patch(frame, "decode_frame", decode_frame)] if DECODE in rules else []
    for layout, (name, kind, _) in zip(frames, _FRAMES, strict=True):
        if f"pika.frame.{name}.marshal" in rules:
            patches.append(Patch(layout.cls, "marshal", compiled.fast_marshal(codec, layout, kind)))
    patches += writers
    patches += _connection(codec, decode_frame, stock, rules)
    if options.loops:
        patches += _sockets(rules)
    return PatchPlan(untouched(stock, patches), codec.counts, stock)


def _codec(options: Options, layouts: Mapping[int, Any], frames: list[Any], guarding: Any) -> Any:
    """Return the state that the functions share."""
    rules = options.known.rules
    known = [rules.get(name) for name in _FUNCTIONS]
    reading, writing = (pika_profile(str(each or next(filter(None, known)))) for each in known[:2])
    exceptions = import_module("pika.exceptions")
    return compiled.Codec(
        ReaderRules(reading, False, Limits(table_depth=_DEPTH), False),
        ReaderRules(reading, False, Limits(), False, True) if options.tolerant else None,
        PeerRules(writing, False, _DEPTH),
        {index: layout for index, layout in layouts.items() if index & 0xFFFF},
        next((layout for index, layout in layouts.items() if not index & 0xFFFF), None),
        frames,
        guarding,
        getattr(import_module("pika.frame"), "decode_frame", None),
        exceptions.InvalidFrameError,
    )


def _layouts(records: Mapping[str, Record], stock: dict[str, str]) -> dict[int, Any]:
    """How the classes of methods and properties are filled and read, by index."""
    layouts = {
        name: compiled.ClassLayout(
            cls,
            [(field.name, _KINDS[field.kind], None) for field in records[name].fields],
            records[name].index,
            all(field.default is not REQUIRED for field in records[name].fields),
        )
        for name, cls in own_classes(stock, "pika", records).items()
    }
    stock.update({name: REPLACED for name, made in layouts.items() if made.replaced})
    return {records[name].index: made for name, made in layouts.items() if name not in stock}


def _frame_layout(cls: type | None, others: tuple[str, ...]) -> Any:
    """Return how frames of a class are filled and read; None if there is no such class."""
    if cls is None:
        return None
    return RecordLayout(cls, attributes("frame_type", "channel_number", *others), ("_marshal",))


def _connection(
    codec: Any, decode_frame: Any, stock: dict[str, str], rules: Mapping[str, str]
) -> Iterator[Patch]:
    """Frames are read from a buffer that is cut once a read, those of a message are sent as one piece."""
    connection = import_module("pika.connection").Connection
    if OUTPUT in rules:
        sending = Guards(guards((connection._output_marshaled_frames,)))
        note(stock, [sending])
        yield Patch(connection, "_output_marshaled_frames", compiled.fast_output(connection, sending))
    if RECEIVE in rules:
        used = (connection._on_data_available, connection._read_frame, connection._trim_frame_buffer)
        receiving = Guards(guards(used))
        loop = compiled.Loop(codec, vars(import_module("pika.frame")), decode_frame, connection, receiving)
        note(stock, [loop])
        yield Patch(connection, "_on_data_available", compiled.fast_on_data_available(loop))
    if PENDING in rules:
        callback = import_module("pika.callback")
        names = (callback.CallbackManager.pending, callback.name_or_value)
        pending = Guards(guards((*names, *map(import_module, ("pika.amqp_object", "pika.frame")))))
        note(stock, [pending])
        yield Patch(callback.CallbackManager, "pending", compiled.fast_pending(codec, callback, pending))
    if WRITABLE in rules:
        plaintext: Any = import_module("pika.adapters.utils.io_services_utils")._AsyncPlaintextTransport
        yield Patch(plaintext, "_on_socket_writable", _sending_together(plaintext._on_socket_writable))


def _sending_together(stock: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return what transports do when there is room: what waits is sent as few pieces, not one by one.

    Args:
        stock: the function to replace, which sends.
    """
    join_last = compiled.join_last

    def _on_socket_writable(self: Any) -> None:
        if len(self._tx_buffers) > 1:
            join_last(self._tx_buffers)
        return stock(self)

    return _on_socket_writable


def _sockets(rules: Mapping[str, str]) -> Iterator[Patch]:
    """More is read by a call, and what is written is sent soon."""
    transports: Any = import_module("pika.adapters.utils.io_services_utils")
    if WRITE in rules:
        plaintext = transports._AsyncPlaintextTransport
        yield Patch(plaintext, "write", _writing_at_once(plaintext.write, transports))
    if MOST_RECEIVED in rules:
        yield Patch(transports._AsyncTransportBase, "_MAX_RECV_BYTES", _RECEIVED)


def _writing_at_once(stock: Callable[[Any, Any], None], transports: Any) -> Callable[[Any, Any], None]:
    """Return a `write` of transports that sends at once where pika would watch the socket for room.

    pika sends when its loop has found room. A `BlockingConnection` runs the loop for each message, which also
    reads what has come and calls what is due. That is done once a millisecond here: the first write, and each
    that comes later than that, goes to pika's own function. So do all where the loop runs by itself, since
    what is written in its turn is then sent together.

    Args:
        stock: the function to replace.
        transports: its module.
    """
    logger = transports._LOGGER

    def write(self: Any, data: Any) -> None:
        if self._tx_buffers or not data or _runs(self._nbio) or logger.isEnabledFor(DEBUG):
            return stock(self, data)
        own, now = vars(self), monotonic()
        if now - own.get(_WATCHED, float("-inf")) > _AT_ONCE:
            own[_WATCHED] = now
            return stock(self, data)
        self._buffer_tx_data(data)
        self._on_socket_writable()  # which handles errors, and what there is no room for
        if self._tx_buffers:
            self._nbio.set_writer(self._sock.fileno(), self._on_socket_writable)
        return None

    return write


def _runs(adapter: Any) -> bool:
    """Return whether the loop of a transport runs by itself, as that of a `BlockingConnection` never does."""
    poller = getattr(getattr(adapter, "_loop", None), "_poller", None)
    return bool(getattr(poller, "_running", True))
