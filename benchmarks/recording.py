"""`make bench-recording`: the CPU of `amqpcodec.record.Proxy` for a message, beside a plain proxy.

A client sends messages through a proxy of a process of its own, as fast as they are taken. Proxies take
turns: one of asyncio that does nothing else, this one with login data kept, and as it is by default.

    python benchmarks/recording.py [--messages 20000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import subprocess
import sys
import tempfile
import threading
from statistics import median
from time import process_time

from amqpcodec import rabbitmq as amqp
from amqpcodec.record import Proxy, Recorder

SIZES = (100, 1000, 10_000)
KINDS = ("plain", "recorded", "recorded and blanked")


class Plain(asyncio.Protocol):
    """One side of a proxy that does nothing else."""

    def __init__(self, port: int, other: Plain | None = None) -> None:
        self.port, self.other = port, other
        self.waiting = bytearray()

    def connection_made(self, transport) -> None:  # type: ignore[no-untyped-def]
        self.transport = transport
        if self.other is None:
            self.other = Plain(self.port, self)
            loop = asyncio.get_running_loop()
            self.task = loop.create_task(loop.create_connection(lambda: self.other, "127.0.0.1", self.port))
        else:
            self.transport.write(self.other.waiting)
            self.other.waiting = None

    def data_received(self, data: bytes) -> None:
        if self.waiting is None or hasattr(self.other, "transport"):
            self.other.transport.write(data)
        else:
            self.waiting += data

    def pause_writing(self) -> None:
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.other.transport.close()


async def serve(kind: str, port: int, file: str) -> None:
    """Be a proxy until standard input ends, and print the CPU seconds that it has taken."""
    begin = process_time()
    loop = asyncio.get_running_loop()
    ended = loop.run_in_executor(None, sys.stdin.read)
    if kind == "plain":
        server = await loop.create_server(lambda: Plain(port), "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await ended
        server.close()
    else:
        with Recorder(file, include_credentials=kind == "recorded") as recorder:
            async with Proxy(recorder, f"amqp://127.0.0.1:{port}", port=0) as proxy:
                print(proxy.port, flush=True)
                await ended
        assert recorder.stats().missing == 0, recorder.stats()
    print(process_time() - begin)


def seconds(kind: str, octets: bytes, folder: str) -> float:
    """Return the CPU seconds of a proxy that passes octets on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [
            sys.executable,
            __file__,
            "--serve",
            kind,
            str(listening.getsockname()[1]),
            f"{folder}/t.pcap",
        ]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        assert process.stdin is not None
        assert process.stdout is not None
        with socket.create_connection(("127.0.0.1", int(process.stdout.readline()))) as client:
            broker, _ = listening.accept()
            sender = threading.Thread(target=client.sendall, args=(octets,))
            sender.start()
            left = len(octets)
            while left:
                left -= len(broker.recv(1 << 18))
            sender.join()
        broker.close()
        out, _ = process.communicate()
    return float(out)


def main() -> None:
    """Print microseconds for a message."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        kind, port, file = arguments.serve
        asyncio.run(serve(kind, int(port), file))
        return
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            message = amqp.encode_message(1, amqp.Basic.Publish("orders", "eu"), None, bytes(size))
            octets = amqp.protocol_header() + message * arguments.messages
            found: dict[str, list[float]] = {kind: [] for kind in KINDS}
            for _ in range(arguments.rounds):
                for kind in KINDS:
                    found[kind].append(seconds(kind, octets, folder))
            plain = median(found["plain"])
            for kind in KINDS:
                each = median(found[kind])
                micros = each / arguments.messages * 1e6
                print(f"{size:6} octets  {kind:20}  {micros:7.2f} us a message  {each / plain:5.2f}")


if __name__ == "__main__":
    main()
