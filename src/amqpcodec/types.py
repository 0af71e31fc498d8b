"""Values of the wire that plain Python types cannot express."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""What a timestamp of zero is; the default of timestamp arguments."""


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A field-table value with its tag chosen by hand, such as ``FieldValue("u", 40000)``.

    Encoders write exactly this tag, if the table profile has it and the value fits; decoders
    never produce it. Takes the place of a plain value anywhere in a table or array.

    Attributes:
        tag: the one character of the wire (see `amqpcodec.profiles`).
        value: the Python value: int, bool, float, Decimal, str, bytes, datetime, dict, list or None.
    """

    tag: str
    value: Any


@dataclass(frozen=True, slots=True)
class InlineContent:
    """Body of a 0-9 message.transfer carried in the method itself (0-9 section 4.2.5.6).

    Attributes:
        octets: the body.
    """

    octets: bytes


@dataclass(frozen=True, slots=True)
class ReferenceContent:
    """Body of a 0-9 message.transfer named by a reference opened before (0-9 section 4.2.5.6).

    Attributes:
        octets: the name of the reference.
    """

    octets: bytes
