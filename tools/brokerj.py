"""Start an Apache Qpid Broker-J for tests: on the loopback interface, in memory, gone afterwards.

Maven fetches it once into ``.cache/brokerj-VERSION``. As a command it runs another one beside a broker:
``python tools/brokerj.py command arguments...`` with ``BROKERJ_URL`` and ``BROKERJ_ANONYMOUS_URL`` set.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

VERSION = "10.1.0"
CACHE = Path(__file__).resolve().parent.parent / ".cache"
# Of the broker itself nothing but its main class: it would bring stores and a console, which take 200 MB.
ARTIFACTS = ("core", "plugins-amqp-0-8-protocol", "plugins-memory-store", "plugins-logging-logback")
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <parent>
    <groupId>org.apache.qpid</groupId><artifactId>qpid-broker-parent</artifactId><version>{version}</version>
  </parent>
  <artifactId>brokerj</artifactId>
  <dependencies>
    <dependency>
      <groupId>org.apache.qpid</groupId><artifactId>qpid-broker</artifactId><version>{version}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>
    <dependency><groupId>commons-cli</groupId><artifactId>commons-cli</artifactId></dependency>{artifacts}
  </dependencies>
</project>
"""
ARTIFACT = """
    <dependency>
      <groupId>org.apache.qpid</groupId><artifactId>qpid-broker-{name}</artifactId><version>{version}</version>
    </dependency>"""
# Of Debian.
PACKAGES = {
    "cargo": "cargo", "go": "golang-go", "java": "default-jdk-headless", "javac": "default-jdk-headless",
    "mcs": "mono-mcs", "mono": "mono-runtime", "mvn": "maven", "node": "nodejs", "npm": "npm",
}  # fmt: skip
MODEL = "9.1"  # of the settings
READY = "BRK-1004"  # what it prints once its virtual host takes connections
# Ends the broker, and removes its folder, once no one holds the other end of the standard input: neither does
# a runner that was killed.
GUARD = """\
exec 3<&0
"$@" 3<&- & broker=$!
(read -r _ <&3; kill -9 $broker) & watch=$!
wait $broker; code=$?
kill $watch 2>/dev/null
rm -rf "$FOLDER"
exit $code
"""
FETCH_SECONDS = 600
START_SECONDS = 120  # on a machine that is busy with other things
STOP_SECONDS = 20


class NotInstalledError(Exception):
    """A program is missing; the text says which, and how to get it."""


