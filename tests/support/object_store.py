"""An S3 on the loopback, from the package moto, that answers late, in short pages, and breaks answers off."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import sleep
from typing import Any

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


class Store:
    """An S3 whose answers tests can change.

    Attributes:
        url: its endpoint.
        requests: each as `GET /bucket/key?query bytes=0-9`.
        delay: seconds that each answer takes longer.
        page: names that a listing has at most; 0 for 1,000.
        broken: how many of the next GETs with a range break off in the middle.
        most_together: how many requests it answered side by side at most.
    """

    def __init__(self) -> None:
        # The extra `stores`, which the first tier of tests does without.
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):
            protocol_version = "HTTP/1.1"

            def log(self, *_: Any) -> None:
                """Say nothing."""

        self._app: Any = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=Quiet)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.requests: list[str] = []
        self.delay = 0.0
        self.page = self.broken = 0
        self._lock = threading.Lock()
        self._together = self.most_together = 0

    def serve(self) -> None:
        """Answer until `shutdown`."""
        self._server.serve_forever(0.05)

    def shutdown(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()

    def gets(self) -> list[str]:
        """Return the ranges that were read since the last call, and forget all requests."""
        found = [request.rpartition(" ")[2] for request in self.requests if " bytes=" in request]
        self.requests.clear()
        return found

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterator[bytes]:
        query, range_ = environ.get("QUERY_STRING", ""), environ.get("HTTP_RANGE", "")
        with self._lock:
            self.requests.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{query} {range_}")
            breaks = bool(range_) and self.broken > 0
            self.broken -= breaks
            self._together += 1
            self.most_together = max(self.most_together, self._together)
        sleep(self.delay)
        if self.page and "list-type=2" in query:
            environ["QUERY_STRING"] = re.sub(r"max-keys=\d+", f"max-keys={self.page}", query)
        octets = b"".join(self._app(environ, start))
        with self._lock:
            self._together -= 1
        yield octets[: len(octets) // 2] if breaks else octets


@contextmanager
def object_store() -> Iterator[Store]:
    """Run an S3 inside the context."""
    store = Store()
    thread = threading.Thread(target=store.serve, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        store.shutdown()
        thread.join()
