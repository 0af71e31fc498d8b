"""Compare all that each replacement relies on in its library with what is known of it.

A replacement does the work of the function in whose place it stands, and of all that this function calls.
`table` lists where that begins. What these definitions name in their library belongs to it as well, and is
found by their sources (`_sources`). What is called by way of an object, or inherited, has to be listed. Its
name may be one that nobody has defined yet, such as a `__setattr__`. So one digest for each replacement says
whether anything in it has changed. `_learnt` has the digests that are known, each with the rules that it goes
by.

Left out is what a replacement never does itself: exceptions, log entries, names of types. It leaves such
calls to the library.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import MappingProxyType

from .._generated import peers
from .._typing import NamedTuple
from ._learnt import LEARNT
from ._sources import Sources

REASON = "its source, or that of what it relies on, is not known"
AMQP_READING = "amqp.transport._AbstractTransport.read_frame"

_VALUES = ("pika.data",)  # which belong to the functions, not to each class
_CLASSES_IN = {"pamqp": "pamqp.commands", "pika": "pika.spec"}
_SPECIAL = (
    "__new__",
    "__init__",
    "__slots__",
    "__setattr__",
    "__getattribute__",
    "__getattr__",
    "__init_subclass__",
)


def _in(owner: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{owner}.{name}" for name in names)


def _made(cls: str, *methods: str) -> tuple[str, ...]:
    """Return what decides how instances of a class are made and filled, and methods of it."""
    return _in(cls, *_SPECIAL, *methods)


_APART = {
    "pamqp": (
        "pamqp.base", "pamqp.body", "pamqp.header", "pamqp.heartbeat", "pamqp.exceptions",
        "pamqp.frame.FrameTypes", "pamqp.frame.LOGGER", "pamqp.decode.LOGGER", "pamqp.encode.LOGGER",
        *_in("pamqp.common", "Arguments", "FieldArray", "FieldTable", "FieldValue"),
        "pamqp.commands.INDEX_MAPPING",
    ),
    "pika": (
        "pika.amqp_object", "pika.connection", "pika.exceptions", "pika.exchange_type",
        "pika.callback.LOGGER",
        *_in("pika.frame", "Frame", "Method", "Header", "Body", "Heartbeat", "ProtocolHeader"),
        *_in("pika.spec", "methods", "props"), "pika.adapters.utils.io_services_utils._LOGGER",
        "pika.adapters.utils.nbio_interface", "pika.adapters.blocking_connection.LOGGER",
    ),
    "amqp": (
        "amqp.exceptions", "amqp.connection", "amqp.transport", "amqp.method_framing.AMQP_LOGGER",
        "amqp.serialization.GenericContent", "amqp.basic_message.Message",
    ),
    "aio_pika": ("aio_pika.message.log", *_in("aio_pika.abc", "DateType", "HeadersType", "NoneType")),
    "aiormq": ("aiormq.exceptions",),
    "amqpstorm": ("amqpstorm.exception", "amqpstorm.connection.LOGGER"),
}  # fmt: skip
"""Paths that are not followed: they do not matter, or are listed where they do."""


class Replacement(NamedTuple):
    """A function that is replaced, or a class that is filled and read.

    Attributes:
        name: as `Status.originals` has a function, and the facts a class.
        roots: what it relies on, by dotted path.
        apart: what is not followed from there.
        on_request: it is only replaced with the option `loops`.
    """

    name: str
    roots: tuple[str, ...]
    apart: tuple[str, ...]
    on_request: bool = False


_CONTENT = "amqp.serialization.GenericContent"
_CLASS = "amqp.basic_message.Message"
_MESSAGE = (*_made(_CONTENT), *_made(_CLASS, "PROPERTIES", "CLASS_ID"))
_AIO_PIKA_MESSAGE = (
    *_made("aio_pika.message.Message", "locked"),
    *_made("aio_pika.abc.AbstractMessage"),
    *_in("aio_pika.message", "encode_timestamp_datetime", "encode_timestamp_none"),
)
_PIKA_DECODE = (
    *_in("pika.data", "decode_table", "decode_value", "decode_short_string"), "pika.compat.long",
    *_made("pika.frame.Frame"), *_made("pika.frame.Method"), *_made("pika.frame.Header"),
    *_made("pika.frame.Body"), *_made("pika.frame.Heartbeat"),
)  # fmt: skip
_TRANSPORT = "pika.adapters.utils.io_services_utils._AsyncTransportBase"
_PLAINTEXT = "pika.adapters.utils.io_services_utils._AsyncPlaintextTransport"
_ROOTS: dict[str, dict[str, tuple[str, ...]]] = {
    "pamqp": {
        "pamqp.frame.unmarshal": (
            *_in("pamqp.base", "Frame.unmarshal", "BasicProperties.unmarshal", "_AMQData.amqp_type"),
            *_made("pamqp.header.ContentHeader", "unmarshal", "_get_flags"),
            *_made("pamqp.header.ProtocolHeader", "unmarshal"), *_made("pamqp.body.ContentBody", "unmarshal"),
            *_made("pamqp.heartbeat.Heartbeat"), "pamqp.decode.by_type", "pamqp.commands.Basic.Properties",
        ),
        "pamqp.frame.marshal": (
            *_in("pamqp.base.Frame", "marshal", "validate"), "pamqp.base._AMQData.amqp_type",
            *_in("pamqp.base.BasicProperties", "marshal", "validate", "encode_property"),
            *_in("pamqp.header", "ContentHeader.marshal", "ProtocolHeader.marshal"),
            "pamqp.body.ContentBody.marshal", "pamqp.heartbeat.Heartbeat", "pamqp.encode.by_type",
            "pamqp.commands.Basic.Properties",
        ),
    },
    "pika": {
        "pika.frame.decode_frame": _PIKA_DECODE,
        "pika.frame.Method.marshal": (
            "pika.frame.Frame._marshal",
            *_in("pika.data", "encode_table", "encode_value", "encode_short_string"),
        ),
        "pika.frame.Header.marshal": (
            "pika.frame.Frame._marshal",
            *_in("pika.data", "encode_table", "encode_value", "encode_short_string"),
        ),
        "pika.frame.Body.marshal": ("pika.frame.Frame._marshal",),
        "pika.frame.Heartbeat.marshal": ("pika.frame.Frame._marshal",),
        "pika.connection.Connection._on_data_available": (
            *_in("pika.connection.Connection", "_read_frame", "_trim_frame_buffer"),
            "pika.frame.decode_frame", *_PIKA_DECODE,
        ),
        "pika.connection.Connection._output_marshaled_frames": (),
        "pika.callback.CallbackManager.pending": (
            *_in("pika.callback", "name_or_value", "sanitize_prefix"),
        ),
        f"{_PLAINTEXT}._on_socket_writable": _in(_TRANSPORT, "_buffer_tx_data", "_produce"),
    },
    "amqp": {
        "amqp.serialization.loads": (),
        "amqp.serialization.dumps": (),
        "amqp.serialization.decode_properties_basic": ("amqp.serialization.loads",),
        f"{_CONTENT}._serialize_properties": ("amqp.serialization.dumps", f"{_CLASS}.PROPERTIES"),
        "amqp.method_framing.frame_handler": (
            *_MESSAGE, *_in(_CONTENT, "inbound_header", "inbound_body", "_load_properties"),
            *_in("amqp.serialization", "decode_properties_basic", "PROPERTY_CLASSES"),
        ),
        "amqp.method_framing.frame_writer": (
            *_in(_CONTENT, "__slots__", "_serialize_properties"),
            *_in(_CLASS, "__slots__", "PROPERTIES", "CLASS_ID"),
        ),
        "amqp.abstract_channel.AbstractChannel.dispatch_method": (
            "amqp.connection.Connection.on_inbound_method", *_in(_CONTENT, "__slots__", "__getattr__"),
            *_in(_CLASS, "__slots__", "__getattr__", "__getattribute__", "__bool__", "__len__"),
        ),
        f"{_CLASS}.__init__": _MESSAGE,
        AMQP_READING: (
            *_in("amqp.transport._AbstractTransport", "__init__", "_read", "having_timeout", "close"),
            *_in("amqp.transport.TCPTransport", "_setup_transport", "_read", "read_frame"),
            *_in("amqp.transport.SSLTransport", "_setup_transport", "_read", "read_frame"),
            *_in("amqp.connection.Connection", "blocking_read", "drain_events", "on_inbound_frame"),
            "amqp.connection.Connection.transport",
            *_in("amqp.abstract_channel.AbstractChannel", "__init__", "wait"),
        ),
    },
    "aio_pika": {
        "aio_pika.message.Message.__init__": _AIO_PIKA_MESSAGE,
        "aio_pika.message.IncomingMessage.__init__": (
            *_AIO_PIKA_MESSAGE, *_made("aio_pika.message.IncomingMessage", "locked", "lock"),
            *_made("aio_pika.abc.AbstractIncomingMessage"), "aio_pika.message.Message.lock",
            *_in("aio_pika.message", "decode_expiration_none", "decode_timestamp_datetime"),
            "aio_pika.message.decode_timestamp_none",
        ),
    },
    "aiormq": {"aiormq.connection.FrameReceiver.get_frame": ("aiormq.connection.FrameReceiver.__init__",)},
    "amqpstorm": {
        "amqpstorm.connection.Connection._read_buffer": (
            "amqpstorm.connection.Connection._handle_amqp_frame",
        ),
    },
}  # fmt: skip
_ON_REQUEST: dict[str, dict[str, tuple[str, ...]]] = {
    "pika": {
        f"{_PLAINTEXT}.write": (
            f"{_PLAINTEXT}._on_socket_writable",
            *_in(_TRANSPORT, "_buffer_tx_data", "_produce", "get_write_buffer_size"),
            "pika.adapters.blocking_connection.BlockingConnection._flush_output",
            "pika.adapters.select_connection._PollerBase.start",
            "pika.adapters.utils.selector_ioloop_adapter.SelectorIOServicesAdapter.__init__",
        ),
        f"{_TRANSPORT}._MAX_RECV_BYTES": (
            *_in(_TRANSPORT, "_consume", "_MAX_CONSUME_BYTES"),
        ),
    },
}  # fmt: skip
_CALLED = {"amqp.abstract_channel.AbstractChannel.dispatch_method": ("amqp.serialization.loads",)}
"""Functions of the library that a replacement calls: they need not be known, and are not followed."""

_ALSO_IN = {"amqp": ("amqp.abstract_channel", "amqp.connection")}
"""Modules that bind names of replaced functions when they are imported."""

CLIENTS = {"pamqp": ("aio_pika", "aiormq", "amqpstorm")}
"""Libraries on top of one, in which something is replaced along with it."""


def table(library: str) -> Iterator[Replacement]:
    """Yield all that is replaced in a library, or filled and read.

    Args:
        library: a peer, or a client on top of one.
    """
    classes = class_names(library)
    within = _CLASSES_IN.get(library, "")
    apart = (*_APART[library], *dict.fromkeys(f"{within}.{name.partition('.')[0]}" for name in classes))
    for on_request, entries in ((False, _ROOTS), (True, _ON_REQUEST)):
        for name, roots in entries.get(library, {}).items():
            yield Replacement(name, (name, *roots), (*apart, *_CALLED.get(name, ())), on_request)
    for name in classes:
        roots = (f"{within}.{name}", *_bases(library, name))
        yield Replacement(name, roots, (*apart, *_VALUES))


def class_names(library: str) -> tuple[str, ...]:
    """Return the classes of a library that are filled and read, as the facts name them."""
    return (
        tuple(cls[0] for cls in peers.CLASSES[library][peers.NEWEST[library]])
        if library in _CLASSES_IN
        else ()
    )


def _bases(library: str, name: str) -> tuple[str, ...]:
    """Return what a class for a method, or for properties, inherits and relies on."""
    if library == "pika":
        kind = "Method" if name != "BasicProperties" else "Properties"
        return (*_made("pika.amqp_object.AMQPObject"), *_made(f"pika.amqp_object.{kind}"))
    kind = "BasicProperties" if name == "Basic.Properties" else "Frame"
    return (*_made("pamqp.base._AMQData"), *_made(f"pamqp.base.{kind}", "validate"))


class Known(NamedTuple):
    """A library that is installed, as far as it is known.

    Attributes:
        version: as its metadata has it; empty where there is none.
        rules: by which each replacement reads or writes, by name; one that is not known is not in it.
        unknown: the names of the others.
        modules: in which known replacements are made, by library: the peer, and clients on top of it.
        why: nothing can be known, in words; or nothing.
    """

    version: str = ""
    rules: Mapping[str, str] = MappingProxyType({})
    unknown: tuple[str, ...] = ()
    modules: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    why: str = ""


def recognise(peer: str, *, loops: bool = False) -> Known:
    """Compare a library with what is known, whether it is imported or not.

    Args:
        peer: ``"pamqp"``, ``"pika"`` or ``"amqp"``.
        loops: what is only replaced on request counts as well.
    """
    rules: dict[str, str] = {}
    unknown: list[str] = []
    modules: dict[str, tuple[str, ...]] = {}
    spec = _spec(peer)
    if spec is None:
        return Known(why=f"{peer} is not installed, and amqpcodec does not bring it: pip install {peer}")
    for library in (peer, *CLIENTS.get(peer, ())):
        made_in = []
        for each in _compared(library):
            if each.on_request and not loops:
                continue
            if each.rules is None:
                unknown.append(each.name)
            elif each.digest:
                rules[each.name] = each.rules
                made_in.append(each.module)
        if made_in:
            modules[library] = tuple(dict.fromkeys((*made_in, *_ALSO_IN.get(library, ()))))
    return Known(version_of(peer, spec), rules, tuple(unknown), modules)


def _spec(library: str) -> ModuleSpec | None:
    """Return the spec of a library's package, without importing it; None if there is none."""
    try:
        spec = find_spec(library)
    except (ImportError, ValueError):
        return None
    return None if spec is None or spec.origin is None else spec


