"""py-amqp: what is replaced in it.

`loads` and `dumps` go by strings of letters; `frame_handler` and `frame_writer` make a function for each
connection. py-amqp binds most of these names early, so each is replaced wherever it is used. Connections that
exist keep the functions that were made for them, also when all is put back.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module

from .._kernel.reader_c import ReaderRules
from .._kernel.readers_c import ReaderPool
from .._typing import Any, NamedTuple
from ..limits import Limits
from ._amqp_c import Codec, Messages
from ._amqp_frames_c import Dispatch, Framing
from ._before import note, untouched
from ._facts import formats
from ._fast_c import Counts
from ._guards_c import Guards, TypeGuard
from ._looked_up import guards
from ._patches import Options, Patch, PatchPlan
from ._peer_writer_c import PeerRules
from ._relied import AMQP_READING
from ._rules import amqp_profile
from ._unreadable import amqp_writers, expected

LOADS = "amqp.serialization.loads"
DUMPS = "amqp.serialization.dumps"
DECODE = "amqp.serialization.decode_properties_basic"
SERIALIZE = "amqp.serialization.GenericContent._serialize_properties"
HANDLER = "amqp.method_framing.frame_handler"
WRITER = "amqp.method_framing.frame_writer"
DISPATCH = "amqp.abstract_channel.AbstractChannel.dispatch_method"
MESSAGE = "amqp.basic_message.Message.__init__"

_LOOKED_AFTER = ("loads", "dumps", "PROPERTY_CLASSES")
"""Names that ours may stand for, or in: the codec asks for them itself."""


class Fast(NamedTuple):
    """The functions that replace py-amqp's; those that frames need, where one for frames is known."""

    codec: Codec
    messages: Messages | None
    framing: Framing | None
    counts: Counts


class _WithAll:
    """A module, or a class, whose missing names are None: what is not known is never put in their place."""

    __slots__ = ("GenericContent", "_held")

    def __init__(self, held: Any) -> None:
        self._held = held
        content = getattr(held, "GenericContent", None)
        self.GenericContent = None if held is None else _WithAll(content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held, name, None)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        held: dict[str, Any] = vars(self._held)
        return held


def fast(options: Options, writers: Sequence[Patch] = ()) -> Fast:
    """The compiled functions; nothing is replaced by making them.

    Args:
        options: of the `install`.
        writers: patches of what they look up, which are about to be made.
    """
    known = options.known.rules
    serialization, limits, counts = import_module("amqp.serialization"), Limits(), Counts()
    reads, writes = (known.get(name) or next(iter(known.values())) for name in (LOADS, DUMPS))
    profile, error = amqp_profile(reads), import_module("amqp.exceptions").FrameSyntaxError
    pool = ReaderPool(ReaderRules(profile, False, limits, False))
    tolerant = ReaderPool(ReaderRules(profile, False, limits, False, True)) if options.tolerant else None
    rules = PeerRules(amqp_profile(writes), False, limits.table_depth)
    reading, writing = (guards([serialization], _LOOKED_AFTER, expected(writers)) for _ in range(2))
    codec = Codec(
        _WithAll(serialization), _properties(), pool, tolerant, rules, counts, reading, writing, error
    )
    if not any(name in known for name in (MESSAGE, HANDLER, WRITER)):
        return Fast(codec, None, None, counts)
    message = import_module("amqp.basic_message")
    messages = Messages(message.Message, codec.serialize_properties, Guards(guards([message])), counts)
    if HANDLER not in known and WRITER not in known:
        return Fast(codec, messages, None, counts)
    framing = import_module("amqp.method_framing")
    called = Guards(guards([framing, serialization.GenericContent], _LOOKED_AFTER, expected(writers)))
    dispatch = _dispatch(messages) if DISPATCH in known else None
    looks = AMQP_READING in known
    made = Framing(codec, messages, _WithAll(framing), called, dispatch, looks, looks and options.loops)
    return Fast(codec, messages, made, counts)


def _dispatch(messages: Messages) -> Dispatch:
    """Return what hands on methods as py-amqp does."""
    connection, channel = import_module("amqp.connection"), import_module("amqp.abstract_channel")
    owners = {connection.Connection: "on_inbound_method", channel.AbstractChannel: "dispatch_method"}
    looked_up = guards([getattr(owner, name) for owner, name in owners.items()], ("loads",))
    called = Guards(looked_up, [TypeGuard(owner, (name,)) for owner, name in owners.items()])
    return Dispatch(messages, connection, channel, called)


def _properties() -> tuple[tuple[str, str], ...]:
    """Return name and letter of each property of a message: the module's own, if they are alike."""
    known = formats("amqp").properties
    message = getattr(import_module("amqp.basic_message"), "Message", None)
    listed = tuple(getattr(message, "PROPERTIES", ()))
    return listed if listed == known else known


def plan(options: Options) -> PatchPlan:
    """All that is to be replaced."""
    writers = list(amqp_writers()) if options.tolerant else []
    made = fast(options, writers)
    stock: dict[str, str] = {}
    note(stock, filter(None, (made.codec, made.framing)))
    known = options.known.rules
    patches = untouched(stock, (*_patches(made, known), *writers))
    if made.messages is None or MESSAGE not in known:
        return PatchPlan(patches, made.counts, stock)
    made.messages.serve()
    return PatchPlan(patches, made.counts, stock, made.messages.stop, (made.messages.cls,))


def _patches(made: Fast, known: Collection[str]) -> Iterator[Patch]:
    codec, framing = made.codec, made.framing
    wherever = [
        (LOADS, codec.loads, ("serialization", "abstract_channel")),
        (DUMPS, codec.dumps, ("serialization", "abstract_channel")),
        (DECODE, codec.decode_properties, ("serialization",)),
    ]
    if framing is not None:
        wherever.append((HANDLER, framing.frame_handler, ("method_framing", "connection")))
        wherever.append((WRITER, framing.frame_writer, ("method_framing", "connection")))
    wherever = [each for each in wherever if each[0] in known]
    for path, function, modules in wherever:
        name = path.rpartition(".")[2]
        for owner in (sys.modules.get(f"amqp.{module}") for module in modules):
            if owner is not None and vars(owner).get(name) is function.original:
                yield Patch(owner, name, function)
    serialization = import_module("amqp.serialization")
    if SERIALIZE in known:
        yield Patch(serialization.GenericContent, "_serialize_properties", codec.serialize_properties)
    if DECODE in known and serialization.PROPERTY_CLASSES.get(60) is codec.decode_properties.original:
        label = "amqp.serialization.PROPERTY_CLASSES[60]"
        yield Patch(serialization.PROPERTY_CLASSES, 60, codec.decode_properties, label)
    yield from _defaults([function for path, function, _ in wherever if path in (HANDLER, WRITER)])


def _defaults(functions: Collection[Any]) -> Iterator[Patch]:
    """`Connection` takes handler and writer as arguments, whose defaults were bound when it was defined."""
    connection = getattr(sys.modules.get("amqp.connection"), "Connection", object)
    construct: Any = connection.__init__
    given: tuple[Any, ...] = getattr(construct, "__defaults__", None) or ()
    by_original = {function.original: function for function in functions}
    replaced = tuple(by_original.get(value, value) if callable(value) else value for value in given)
    if replaced != given:
        yield Patch(construct, "__defaults__", replaced, "amqp.connection.Connection.__init__.__defaults__")
