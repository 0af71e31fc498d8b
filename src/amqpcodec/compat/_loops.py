"""Loops of aiormq and AMQPStorm, which take one frame after another out of what they have read.

`install("pamqp", loops=True)` replaces them. Nothing is read ahead: a replacement serves frames that are
whole in the client's own buffer, and leaves the rest, errors included, to the client's function, which finds
that buffer as its own code would have left it.
"""

from __future__ import annotations

from asyncio import StreamReader
from collections.abc import Callable
from importlib import import_module
from struct import Struct
from typing import Any, NamedTuple

from .._kernel.guards_c import is_own
from .._kernel.wire import BODY, HEADER, METHOD, OVERHEAD
from ._before import REPLACED
from ._fast_c import Counts
from ._patches import Patch, PatchPlan

Replacing = Callable[[Any], Callable[..., Any]]

SIZE = Struct(">I").unpack_from  # of a frame's payload, at its fourth octet
CONTENT_FRAMES = (METHOD, HEADER, BODY)
_BUFFER = {"_buffer", "_exception", "_maybe_resume_transport"}


def aiormq_get_frame(stock: Any) -> Callable[..., Any]:
    """`aiormq.connection.FrameReceiver.get_frame` without three reads for each frame.

    Args:
        stock: the function to replace.
    """
    frames = import_module("pamqp.frame")

    async def get_frame(self: Any) -> Any:
        reader = getattr(self, "reader", None)
        if type(reader) is StreamReader and self.started and not self.lock.locked():
            buffer = reader._buffer  # type: ignore[attr-defined]
            if len(buffer) >= OVERHEAD and reader.exception() is None:
                end = OVERHEAD + SIZE(buffer, 3)[0]
                if end <= len(buffer):
                    try:
                        found = frames.unmarshal(bytes(buffer[:end]))
                    except Exception:
                        return await stock(self)
                    del buffer[:end]
                    reader._maybe_resume_transport()  # type: ignore[attr-defined]
                    return found
        return await stock(self)

    return get_frame


def amqpstorm_read_buffer(stock: Any) -> Callable[..., Any]:
    """`amqpstorm.connection.Connection._read_buffer` without a copy of all that follows for each frame.

    Args:
        stock: the function to replace.
    """
    frames = import_module("pamqp.frame")
    handle = import_module("amqpstorm.connection").Connection._handle_amqp_frame

    def _read_buffer(self: Any, data_in: bytes) -> Any:
        # Somebody else may have replaced the function whose work is done here.
        if (
            type(data_in) is not bytes
            or type(self)._handle_amqp_frame is not handle
            or "_handle_amqp_frame" in vars(self)
        ):
            return stock(self, data_in)
        begin, size = 0, len(data_in)
        while size - begin >= OVERHEAD:
            end = begin + OVERHEAD + SIZE(data_in, begin + 3)[0]
            if end > size:
                break
            try:
                _, channel_id, frame_in = frames.unmarshal(data_in[begin:end])
            except Exception:
                return stock(self, data_in[begin:])
            begin = end
            self.heartbeat.register_read()
            if channel_id == 0:
                self._channel0.on_frame(frame_in)
            elif channel_id in self._channels:
                self._channels[channel_id].on_frame(frame_in)
        rest = data_in[begin:]
        # In a frame that is not whole the client would find nothing. It detects protocol headers and
        # heartbeats otherwise.
        return rest if not rest or rest[0] in CONTENT_FRAMES else stock(self, rest)

    return _read_buffer


class Loop(NamedTuple):
    """A method of a client, and what takes its place."""

    module: str
    owner: str
    name: str
    replacing: Replacing
    uses: tuple[str, ...] = ()  # methods whose work the replacement does, too


LOOPS = {
    "aiormq": Loop("aiormq.connection", "FrameReceiver", "get_frame", aiormq_get_frame),
    "amqpstorm": Loop(
        "amqpstorm.connection", "Connection", "_read_buffer", amqpstorm_read_buffer, ("_handle_amqp_frame",)
    ),
}


def plan(client: str) -> PatchPlan:
    """Plan the replacement in a client whose loop is known.

    Args:
        client: a key of `LOOPS`.
    """
    loop = LOOPS[client]
    owner = getattr(import_module(loop.module), loop.owner)
    reason = _unlike(loop, owner)
    if reason:
        return PatchPlan((), Counts(), {f"{loop.module}.{loop.owner}.{loop.name}": reason}, None)
    replacement = loop.replacing(getattr(owner, loop.name))
    return PatchPlan((Patch(owner, loop.name, replacement),), Counts(), {}, None)


def _unlike(loop: Loop, owner: Any) -> str:
    """Why the loop stays the client's own; nothing if it is replaced."""
    if loop.module == "aiormq.connection" and not set(StreamReader.readexactly.__code__.co_names) >= _BUFFER:
        return "this Python's asyncio.StreamReader keeps its octets in another way"
    library = loop.module.partition(".")[0]
    own = all(is_own(vars(owner).get(name), library) for name in (loop.name, *loop.uses))
    return "" if own else REPLACED
