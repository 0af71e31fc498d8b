"""Something done before every single step that Python code takes; it may raise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

Step = Callable[[FrameType], None]


def step_by_step(before_step: Step) -> None:
    """From now on, call this with the frame of each step, in this thread and until `stop_stepping`."""
    if sys.version_info >= (3, 12):
        # There, a trace function is not told of all steps.
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.DEBUGGER_ID, "step_by_step")
        monitoring.register_callback(
            monitoring.DEBUGGER_ID,
            monitoring.events.INSTRUCTION,
            lambda code, offset: before_step(sys._getframe(1)),
        )
        monitoring.set_events(monitoring.DEBUGGER_ID, monitoring.events.INSTRUCTION)
        return

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before_step(frame)
        return trace

    sys.settrace(trace)


def stop_stepping() -> None:
    """No more of that."""
    if sys.version_info >= (3, 12):
        monitoring = sys.monitoring
        if monitoring.get_tool(monitoring.DEBUGGER_ID):
            monitoring.set_events(monitoring.DEBUGGER_ID, 0)
            monitoring.free_tool_id(monitoring.DEBUGGER_ID)
    else:
        sys.settrace(None)
