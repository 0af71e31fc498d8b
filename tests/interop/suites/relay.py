"""A SOCKS 5 proxy of the loopback interface: takes programs that insist on a port to another one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer

ACCEPTED = b"\x05\x00\x00\x01" + bytes(6)
REFUSED = b"\x05\x05\x00\x01" + bytes(6)
IPV4 = 1


class _Server(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    wanted: int
    target: int


class _Relay(StreamRequestHandler):
    """One connection, by an IPv4 address; its port is replaced."""

    server: _Server

    def handle(self) -> None:
        _, count = self.rfile.read(2)
        self.rfile.read(count)  # the ways to log in
        self.wfile.write(b"\x05\x00")
        request = self.rfile.read(4)
        assert request[3] == IPV4, request
        port = int.from_bytes(self.rfile.read(6)[4:], "big")
        try:
            peer = socket.create_connection(
                ("127.0.0.1", self.server.target if port == self.server.wanted else port)
            )
        except OSError:
            self.wfile.write(REFUSED)
            return
        self.wfile.write(ACCEPTED)
        with peer:
            back = threading.Thread(target=_pump, args=(peer, self.connection), daemon=True)
            back.start()
            _pump(self.connection, peer)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while octets := source.recv(1 << 16):
            target.sendall(octets)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def relay(wanted: int, target: int) -> Iterator[int]:
    """Give the port of a proxy as long as the context.

    Args:
        wanted: the port that programs ask for.
        target: the port that they get.
    """
    with _Server(("127.0.0.1", 0), _Relay) as server:
        server.wanted, server.target = wanted, target
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
