"""Where the compiled build overwrites slots of CPython's types: docs/slots.md says which, and why.

`AMQPCODEC_SLOTS=0` in the environment leaves all of it out. The pure build has nothing of it.
"""

from __future__ import annotations

import os

_VARIABLE = "AMQPCODEC_SLOTS"


def _choose() -> bool:
    wanted = os.environ.get(_VARIABLE, "")
    if wanted not in ("", "0", "1"):
        raise ImportError(f"{_VARIABLE} must be 0 or 1, not {wanted!r}")
    return wanted != "0"


ON = _choose()
"""Slots are overwritten: decided once, before the first class is made."""
