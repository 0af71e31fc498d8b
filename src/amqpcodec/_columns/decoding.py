"""How octets become rows: the options of the public functions that concern it, as one object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from types import ModuleType
from typing import Any

from amqpcodec import Limits, _backend
from amqpcodec.capture.frames import Reading
from amqpcodec.limits import MAX_LIMIT

from .schemas import ALL_DIALECTS, Column, chosen, table_columns


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """The options of `amqpcodec.options` that concern rows, and facts that no option says.

    Attributes:
        report_foreign: whether to report connections without a single frame.
        waits: whether to join deliveries to publishes though no column asks for it.
        from_start: whether a direction is known to begin with a frame or a protocol header: then none is
            searched for there, and octets that belong to no frame are a row with LOST in `_error`.
    """

    dialect: str | ModuleType
    mode: str
    include_credentials: bool
    frame_max: int
    max_body_bytes: int
    max_open_messages: int
    check_all: bool
    batch_bytes: int
    impl: str
    batch_rows: int = MAX_LIMIT
    waits: bool = False
    report_foreign: bool = True
    from_start: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any], **known: Any) -> Decoding:
        """Select the options that concern rows; `known` has the facts that no option says."""
        given = {name.removeprefix("_"): value for name, value in options.items()}
        return cls(**{each.name: given[each.name] for each in fields(cls) if each.name in given}, **known)

    @cached_property
    def limits(self) -> Limits:
        """Return the limits of contents, for each direction."""
        return Limits(body_size=self.max_body_bytes, open_messages=self.max_open_messages)

    @property
    def dialects(self) -> tuple[str | ModuleType, ...]:
        """Return the dialects that a connection may speak: all for ``"auto"``, else the one given."""
        return ALL_DIALECTS if self.dialect == "auto" else (self.dialect,)

    def columns(self, table: str, names: Iterable[str] | None) -> tuple[Column, ...]:
        """The columns of a table that are asked for, from `schemas.chosen`.

        Raises:
            ValueError: no such table or column, or one named twice.
        """
        return chosen(table_columns(table, self.dialects), names)

    def reading(self, payloads: bool) -> Reading:
        """How the frames of connections are found.

        Args:
            payloads: whether damaged payloads are faults.
        """
        return Reading(
            self.dialect,
            Limits(frame_size=self.frame_max),
            report_foreign=self.report_foreign,
            payloads=payloads,
            from_start=self.from_start,
            new_state=_backend.load("amqpcodec.capture.direction_state", self.impl).DirectionState,
        )
