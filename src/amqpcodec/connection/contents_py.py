# cython: nonecheck=True
"""The decoder of a connection: it asks before it takes a content in. One text for both builds.

A content is judged when its method comes, so that nothing is kept of one that is not wanted.
"""

from __future__ import annotations

from amqpcodec._kernel.messages_py import MessageDecoder

from .._typing import TYPE_CHECKING, Any
from .constants import SERVER

if TYPE_CHECKING:
    from typing import Literal

    from .._kernel.dialect_py import Dialect
    from ..limits import Limits
    from .state_py import State

# Clients such as AMQPStorm fill the payload alone up to frame-max; RabbitMQ takes these octets more.
FRAME_SLACK = 8


class ContentReader(MessageDecoder):
    """A `MessageDecoder` whose contents are judged first.

    Args:
        state: judges the contents, and says what dialect to read.
        frame_max, tables, properties, profile, strict, limits: as for `MessageDecoder`.
    """

    __slots__ = ("_state",)

    def __init__(
        self,
        state: State,
        *,
        frame_max: int,
        tables: Literal["dict", "raw"],
        properties: Literal["decoded", "raw"],
        profile: str | None,
        strict: bool,
        limits: Limits,
    ) -> None:
        self._state = state
        slack = FRAME_SLACK if state.role == SERVER and not strict else 0
        MessageDecoder.__init__(
            self, frame_max=frame_max, frame_max_slack=slack, tables=tables, properties=properties,
            profile=profile, strict=strict, limits=limits, expect_header=False, aborted="keep",
        )  # fmt: skip

    @property
    def dialect(self) -> Dialect:  # type: ignore[override]
        """The dialect that it reads."""
        return self._state.dialect

    def _judge(self, channel: int, method: Any) -> bool:
        """Whether a content is to be discarded; refuses one that may not come now."""
        fault = self._state.judge_content(channel, method)
        if fault is not None and fault is not False:
            raise self._reader.refuse_frame(fault.code, fault.text)
        return fault is False


__all__ = ["ContentReader"]
