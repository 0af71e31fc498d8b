"""Peers that others wrote, and what is noted of them for the table of `make interop`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import brokerj
import pytest
from support.implementation import Implementation

from amqpcodec.capture import Fault, read_frames
from amqpcodec.record import Recorder

from .talk import Talk

PROGRAMS = {"broker", "program", "jms", "mono"}  # fixtures that need them


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what needs programs of others to `make interop`."""
    here = Path(__file__).parent
    for item in items:  # of all folders: others have fixtures of these names
        if PROGRAMS.intersection(getattr(item, "fixturenames", ())) and here in item.path.parents:
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session")
def broker() -> Iterator[brokerj.BrokerJ]:
    """A Broker-J; skips where a program is missing."""
    try:
        with brokerj.started() as started:
            yield started
    except brokerj.NotInstalledError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def talk(
    broker: brokerj.BrokerJ,
    impl: Implementation,
    dialect: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> Iterator[Callable[..., Talk]]:
    """Open connections to the Broker-J, in either build and each dialect.

    Afterwards the capture of each has, frame by frame, what the connection has sent and received.
    """
    record_property("peer", f"Apache Qpid Broker-J {brokerj.VERSION}")
    record_property("dialect", dialect)
    record_property("role", "a client")
    captures: list[tuple[Path, Talk]] = []
    with ExitStack() as stack:

        def opened(url: str = broker.url, **options: Any) -> Talk:
            path = tmp_path / f"{len(captures)}.pcap"
            recorder = stack.enter_context(Recorder(path, include_credentials=True))
            talk = stack.enter_context(Talk(impl, dialect, url, recorder, **{"heartbeat": 0, **options}))
            captures.append((path, talk))
            return talk

        yield opened
    for path, talk in captures:
        check(path, talk)


def check(path: Path, talk: Talk) -> None:
    """A capture has the frames of a connection, and nothing that cannot be read but what was made so."""
    found: tuple[list[bytes], list[bytes]] = ([], [])
    for item in read_frames(path):
        if isinstance(item, Fault):
            assert talk.damaged, item
        else:
            found[item.direction].append(item.octets)
    for direction, octets in enumerate(found):
        assert talk.damaged or b"".join(octets) == talk.wire[direction]
