"""aiormq: a frame is taken without three reads, which `install("pamqp")` does as well.

Nothing is read ahead. The replacement serves a frame that is whole in the buffer of the stream, and leaves
the rest, errors included, to aiormq's function, which finds that buffer as its own code would have left it.
"""

from __future__ import annotations

from asyncio import StreamReader
from collections.abc import Callable
from importlib import import_module

from .._typing import Any
from ._before import untouched
from ._fast_c import Counts, frame_end
from ._patches import Options, Patch, PatchPlan

GET_FRAME = "aiormq.connection.FrameReceiver.get_frame"

_BUFFER = {"_buffer", "_exception", "_maybe_resume_transport"}


def plan(options: Options) -> PatchPlan:
    """Plan the replacement in the aiormq that is imported.

    Args:
        options: what `install` was asked for.
    """
    if not set(StreamReader.readexactly.__code__.co_names) >= _BUFFER:
        reason = "this Python's asyncio.StreamReader keeps its octets in another way"
        return PatchPlan((), Counts(), {GET_FRAME: reason})
    receiver = import_module("aiormq.connection").FrameReceiver
    stock: dict[str, str] = {}
    patches = untouched(stock, [Patch(receiver, "get_frame", _replacing(receiver.get_frame))])
    return PatchPlan(patches, Counts(), stock)


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
            end = frame_end(buffer, 0)
            if end and reader.exception() is None:
                try:
                    found = frames.unmarshal(bytes(buffer[:end]))
                except Exception:
                    return await stock(self)
                del buffer[:end]
                reader._maybe_resume_transport()  # type: ignore[attr-defined]
                return found
        return await stock(self)

    return get_frame
