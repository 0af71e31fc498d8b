"""Sessions of eight clients over TLS, recorded: every AMQP count is that of the same session in the clear."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import time_ns
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.clients.over_tls import CLIENTS, LIBRARIES, MESSAGES
from support.tiers import few

pytest.importorskip("pyarrow")
pytest.importorskip("trustme")

from amqpcodec import stats
from amqpcodec.capture import Endpoint
from amqpcodec.capture.writing import Conversation, PacketWriter
from amqpcodec.record import Proxy, Recorder
from amqpcodec.testing import Broker, certificate

# What depends on the clock, on packets, and on who connects to whom. The user is in the login data.
OTHERWISE = {
    "client", "file", "files", "findings", "first_incidents", "histogram", "incidents", "keys",
    "most_waiting", "over_time", "packet", "per_second", "percentiles", "problems", "rates", "server",
    "slowest", "units", "user", "users", "verdict",
}  # fmt: skip


pytestmark = pytest.mark.usefixtures("freed")


def of_amqp(value: Any) -> Any:
    """Return the part of a summary that is of AMQP alone."""
    if isinstance(value, dict):
        kept = {key for key in value if key not in OTHERWISE and not key.endswith(("_us", "_ns"))}
        return {key: of_amqp(value[key]) for key in kept}
    return [of_amqp(each) for each in value] if isinstance(value, list | tuple) else value


def counted(path: Path) -> dict[str, Any]:
    """Every count of `amqpcodec stats`."""
    collector = stats.Collector()
    collector.add(str(path), str(path))
    found: dict[str, Any] = of_amqp(collector.summary().as_dict())
    return found


@asynccontextmanager
async def clear_side(path: Path, broker: str, tls: ssl.SSLContext) -> AsyncIterator[int]:
    """Pass octets on from TLS to a broker without it, and write them down as they are; the port."""
    place = urlsplit(broker)
    with path.open("wb") as file:
        packets = PacketWriter(file)
        numbers = iter(range(1, 1000))
        left = 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal left
            left += 1
            ends = Endpoint(bytes((10, 0, 0, 1)), next(numbers)), Endpoint(bytes((10, 0, 0, 9)), 5672)
            truth = Conversation(packets, *ends, time_ns(), ends[0].port)
            upstream, downstream = await asyncio.open_connection(place.hostname, place.port or 5672)

            async def pump(direction: int, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
                try:
                    while octets := await source.read(3000):
                        truth.send(direction, octets, time_ns())
                        sink.write(octets)
                        await sink.drain()
                except OSError:
                    pass
                finally:
                    sink.close()

            await asyncio.gather(pump(0, reader, downstream), pump(1, upstream, writer))
            truth.close(time_ns())
            for sink in (writer, downstream):
                with suppress(OSError):
                    await sink.wait_closed()
            left -= 1

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
        async with server:
            yield server.sockets[0].getsockname()[1]
            while left:
                await asyncio.sleep(0.01)


async def recorded_and_clear(client: str, broker: str, folder: Path) -> tuple[Path, Path]:
    """Record a session with TLS on both sides of the proxy; that capture, and the one in the clear."""
    (own, own_authority), (other, other_authority) = certificate.make(), certificate.make()
    (folder / "own.pem").write_bytes(own_authority)
    (folder / "other.pem").write_bytes(other_authority)
    recorded, clear = folder / "recorded.pcap", folder / "clear.pcap"
    async with clear_side(clear, broker, other) as port:
        url = f"amqps://127.0.0.1:{port}?cacertfile={folder / 'other.pem'}"
        with Recorder(recorded) as recorder:
            async with Proxy(recorder, url, port=0, ssl=own) as proxy:
                await asyncio.to_thread(CLIENTS[client], proxy.port, str(folder / "own.pem"))
                while proxy._links:
                    await asyncio.sleep(0.01)
    return recorded, clear


def check(recorded: Path, clear: Path) -> None:
    found = counted(recorded)
    assert found == counted(clear)
    kinds = {row["kind"]: row["messages"] for row in found["kinds"]["rows"]}
    assert kinds["publish"] == MESSAGES
    assert kinds.get("deliver", 0) + kinds.get("get-ok", 0) == MESSAGES
    assert found["totals"]["errors"] == found["totals"]["octets_missing"] == 0


@pytest.mark.parametrize("client", few(CLIENTS, 3, "further clients"))
async def test_a_recorded_client_has_the_counts_of_its_session_in_the_clear(
    client: str, tmp_path: Path
) -> None:
    pytest.importorskip(LIBRARIES.get(client, client))
    async with Broker() as broker:
        check(*await recorded_and_clear(client, broker.url, tmp_path))


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_recorded_client_at_a_rabbitmq_has_the_counts_of_its_session_in_the_clear(
    client: str, rabbitmq: str, tmp_path: Path
) -> None:
    pytest.importorskip(LIBRARIES.get(client, client))
    check(*await recorded_and_clear(client, rabbitmq, tmp_path))
