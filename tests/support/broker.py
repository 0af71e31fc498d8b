"""A RabbitMQ node for tests: on the loopback interface, in a folder of its own, gone afterwards.

``AMQP_URL`` in the environment names a broker to use instead. ``AMQPCODEC_BROKER`` names a version of
RabbitMQ, such as ``4.3``, that ``tools/rabbitmq.sh`` has installed under ``build``; without it, that of the
machine is taken. As a command it runs another one beside a node: ``python tests/support/broker.py command
arguments...`` with ``AMQP_URL`` set.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import SystemRandom

# Where packages keep the script itself; the one on the PATH is often a wrapper that insists on its own user.
FOLDERS = (
    "/usr/lib/rabbitmq/bin",
    "/opt/rabbitmq/sbin",
    "/opt/homebrew/opt/rabbitmq/sbin",
    "/usr/local/opt/rabbitmq/sbin",
)
CHOSEN = "AMQPCODEC_BROKER"
# Ends the node, its port mapper, which refuses while it knows a node, and its folder. It does so once no one
# holds the other end of the standard input: nor does a process that was killed. Each line is the process
# group of the node, or empty while there is none.
WATCH = """\
while read -r line; do group=$line; done
[ -z "$group" ] || kill -s KILL -- "-$group"
for seconds in 0 0.2 0.5; do sleep $seconds; epmd -port "$ERL_EPMD_PORT" -kill && break; done
rm -rf "$HOME"
"""
START_SECONDS = 240  # on a machine that is busy with other things
STOP_SECONDS = 20
PORTS = range(25000, 32768)  # below those that Linux, macOS and Windows give to connections


class NoBrokerError(Exception):
    """No RabbitMQ can be started; the text says what is missing."""


@contextmanager
def broker() -> Iterator[str]:
    """Give the URL of a broker: that of ``AMQP_URL``, or of a node that runs as long as the context.

    Raises:
        NoBrokerError: RabbitMQ is not installed.
        RuntimeError: RabbitMQ is installed, and does not start.
    """
    if given := os.environ.get("AMQP_URL"):
        yield given
        return
    with started() as node:
        yield node.url


@contextmanager
def started(
    port: int = 0, settings: str = "", terms: str = "", plugins: tuple[str, ...] = ()
) -> Iterator[Node]:
    """Give a node of one's own.

    Args:
        port: to listen on; 0 for any that is free.
        settings: further lines of its ``rabbitmq.conf``.
        terms: of Erlang, for the application in its ``advanced.config``.
        plugins: that are on.

    Raises:
        NoBrokerError, RuntimeError: as `broker`.
    """
    script = _script()
    with tempfile.TemporaryDirectory(prefix="amqpcodec-broker-", ignore_cleanup_errors=True) as folder:
        node = Node(script, Path(folder), port, settings, terms, plugins)
        try:
            node.wait()
            yield node
        finally:
            node.stop()


class Node:
    """One running node.

    Args:
        script: RabbitMQ's start script.
        folder: an empty folder for its database, log, cookie and settings.
        port, settings, terms, plugins: as `started` takes them.
    """

    def __init__(
        self,
        script: Path,
        folder: Path,
        port: int,
        settings: str,
        terms: str = "",
        plugins: tuple[str, ...] = (),
    ) -> None:
        self.folder = folder
        free, distribution, self.epmd_port = free_ports(3)
        self.port = port or free
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\ndisk_free_limit.absolute = 1MB\n"
            f"log.file.level = warning\n{settings}\n",
            encoding="utf-8",
        )
        (folder / "enabled_plugins").write_text(f"[{','.join(plugins)}].\n", encoding="utf-8")
        (folder / "advanced.config").write_text(f"[{{rabbit, [{terms}]}}].\n", encoding="utf-8")
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("RABBITMQ_", "ERL_"))},
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"amqpcodec-{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
            "RABBITMQ_SCHEMA_DIR": str(folder / "schema"),
        }
        self._script = script
        self._watch = subprocess.Popen(
            ["sh", "-c", WATCH],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.start()

    def start(self) -> None:
        """Begin to start the node, for the first time or after `end`."""
        with (self.folder / "console.log").open("wb") as console:
            # A session of its own: its processes are stopped together, and a Ctrl-C is not theirs.
            self.process = subprocess.Popen(
                [str(self._script)],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._tell(str(self.process.pid))

    def _tell(self, group: str) -> None:
        """Tell the watch which processes are to be ended."""
        assert self._watch.stdin is not None
        self._watch.stdin.write(f"{group}\n".encode())
        self._watch.stdin.flush()

    def wait(self) -> None:
        """Return once the node speaks AMQP.

        Raises:
            RuntimeError: it ended, or said nothing for too long; with the end of what it printed.
        """
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                printed = (self.folder / "console.log").read_text(errors="replace", encoding="utf-8")
                raise RuntimeError(f"RabbitMQ does not start:\n{printed[-2000:]}")
            time.sleep(0.05)

    def end(self, kindly: bool = True) -> None:
        """End the node, which may be started again; if it is not to be kindly, at once."""
        if kindly:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._tell("")

    def stop(self) -> None:
        """End the node, the port mapper that it started, and its folder."""
        self.end()
        assert self._watch.stdin is not None
        self._watch.stdin.close()
        self._watch.wait(STOP_SECONDS)

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.settimeout(5)
            connection.sendall(b"AMQP\0\0\x09\1")
            return connection.recv(1) == b"\1"
        return False


def _script() -> Path:
    if version := os.environ.get(CHOSEN):
        folder = Path(__file__).resolve().parents[2] / "build" / f"rabbitmq-{version}"
        if not os.access(folder / "bin" / "rabbitmq-server", os.X_OK):
            raise NoBrokerError(f"RabbitMQ {version} is not installed: tools/rabbitmq.sh {version} {folder}")
        return folder / "bin" / "rabbitmq-server"
    for folder in map(Path, FOLDERS):
        if os.access(folder / "rabbitmq-server", os.X_OK):
            return folder / "rabbitmq-server"
    found = shutil.which("rabbitmq-server")
    if found is None:
        raise NoBrokerError(
            "RabbitMQ is not installed (Debian: apt-get install rabbitmq-server), and AMQP_URL is not set"
        )
    return Path(found).resolve()


def free_ports(count: int) -> list[int]:
    """So many ports of the loopback interface that nobody listens on.

    No connection is given one of them, so that they stay free for a node that is down for a while.
    """
    ports: list[int] = []
    with ExitStack() as held:  # all at once, so that they differ
        for port in SystemRandom().sample(PORTS, len(PORTS)):
            if len(ports) == count:
                break
            with suppress(OSError):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
                ports.append(port)
    return ports


def main(command: list[str]) -> int:
    """Run a command beside a broker; its exit code."""
    with broker() as url:
        return subprocess.run(command, env={**os.environ, "AMQP_URL": url}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
