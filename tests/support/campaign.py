"""How much a test tries of what it could try for ever: a share, or what `make fuzz-long` asks for."""

from __future__ import annotations

import os

ASKED = int(os.environ.get("AMQPCODEC_FUZZ_EXAMPLES", "0"))


def share(few: int) -> int:
    """Return how many to try: a few in the default run, or what was asked for."""
    return max(few, ASKED)


def stride(coarse: int) -> int:
    """Return the distance of places to try: not all in the default run, each where more is asked for."""
    return 1 if ASKED else coarse
