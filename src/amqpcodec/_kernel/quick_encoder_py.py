"""The short way to one method frame, which the encoder of the pure build tries first."""

from __future__ import annotations

from struct import Struct

from .._typing import TYPE_CHECKING
from . import encoder_py
from .quick_writer_py import ODD
from .routines_py import Method
from .wire import ENVELOPE_SIZE, FRAME_END, METHOD

if TYPE_CHECKING:
    from . import records_py

_envelope_into = Struct(">BHI").pack_into


class Encoder(encoder_py.Encoder):
    """From values to octets in one go, for a method on its own."""

    __slots__ = ()

    def encode_method(
        self, channel: int, method: records_py.Method, *, frame_max: int = 0, validate: bool = False
    ) -> bytes:
        """What the base does."""
        plain = type(channel) is int and type(frame_max) is int and frame_max == 0
        if plain and not (validate or self._rules.strict):
            out = bytearray(ENVELOPE_SIZE)
            try:
                if isinstance(method, Method) and method._dialect() is self._dialect:
                    method._put(out, self._rules)
                    _envelope_into(out, 0, METHOD, channel, len(out) - ENVELOPE_SIZE)
                    out.append(FRAME_END)
                    return bytes(out)
            except ODD:
                pass
        return super().encode_method(channel, method, frame_max=frame_max, validate=validate)


# The generated classes have no docstring of their own: help shows that of the next class they are made of.
Encoder.__doc__ = encoder_py.Encoder.__doc__
Encoder.encode_method.__doc__ = encoder_py.Encoder.encode_method.__doc__
