"""``amqpcodec record``: a proxy between clients and a broker, which writes what passes to a capture."""

from __future__ import annotations

import argparse
import logging
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .._options import select
from ..options import RecorderOptions, RecordOptions
from . import EXIT_FAULTS, EXIT_OK, EXIT_UNUSABLE, inputs, output
from .options import add_own_options

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator
    from ssl import SSLContext
    from types import FrameType

    from ..record import Proxy, Recorder, RecorderStats


def add_parser(subparsers: Any) -> None:
    """Describe the subcommand's arguments."""
    parser = subparsers.add_parser(
        "record",
        help="record what clients and a broker say, through a proxy",
        description="Stand between clients and a broker, and write what passes to a capture (pcap), also of "
        "connections with TLS. Login data is blanked. Ends when it is interrupted.",
        epilog="Exit code: 0 all was recorded; 1 something was not, since the disk was full or slow; 2 the "
        "arguments, the port or the file cannot be used.",
    )
    parser.add_argument("file", metavar="FILE", help="the capture to write, which is replaced")
    add_own_options(parser, RecordOptions)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Record until interrupted; gives the exit code."""
    import asyncio

    from ..record import Recorder

    logging.basicConfig(format="amqpcodec: %(message)s", stream=sys.stderr)
    options = select(RecorderOptions, vars(arguments))
    try:
        proxy = _proxy(arguments)
        done = asyncio.run(_record(proxy, lambda: Recorder(arguments.file, **options)))
    except (OSError, ValueError) as error:
        name = getattr(error, "filename", None)
        output.complain(f"{name}: {inputs.reason(error)}" if name else inputs.reason(error))
        return EXIT_UNUSABLE
    _report(arguments.file, done)
    return EXIT_FAULTS if done.missing or done.missing_connections else EXIT_OK


def _proxy(arguments: argparse.Namespace) -> Proxy:
    from ..record import Proxy

    host, _, port = arguments.listen.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal() and int(port) < 1 << 16):
        raise ValueError(f"--listen {arguments.listen}: it is HOST:PORT")
    if "@" in arguments.to:
        raise ValueError("--to has no user: the clients log in themselves")
    return Proxy(
        None,
        arguments.to,
        host=host.strip("[]"),
        port=int(port),
        ssl=_context(arguments.certificate, arguments.key),
        rate=arguments.rate,
        largest=arguments.largest,
    )


def _context(certificate: str | None, key: str | None) -> SSLContext | None:
    """Return the context for clients; None for no TLS."""
    if certificate is None:
        if key is not None:
            raise ValueError("--key is that of a --certificate")
        return None
    import ssl

    for name in (certificate, key):
        if name is not None:
            with open(name, "rb"):  # whose error names the file, which those of TLS do not
                pass
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


async def _record(proxy: Proxy, make: Callable[[], Recorder]) -> RecorderStats:
    """Serve until a signal comes; what was recorded.

    The recorder is made last, since it replaces the file: another process may write that and have the port.
    """
    import asyncio

    ended = asyncio.Event()
    async with proxy:
        # A second signal does not cut off what the recorder still writes.
        with _signals_set(ended, asyncio.get_running_loop()), make() as proxy.recorder:
            with output.blaming_output():
                print(f"listening on {proxy.host}:{proxy.port}", flush=True)
            await ended.wait()
            await proxy.close()
    return proxy.recorder.stats()


@contextmanager
def _signals_set(ended: asyncio.Event, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Set an event at SIGINT, SIGTERM and Ctrl-Break, without a loop's own handlers, which Windows lacks."""
    import signal

    def told(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(ended.set)

    endings = {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGBREAK", signal.SIGINT)}
    before = {number: signal.signal(number, told) for number in endings}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report(file: str, done: RecorderStats) -> None:
    """Say what was recorded, and what was not."""
    connections = f"{done.connections} connection{'' if done.connections == 1 else 's'}"
    files = f", {done.files} files" if done.files > 1 else ""
    with output.blaming_output():
        print(f"{file}: {connections}, {done.recorded} bytes recorded{files}")
    if done.left_out:
        output.complain(f"{file}: {done.left_out} bytes were left out, since they are no AMQP")
    if done.missing or done.missing_connections:
        reason = f": {done.error}" if done.error else ": the disk was full, or slower than the traffic"
        missing = f"{done.missing} bytes, {done.missing_connections} whole connections"
        output.complain(f"{file}: not recorded: {missing}{reason}")