class BrokerJ:
    """One running broker.

    Args:
        java: the program.
        libraries: a folder with the broker's archives.

    Attributes:
        process: the guard of the broker, which leads a session of its own.
        port: takes the mechanisms PLAIN and those of its kind; the login is guest, guest.
        anonymous_port: takes ANONYMOUS.
    """

    def __init__(self, java: str, libraries: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="amqpcodec-brokerj-"))
        self.port, self.anonymous_port = _free_ports(2)
        settings = self._folder / "settings.json"
        settings.write_text(json.dumps(_settings(self.port, self.anonymous_port)), encoding="utf-8")
        self._log = self._folder / "console.log"
        self._last = ""
        # The heap is small, and the compiler is left at its quick level: a run is short.
        options = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{libraries}{os.sep}*"]
        broker = ["org.apache.qpid.server.Main", "-st", "Memory", "-icp", str(settings)]
        with self._log.open("wb") as log:
            # A session of its own: a Ctrl-C is not theirs.
            self.process = subprocess.Popen(
                ["sh", "-c", GUARD, "sh", java, *options, *broker, "-prop", f"qpid.work_dir={self._folder}"],
                env={**os.environ, "FOLDER": str(self._folder)},
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def url(self) -> str:
        """The URL for a login by name and password."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    @property
    def anonymous_url(self) -> str:
        """The URL for a login without a name."""
        return f"amqp://127.0.0.1:{self.anonymous_port}/"

    def wait(self) -> None:
        """Return once the broker is ready.

        Raises:
            RuntimeError: it ended, or said nothing for too long; with the end of what it printed.
        """
        deadline = time.monotonic() + START_SECONDS
        while READY not in (log := self._printed()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Broker-J does not start:\n{log[-2000:]}")
            time.sleep(0.05)

    def _printed(self) -> str:
        with suppress(FileNotFoundError):  # once it has ended, its folder is gone
            self._last = self._log.read_text("utf-8", "replace")
        return self._last

    def stop(self) -> None:
        """End the broker, and remove its folder."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(STOP_SECONDS)


@contextmanager
def started() -> Iterator[BrokerJ]:
    """Give a broker that runs as long as the context.

    Raises:
        NotInstalledError: a program is missing.
        RuntimeError: the broker cannot be fetched, or does not start.
    """
    java = program("java")
    program("sh")
    broker = BrokerJ(java, libraries(f"brokerj-{VERSION}", _pom()))
    try:
        broker.wait()
        yield broker
    finally:
        broker.stop()


def libraries(name: str, pom: str) -> Path:
    """Return a folder of the cache with the archives that a project of Maven needs, fetched once.

    Args:
        name: of the folder.
        pom: the project.

    Raises:
        NotInstalledError: Maven is missing.
        RuntimeError: Maven cannot fetch them; with the end of what it printed.
    """
    folder = CACHE / name
    if folder.exists():
        return folder
    maven = program("mvn")
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as made:
        Path(made, "pom.xml").write_text(pom, encoding="utf-8")
        command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={Path(made, 'lib')}"],
            cwd=made,
            capture_output=True,
            encoding="utf-8",
            timeout=FETCH_SECONDS,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"Maven cannot fetch {name}:\n{done.stdout[-2000:]}")
        with suppress(OSError):  # where another process was quicker
            Path(made, "lib").rename(folder)
    return folder


def _pom() -> str:
    artifacts = "".join(ARTIFACT.format(name=name, version=VERSION) for name in ARTIFACTS)
    return POM.format(version=VERSION, artifacts=artifacts)


def _settings(port: int, anonymous_port: int) -> dict[str, object]:
    users = [{"name": "guest", "type": "managed", "password": "guest"}]
    # Each host has one name, and the first is the default.
    aliases = [{"name": name, "type": name} for name in ("nameAlias", "defaultAlias")]
    return {
        "name": "brokerj",
        "modelVersion": MODEL,
        "authenticationproviders": [
            {"name": "plain", "type": "Plain", "secureOnlyMechanisms": [], "users": users},
            {"name": "anonymous", "type": "Anonymous"},
        ],
        "ports": [
            {
                "name": name, "type": "AMQP", "bindingAddress": "127.0.0.1", "port": number,
                "authenticationProvider": name, "virtualhostaliases": aliases,
            }
            for name, number in (("plain", port), ("anonymous", anonymous_port))
        ],
        "virtualhostnodes": [
            {
                "name": "default", "type": "Memory", "defaultVirtualHostNode": True,
                "virtualHostInitialConfiguration": json.dumps({"type": "Memory"}),
            }
        ],
    }  # fmt: skip


def program(name: str) -> str:
    """Return the path of a program.

    Args:
        name: of it.

    Raises:
        NotInstalledError: it is missing; with the way to get it.
    """
    found = shutil.which(name)
    if found is None:
        hint = f" (Debian: apt-get install {PACKAGES[name]})" if name in PACKAGES else ""
        raise NotInstalledError(f"{name} is not installed{hint}")
    return found


def _free_ports(count: int) -> list[int]:
    # All are held at once, so that they differ.
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def main(command: Sequence[str]) -> int:
    """Run a command beside a broker; its exit code."""
    try:
        with started() as broker:
            urls = {"BROKERJ_URL": broker.url, "BROKERJ_ANONYMOUS_URL": broker.anonymous_url}
            return subprocess.run(command, env={**os.environ, **urls}, check=False).returncode
    except (NotInstalledError, RuntimeError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
