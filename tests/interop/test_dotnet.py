"""RabbitMQ's client for .NET, as Mono has it: it speaks 0-8, Qpid's 0-8 and 0-9, at our server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import brokerj
import pytest
from support.implementation import Implementation
from support.recording import recording

from amqpcodec.capture import Fault, read_frames

from .building import dotnet, said, serving

# What the client calls the dialect of the server.
PROTOCOLS = {"amqp-0-8": "AMQP_0_8", "qpid-0-8": "AMQP_0_8_QPID", "amqp-0-9": "AMQP_0_9"}
SEEN = {"consumed": 20, "equal": 20, "large": True, "committed": "done", "empty": True}
SIZES = [*[9] * 10, *[10] * 10, 1 << 20, 6, 4]  # of the bodies that it publishes


@pytest.fixture(scope="session")
def mono() -> list[str]:
    """The client; skips where a program is missing."""
    try:
        return dotnet()
    except brokerj.NotInstalledError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("dialect", PROTOCOLS, indirect=True)
def test_a_client_of_dotnet_gets_what_it_has_sent(
    mono: list[str],
    dialect: str,
    impl: Implementation,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("peer", "RabbitMQ's .NET client, of Mono")
    record_property("dialect", dialect)
    record_property("role", "a server")
    path = tmp_path / "session.pcap"
    with (
        serving(impl.name, "interop.server", dialect) as port,
        recording("--to", f"amqp://127.0.0.1:{port}", path, build=impl.name) as (listening, _),
    ):
        assert said(mono, str(listening), PROTOCOLS[dialect]) == SEEN
    sizes = []
    for item in read_frames(path, dialect=dialect):
        assert not isinstance(item, Fault), item
        payload: Any = item.frame.payload
        if item.direction == 0 and hasattr(payload, "body_size"):
            sizes.append(payload.body_size)
    assert sizes == SIZES
