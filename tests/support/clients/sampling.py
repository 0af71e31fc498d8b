"""Functions of Python that the CPU time of a process goes to; C counts to that which runs next."""

from __future__ import annotations

import signal
from collections import Counter
from types import FrameType, TracebackType
from typing import Any

from .samples import Clock

SECONDS = 0.001  # of CPU time between two samples; the system may take more


class SamplingClock(Clock):
    """A clock that looks meanwhile, again and again, which function runs.

    Attributes:
        functions: how often each was found, such as ``"amqp.transport.write"``.
    """

    def __init__(self) -> None:
        self.functions: Counter[str] = Counter()

    def __enter__(self) -> SamplingClock:
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS)
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, value, trace)
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _look(self, _: int, frame: FrameType | None) -> None:
        if frame is not None:
            module: Any = frame.f_globals.get("__name__", "?")
            self.functions[f"{module}.{frame.f_code.co_name}"] += 1

    def shares(self) -> dict[str, float]:
        """Return the share of each function, the largest first."""
        total = max(self.functions.total(), 1)
        return {name: count / total for name, count in self.functions.most_common()}
