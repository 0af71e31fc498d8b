"""What a test looks at that not every interpreter has; where it is missing, the test is skipped."""

from __future__ import annotations

import gc
import platform
import sys

import pytest

PYPY = platform.python_implementation() == "PyPy"

counts_references = pytest.mark.skipif(
    not hasattr(sys, "getrefcount"), reason="the interpreter counts no references"
)
counts_blocks = pytest.mark.skipif(
    not hasattr(sys, "getallocatedblocks"), reason="the interpreter does not report what it has allocated"
)
collects_when_told = pytest.mark.skipif(
    not hasattr(gc, "set_threshold"), reason="the collector of the interpreter cannot be made to run often"
)
pins_buffers = pytest.mark.skipif(
    PYPY, reason="PyPy lets a bytearray be resized while a view of it is in use"
)


def of_full_stack(error: BaseException) -> bool:
    """Whether an error says that the stack is full.

    Where that happens while something is handled, PyPy raises a TypeError of its own: it has no room left to
    note what was handled.
    """
    of_pypy = PYPY and type(error) is TypeError and "couldn't record exception context" in str(error)
    return isinstance(error, RecursionError) or of_pypy
