# cython: nonecheck=True
"""The decoder of a connection: it asks before it takes a content in. One text for both builds.

A content is judged when its method comes, so that nothing is kept of one that is not wanted. What is kept of
those that are not complete is limited for all channels together.
"""

from __future__ import annotations

from amqpcodec._kernel.messages_py import Content, MessageDecoder

from .._generated.codes import RESOURCE_ERROR
from .._kernel.wire import FRAME_SLACK, OVERHEAD
from .._typing import TYPE_CHECKING, Any
from ..limits import MAX_LIMIT
from .constants import CLIENT, SERVER

if TYPE_CHECKING:
    from typing import Literal

    from .._kernel.dialect_py import Dialect
    from ..limits import Limits
    from .state_py import State


class ContentReader(MessageDecoder):
    """A `MessageDecoder` whose contents are judged first.

    Args:
        state: judges the contents, says what dialect to read, and has the limit.
        frame_max, tables, properties, profile, strict, tolerant, limits: as for `MessageDecoder`.
    """

    __slots__ = ("_held", "_held_limit", "_state")

    def __init__(
        self,
        state: State,
        *,
        frame_max: int,
        tables: Literal["dict", "raw"],
        properties: Literal["decoded", "raw"],
        profile: str | None,
        strict: bool,
        tolerant: bool,
        limits: Limits,
    ) -> None:
        self._state = state
        self._held_limit = state.limits.open_bytes
        slack = FRAME_SLACK if state.role == SERVER and not strict else 0
        MessageDecoder.__init__(
            self, frame_max=frame_max, frame_max_slack=slack, tables=tables, properties=properties,
            profile=profile, strict=strict, tolerant=tolerant, limits=limits, expect_header=False,
            aborted="keep",
        )  # fmt: skip
        # A larger header may be too much to keep, which `_header` finds out.
        self._whole_limit = min(self._held_limit, MAX_LIMIT - OVERHEAD) + OVERHEAD

    def _set_limits(self, frame_max: int, size_limit: int) -> None:
        """Let larger content headers pass: RabbitMQ sends them whole, whatever was agreed."""
        MessageDecoder._set_limits(self, frame_max, size_limit)
        reader = self._reader
        most = min(self._frame_size, self._held_limit)
        if self._state.role == CLIENT and not self._strict and most - OVERHEAD > size_limit:
            reader.header_limit = most - OVERHEAD
            reader.header_limit_name = "frame_size" if most == self._frame_size else "open_bytes"

    @property
    def dialect(self) -> Dialect:  # type: ignore[override]
        """The dialect that it reads."""
        return self._state.dialect

    def _judge(self, channel: int, method: Any) -> bool:
        """Return whether a content is to be discarded; refuses one that may not come now."""
        fault = self._state.judge_content(channel, method)
        if fault is not None and fault is not False:
            raise self._reader.refuse_frame(fault.code, fault.text)
        return fault is False

    def _forget(self) -> None:
        self._held = 0  # octets of contents that are not complete
        MessageDecoder._forget(self)

    def _header(self) -> Any:
        size = self._reader.left()
        message = MessageDecoder._header(self)
        if message is None:
            self._hold(size)
        return message

    def _body(self) -> Any:
        size = self._reader.left()
        message = MessageDecoder._body(self)
        if message is None:
            self._hold(size)
        return message

    def _hold(self, size: int) -> None:
        """Count octets of a content that waits for more, unless too much is held by then."""
        content = self._find(self._reader.channel)
        if content is not None and not content.discarded:
            content.held += size
            self._held += size
            if self._held > self._held_limit:
                self._drop(content)
                message = f"more than {self._held_limit} octets of messages that are not complete"
                raise self._of(content, self._reader.refuse_frame(RESOURCE_ERROR, message))

    def _drop(self, content: Content) -> None:
        self._held -= content.held
        MessageDecoder._drop(self, content)


__all__ = ["ContentReader"]
