"""How much a test tries of what it could try for ever: a share, or what `make fuzz-long` asks for."""

from __future__ import annotations

import os

IN_FULL = bool(os.environ.get("AMQPCODEC_TESTS_IN_FULL"))  # as `make test-all` says
ASKED = int(os.environ.get("AMQPCODEC_FUZZ_EXAMPLES", "0"))


def share(few: int) -> int:
    """Return how many to try: a few in the first tier, twice as many in both, or what was asked for."""
    return max(in_full(2 * few, few), ASKED)


def stride(coarse: int) -> int:
    """Return the distance of places to try: half of it in both tiers, each place where more is asked for."""
    return 1 if ASKED else in_full(max(coarse // 2, 1), coarse)


def in_full(every: int, first: int) -> int:
    """Return how many to try: `every` in the run of both tiers, and `first` in that of the first."""
    return every if IN_FULL else first
