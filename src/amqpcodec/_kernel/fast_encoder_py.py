"""The fast path to one method frame, which the encoder of the pure build tries first."""

from __future__ import annotations

from struct import Struct

from .._typing import TYPE_CHECKING, Any
from . import encoder_py
from .fast_writer_py import DECLINED
from .wire import ENVELOPE_SIZE, FRAME_END, METHOD

if TYPE_CHECKING:
    from . import records_py

_NO_LIMIT = (int, type(None))
_envelope_into = Struct(">BHI").pack_into


class Encoder(encoder_py.Encoder):
    """From values to octets in one go, for a method on its own."""

    __slots__ = ()

    def encode_method(
        self, channel: int, method: records_py.Method, *, frame_max: int | None = None, validate: bool = False
    ) -> bytes:
        """Encode a method as the base class does."""
        fast = self._methods.writers.get(type(method))
        rules = self._rules
        if (
            fast is None
            or type(channel) is not int
            or frame_max
            or (frame_max is None and self._given_frame_max)
            or type(frame_max) not in _NO_LIMIT
            or validate
            or rules.strict
        ):
            return super()._one_method(channel, method, frame_max, validate)
        out = bytearray(ENVELOPE_SIZE)
        try:
            fast(method, out, rules)
            _envelope_into(out, 0, METHOD, channel, len(out) - ENVELOPE_SIZE)
            out.append(FRAME_END)
            return bytes(out)
        except DECLINED:
            pass
        writer = rules.writer()
        writer.fast = False
        self._put_method(writer, channel, method, writer.payload_limit(0), False)
        return writer.finish()

    def _one_method(self, channel: Any, method: Any, frame_max: int | None, validate: bool) -> bytes:
        return self.encode_method(channel, method, frame_max=frame_max, validate=validate)


# The generated classes have no docstring of their own: help shows that of the next class they are made of.
Encoder.__doc__ = encoder_py.Encoder.__doc__
Encoder.encode_method.__doc__ = encoder_py.Encoder.encode_method.__doc__
