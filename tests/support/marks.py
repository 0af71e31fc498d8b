"""Marks of tests that only some builds can pass."""

from __future__ import annotations

import pytest

from amqpcodec import IMPL

# For what the build in use does to other libraries: the pure one replaces nothing of theirs.
replaces = pytest.mark.skipif(IMPL != "c", reason="the pure build replaces nothing")
