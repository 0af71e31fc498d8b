"""Marks of tests that only some builds or systems can pass."""

from __future__ import annotations

import os

import pytest

from amqpcodec import IMPL

# For what the build in use does to other libraries: the pure one replaces nothing of theirs.
replaces = pytest.mark.skipif(IMPL != "c", reason="the pure build replaces nothing")

# For signals, modes of files, and texts of errors.
posix = pytest.mark.skipif(os.name == "nt", reason="a system of POSIX is needed")
