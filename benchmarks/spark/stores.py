"""How fast one task reads a capture in an object store, beside the same file on this machine.

    PYTHONPATH=benchmarks python -m spark.stores [--mb 512] [--delay 30]

The store is a process of its own that answers each request after a delay and then as fast as the loopback is,
since a store of the cloud has its own bounds. The rows are counted and compared.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import perf_counter, process_time, sleep

import pyarrow as pa
import pyarrow.compute as pc
from captures import capture

from amqpcodec import arrow
from amqpcodec.spark.files import open_file

CONNECTIONS = 8
COLUMNS = ["flow", "offset", "exchange", "routing_key", "body"]


def serve(path: Path, delay: float) -> None:
    """Answer as an S3 with one file in it, whatever its name; print the port, then each range."""
    size = path.stat().st_size

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            self.begin(200, size)

        def do_GET(self) -> None:
            first, last = map(int, re.findall(r"\d+", self.headers["Range"]))
            print(f"{first}-{last}", flush=True)
            count = min(last + 1, size) - first
            self.begin(206, count)
            with path.open("rb") as file:
                self.connection.sendfile(file, first, count)

        def begin(self, status: int, count: int) -> None:
            sleep(delay)
            self.send_response(status)
            self.send_header("Content-Length", str(count))
            self.send_header("Last-Modified", "Fri, 27 Nov 2026 12:00:00 GMT")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


def read(path: str) -> tuple[float, float, tuple[int, int]]:
    """Return seconds, CPU seconds, and the number of rows with the octets of their bodies."""
    begin, cpu = perf_counter(), process_time()
    session = arrow.CaptureSession(columns=COLUMNS)
    rows = octets = 0
    for batch in (*session.read(lambda: open_file(path), path), *session.finish()):
        rows += batch.num_rows
        octets += pc.sum(pc.binary_length(batch.column("body").cast(pa.large_binary()))).as_py() or 0
    return perf_counter() - begin, process_time() - cpu, (rows, octets)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How fast one task reads a capture in an object store.")
    parser.add_argument("--mb", type=int, default=512)
    parser.add_argument("--delay", type=float, default=30, help="milliseconds of each request")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.delay / 1000)
        return
    path, _ = capture(given.mb, CONNECTIONS, 0)
    command = [sys.executable, "-m", "spark.stores", "--serve", str(path), "--delay", str(given.delay)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        os.environ |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1"}
        os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        found = {"this machine": read(str(path)), "a store": read(f"s3://captures/{path.name}")}
        server.terminate()
        requests = len(server.stdout.read().split())
    assert found["this machine"][2] == found["a store"][2]
    for name, (seconds, cpu, (rows, _)) in found.items():
        print(f"{name:13} {given.mb / seconds:7.1f} MB/s {cpu:7.2f} CPU s {rows:11,} rows")
    print(f"{requests} requests with {given.delay:g} ms each for {given.mb} MB")


if __name__ == "__main__":
    main()
