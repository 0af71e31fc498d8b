"""py-amqp: what is replaced in it.

`loads` and `dumps` go by strings of letters; `frame_handler` and `frame_writer` make a function for each
connection. py-amqp binds most of these names early, so each is replaced wherever it is used. Connections that
exist keep the functions that were made for them, also when all is put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from .._kernel.guards_c import Guards
from .._kernel.peer_writer_c import PeerRules
from .._kernel.reader_c import ReaderRules
from .._kernel.readers_c import ReaderPool
from .._typing import Any, NamedTuple
from ..limits import Limits
from ._amqp_c import Codec
from ._amqp_frames_c import Framing
from ._amqp_message_c import Messages
from ._before import note, untouched
from ._counts_c import Counts
from ._facts import differing, formats
from ._looked_up import guards
from ._patches import Options, Patch, PatchPlan
from ._rules import amqp_profile

MODULES = (
    "amqp.serialization",
    "amqp.basic_message",
    "amqp.method_framing",
    "amqp.abstract_channel",
    "amqp.connection",
)

_LOOKED_AFTER = ("loads", "dumps", "PROPERTY_CLASSES")
"""Names that ours may stand for, or in: the codec asks for them itself."""


class Fast(NamedTuple):
    """The functions that replace py-amqp's."""

    codec: Codec
    messages: Messages
    framing: Framing
    counts: Counts


def fast(options: Options) -> Fast:
    """The compiled functions; nothing is replaced by making them."""
    serialization, framing = import_module("amqp.serialization"), import_module("amqp.method_framing")
    profile, limits, counts = amqp_profile(options.rules), Limits(), Counts()
    error = import_module("amqp.exceptions").FrameSyntaxError if options.hardened else None
    pool = ReaderPool(ReaderRules(profile, False, limits, False))
    rules = PeerRules(profile, False, limits.table_depth)
    listed = tuple(framing.Message.PROPERTIES)
    known = formats("amqp").properties
    reading, writing = (guards([serialization], _LOOKED_AFTER) for _ in range(2))
    properties = listed if listed == known else known
    codec = Codec(serialization, properties, pool, rules, counts, reading, writing, error)
    constructing = Guards(guards([import_module("amqp.basic_message")]))
    messages = Messages(framing.Message, codec.serialize_properties, constructing, counts)
    called = Guards(guards([framing, serialization.GenericContent], _LOOKED_AFTER))
    return Fast(codec, messages, Framing(codec, messages, framing, called, options.loops), counts)


def plan(options: Options) -> PatchPlan:
    """All that is to be replaced."""
    made = fast(options)
    stock = differing("amqp", options.rules)
    note(stock, (made.codec, made.framing))
    patches = untouched(stock, _patches(made))
    made.messages.serve()
    return PatchPlan(patches, made.counts, stock, made.messages.stop, (made.messages.cls,))


def _patches(made: Fast) -> Iterator[Patch]:
    codec, framing = made.codec, made.framing
    for name, function, modules in (
        ("loads", codec.loads, ("serialization", "abstract_channel")),
        ("dumps", codec.dumps, ("serialization", "abstract_channel")),
        ("decode_properties_basic", codec.decode_properties, ("serialization",)),
        ("frame_handler", framing.frame_handler, ("method_framing", "connection")),
        ("frame_writer", framing.frame_writer, ("method_framing", "connection")),
    ):
        for module in modules:
            owner = import_module(f"amqp.{module}")
            if vars(owner).get(name) is function.original:
                yield Patch(owner, name, function)
    serialization = import_module("amqp.serialization")
    yield Patch(serialization.GenericContent, "_serialize_properties", codec.serialize_properties)
    if serialization.PROPERTY_CLASSES.get(60) is codec.decode_properties.original:
        label = "amqp.serialization.PROPERTY_CLASSES[60]"
        yield Patch(serialization.PROPERTY_CLASSES, 60, codec.decode_properties, label)
    yield from _defaults(framing)


def _defaults(framing: Framing) -> Iterator[Patch]:
    """`Connection` takes handler and writer as arguments, whose defaults were bound when it was defined."""
    construct = import_module("amqp.connection").Connection.__init__
    given: tuple[Any, ...] = getattr(construct, "__defaults__", None) or ()
    by_original = {function.original: function for function in (framing.frame_handler, framing.frame_writer)}
    replaced = tuple(by_original.get(value, value) if callable(value) else value for value in given)
    if replaced != given:
        yield Patch(construct, "__defaults__", replaced, "amqp.connection.Connection.__init__.__defaults__")
