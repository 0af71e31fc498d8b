"""Qpid's client of JMS in 0-8, 0-9 and 0-9-1: at a server of this package, and on its way to Broker-J."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import brokerj
import pytest
from support.implementation import Implementation
from support.recording import recording

from amqpcodec.capture import Fault, read_frames

from .building import java, said, serving

VERSION = "6.4.0"
# The dialect of the server by what the client calls it. It is Qpid's own 0-8 that it speaks.
VERSIONS = {"qpid-0-8": "0-8", "amqp-0-9": "0-9", "amqp-0-9-1": "0-9-1"}
SEEN = {
    "consumed": 20,
    "equal": 20,
    "redelivered": True,
    "large": True,
    "map": True,
    "committed": "done",
    "empty": True,
}


@pytest.fixture(scope="session")
def jms() -> list[str]:
    """The client; skips where a program is missing."""
    api = "org.apache.geronimo.specs:geronimo-jms_1.1_spec:1.1.1"
    try:
        return java("Jms.java", f"org.apache.qpid:qpid-client:{VERSION}", api)
    except brokerj.NotInstalledError as reason:
        pytest.skip(str(reason))


def seen(jms: list[str], version: str, port: int, destination: str) -> dict[str, Any]:
    """What the client says of its session in a version."""
    return said([jms[0], f"-Dqpid.amqp.version={version}", *jms[1:]], str(port), destination)


def wanted(dialect: str) -> dict[str, Any]:
    """What it should say. In 0-9 it would recover by a method that 0-9 has not, which it is not asked for."""
    return {**SEEN, "redelivered": dialect != "amqp-0-9"}


@pytest.mark.parametrize("dialect", VERSIONS, indirect=True)
def test_a_client_of_jms_gets_what_it_has_sent(
    jms: list[str],
    dialect: str,
    impl: Implementation,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("peer", f"Qpid JMS for AMQP 0-x {VERSION}")
    record_property("dialect", dialect)
    record_property("role", "a server")
    path = tmp_path / "session.pcap"
    with (
        serving(impl.name, "interop.server", dialect) as port,
        recording("--to", f"amqp://127.0.0.1:{port}", path, build=impl.name) as (listening, _),
    ):
        found = seen(jms, VERSIONS[dialect], listening, "BURL:direct://amq.direct//interop")
    assert found == wanted(dialect)
    check(path, dialect)


@pytest.mark.parametrize("dialect", VERSIONS, indirect=True)
def test_what_a_client_of_jms_says_to_brokerj_is_read(
    jms: list[str],
    dialect: str,
    broker: brokerj.BrokerJ,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("peer", f"Qpid JMS for AMQP 0-x {VERSION}, Broker-J {brokerj.VERSION}")
    record_property("dialect", dialect)
    record_property("role", "a recorder between them")
    path = tmp_path / "session.pcap"
    with recording("--to", broker.url.replace("guest:guest@", ""), path) as (listening, _):
        found = seen(jms, VERSIONS[dialect], listening, f"jms-{dialect}; {{create: always, delete: always}}")
    assert found == wanted(dialect)
    check(path)


def check(path: Path, dialect: str = "auto") -> None:
    """The capture can be read, and has the messages that the client has published."""
    sizes = []
    for item in read_frames(path, dialect=dialect):
        assert not isinstance(item, Fault), item
        payload: Any = item.frame.payload
        if item.direction == 0 and hasattr(payload, "body_size"):
            sizes.append(payload.body_size)
    assert (len(sizes), max(sizes)) == (25, 1 << 20)
