"""The clock of clients that says which functions the time goes to."""

from __future__ import annotations

import signal

import pytest
from support.clients.sampling import SamplingClock

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="a timer of POSIX is needed")


def test_the_function_that_works_longest_has_the_largest_share() -> None:
    clock = SamplingClock()

    def work() -> int:
        return sum(number * number for number in range(1000))

    with clock:
        while clock.functions.total() < 20:
            work()
    shares = clock.shares()
    name, share = next(iter(shares.items()))
    assert name.startswith(f"{__name__}.")
    assert name.rpartition(".")[2] in ("work", "<genexpr>")
    assert share > 0.3
    assert sum(shares.values()) == pytest.approx(1)
    assert clock.seconds > 0


def test_nothing_is_sampled_outside() -> None:
    clock = SamplingClock()
    with clock:
        pass
    before = clock.functions.total()
    for _ in range(200_000):
        pass
    assert clock.functions.total() == before
