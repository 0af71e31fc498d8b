"""Compares stock and accelerated peers for as long as one likes.

    python -m support.compat.compare [--count N] [--seed TEXT] [--tolerant] [PEER ...]

run with `tests` on the path, as `make test-compat` does. Ends with status 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from . import inputs
from .differences import kept
from .engine import NEVER_ENDS, Mismatch, Pair, in_use, pair

PEERS = ("pamqp", "pika", "amqp")


def scenarios_of(peer: str) -> Any:
    """The module of a peer's scenarios."""
    return import_module(f"{__package__}.scenarios_{peer}")


def given_mismatches(peers: Pair) -> Iterator[Mismatch | None]:
    """Every vector, bad input and captured frame; cut off at the end, too."""
    given = scenarios_of(peers.stock.package).given
    for name, octets in inputs.given_octets():
        for cut in (octets, octets[:-1]):
            yield peers.compare(f"given {name}", lambda peer, _, cut=cut: given(peer, cut), "")


def edge_mismatches(peers: Pair) -> Iterator[Mismatch | None]:
    """Every field of every class, with values on the edges of what it takes."""
    for name, scenario in scenarios_of(peers.stock.package).edges(peers.stock):
        yield peers.compare(f"edges of {name}", scenario, "")


def random_mismatches(peers: Pair, seed: str, count: int) -> Iterator[Mismatch | None]:
    """`count` scenarios in turns, each with a seed of its own."""
    scenarios = scenarios_of(peers.stock.package).SCENARIOS
    for number in range(count):
        scenario = scenarios[number % len(scenarios)]
        yield peers.compare(scenario.__name__, scenario, f"{seed}/{scenario.__name__}/{number}")


def unexpected(found: Iterator[Mismatch | None], peer: str, tolerant: bool = False) -> Iterator[Mismatch]:
    """Those mismatches that no difference kept on purpose covers."""
    known = kept(peer, tolerant)
    for mismatch in found:
        if mismatch and tolerant and mismatch.stock == NEVER_ENDS:
            continue  # and the accelerated one ends, which is part of being tolerant
        if mismatch and not any(
            one.covers and one.covers(mismatch.stock, mismatch.accelerated) for one in known
        ):
            yield mismatch


def _counted(found: Iterator[Mismatch | None], counter: list[int]) -> Iterator[Mismatch | None]:
    for one in found:
        counter[0] += 1
        yield one


def main() -> int:
    parser = argparse.ArgumentParser(prog="support.compat.compare", description=__doc__.splitlines()[0])
    parser.add_argument("peers", nargs="*", choices=[*PEERS, []], metavar="PEER")
    parser.add_argument("--count", type=int, default=100_000, help="random comparisons for each peer")
    parser.add_argument("--seed", default=str(time.time_ns()))
    parser.add_argument("--tolerant", action="store_true")
    options = parser.parse_args()
    return max([_compare(peer, options) for peer in options.peers or PEERS])


def _compare(peer: str, options: argparse.Namespace) -> int:
    from amqpcodec import compat

    in_use(peer)
    with compat.installed(peer) as status_of:
        if not status_of[peer].active:
            print(f"{peer} {status_of[peer].version}: nothing is accelerated: {status_of[peer].why}")
            return 0
    peers, counter, start = pair(peer), [0], time.perf_counter()
    differ = 0
    with compat.installed(peer, tolerant=options.tolerant):
        at_random = random_mismatches(peers, options.seed, options.count)
        for found in (given_mismatches(peers), edge_mismatches(peers), at_random):
            for mismatch in unexpected(_counted(found, counter), peer, options.tolerant):
                differ += 1
                print(mismatch, file=sys.stderr)
        status = compat.status()[peer]
    seconds = time.perf_counter() - start
    declined = sum(status.fallbacks.values())
    print(
        f"{peer} {peers.stock.version}: {counter[0]:,} comparisons, {differ} differences, "
        f"seed {options.seed}, {seconds:.0f} s; calls served {status.fast:,}, left to {peer} {declined:,}"
    )
    return min(differ, 1)


if __name__ == "__main__":
    sys.exit(main())
