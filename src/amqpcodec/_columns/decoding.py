"""How octets are to become rows: what the public functions are told by keyword, handed on as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType

from amqpcodec import IMPL, Limits
from amqpcodec._kernel.wire import OVERHEAD
from amqpcodec.capture import MAX_FRAME, Connection
from amqpcodec.capture.dialects import module
from amqpcodec.capture.frames import ConnectionDecoder
from amqpcodec.limits import MAX_LIMIT

from .tables import ALL_DIALECTS, Column, chosen, table_columns

MODES = ("permissive", "drop", "fail")
ROWS = 10_000
OCTETS = 4 << 20


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """The options of decoding, checked.

    Attributes:
        dialect: a dialect's name, the module of a foreign one, or ``"auto"`` to find out for each connection.
        mode: what becomes of rows in error: ``"permissive"`` keeps them, ``"drop"`` leaves them out,
            ``"fail"`` raises. The latter two look for errors in every row.
        checks: whether to do so in any mode, also in fields that nobody asked for.
        rows: rows of a full batch.
        octets: octets of frames that make a batch full however few its rows.
        credentials: whether to show login data.
        max_frame: octets of the largest frame accepted, whatever was negotiated.
        limits: `body_size` and `open_messages` (of each direction) count.
        report_foreign: whether to tell of connections without a single frame.
        from_start: whether a direction is known to begin with a frame or a protocol header: then none is
            searched for there, and octets that belong to no frame are a row with LOST in `_error`.
        impl: the build, ``"c"`` or ``"py"``.

    Raises:
        ValueError: no such dialect or mode, a `max_frame` that no frame has, a batch of no rows or octets.
    """

    dialect: str | ModuleType = "auto"
    mode: str = "permissive"
    checks: bool = False
    rows: int = ROWS
    octets: int = OCTETS
    credentials: bool = False
    max_frame: int = MAX_FRAME
    limits: Limits = field(default_factory=Limits)
    report_foreign: bool = True
    from_start: bool = False
    impl: str = IMPL

    def __post_init__(self) -> None:
        if self.dialect != "auto":
            module(self.dialect)
        if not OVERHEAD <= self.max_frame <= MAX_LIMIT:
            raise ValueError(f"max_frame must be {OVERHEAD} to {MAX_LIMIT}, not {self.max_frame}")
        if self.mode not in MODES:
            raise ValueError(f"no mode {self.mode!r}; there are {', '.join(MODES)}")
        if self.rows < 1 or self.octets < 1:
            raise ValueError(f"a batch of {self.rows} rows and {self.octets} octets holds nothing")

    @property
    def dialects(self) -> tuple[str | ModuleType, ...]:
        """Those that a connection may turn out to speak: all, for ``"auto"``, or the one that is given."""
        return ALL_DIALECTS if self.dialect == "auto" else (self.dialect,)

    def columns(self, table: str, names: Iterable[str] | None) -> tuple[Column, ...]:
        """The columns of a table that are asked for, as `tables.chosen` gives them.

        Raises:
            ValueError: no such table or column, or one named twice.
        """
        return chosen(table_columns(table, self.dialects), names)

    def decoder(self, connection: Connection, payloads: bool) -> ConnectionDecoder:
        """What finds the frames of a connection.

        Args:
            connection: the connection.
            payloads: whether damaged payloads are faults.
        """
        decoder = ConnectionDecoder(connection, self.dialect, self._frames, self.report_foreign, payloads)
        if self.from_start:
            decoder.expect_frames()
        return decoder

    @cached_property
    def _frames(self) -> Limits:
        """Made once: a recording may have very many connections."""
        return Limits(frame_size=self.max_frame)
