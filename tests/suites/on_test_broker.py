"""``python -m suites.on_test_broker [NAME...]``: live suites at a RabbitMQ and at `amqpcodec.testing.Broker`.

Prints the tests that pass at a RabbitMQ and not at the broker for tests. The exit code is 1 if those are more
than a tenth of a suite.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from amqpcodec.testing import running_broker

from .__main__ import NAMES, Begin, Result, fetched, played, rabbitmq, surroundings

BY_HTTP = "amqpstorm live"  # whose tests clean up by an interface that the broker for tests has not
LIVE = [
    name for name, suite in NAMES.items() if suite.live and not name.endswith(", loops") and name != BY_HTTP
]
MOST_FAILED = 0.1


@contextmanager
def broker_for_tests(certificates: Path) -> Iterator[dict[str, int]]:
    """Start brokers with a folder of certificates; gives their ports without and with TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    with running_broker() as plain, running_broker(tls=context) as secure:
        yield {"5672/tcp": plain.port, "5671/tcp": secure.port}


def passed(result: Result) -> set[str]:
    """The tests that passed, and whose set-up and tear-down did."""
    return {test for test, outcomes in result.outcomes.items() if outcomes == ["call passed"]}


def at(name: str, begin: Begin) -> set[str]:
    """The tests of a suite that pass at a broker."""
    suite = NAMES[name]
    source = fetched(suite)
    with surroundings(source, begin) as environment:
        return passed(played(suite, source, False, environment))


def main(names: list[str]) -> int:
    """Run those suites, or all that need a broker."""
    is_bad = False
    for name in names or LIVE:
        wanted = at(name, rabbitmq)
        failed = sorted(wanted - at(name, broker_for_tests))
        counts = f"{len(wanted) - len(failed)} of {len(wanted)}"
        print(f"{name}: {counts} tests that pass at a RabbitMQ", flush=True)
        print(*(f"    {test}" for test in failed), sep="\n", flush=True)
        is_bad = is_bad or len(failed) > MOST_FAILED * len(wanted)
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
