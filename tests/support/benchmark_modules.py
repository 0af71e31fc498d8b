"""Modules of the benchmarks, for the tests of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def module(name: str) -> Iterator[ModuleType]:
    """A module of the benchmarks, until the test is over: other folders have modules of its name."""
    names = {path.stem for path in FOLDER.glob("*.py")}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        for other in names & sys.modules.keys():
            patch.delitem(sys.modules, other)
        try:
            yield import_module(name)
        except ImportError as missing:
            pytest.skip(f"a library that the benchmarks use is missing: {missing}")
        finally:
            for other in names & sys.modules.keys():
                del sys.modules[other]
