"""As much of Docker's API as some suites ask for a RabbitMQ by. It runs already; its ports are given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def docker(ports: dict[str, int]) -> Iterator[str]:
    """Serve it; gives what ``DOCKER_HOST`` has to be.

    Args:
        ports: where the ports of any container are found, by names such as ``"5672/tcp"``.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path.startswith("/containers/create"):
                self._answer(201, {"Id": "broker"})
            elif self.path.startswith("/images/create"):
                self._answer(200, {})
            else:
                self._answer(204, None)

        def do_GET(self) -> None:
            bindings = {
                name: [{"HostIp": "127.0.0.1", "HostPort": str(port)}] for name, port in ports.items()
            }
            self._answer(200, {"NetworkSettings": {"Ports": bindings}})

        def do_DELETE(self) -> None:
            self._answer(204, None)

        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, status: int, value: object) -> None:
            body = b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"tcp://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