class Compared(NamedTuple):
    """A replacement as it is met in a library.

    Attributes:
        name: as `Replacement` has it.
        on_request: as `Replacement` has it.
        digest: of what it relies on; empty if it is missing itself.
        rules: by which it is known to go; None if it is not known. A class may be known to be missing.
        module: that it is made in.
    """

    name: str
    on_request: bool
    digest: str
    rules: str | None
    module: str


def _compared(library: str) -> tuple[Compared, ...]:
    spec = _spec(library)
    return () if spec is None else _compared_once(library, str(spec.origin))


@cache
def _compared_once(library: str, origin: str) -> tuple[Compared, ...]:
    """Compare a library once in a process, as Python imports it once."""
    spec = _spec(library)
    return () if spec is None else compare(spec)


def compare(spec: ModuleSpec) -> tuple[Compared, ...]:
    """Compare what a library has with what is known.

    Args:
        spec: that of the package of a peer, or of a client on top of one.
    """
    sources, learnt = Sources(spec), LEARNT[spec.name]
    found = []
    for each in table(spec.name):
        digest, module = _looked_at(sources, each)
        found.append(
            Compared(each.name, each.on_request, digest, learnt.get(each.name, {}).get(digest), module)
        )
    return tuple(found)


def _looked_at(sources: Sources, each: Replacement) -> tuple[str, str]:
    """Return the digest of a replacement and the module that it is made in; empty texts if it is missing."""
    try:
        if sources.lines(each.roots[0]):
            return sources.digest(each.roots, each.apart), sources.module_of(each.roots[0])
    except Exception:  # a text that is no Python, or a loader that fails: no reason not to start
        pass
    return "", ""


def version_of(library: str, spec: ModuleSpec) -> str:
    """Return the version by the folder of metadata beside the package: what else reads it takes long.

    Args:
        library: its name.
        spec: that of its package.
    """
    try:
        names = os.listdir(os.path.dirname(os.path.dirname(str(spec.origin))))
    except OSError:
        return ""
    for name in names:
        package, _, version = name.removesuffix(".dist-info").partition("-")
        if name.endswith(".dist-info") and package.lower() == library:
            return version
    return ""
