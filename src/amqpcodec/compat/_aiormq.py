"""aiormq: a frame is taken without three reads, which `install("pamqp")` does as well.

Nothing is read ahead. The replacement serves a frame that is whole in the buffer of the stream, and leaves
the rest, errors included, to aiormq's function, which finds that buffer as its own code would have left it.
"""

from __future__ import annotations

from asyncio import StreamReader
from collections.abc import Callable
from importlib import import_module
from struct import Struct

from .._kernel.wire import OVERHEAD
from .._typing import Any
from ._before import REPLACED
from ._fast_c import Counts
from ._guards_c import is_own
from ._patches import Options, Patch, PatchPlan

GET_FRAME = "aiormq.connection.FrameReceiver.get_frame"

_SIZE = Struct(">I").unpack_from  # of a frame's payload, at its fourth octet
_BUFFER = {"_buffer", "_exception", "_maybe_resume_transport"}


def plan(options: Options) -> PatchPlan:
    """Plan the replacement in the aiormq that is imported.

    Args:
        options: what `install` was asked for.
    """
    receiver = import_module("aiormq.connection").FrameReceiver
    reason = _unlike(receiver)
    if reason:
        return PatchPlan((), Counts(), {GET_FRAME: reason})
    return PatchPlan((Patch(receiver, "get_frame", _replacing(receiver.get_frame)),), Counts(), {})


def _unlike(receiver: Any) -> str:
    """Return why the function stays aiormq's own; nothing if it is replaced."""
    if not set(StreamReader.readexactly.__code__.co_names) >= _BUFFER:
        return "this Python's asyncio.StreamReader keeps its octets in another way"
    return "" if is_own(vars(receiver).get("get_frame"), "aiormq") else REPLACED


def _replacing(stock: Any) -> Callable[..., Any]:
    """Return what takes the place of the function.

    Args:
        stock: the function to replace.
    """
    frames = import_module("pamqp.frame")
    exactly = StreamReader.readexactly

    async def get_frame(self: Any) -> Any:
        reader = getattr(self, "reader", None)
        # Somebody else may have replaced the function whose work is done here.
        if getattr(getattr(reader, "readexactly", None), "__func__", None) is not exactly:
            return await stock(self)
        if type(reader) is StreamReader and self.started and not self.lock.locked():
            buffer = reader._buffer  # type: ignore[attr-defined]
            if len(buffer) >= OVERHEAD and reader.exception() is None:
                end = OVERHEAD + _SIZE(buffer, 3)[0]
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
