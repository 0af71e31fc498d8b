"""The suite of RabbitMQ's Java client: the source package of Debian and Ubuntu, at the archives of Maven."""

from __future__ import annotations

import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import brokerj

from interop.building import DEPENDENCY, PROJECT, SILENT, SOURCES

from .relay import relay
from .running import fetch, run, source

VERSION = "5.0.0"
PACKAGE = "rabbitmq-java-client"
PORT = 5672  # at which the suite insists
NEEDED = (
    f"com.rabbitmq:amqp-client:{VERSION}",
    "junit:junit:4.12",
    "org.awaitility:awaitility:3.0.0",
    "org.mockito:mockito-core:2.10.0",
    "commons-cli:commons-cli:1.1",
    "io.dropwizard.metrics:metrics-core:3.2.4",
    SILENT,
)
TESTS = "com.rabbitmq.client.test"
SUITES = (f"{TESTS}.ClientTests", f"{TESTS}.functional.FunctionalTests", f"{TESTS}.server.ServerTests")
LEFT_OUT = (
    "ConnectionRecovery,restartingExpiry"  # they have RabbitMQ's management cut connections, or restart it
)
COMPONENTS = ("main", "universe")
INDEXES = ("indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
PASSED = "PASSED "


def passed(url: str) -> set[str]:
    """Run the tests of the Java client; returns those that have passed."""
    runtime, compiler = brokerj.program("java"), brokerj.program("javac")
    needed = "".join(DEPENDENCY.format(*each.split(":")) for each in NEEDED)
    libraries = f"{brokerj.libraries(f'java-suite-{VERSION}', PROJECT.format(needed))}{os.sep}*"
    with tempfile.TemporaryDirectory() as made:
        folder = source("java-suite", lambda: _package(Path(made)))
    if not (folder / "classes").exists():
        _compile(compiler, folder, libraries)
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dleft.out={LEFT_OUT}"]
    paths = (f"{folder / 'classes'}", f"{folder / 'src/test/resources'}", libraries)
    with relay(PORT, urlsplit(url).port or PORT) as proxy:
        # A proxy for the loopback interface as well, which is left out otherwise.
        sockets = ["-DsocksProxyHost=127.0.0.1", f"-DsocksProxyPort={proxy}", "-DsocksNonProxyHosts="]
        program = [
            runtime,
            *options,
            *sockets,
            "-cp",
            os.pathsep.join(paths),
            str(SOURCES / "java" / "Suites.java"),
        ]
        printed = run([*program, *SUITES], folder, subprocess.DEVNULL)
    return {line.removeprefix(PASSED) for line in printed.splitlines() if line.startswith(PASSED)}


def _compile(compiler: str, folder: Path, libraries: str) -> None:
    files = sorted(map(str, (folder / "src/test/java").rglob("*.java")))
    with tempfile.TemporaryDirectory(dir=folder) as made:
        options = ["-nowarn", "-encoding", "utf-8", "-cp", libraries, "-d", f"{made}/classes"]
        fetch([compiler, *options, *files], folder)
        Path(made, "classes").rename(folder / "classes")


def _package(folder: Path) -> Path:
    """Fetch the source package into a folder, from where the machine has its packages."""
    apt = brokerj.program("apt-get")
    indexes = sorted(set(fetch([apt, *INDEXES], folder).splitlines()))
    (folder / "sources.list").write_text(
        "".join(f"deb-src {line}\n" for line in indexes if line.split()[-1] in COMPONENTS), encoding="utf-8"
    )
    (folder / "lists").mkdir()
    settings = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": os.devnull,
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder,
    }
    command = [apt, *(f"-o{name}={value}" for name, value in settings.items())]
    fetch([*command, "update"], folder)
    printed = run([*command, "source", "--download-only", PACKAGE], folder, subprocess.STDOUT)
    archive = folder / f"{PACKAGE}_{VERSION}.orig.tar.gz"
    if not archive.exists():  # of the others none is needed, and some mirrors lack them
        raise RuntimeError(f"{PACKAGE} {VERSION} cannot be fetched:\n{printed[-2000:]}")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder / f"{PACKAGE}-{VERSION}"
