"""Something done before every single step that functions of some modules take; it ends where that raises."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

# What traced before, such as coverage.py, which goes on after the steps.
_before: Any = None


def step_by_step(modules: tuple[str, ...], before_step: Callable[[], None]) -> None:
    """From now on, call this before each step in modules whose names begin so, until `stop_stepping`."""

    def chosen(frame: FrameType) -> bool:
        return frame.f_globals.get("__name__", "").startswith(modules)

    if sys.version_info >= (3, 12):
        # There, a trace function is not called for all steps.
        monitoring = sys.monitoring

        def instruction(code: CodeType, offset: int) -> None:
            if chosen(sys._getframe(1)):
                try:
                    before_step()
                except BaseException:
                    stop_stepping()  # as a trace function that raises is not called again
                    raise

        monitoring.use_tool_id(monitoring.DEBUGGER_ID, "step_by_step")
        monitoring.register_callback(monitoring.DEBUGGER_ID, monitoring.events.INSTRUCTION, instruction)
        monitoring.set_events(monitoring.DEBUGGER_ID, monitoring.events.INSTRUCTION)
        return

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not chosen(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before_step()
        return trace

    global _before
    _before = sys.gettrace()
    sys.settrace(trace)


def stop_stepping() -> None:
    """No more of that."""
    if sys.version_info >= (3, 12):
        monitoring = sys.monitoring
        if monitoring.get_tool(monitoring.DEBUGGER_ID):
            monitoring.set_events(monitoring.DEBUGGER_ID, 0)
            monitoring.free_tool_id(monitoring.DEBUGGER_ID)
    else:
        sys.settrace(_before)
