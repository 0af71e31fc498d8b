"""``python -m interop.suites [NAME...]``: suites of clients in other languages, at a RabbitMQ and here.

They come from the registries of their languages, or of the system. Prints the tests that pass at a RabbitMQ,
and not at the broker for tests. The exit code is 1 if those are more than a tenth of a suite, or if one of
them has no reason in `DIFFERENT`.
"""

from __future__ import annotations

import sys

import brokerj
from support.broker import NoBrokerError, broker

from amqpcodec.testing import running_broker

from . import go, java, node, rust

MOST_FAILED = 0.1
AGAIN = 2  # times that a suite is run for tests that differ: some race a close of the broker
# Why a test passes at a RabbitMQ and not at the broker for tests.
DIFFERENT: dict[str, str] = {}
SUITES = {
    f"RabbitMQ's Java client {java.VERSION}": java.passed,
    f"amqp091-go {go.VERSION}": go.passed,
    f"amqplib {node.VERSION} for Node": node.passed,
    f"lapin {rust.VERSION}": rust.passed,
}


def compared(name: str) -> tuple[str, bool]:
    """A row for the table, and whether too much differs."""
    with broker() as url:
        wanted = SUITES[name](url)
    with running_broker() as own:
        first = apart = wanted - SUITES[name](own.url)
        for _ in range(AGAIN):
            if apart:
                apart = apart - SUITES[name](own.url)
    for test in sorted(apart):
        print(f"{name}: {test}: {DIFFERENT.get(test, 'no reason is known')}", flush=True)
    for test in sorted(first - apart):
        print(f"{name}: {test}: passes now and then", flush=True)
    is_bad = not wanted or len(apart) > MOST_FAILED * len(wanted) or not apart <= DIFFERENT.keys()
    return f"| {name} | {len(wanted)} | {len(wanted - apart)} |", is_bad


def main(names: list[str]) -> int:
    """Run those suites, or all."""
    rows, is_bad = [], False
    for name in names or SUITES:
        try:
            row, differs = compared(name)
        except (NoBrokerError, brokerj.NotInstalledError) as reason:
            row, differs = f"| {name} | left out: {reason} | |", False
        rows.append(row)
        is_bad = is_bad or differs
    print("", "| suite | pass at a RabbitMQ | pass here as well |", "| --- | --- | --- |", *rows, sep="\n")
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
