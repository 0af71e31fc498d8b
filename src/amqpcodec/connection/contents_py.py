"""The decoder of a connection: it asks before it takes a content in. One text for both builds.

A content is judged when its method comes, so that nothing is kept of one that is not wanted.
"""

from __future__ import annotations

from amqpcodec._kernel.messages_py import MessageDecoder
from amqpcodec._kernel.wire import OVERHEAD

from .._typing import TYPE_CHECKING, Any
from .constants import SERVER

if TYPE_CHECKING:
    from .._kernel.dialect_py import Dialect
    from ..limits import Limits
    from .state_py import State

# Clients such as AMQPStorm fill the payload alone up to frame-max; RabbitMQ takes these octets more.
FRAME_SLACK = 8


class ContentReader(MessageDecoder):
    """A `MessageDecoder` whose contents are judged first.

    Args:
        state: judges the contents, and says what dialect to read.
        frame_max, tables, profile, strict, limits: as for `MessageDecoder`.
    """

    __slots__ = ("_greatest", "_slack", "_state")

    def __init__(
        self,
        state: State,
        *,
        frame_max: int,
        tables: str,
        profile: str | None,
        strict: bool,
        limits: Limits,
    ) -> None:
        self._state = state
        self._greatest = limits.frame_size
        self._slack = FRAME_SLACK if state.role == SERVER and not strict else 0
        MessageDecoder.__init__(
            self, frame_max=frame_max, frame_max_slack=self._slack, tables=tables, profile=profile,
            strict=strict, limits=limits, expect_header=False, aborted="keep",
        )  # fmt: skip

    @property
    def dialect(self) -> Dialect:  # type: ignore[override]
        """The dialect that it reads."""
        return self._state.dialect

    def agree(self, frame_max: int) -> None:
        """Judge frames from the next one on by the size that was negotiated; 0 for no limit."""
        self._size_limit = min(frame_max or self._greatest, self._greatest) - OVERHEAD + self._slack

    def _begin(self, channel: int, method: Any) -> None:
        """Open a content, unless it may not come now."""
        fault = self._state.judge_content(channel, method)
        if fault is not None and fault is not False:
            raise self._reader.refuse_frame(fault.code, fault.text)
        MessageDecoder._begin(self, channel, method)
        if fault is False:
            content = self._find(channel)
            assert content is not None
            content.discarded = True


__all__ = ["ContentReader"]
