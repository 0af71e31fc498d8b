"""Limits on what a decoder accepts; none of them sizes an allocation, they only refuse."""

from __future__ import annotations

from dataclasses import dataclass

# Each level of nesting costs the reader a few hundred octets of stack; this many fit the smallest
# thread stacks in use (128 KiB on musl) with room to spare.
MAX_TABLE_DEPTH = 256

MAX_BODY_SIZE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """What a decoder refuses, whatever was negotiated.

    Attributes:
        frame_size: octets of one frame with its 8 octets of envelope, where frame_max is 0 (no limit
            agreed). The default is the most that the wire can express.
        table_depth: how deep tables and arrays may nest; also when encoding. At most 256.
        table_octets: octets of one field table, its length not counted.
        table_entries: entries and array items of one field table, nested ones included.
        body_size: octets of one message body, as announced by its content header (`MessageDecoder`).
        open_messages: channels with a message not yet complete (`MessageDecoder`).

    Going over a limit raises `DecodeError`: 501 for frames, 506 for tables and open messages,
    311 for bodies; `EncodeError` for the depth of a value to be encoded.

    Raises:
        ValueError: a limit that is not positive, a table_depth beyond 256, a body_size beyond 2**63 - 1.
    """

    frame_size: int = 2**32 + 7
    table_depth: int = 128
    table_octets: int = 2**32 - 1
    table_entries: int = 2**32 - 1
    body_size: int = 512 * 1024 * 1024
    open_messages: int = 65535

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ValueError(f"Limits.{name} must be positive, not {getattr(self, name)}")
        if self.body_size > MAX_BODY_SIZE:
            raise ValueError(f"Limits.body_size must be at most {MAX_BODY_SIZE}, not {self.body_size}")
        if self.table_depth > MAX_TABLE_DEPTH:
            raise ValueError(f"Limits.table_depth must be at most {MAX_TABLE_DEPTH}, not {self.table_depth}")
