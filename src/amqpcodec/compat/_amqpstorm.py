"""AMQPStorm: frames are taken without a copy for each, which `install("pamqp")` does as well.

The replacement serves the frames that are whole in what has been read, and leaves the rest, errors included,
to AMQPStorm's function, which is given what its own code would have left.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from .._kernel.wire import BODY, HEADER, METHOD
from .._typing import Any
from ._before import REPLACED
from ._fast_c import Counts, frame_end
from ._guards_c import is_own
from ._patches import Options, Patch, PatchPlan

READ_BUFFER = "amqpstorm.connection.Connection._read_buffer"

_CONTENT_FRAMES = (METHOD, HEADER, BODY)
_OWN = ("_read_buffer", "_handle_amqp_frame")
"""Methods whose work the replacement does."""


def plan(options: Options) -> PatchPlan:
    """Plan the replacement in the AMQPStorm that is imported.

    Args:
        options: what `install` was asked for.
    """
    connection = import_module("amqpstorm.connection").Connection
    if not all(is_own(vars(connection).get(name), "amqpstorm") for name in _OWN):
        return PatchPlan((), Counts(), {READ_BUFFER: REPLACED})
    return PatchPlan((Patch(connection, "_read_buffer", _replacing(connection._read_buffer)),), Counts(), {})


def _replacing(stock: Any) -> Callable[..., Any]:
    """Return what takes the place of the function.

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
        begin = 0
        while end := frame_end(data_in, begin):
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
        return rest if not rest or rest[0] in _CONTENT_FRAMES else stock(self, rest)

    return _read_buffer
