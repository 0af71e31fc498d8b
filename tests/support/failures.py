"""Many cases in one test: each failure names its case, and none hides the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class Failures:
    """Collects what goes wrong, case by case."""

    def __init__(self) -> None:
        self.cases = 0
        self.found: list[str] = []

    @contextmanager
    def case(self, name: str) -> Iterator[None]:
        """Run one case; whatever it raises is noted under its name."""
        self.cases += 1
        try:
            yield
        except Exception as error:
            self.found.append(f"{name}: {type(error).__name__}: {error}"[:1000])

    def check(self, at_least: int = 1) -> None:
        """Fail if a case failed, or if there were too few to mean anything."""
        assert self.cases >= at_least, f"only {self.cases} cases"
        if self.found:
            shown = "\n".join(self.found[:20])
            pytest.fail(f"{len(self.found)} of {self.cases} cases failed:\n{shown}", pytrace=False)
