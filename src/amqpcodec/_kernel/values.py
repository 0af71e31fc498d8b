"""Checks and conversions of Python values on their way out, shared by both builds of the writer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from .._typing import Any
from ..errors import EncodeError
from ..profiles import INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64

# Plain ints go out by the first of these that the profile has and the number fits.
INTEGER_TAGS = ("I", "l", "L")
RANGES = {
    INT8: (-(2**7), 2**7 - 1), INT16: (-(2**15), 2**15 - 1), INT32: (-(2**31), 2**31 - 1),
    INT64: (-(2**63), 2**63 - 1), UINT8: (0, 2**8 - 1), UINT16: (0, 2**16 - 1), UINT32: (0, 2**32 - 1),
    UINT64: (0, 2**64 - 1),
}  # fmt: skip

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_MOST_SCALE = 255
_NOT_A_DECIMAL = "decimal needs a scale of 0 to 255 and a mantissa of 32 bits"


class Declined(Exception):  # noqa: N818  # nothing is wrong
    """A fast path, or the value rules of a peer, do not cover something.

    It says no more: the slow path, or the peer's own code, starts over.
    """


def named(value: Any) -> str:
    """How errors speak of a value of the wrong type: by its type, since its repr may be long or secret."""
    if issubclass(type(value), type):
        return f"the class {value.__name__}"
    return type(value).__name__


def exact_int(value: Any, what: str, field: str) -> int:
    """The number an int or a subclass holds, whatever the subclass makes of its operators; no bool."""
    # By its type: what an object says of its own class may be anything.
    if type(value) is bool or not issubclass(type(value), int):
        raise EncodeError(f"{what} must be an int, not {named(value)}", field)
    return int.__add__(value, 0)  # unlike `__pos__`, asks a subclass for nothing on PyPy either


def shown(number: int) -> str:
    """How errors show a number: one of thousands of digits is not written out, which Python may refuse."""
    bits = number.bit_length()
    return str(number) if bits <= 128 else f"an int of {bits} bits"


def utf8(value: str, field: str) -> bytes:
    """Text as octets; surrogate escapes become the octets they stand for."""
    try:
        return str.encode(value, "utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise EncodeError("text holds a lone surrogate that stands for no octet", field) from None


def octets_of(value: Any, field: str) -> bytes:
    """The octets of bytes, a bytearray or a memoryview."""
    if type(value) is bytes:
        return value
    if not issubclass(type(value), (bytes, bytearray, memoryview)):
        raise EncodeError(f"expected bytes, not {named(value)}", field)
    return memoryview(value).tobytes()


def seconds_of(value: datetime, field: str) -> int:
    """Whole seconds since 1970; a naive datetime counts as UTC, fractions round down."""
    if not issubclass(type(value), datetime):
        raise EncodeError(f"timestamp must be a datetime or an int, not {named(value)}", field)
    if value.utcoffset() is None:
        value = value.replace(tzinfo=UTC)
    seconds = (value - _EPOCH) // _SECOND
    if seconds < 0:
        raise EncodeError("timestamp must not lie before 1970", field)
    return seconds


def not_finite(profile: str, value: float, field: str) -> EncodeError:
    """The error for a NaN or an infinity in a profile of a broker that ends the connection at it."""
    shown = float.__repr__(value)  # whatever a subclass makes of it
    return EncodeError(
        f"table profile {profile} refuses {shown}, as its broker does; rabbitmq-nan does not", field
    )


def scaled(value: Any, field: str) -> tuple[int, int]:
    """Scale and mantissa of a Decimal, a positive exponent multiplied out."""
    if not issubclass(type(value), Decimal):
        raise EncodeError(f"decimal must be a Decimal, not {named(value)}", field)
    if not Decimal.is_finite(value):
        raise EncodeError("decimal must be finite", field)
    if not -_MOST_SCALE <= Decimal.adjusted(value) <= 10:
        raise EncodeError(_NOT_A_DECIMAL, field)
    whole, _, fraction = Decimal.__format__(value, "f").partition(".")
    if len(whole) + len(fraction) > _MOST_SCALE + 12 or len(fraction) > _MOST_SCALE:
        raise EncodeError(_NOT_A_DECIMAL, field)
    mantissa = int(whole + fraction)
    if not -(2**31) <= mantissa < 2**31:
        raise EncodeError(_NOT_A_DECIMAL, field)
    return len(fraction), mantissa
